//! Whose turn it is: round the workspaces, and within each round its queues.

use jiff::Timestamp;

use super::Picked;
use super::state::{LaneId, QueueId, State, Timer};
use super::target::{Lanes, Stand, Target};

/// Attempts that one pick lets start: a claim of that many takes the store a few milliseconds.
pub const PICK_MOST: u32 = 256;

/// Attempts of one queue that one pick lets start.
pub const PICK_QUEUE_MOST: u32 = 64;

/// What every queue gets before any gets more, so that sixty queues fit into one pick.
const FIRST_MOST: u32 = 4;

/// What each gets more in each of so many rounds while there is something left: [`PICK_QUEUE_MOST`] in all.
const MORE_MOST: u32 = (PICK_QUEUE_MOST - FIRST_MOST) / MORE_ROUNDS;
const MORE_ROUNDS: u32 = 4;

/// Timers that one pick looks at: the lock is held meanwhile, and intake waits for it.
const TIMERS_MOST: usize = 1_024;

/// Workspaces with queues that have their share that one pick looks at again.
const SHARES_MOST: usize = 64;

impl State {
    pub(super) fn pick(&mut self, now: Timestamp) -> Picked {
        if self.closed {
            return Picked::default();
        }
        self.examined += 1;
        if now < self.seen {
            self.went_back();
        }
        self.seen = now;
        let all_fired = self.fire(now);
        let mut budget = PICK_MOST;
        let mut shares = SHARES_MOST;
        let mut asked = Vec::new();
        self.call(now);
        while budget > 0 && self.free() > 0 {
            let Some(id) = self.next_ready() else {
                if shares > 0 && self.look_at_shares(&mut shares) {
                    continue;
                }
                break;
            };
            let taken = self.try_queue(id, FIRST_MOST.min(budget), now);
            if taken > 0 {
                budget -= taken;
                asked.push(id);
            }
            self.call(now);
        }
        for _ in 0..MORE_ROUNDS {
            for id in &asked {
                budget -= self.extend(*id, MORE_MOST.min(budget), now);
            }
        }
        let wants = asked.iter().filter_map(|id| self.queues.get(id)?.want()).collect();
        let has_more = !all_fired || (budget == 0 && !self.ring.is_empty() && self.free() > 0);
        let wake_at = if has_more { Some(now) } else { self.timers.first().map(|(at, _)| *at) };
        self.promised = wake_at;
        self.has_news = false;
        Picked { wants, wake_at }
    }

    /// Moves what time moves. Returns whether that was all.
    fn fire(&mut self, now: Timestamp) -> bool {
        for _ in 0..TIMERS_MOST {
            let Some((at, timer)) = self.timers.first().copied().filter(|(at, _)| *at <= now) else { return true };
            self.examined += 1;
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Queue(id) => {
                    if let Some(queue) = self.queues.get_mut(&id) {
                        queue.stand = Stand::Idle;
                    }
                    self.settle(id, now);
                }
                Timer::Lane(id) => {
                    if let Some(lane) = self.lanes.get_mut(&id) {
                        lane.timer = None;
                    }
                    self.touch(id);
                }
            }
        }
        self.timers.first().is_none_or(|(at, _)| *at > now)
    }

    /// The clock was set back: lanes, whose pauses and pace are lengths, are looked at again. What the store said is due at a
    /// time stays due at that time.
    fn went_back(&mut self) {
        for (id, lane) in &mut self.lanes {
            if let Some(at) = lane.timer.take() {
                self.timers.remove(&(at, Timer::Lane(*id)));
                lane.is_touched = true;
                self.touched.push_back(*id);
            }
        }
    }

    /// Lets lanes that have room tell those first in line to try.
    fn call(&mut self, now: Timestamp) {
        while let Some(id) = self.touched.pop_front() {
            self.examined += 1;
            self.serve(id, now);
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            lane.is_touched = false;
            let room = lane.room(now).saturating_sub(lane.called);
            let mut called = Vec::new();
            while called.len() < room as usize
                && let Some((_, _, queue)) = lane.waiting.pop_first()
            {
                called.push(queue);
            }
            lane.called = lane.called.saturating_add(u32::try_from(called.len()).unwrap_or(u32::MAX));
            self.wake_lane_later(id, now);
            for queue_id in called {
                self.examined += 1;
                if let Some(queue) = self.queues.get_mut(&queue_id) {
                    queue.called_by = Some(id);
                }
                self.push_ready(queue_id);
            }
        }
    }

    /// Has a lane that somebody waits for looked at when time makes room in it.
    fn wake_lane_later(&mut self, id: LaneId, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if lane.waiting.is_empty() {
            return;
        }
        let Some(at) = lane.opens_at(now).filter(|at| *at > now && lane.timer != Some(*at)) else { return };
        if let Some(before) = lane.timer.replace(at) {
            self.timers.remove(&(before, Timer::Lane(id)));
        }
        self.add_timer(at, Timer::Lane(id));
    }

    /// The next queue in the round.
    fn next_ready(&mut self) -> Option<QueueId> {
        loop {
            let free = self.free();
            let name = self.ring.pop_front()?;
            self.examined += 1;
            let Some(workspace) = self.workspaces.get_mut(&name) else { continue };
            workspace.in_ring = false;
            if workspace.held >= free {
                self.set_sharing(name);
                continue;
            }
            let id = workspace.ready.pop_front();
            if !workspace.ready.is_empty() {
                workspace.in_ring = true;
                self.ring.push_back(name.clone());
            } else if workspace.is_idle() {
                self.workspaces.remove(&name);
            }
            if let Some(id) = id.filter(|id| self.queues.get(id).is_some_and(|queue| queue.stand == Stand::Ready)) {
                return Some(id);
            }
        }
    }

    /// Looks at workspaces that have their share, or queues of which do. Returns whether one came back into the ring.
    fn look_at_shares(&mut self, most: &mut usize) -> bool {
        while *most > 0
            && let Some(name) = self.sharing.pop_front()
        {
            *most -= 1;
            self.examined += 1;
            let free = self.free();
            let Some(workspace) = self.workspaces.get_mut(&name) else { continue };
            workspace.in_sharing = false;
            let may_go = workspace.held < free;
            let returns = may_go && !workspace.ready.is_empty() && !workspace.in_ring;
            if returns {
                workspace.in_ring = true;
                self.ring.push_back(name.clone());
            }
            let first = workspace.sharing.first().map(|(_, id)| *id);
            let relieved = first.filter(|id| self.queues.get(id).is_some_and(|queue| self.share(queue).is_relieved()));
            if let Some(id) = relieved {
                self.unplace(id);
                if let Some(queue) = self.queues.get_mut(&id) {
                    queue.has_share = true;
                }
                self.push_ready(id);
            }
            let Some(workspace) = self.workspaces.get(&name) else { continue };
            if !workspace.sharing.is_empty() || (!workspace.ready.is_empty() && !workspace.in_ring) {
                self.set_sharing(name);
            }
            if returns || relieved.is_some() {
                return true;
            }
        }
        false
    }

    /// Takes up to `most` slots for a queue whose turn it is, or lets it wait where it must. Returns how many.
    fn try_queue(&mut self, id: QueueId, most: u32, now: Timestamp) -> u32 {
        self.examined += 1;
        let called_by = self.answer_call(id);
        let Some(queue) = self.queues.get_mut(&id) else { return 0 };
        queue.stand = Stand::Idle;
        if queue.eligible_at().is_none_or(|at| at > now) {
            self.settle(id, now);
            return 0;
        }
        let most = self.room_in_share(id, most);
        if most == 0 {
            self.wait_for_share(id);
            return 0;
        }
        let lanes = self.lanes_needed(id);
        let mut slots = most;
        for lane_id in lanes.iter() {
            let room = self.room_in_lane(id, *lane_id, called_by, now);
            if room == 0 {
                self.wait_for(id, *lane_id);
                return 0;
            }
            slots = slots.min(room);
        }
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.ask(slots, lanes.clone());
        }
        self.asked += slots;
        self.take(id, &lanes, slots);
        slots
    }

    /// How many attempts a queue may have more of the process. None if it has some and others have waited for more.
    fn room_in_share(&mut self, id: QueueId, most: u32) -> u32 {
        let Some(queue) = self.queues.get_mut(&id) else { return 0 };
        let is_first = std::mem::take(&mut queue.has_share) || queue.held == 0;
        let workspace = self.workspaces.get(&queue.key.workspace);
        if !is_first && workspace.is_some_and(|workspace| !workspace.sharing.is_empty()) {
            return 0;
        }
        let most = most.min(queue.own_room());
        self.queues.get(&id).map_or(0, |queue| self.share(queue).room(most))
    }

    /// How many attempts of a queue a lane takes now. Nobody passes those that wait for it, except who waited for another
    /// lane of his own and was told to try: he takes room where there is room, unless the lane is ordered and an earlier
    /// one waits. So whoever was told to try either starts or waits for a lane that is full, and two lanes never send
    /// the same queues to and fro.
    fn room_in_lane(&mut self, id: QueueId, lane_id: LaneId, called_by: Option<LaneId>, now: Timestamp) -> u32 {
        let Some(queue) = self.queues.get(&id) else { return 0 };
        let Some(lane) = self.lanes.get_mut(&lane_id) else { return u32::MAX };
        let room = lane.room(now);
        let left = room.saturating_sub(lane.called);
        if called_by.is_none() {
            return if lane.waiting.is_empty() { left } else { 0 };
        }
        let place = (queue.due_since(), queue.turn.unwrap_or_default(), id);
        let is_behind = called_by != Some(lane_id) && lane.is_ordered() && lane.waiting.first() < Some(&place);
        if is_behind && !lane.waiting.is_empty() { 0 } else { room.min(left.max(1)) }
    }

    /// A queue that was told to try does, so its lane may tell the next.
    pub(super) fn answer_call(&mut self, id: QueueId) -> Option<LaneId> {
        let called_by = self.queues.get_mut(&id)?.called_by.take()?;
        if let Some(lane) = self.lanes.get_mut(&called_by) {
            lane.called = lane.called.saturating_sub(1);
        }
        self.touch(called_by);
        Some(called_by)
    }

    /// The lanes that all must be free; none for what the store only moves.
    pub(super) fn lanes_needed(&self, id: QueueId) -> Lanes {
        match self.queues.get(&id) {
            Some(queue) if !queue.is_blocked() => queue.lanes.clone(),
            _ => Lanes::from([]),
        }
    }

    /// Gives a queue more slots, once every other had its first.
    fn extend(&mut self, id: QueueId, budget: u32, now: Timestamp) -> u32 {
        let Some(queue) = self.queues.get(&id) else { return 0 };
        let Some(asked) = &queue.asked else { return 0 };
        let (before, lanes) = (asked.most, asked.lanes.clone());
        let own = queue.own_room().saturating_sub(before);
        let most = PICK_QUEUE_MOST.saturating_sub(before).min(budget).min(own);
        let mut slots = self.share(queue).room(most);
        for lane_id in lanes.iter() {
            let Some(lane) = self.lanes.get_mut(lane_id) else { continue };
            let room = if lane.waiting.is_empty() { lane.room(now).saturating_sub(lane.called) } else { 0 };
            slots = slots.min(room);
        }
        if let Some(asked) = self.queues.get_mut(&id).and_then(|queue: &mut Target| queue.asked.as_mut()) {
            asked.most = asked.most.saturating_add(slots);
        }
        self.asked += slots;
        self.take(id, &lanes, slots);
        slots
    }
}
