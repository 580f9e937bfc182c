//! The newest frames of a workspace, for all who read it.

use std::collections::VecDeque;

use axum::body::Bytes;

use super::frames::Batch;

/// Bytes of frames that are kept of a workspace; the newest batch always is. What is older is read from the store.
const RING_BYTES_MAX: usize = 1024 * 1024;

/// Successive frames up to the last change that was rendered.
#[derive(Debug)]
pub(super) struct Ring {
    batches: VecDeque<Batch>,
    bytes: usize,
    last: u64,
}

/// What a ring has for a reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// These frames, none when all were left out; and the number the reader then stands at.
    Frames(Bytes, u64),
    /// Nothing: the reader has everything.
    Level,
    /// The ring does not reach back to the reader.
    Behind,
    /// The reader is further than the ring.
    Ahead,
}

impl Ring {
    /// An empty ring that goes on behind this number.
    pub(super) fn new(last: u64) -> Self {
        Self { batches: VecDeque::new(), bytes: 0, last }
    }

    /// The number of the last change.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Takes the next frames. A batch that does not follow takes the place of all that was there.
    pub(super) fn push(&mut self, batch: Batch) {
        if batch.before() != self.last {
            self.cut(batch.before());
        }
        self.last = batch.last();
        self.bytes += batch.size();
        self.batches.push_back(batch);
        while self.bytes > RING_BYTES_MAX && self.batches.len() > 1 {
            self.bytes -= self.batches.pop_front().map_or(0, |oldest| oldest.size());
        }
    }

    /// Forgets all frames, and goes on behind this number.
    pub(super) fn cut(&mut self, last: u64) {
        *self = Self::new(last);
    }

    /// What follows this number.
    pub(super) fn after(&self, position: u64, shows_work: bool) -> Taken {
        match position.cmp(&self.last) {
            std::cmp::Ordering::Equal => return Taken::Level,
            std::cmp::Ordering::Greater => return Taken::Ahead,
            std::cmp::Ordering::Less => {}
        }
        let next = self.batches.partition_point(|batch| batch.last() <= position);
        match self.batches.get(next).filter(|batch| batch.before() <= position) {
            Some(batch) => {
                let (bytes, position) = batch.after(position, shows_work);
                Taken::Frames(bytes, position)
            }
            None => Taken::Behind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch_of(first: u64, frames: &[&str]) -> Batch {
        let frames: Vec<(&str, bool)> = frames.iter().map(|text| (*text, false)).collect();
        Batch::of(first, &frames)
    }

    #[test]
    fn a_ring_tells_what_follows_or_that_it_does_not_reach_back() {
        let mut ring = Ring::new(10);
        assert_eq!(ring.after(10, true), Taken::Level);
        assert_eq!(ring.after(9, true), Taken::Behind);
        assert_eq!(ring.after(11, true), Taken::Ahead);
        ring.push(batch_of(11, &["a", "b"]));
        ring.push(batch_of(13, &["c"]));
        assert_eq!(ring.after(10, true), Taken::Frames("ab".into(), 12));
        assert_eq!(ring.after(11, true), Taken::Frames("b".into(), 12));
        assert_eq!(ring.after(12, true), Taken::Frames("c".into(), 13));
        assert_eq!(ring.after(13, true), Taken::Level);
        assert_eq!(ring.after(9, true), Taken::Behind);
    }

    #[test]
    fn the_oldest_frames_make_room() {
        let mut ring = Ring::new(0);
        let frame = "x".repeat(RING_BYTES_MAX / 4);
        for number in 1..=6 {
            ring.push(batch_of(number, &[&frame]));
            assert!(ring.bytes <= RING_BYTES_MAX);
        }
        assert_eq!(ring.after(2, true), Taken::Behind);
        assert!(matches!(ring.after(3, true), Taken::Frames(_, 4)));
        // One that is too large by itself is kept until the next comes.
        ring.push(batch_of(7, &[&frame.repeat(5)]));
        assert_eq!(ring.after(5, true), Taken::Behind);
        assert!(matches!(ring.after(6, true), Taken::Frames(_, 7)));
    }

    #[test]
    fn what_does_not_follow_begins_a_new_ring() {
        let mut ring = Ring::new(0);
        ring.push(batch_of(1, &["a"]));
        ring.push(batch_of(9, &["b"]));
        assert_eq!((ring.after(0, true), ring.after(8, true)), (Taken::Behind, Taken::Frames("b".into(), 9)));
        ring.cut(20);
        assert_eq!((ring.last(), ring.after(9, true)), (20, Taken::Behind));
    }
}
