//! Queues of consumers: what each has not acknowledged yet (push-notifications seed).
//!
//! An event joins a queue in the very transaction that accepts it, once: the store knows its id from then on, so that what was
//! acknowledged never comes back, and no mark has to be kept of it.

use jiff::Timestamp;

use crate::notification::{Name, Notification};

/// Consumers of a workspace.
pub const CONSUMERS_MAX: usize = 200;

/// The name of the host's notice that a consumer's queue loses events; its subject is the consumer. It never joins the queue that
/// it tells of.
pub const LOSING_NAME: &str = "consumer.losing";

/// Events that wait in one queue. What comes beyond takes the place of the oldest, which is counted as lost, and stays in the
/// inbox.
pub const QUEUE_EVENTS_MAX: u64 = 10_000;

/// Events of one page.
pub const PAGE_EVENTS_MAX: u32 = 100;

/// Size of a page, in bytes of what is stored of its events; the first event is in it whatever its size.
pub const PAGE_BYTES_MAX: usize = 1 << 20;

/// Some of what waits for a consumer, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// The events.
    pub items: Vec<Notification>,
    /// Whether there was more.
    pub has_more: bool,
}

/// What an acknowledgement came to, for the host's own eyes: no consumer is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consumed {
    /// Events that left the queue.
    pub taken: u64,
    /// Events that still wait.
    pub pending: u64,
}

/// How a queue stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// The consumer.
    pub consumer: Name,
    /// Events that wait.
    pub pending: u64,
    /// The oldest of them: its number, and when it was received.
    pub oldest: Option<(u64, Timestamp)>,
    /// Events that ever joined.
    pub joined: u64,
    /// Events that were acknowledged.
    pub acknowledged: u64,
    /// When that was last.
    pub acknowledged_at: Option<Timestamp>,
    /// Events that left unacknowledged, since the queue was full or they were too old to be kept.
    pub lost: u64,
    /// Those of them that were too old to be kept; the others left because the queue was full.
    pub too_old: u64,
    /// When one left so last.
    pub lost_at: Option<Timestamp>,
    /// Times that it began to lose events: from the first loss until it is empty again counts as one.
    pub losses: u64,
    /// Whether it has lost events and was not empty since.
    pub is_losing: bool,
}
