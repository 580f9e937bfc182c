//! The only reader of wall time, and a clock that tests move by hand.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Tells the time and waits for it.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct Manual {
    now: watch::Sender<Timestamp>,
    sleepers: Mutex<Sleepers>,
}

/// Until when each sleeper sleeps, by a number of its own.
#[derive(Debug, Default)]
struct Sleepers {
    until: BTreeMap<u64, Timestamp>,
    numbers: u64,
}

impl Manual {
    fn sleepers(&self) -> MutexGuard<'_, Sleepers> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn sleep(&self, delay: Duration) {
        let until = later(*self.now.borrow(), delay);
        let _sleeper = Sleeper::new(self, until);
        // The sender lives in `self`, so the channel cannot close while this waits.
        let _ = self.now.subscribe().wait_for(|now| *now >= until).await;
    }
}

/// Somebody who sleeps, or has woken and not yet gone on.
struct Sleeper<'a> {
    clock: &'a Manual,
    number: u64,
}

impl<'a> Sleeper<'a> {
    fn new(clock: &'a Manual, until: Timestamp) -> Self {
        let mut sleepers = clock.sleepers();
        sleepers.numbers += 1;
        let number = sleepers.numbers;
        sleepers.until.insert(number, until);
        Self { clock, number }
    }
}

impl Drop for Sleeper<'_> {
    fn drop(&mut self) {
        self.clock.sleepers().until.remove(&self.number);
    }
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Manual { now: watch::Sender::new(start), sleepers: Mutex::default() })))
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Manual(clock) => *clock.now.borrow(),
        }
    }

    /// Returns once `delay` has passed.
    pub async fn sleep(&self, delay: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(delay).await,
            Source::Manual(clock) => clock.sleep(delay).await,
        }
    }

    /// Moves a manual clock forward and wakes who waited for it; does nothing to the machine's clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(clock) = &self.0 {
            clock.now.send_modify(|now| *now = later(*now, by));
        }
    }

    /// Sets a manual clock, forward or back, and wakes those whose time has come; does nothing to the machine's clock.
    pub fn set(&self, to: Timestamp) {
        if let Source::Manual(clock) = &self.0 {
            clock.now.send_replace(to);
        }
    }

    /// Until when each of those sleeps who wait for a manual clock, soonest first: what nothing but time moves. None of
    /// the machine's clock.
    pub fn sleepers(&self) -> Vec<Timestamp> {
        let Source::Manual(clock) = &self.0 else { return Vec::new() };
        let mut until: Vec<Timestamp> = clock.sleepers().until.values().copied().collect();
        until.sort_unstable();
        until
    }
}

/// `moment` plus `delay`, or the latest moment there is.
pub fn later(moment: Timestamp, delay: Duration) -> Timestamp {
    SignedDuration::try_from(delay).ok().and_then(|delay| moment.checked_add(delay).ok()).unwrap_or(Timestamp::MAX)
}

/// How long from `now` until `moment`; zero when it has passed.
pub fn until(now: Timestamp, moment: Timestamp) -> Duration {
    moment.duration_since(now).try_into().unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_their_time_has_come() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(clock.sleepers(), [later(Timestamp::UNIX_EPOCH, Duration::from_secs(60))]);
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        assert!(sleeper.await.is_ok());
        assert_eq!(clock.now(), later(Timestamp::UNIX_EPOCH, Duration::from_secs(60)));
        assert_eq!(clock.sleepers(), []);
    }

    #[tokio::test]
    async fn a_manual_clock_that_is_set_back_wakes_nobody() {
        let start = later(Timestamp::UNIX_EPOCH, Duration::from_secs(3_600));
        let clock = Clock::manual(start);
        let mut sleeper = std::pin::pin!(clock.sleep(Duration::from_secs(60)));
        assert!(sleeper.as_mut().now_or_never().is_none());
        clock.set(Timestamp::UNIX_EPOCH);
        assert!(sleeper.as_mut().now_or_never().is_none());
        assert_eq!((clock.now(), clock.sleepers().len()), (Timestamp::UNIX_EPOCH, 1));
        clock.set(later(start, Duration::from_secs(60)));
        assert!(sleeper.as_mut().now_or_never().is_some());
    }

    #[test]
    fn time_arithmetic_saturates() {
        assert_eq!(later(Timestamp::MAX, Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(until(Timestamp::MAX, Timestamp::UNIX_EPOCH), Duration::ZERO);
    }
}
