//! Effects of attempts under way: each is let out when the pace of all its lanes allows it.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::state::{LaneId, QueueId, State};
use super::target::Lanes;
use crate::inbox::{Claim, DeliveryId};

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) queue: QueueId,
    /// Those it took.
    pub(super) lanes: Lanes,
    /// Whether its first effect is still to come: room for it is kept.
    pub(super) is_promised: bool,
    /// What is busy meanwhile.
    pub(super) subject: Option<String>,
    pub(super) waiter: Option<Waiter>,
    /// Whether the effect it waits for may go and is counted.
    pub(super) is_let_out: bool,
}

/// Where an attempt waits for an effect.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) lane: LaneId,
    pub(super) place: (bool, u64),
    bell: Arc<Notify>,
}

/// How long to wait before asking again, or until the bell.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) until: Option<Timestamp>,
    pub(super) bell: Arc<Notify>,
}

impl Running {
    pub(super) fn new(queue: QueueId, lanes: Lanes, subject: Option<String>) -> Self {
        Self { queue, lanes, is_promised: true, subject, waiter: None, is_let_out: false }
    }
}

impl State {
    /// Lets an effect of this attempt out, or says what to wait for.
    pub(super) fn effect(&mut self, claim: &Claim, now: Timestamp) -> Option<Wait> {
        self.running(claim);
        let running = self.attempts.get(&claim.id)?;
        if running.is_let_out {
            // Counted already.
        } else if let Some(waiter) = &running.waiter {
            self.serve(waiter.lane, now);
        } else {
            let lanes = running.lanes.clone();
            for lane in lanes.iter() {
                // Whoever came before goes before.
                self.serve(*lane, now);
            }
            let ticket = self.number();
            self.let_out(&claim.id, ticket, Arc::new(Notify::new()), now);
        }
        let running = self.attempts.get_mut(&claim.id)?;
        if std::mem::take(&mut running.is_let_out) {
            return None;
        }
        let waiter = running.waiter.as_ref()?;
        let lane = self.lanes.get_mut(&waiter.lane)?;
        Some(Wait { until: lane.lets_out_at(now), bell: Arc::clone(&waiter.bell) })
    }

    /// Lets out what this lane keeps, in order. What another lane keeps waits there from now on, and keeps nobody here.
    pub(super) fn serve(&mut self, id: LaneId, now: Timestamp) {
        let mut served = false;
        while let Some(lane) = self.lanes.get_mut(&id)
            && let Some((place, delivery)) = lane.effects.first_key_value().map(|(place, id)| (*place, id.clone()))
            && lane.lets_out(now, !place.0)
        {
            lane.effects.remove(&place);
            served = true;
            if let Some(waiter) = self.attempts.get_mut(&delivery).and_then(|running| running.waiter.take()) {
                let bell = Arc::clone(&waiter.bell);
                self.let_out(&delivery, place.1, waiter.bell, now);
                bell.notify_one();
            }
        }
        if served {
            self.touch(id);
            self.ring(id);
        }
    }

    /// Counts an effect in all lanes of its attempt, or lets it wait for the first that keeps it.
    fn let_out(&mut self, delivery: &DeliveryId, ticket: u64, bell: Arc<Notify>, now: Timestamp) {
        let Some(running) = self.attempts.get_mut(delivery) else { return };
        let (lanes, is_promised) = (running.lanes.clone(), running.is_promised);
        let keeps = |id: &&LaneId| self.lanes.get_mut(id).is_some_and(|lane| !lane.lets_out(now, is_promised));
        if let Some(lane_id) = lanes.iter().find(keeps).copied() {
            let place = (!is_promised, ticket);
            if let Some(lane) = self.lanes.get_mut(&lane_id) {
                lane.effects.insert(place, delivery.clone());
            }
            running.waiter = Some(Waiter { lane: lane_id, place, bell });
            return;
        }
        running.is_promised = false;
        running.is_let_out = true;
        for id in lanes.iter() {
            if let Some(lane) = self.lanes.get_mut(id) {
                lane.made_one(now, is_promised);
            }
            // It is known now when this one leaves the window.
            self.touch(*id);
            self.ring(*id);
        }
    }

    /// Has the first who waits for an effect look again when the lane lets it out.
    pub(super) fn ring(&self, id: LaneId) {
        let first = self.lanes.get(&id).and_then(|lane| lane.effects.first_key_value());
        let waiter = first.and_then(|(_, delivery)| self.attempts.get(delivery)?.waiter.as_ref());
        if let Some(waiter) = waiter {
            waiter.bell.notify_one();
        }
    }
}
