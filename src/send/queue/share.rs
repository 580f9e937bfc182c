//! Shares of the process: who may have how many attempts at once, so that whoever hangs never takes everything.

use std::collections::{BTreeSet, VecDeque};

use super::state::QueueId;

/// Attempts of one queue at once, whatever else is free: each may hold a connection to one destination, which gains
/// nothing from more.
pub(super) const QUEUE_MOST: u32 = 128;

/// A queue that had its share waits until so many of [`QUEUE_MOST`] are free again: claims are made in batches, since each
/// is a write of its own.
const QUEUE_RELIEF: u32 = 32;

/// Everything that is held now, seen by one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Attempts at once in the whole process.
    pub(super) most: u32,
    /// Of them, taken.
    pub(super) held: u32,
    /// Of those, by the queue's workspace.
    pub(super) workspace: u32,
    /// Of those, by the queue.
    pub(super) queue: u32,
}

impl Share {
    fn free(self) -> u32 {
        self.most.saturating_sub(self.held)
    }

    /// Whether the queue may have one more. A workspace holds less than is free, so half of the process when it is alone;
    /// what it may still have is the room of its queues. A queue has at most the square of that room over the whole: a
    /// quarter of the process when it is alone, and ever less as others hang. After `n` dead destinations of a workspace
    /// about one part in `2n` of the process is still open to it, where shares in proportion would be used up after ten.
    /// It never has more than [`QUEUE_MOST`]. The first attempt of a queue needs only room for one.
    pub(super) fn queue_may(self) -> bool {
        let room = u64::from(self.free().saturating_sub(self.workspace));
        room > 0
            && self.queue < QUEUE_MOST
            && (self.queue == 0 || u64::from(self.queue) * u64::from(self.most) < room * room)
    }

    /// Whether a queue that had its share may go on.
    pub(super) fn is_relieved(self) -> bool {
        self.queue_may() && self.queue <= QUEUE_MOST - QUEUE_RELIEF
    }

    /// How many more the queue may have, `most` at most.
    pub(super) fn room(self, most: u32) -> u32 {
        let with = |more: u32| Self {
            held: self.held.saturating_add(more),
            workspace: self.workspace.saturating_add(more),
            queue: self.queue.saturating_add(more),
            ..self
        };
        (0..most).take_while(|more| with(*more).queue_may()).fold(0, |count, _| count + 1)
    }
}

/// A workspace's place in the round.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    /// Its attempts.
    pub(super) held: u32,
    /// Queues of it that may have something to start, in turn.
    pub(super) ready: VecDeque<QueueId>,
    /// Queues of it that have their share, in turn.
    pub(super) sharing: BTreeSet<(u64, QueueId)>,
    /// Whether it stands in the ring.
    pub(super) in_ring: bool,
    /// Whether it stands among those that have their share, or queues of which do.
    pub(super) in_sharing: bool,
}

impl Workspace {
    /// Whether it can be forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.held == 0 && !self.in_ring && !self.in_sharing && self.ready.is_empty() && self.sharing.is_empty()
    }
}
