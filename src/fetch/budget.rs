//! How many reads the connectors of a workspace may make together. Who comes when it has run out waits in line, so that
//! it goes on with the one that was put off first.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::clock::{Clock, later, until};

/// What a budget is counted over.
const WINDOW: Duration = Duration::from_secs(60);

/// At most so many reads in any minute.
#[derive(Debug)]
pub struct Budget {
    per_minute: AtomicU32,
    /// Told when the limit is another.
    changed: Notify,
    clock: Clock,
    /// When reads were made, oldest first: at most as many as are allowed.
    made: Mutex<VecDeque<Timestamp>>,
    /// Held by the first in line while it waits. It is handed on in the order of asking.
    line: tokio::sync::Mutex<()>,
}

impl Budget {
    /// A budget of `per_minute` reads, at least one.
    pub fn new(per_minute: u32, clock: Clock) -> Self {
        Self {
            per_minute: AtomicU32::new(per_minute.max(1)),
            changed: Notify::new(),
            clock,
            made: Mutex::default(),
            line: tokio::sync::Mutex::default(),
        }
    }

    /// Allows so many from now on, at least one; the reads of the last minute count as they did.
    pub fn allow(&self, per_minute: u32) {
        self.per_minute.store(per_minute.max(1), Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Reads that are allowed in a minute.
    pub fn per_minute(&self) -> u32 {
        self.per_minute.load(Ordering::Relaxed)
    }

    /// Reads that may be made right now.
    pub fn left(&self) -> u32 {
        let now = self.clock.now();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut made, now);
        self.per_minute().saturating_sub(u32::try_from(made.len()).unwrap_or(u32::MAX))
    }

    /// Ready when a read may be made, which then counts. Dropping the future leaves the line.
    pub async fn take(&self) {
        let _first = self.line.lock().await;
        while let Some(wait) = self.try_take() {
            tokio::select! {
                () = self.clock.sleep(wait) => {}
                // Only the first in line waits here.
                () = self.changed.notified() => {}
            }
        }
    }

    /// Counts a read that does not wait: one that a person asked for.
    pub fn take_at_once(&self) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut made, self.clock.now());
        made.push_back(self.clock.now());
    }

    /// Counts a read, or says how long there is none. Only the first in line asks.
    fn try_take(&self) -> Option<Duration> {
        let now = self.clock.now();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut made, now);
        let over = (made.len() + 1).saturating_sub(self.per_minute().try_into().unwrap_or(usize::MAX));
        match over.checked_sub(1).and_then(|last| made.get(last)) {
            Some(&made_at) => Some(until(now, later(made_at, WINDOW))),
            None => {
                made.push_back(now);
                None
            }
        }
    }
}

fn forget_old(made: &mut VecDeque<Timestamp>, now: Timestamp) {
    while made.front().is_some_and(|&made_at| later(made_at, WINDOW) <= now) {
        made.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn another_limit_counts_at_once_and_forgets_no_read() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let budget = Arc::new(Budget::new(1, clock.clone()));
        budget.take().await;
        let (sender, mut taken) = mpsc::unbounded_channel();
        let waiting = Arc::clone(&budget);
        let waits = tokio::spawn(async move {
            waiting.take().await;
            sender.send(()).unwrap();
        });
        tokio::task::yield_now().await;
        assert!(taken.try_recv().is_err());
        budget.allow(2);
        assert_eq!(taken.recv().await, Some(()), "it does not wait for the minute any more");
        waits.await.unwrap();
        assert_eq!((budget.per_minute(), budget.left()), (2, 0));
        budget.allow(0);
        assert_eq!((budget.per_minute(), budget.left()), (1, 0));
    }

    #[test]
    fn no_minute_has_more_reads_than_are_allowed() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let budget = Budget::new(3, clock.clone());
        let mut made = Vec::new();
        for second in 0..600_u64 {
            // Greedy, and not: what was saved in a quiet time must not add up.
            if second % 200 < 150 && budget.try_take().is_none() {
                made.push(second);
            }
            clock.advance(SECOND);
        }
        assert!(made.windows(4).all(|reads| reads[3] - reads[0] >= 60), "{made:?}");
        assert_eq!(made[..6], [0, 1, 2, 60, 61, 62]);
    }

    #[test]
    fn what_is_left_comes_back_as_reads_grow_old() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let budget = Budget::new(2, clock.clone());
        assert_eq!((budget.left(), budget.try_take(), budget.left()), (2, None, 1));
        clock.advance(SECOND * 20);
        budget.take_at_once();
        budget.take_at_once();
        assert_eq!((budget.left(), budget.try_take()), (0, Some(SECOND * 60)), "what a person asked for counts too");
        clock.advance(SECOND * 40);
        assert_eq!((budget.left(), budget.try_take()), (0, Some(SECOND * 20)));
        clock.advance(SECOND * 20);
        assert_eq!((budget.left(), budget.try_take()), (2, None));
    }

    #[tokio::test]
    async fn who_was_put_off_first_goes_on_first() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let budget = Arc::new(Budget::new(1, clock.clone()));
        budget.take().await;
        let (sender, mut resumed) = mpsc::unbounded_channel();
        let mut waiting = Vec::new();
        for name in ["a", "b", "c"] {
            let (budget, sender) = (Arc::clone(&budget), sender.clone());
            waiting.push(tokio::spawn(async move {
                budget.take().await;
                sender.send(name).unwrap();
            }));
            tokio::task::yield_now().await;
        }
        waiting[1].abort();
        for expected in ["a", "c"] {
            assert!(resumed.try_recv().is_err());
            clock.advance(SECOND * 60);
            assert_eq!(resumed.recv().await, Some(expected));
        }
        clock.advance(SECOND * 60);
        assert_eq!(budget.left(), 1, "who left the line takes nothing");
    }
}
