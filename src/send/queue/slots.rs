//! Slots: taken by a pick or an admission, held by an attempt, given back at its end.

use std::time::Duration;

use jiff::Timestamp;

use super::effects::Running;
use super::state::{QueueId, State};
use super::target::{Admitted, Lanes, Target};
use crate::clock::until;
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::{Next, Outcome, State as DeliveryState};
use crate::inbox::{Claim, DeliveryId, LaneRecord, Want};
use crate::notification::Name;

/// The subject that all notifications of an attempt share.
fn subject(claim: &Claim) -> Option<&str> {
    let mut subjects = claim.notifications.iter().map(|notification| notification.event.subject.as_deref());
    let first = subjects.next()??;
    subjects.all(|subject| subject == Some(first)).then_some(first)
}

impl State {
    pub(super) fn take(&mut self, id: QueueId, lanes: &Lanes, attempts: u32) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.held = queue.held.saturating_add(attempts);
        self.held = self.held.saturating_add(attempts);
        let workspace = self.workspaces.entry(queue.key.workspace.clone()).or_default();
        workspace.held = workspace.held.saturating_add(attempts);
        for lane in lanes.iter() {
            if let Some(lane) = self.lanes.get_mut(lane) {
                lane.take(attempts);
            }
        }
    }

    /// Gives slots back, of which so many made no effect.
    fn give_back_slots(&mut self, id: QueueId, lanes: &Lanes, attempts: u32, unused: u32, now: Timestamp) {
        self.held = self.held.saturating_sub(attempts);
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.held = queue.held.saturating_sub(attempts);
            let name = queue.key.workspace.clone();
            self.relieve(&name, attempts);
        }
        for lane_id in lanes.iter() {
            if let Some(lane) = self.lanes.get_mut(lane_id) {
                lane.leave(attempts, unused);
            }
            self.serve(*lane_id, now);
            self.touch(*lane_id);
            self.ring(*lane_id);
        }
        if !self.ring.is_empty() || !self.sharing.is_empty() {
            self.has_news = true;
        }
    }

    /// A workspace holds less: it may stand in the ring again.
    fn relieve(&mut self, name: &Name, attempts: u32) {
        let free = self.free();
        let Some(workspace) = self.workspaces.get_mut(name) else { return };
        workspace.held = workspace.held.saturating_sub(attempts);
        if !workspace.ready.is_empty() && !workspace.in_ring && workspace.held < free {
            workspace.in_ring = true;
            self.ring.push_back(name.clone());
        }
        if workspace.is_idle() {
            self.workspaces.remove(name);
        }
    }

    /// What a claim brought.
    pub(super) fn claimed(&mut self, want: &Want, claims: &[Claim], next_due: Option<Timestamp>, now: Timestamp) {
        let id = self.queue(&want.queue);
        let lanes = self.queues.get(&id).and_then(|queue| queue.asked.as_ref()).map(|asked| asked.lanes.clone());
        let bound = lanes.map_or(&[][..], |lanes| {
            let most =
                self.queues.get(&id).and_then(|queue| queue.asked.as_ref()).map_or(0, |asked| asked.most as usize);
            let (bound, _) = claims.split_at(most.min(claims.len()));
            for claim in bound {
                self.begin(id, claim, lanes.clone());
            }
            bound
        });
        let asked = self.queues.get_mut(&id).and_then(|queue| queue.answered(claims.len(), next_due, now));
        if let Some(asked) = asked {
            self.asked = self.asked.saturating_sub(asked.most);
            let unused = asked.most.saturating_sub(u32::try_from(bound.len()).unwrap_or(u32::MAX));
            self.give_back_slots(id, &asked.lanes, unused, unused, now);
        }
        for claim in claims.iter().skip(bound.len()) {
            self.running(claim);
        }
        self.settle(id, now);
    }

    /// A claim call failed.
    pub(super) fn failed(&mut self, want: &Want, now: Timestamp) {
        let Some(id) = self.by_key.get(&want.queue).copied() else { return };
        let Some(asked) = self.queues.get_mut(&id).and_then(Target::unanswered) else { return };
        self.asked = self.asked.saturating_sub(asked.most);
        self.give_back_slots(id, &asked.lanes, asked.most, asked.most, now);
        self.settle(id, now);
    }

    fn begin(&mut self, id: QueueId, claim: &Claim, lanes: Lanes) {
        let subject = self.queues.get_mut(&id).and_then(|queue| queue.begin_subject(subject(claim)));
        self.attempts.insert(claim.id.clone(), Running::new(id, lanes, subject));
    }

    /// Finds the attempt of a claim. One that was admitted takes the slot it was promised; one that nobody knows takes
    /// one whatever the limits say, since it is under way.
    pub(super) fn running(&mut self, claim: &Claim) {
        if self.attempts.contains_key(&claim.id) {
            return;
        }
        let id = self.queue(&claim.queue);
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let subject = subject(claim);
        let of_subject = queue.admitted.iter().position(|admitted| admitted.subject.as_deref() == subject);
        let position = of_subject.or_else(|| queue.admitted.len().checked_sub(1));
        if let Some(Admitted { subject, lanes }) = position.map(|position| queue.admitted.swap_remove(position)) {
            self.attempts.insert(claim.id.clone(), Running::new(id, lanes, subject));
        } else {
            let lanes = self.lanes_needed(id);
            self.take(id, &lanes, 1);
            self.begin(id, claim, lanes);
        }
    }

    /// What of the lanes of an attempt must be kept; `delay` pauses them first.
    pub(super) fn records(&mut self, claim: &Claim, delay: Option<Duration>, now: Timestamp) -> Vec<LaneRecord> {
        self.running(claim);
        let Some(lanes) = self.attempts.get(&claim.id).map(|running| running.lanes.clone()) else { return Vec::new() };
        let mut records = Vec::new();
        for id in lanes.iter() {
            let Some(lane) = self.lanes.get_mut(id) else { continue };
            lane.ask(now, delay.unwrap_or_default());
            records.extend(lane.record(now));
        }
        records
    }

    /// An attempt ended or rests.
    pub(super) fn ended(&mut self, claim: &Claim, next: &Next, outcome: Option<Outcome>, now: Timestamp) {
        self.running(claim);
        self.stop_waiting(&claim.id);
        let Some(running) = self.attempts.remove(&claim.id) else { return };
        let id = running.queue;
        if let Some(outcome) = outcome {
            self.learn(&running, next, outcome, now);
        }
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.end_subject(running.subject.as_deref());
            let holds = matches!(next.state, DeliveryState::Retrying | DeliveryState::Waiting);
            let is_due_again = holds || next.state == DeliveryState::Pending;
            queue.ended(claim.id.number, next.next_at.filter(|_| is_due_again), holds);
        }
        self.give_back_slots(id, &running.lanes, 1, u32::from(running.is_promised), now);
        self.settle(id, now);
    }

    fn learn(&mut self, running: &Running, next: &Next, outcome: Outcome, now: Timestamp) {
        for id in running.lanes.iter() {
            let Some(lane) = self.lanes.get_mut(id) else { continue };
            let queue = self.queues.get(&running.queue);
            let is_alone = |at| lane.waiting.is_empty() && queue.is_some_and(|queue| !queue.has_other_before(at));
            let own_wait = next.next_at.filter(|at| is_alone(*at)).map(|at| until(now, at));
            lane.learn(now, outcome, own_wait);
        }
    }

    /// Whether an attempt for this queue can start now; it then counts as started. If not, the delivery that asked is due:
    /// no later one may pass it before the store's own news of it comes.
    pub(super) fn admit(&mut self, key: &QueueKey, subject: Option<&str>, now: Timestamp) -> bool {
        if self.closed {
            return false;
        }
        let has_target = |id: &QueueId| self.queues.get(id).is_some_and(|queue| queue.rule.is_some());
        let Some(id) = self.by_key.get(key).copied().filter(has_target) else { return false };
        let lanes = self.lanes_needed(id);
        let is_free = self.queues.get(&id).is_some_and(|queue| {
            !queue.is_blocked()
                && !queue.has_backlog(now)
                && !queue.is_busy(subject)
                && queue.own_room() > 0
                && self.share(queue).room(1) > 0
        });
        let lets_in = |id| {
            let lane = self.lanes.get_mut(id);
            lane.is_none_or(|lane| lane.waiting.is_empty() && lane.room(now) > lane.called)
        };
        if !is_free || !lanes.iter().all(lets_in) {
            self.due(key, now, now);
            return false;
        }
        self.take(id, &lanes, 1);
        if let Some(queue) = self.queues.get_mut(&id) {
            let subject = queue.begin_subject(subject);
            queue.admitted.push(Admitted { subject, lanes });
        }
        true
    }

    /// Takes back what was admitted and not written.
    pub(super) fn give_back(&mut self, key: &QueueKey, subject: Option<&str>, now: Timestamp) {
        let Some(id) = self.by_key.get(key).copied() else { return };
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let of_subject = queue.admitted.iter().position(|admitted| admitted.subject.as_deref() == subject);
        let Some(position) = of_subject.or_else(|| queue.admitted.len().checked_sub(1)) else { return };
        let admitted = queue.admitted.swap_remove(position);
        queue.end_subject(admitted.subject.as_deref());
        self.give_back_slots(id, &admitted.lanes, 1, 1, now);
        self.settle(id, now);
    }

    /// Attempts under way.
    pub(super) fn in_flight(&self) -> usize {
        self.held.saturating_sub(self.asked) as usize
    }

    /// How long the lanes of an attempt are paused by their destination.
    pub(super) fn paused_until(&mut self, claim: &Claim, now: Timestamp) -> Option<Timestamp> {
        self.running(claim);
        let lanes = self.attempts.get(&claim.id)?.lanes.clone();
        lanes.iter().filter_map(|id| self.lanes.get_mut(id)?.asked_until(now)).max()
    }

    /// An attempt no longer waits for an effect.
    pub(super) fn stop_waiting(&mut self, delivery: &DeliveryId) {
        let Some(running) = self.attempts.get_mut(delivery) else { return };
        running.is_let_out = false;
        if let Some(waiter) = running.waiter.take()
            && let Some(lane) = self.lanes.get_mut(&waiter.lane)
        {
            lane.effects.remove(&waiter.place);
            self.touch(waiter.lane);
            self.ring(waiter.lane);
        }
    }
}
