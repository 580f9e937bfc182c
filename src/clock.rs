//! The only reader of wall time, and a clock that tests move by hand.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Tells the time and waits for it.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    Manual(Arc<watch::Sender<Timestamp>>),
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(watch::Sender::new(start))))
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "this is the one place")]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => Timestamp::now(),
            Source::Manual(now) => *now.borrow(),
        }
    }

    /// Returns once `delay` has passed.
    pub async fn sleep(&self, delay: Duration) {
        match &self.0 {
            Source::System => tokio::time::sleep(delay).await,
            Source::Manual(now) => {
                let until = later(*now.borrow(), delay);
                // The sender lives in `self`, so the channel cannot close while this waits.
                let _ = now.subscribe().wait_for(|now| *now >= until).await;
            }
        }
    }

    /// Moves a manual clock forward and wakes who waited for it; does nothing to the machine's clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual(now) = &self.0 {
            now.send_modify(|now| *now = later(*now, by));
        }
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
    use super::*;

    #[tokio::test]
    async fn a_manual_clock_wakes_sleepers_when_their_time_has_come() {
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let sleeper = tokio::spawn({
            let clock = clock.clone();
            async move { clock.sleep(Duration::from_secs(60)).await }
        });
        tokio::task::yield_now().await;
        clock.advance(Duration::from_secs(59));
        tokio::task::yield_now().await;
        assert!(!sleeper.is_finished());
        clock.advance(Duration::from_secs(1));
        assert!(sleeper.await.is_ok());
        assert_eq!(clock.now(), later(Timestamp::UNIX_EPOCH, Duration::from_secs(60)));
    }

    #[test]
    fn time_arithmetic_saturates() {
        assert_eq!(later(Timestamp::MAX, Duration::from_secs(1)), Timestamp::MAX);
        assert_eq!(later(Timestamp::UNIX_EPOCH, Duration::MAX), Timestamp::MAX);
        assert_eq!(until(Timestamp::MAX, Timestamp::UNIX_EPOCH), Duration::ZERO);
    }
}
