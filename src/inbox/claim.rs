//! What the dispatcher asks a store for, and what it is told.

use jiff::Timestamp;

use super::book::QueueKey;
use super::delivery::State;
use super::{Claim, DeliveryId, LaneRecord};
use crate::notification::Name;

/// What [`Inbox::claim`](super::Inbox::claim) is asked for.
#[derive(Clone, Debug)]
pub struct Want {
    /// From whom.
    pub queue: QueueKey,
    /// At most so many.
    pub most: u32,
    /// This delivery and no other: the queue keeps its order.
    pub only: Option<i64>,
    /// Subjects that have an attempt under way, where the target remembers by subject: no second one.
    pub busy: Vec<String>,
}

/// What [`Inbox::claim`](super::Inbox::claim) handed out.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// In the order of what was asked for, longest due first.
    pub claims: Vec<Claim>,
    /// For every queue that was asked: when something of it is due next that was not handed out.
    pub next_due: Vec<(QueueKey, Option<Timestamp>)>,
    /// Deliveries that came to another end than a claim.
    pub moved: Vec<Moved>,
}

/// A delivery that went to another state than in flight, for those who watch.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Which.
    pub id: DeliveryId,
    /// Of which queue.
    pub queue: QueueKey,
    /// Its plugin.
    pub plugin: Name,
    /// Its first notification.
    pub seq: u64,
    /// Where it is now.
    pub state: State,
}

/// What was written since the last time somebody asked.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Deliveries that were claimed as they were written: [`Admission`](super::book::Admission) let them in.
    pub claims: Vec<Claim>,
    /// Queues of which something is due then, at the earliest.
    pub due: Vec<(QueueKey, Timestamp)>,
    /// Deliveries that were cancelled because their target is gone: what was decided or begun before it went, by queue.
    pub cancelled: Vec<(QueueKey, u64)>,
}

/// What a store that takes up a [`Book`](super::book::Book) knows already.
#[derive(Clone, Debug, Default)]
pub struct Adopted {
    /// Queues with work, and when something is due first.
    pub due: Vec<(QueueKey, Timestamp)>,
    /// For queues that keep their order: the delivery that all others wait for, and until when.
    pub heads: Vec<(QueueKey, i64, Timestamp)>,
    /// What lanes had seen.
    pub lanes: Vec<LaneRecord>,
    /// Deliveries cancelled because their target is gone, by queue.
    pub cancelled: Vec<(QueueKey, u64)>,
}
