//! How long to wait until the next read: pure arithmetic, with the random number handed in.

use std::time::Duration;

use crate::config::Poll;

/// Every wait is spread by so much to either side, so that outboxes that were read together are not for ever.
const SPREAD: f64 = 0.2;

/// A Retry-After is honoured up to here. A server that asks for more is asked again once a day.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);

/// From so many failures in a row on the breaker is open: one read each time the ceiling has passed, until one succeeds.
pub const BREAKER_FAILURES: u32 = 3;

/// The first reads after a start are spread over so much time for each outbox: a thousand of them over a minute, so that
/// they come no quicker than later ones do.
const START_WAIT: Duration = Duration::from_millis(60);

/// How a read, or the last of several in a row, went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It brought something new, or was the first.
    Fruitful {
        /// When the outbox would like to be read.
        next_poll: Option<Duration>,
    },
    /// It brought something new, and the outbox has more.
    More,
    /// It brought nothing new.
    Empty {
        /// Reads in a row that brought nothing, this one included.
        reads: u32,
        /// When the outbox would like to be read.
        next_poll: Option<Duration>,
    },
    /// It failed.
    Failed {
        /// Failures in a row, this one included.
        reads: u32,
        /// When the server wants to hear from us at the earliest.
        retry_after: Option<Duration>,
    },
}

/// The wait after a read; `random` is from 0 to 1.
///
/// Reads that bring nothing, and failures, double the base each time; after [`BREAKER_FAILURES`] failures the wait is the
/// ceiling. What the outbox asks for replaces that after a
/// success, and while there is more the floor does. Every wait lies between floor and ceiling once it is spread; only a
/// Retry-After goes beyond.
pub fn wait_after(ended: Ended, poll: &Poll, random: f64) -> Duration {
    let (plain, at_least) = match ended {
        Ended::Fruitful { next_poll } => (next_poll.unwrap_or(poll.base), Duration::ZERO),
        Ended::More => (poll.floor, Duration::ZERO),
        Ended::Empty { reads, next_poll } => (next_poll.unwrap_or_else(|| doubled(poll, reads)), Duration::ZERO),
        Ended::Failed { reads, retry_after } if reads >= BREAKER_FAILURES => {
            (poll.ceiling, retry_after.unwrap_or_default())
        }
        Ended::Failed { reads, retry_after } => (doubled(poll, reads), retry_after.unwrap_or_default()),
    };
    let spread = spread(plain, random);
    spread.min(poll.ceiling).max(poll.floor).max(at_least.min(RETRY_AFTER_MAX))
}

/// The wait before the first read since the start, when `others` other outboxes start too; `random` is from 0 to 1. A
/// single outbox is read at once, many do not all connect in the same moment.
pub fn first_wait(others: usize, poll: &Poll, random: f64) -> Duration {
    let spread = START_WAIT.saturating_mul(u32::try_from(others).unwrap_or(u32::MAX)).min(poll.base);
    spread.mul_f64(random.clamp(0.0, 1.0))
}

/// The wait before something that failed is begun again: the first of `waits`, doubled with each failure in a row, up to the
/// second. A Retry-After goes beyond. `random` is from 0 to 1.
pub fn again_after(waits: (Duration, Duration), failures: u32, retry_after: Option<Duration>, random: f64) -> Duration {
    let (first, most) = waits;
    let doubled = first.saturating_mul(1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX)).min(most);
    spread(doubled, random).min(most).max(retry_after.unwrap_or_default().min(RETRY_AFTER_MAX))
}

/// Somewhere around `plain`, or as long as a wait can be.
fn spread(plain: Duration, random: f64) -> Duration {
    let factor = 1.0 - SPREAD + 2.0 * SPREAD * random.clamp(0.0, 1.0);
    Duration::try_from_secs_f64(plain.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}

fn doubled(poll: &Poll, reads: u32) -> Duration {
    poll.base.saturating_mul(1_u32.checked_shl(reads).unwrap_or(u32::MAX)).min(poll.ceiling)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: f64 = 0.5;

    fn check(ended: Ended, random: f64, expected_seconds: f64) {
        assert_eq!(
            wait_after(ended, &Poll::default(), random).as_secs_f64(),
            expected_seconds,
            "{ended:?} at {random}"
        );
    }

    fn asked(seconds: u64) -> Option<Duration> {
        Some(Duration::from_secs(seconds))
    }

    #[test]
    fn reads_that_bring_nothing_and_failures_double_the_wait_up_to_the_ceiling() {
        for (reads, expected) in
            [(0, 60.0), (1, 120.0), (2, 240.0), (3, 300.0), (31, 300.0), (32, 300.0), (u32::MAX, 300.0)]
        {
            check(Ended::Empty { reads, next_poll: None }, MIDDLE, expected);
            check(Ended::Failed { reads, retry_after: None }, MIDDLE, expected);
        }
        let short = Poll { base: Duration::from_secs(15), ..Poll::default() };
        let wait = |reads| wait_after(Ended::Failed { reads, retry_after: None }, &short, MIDDLE).as_secs();
        assert_eq!([1, 2, 3, 4, u32::MAX].map(wait), [30, 60, 300, 300, 300], "the breaker opens");
        check(Ended::Fruitful { next_poll: None }, MIDDLE, 60.0);
    }

    #[test]
    fn what_the_outbox_asks_for_replaces_base_and_back_off_after_a_success() {
        check(Ended::Fruitful { next_poll: asked(100) }, MIDDLE, 100.0);
        check(Ended::Empty { reads: 9, next_poll: asked(20) }, MIDDLE, 20.0);
        check(Ended::Empty { reads: 1, next_poll: asked(299) }, MIDDLE, 299.0);
    }

    #[test]
    fn every_wait_is_clamped_after_it_is_spread() {
        check(Ended::Fruitful { next_poll: asked(15) }, 0.0, 15.0);
        check(Ended::Fruitful { next_poll: asked(15) }, 1.0, 18.0);
        check(Ended::Fruitful { next_poll: asked(1) }, 1.0, 15.0);
        check(Ended::Fruitful { next_poll: asked(300) }, 1.0, 300.0);
        check(Ended::Fruitful { next_poll: asked(300) }, 0.0, 240.0);
        check(Ended::Fruitful { next_poll: Some(Duration::MAX) }, 0.0, 300.0);
        check(Ended::Fruitful { next_poll: None }, 0.0, 48.0);
        check(Ended::Fruitful { next_poll: None }, 1.0, 72.0);
        check(Ended::Failed { reads: 9, retry_after: None }, 1.0, 300.0);
    }

    #[test]
    fn an_outbox_with_more_waits_for_the_floor_only() {
        check(Ended::More, 0.0, 15.0);
        check(Ended::More, 1.0, 18.0);
    }

    #[test]
    fn a_servers_retry_after_may_go_beyond_the_ceiling() {
        check(Ended::Failed { reads: 1, retry_after: asked(10) }, MIDDLE, 120.0);
        check(Ended::Failed { reads: 1, retry_after: asked(900) }, MIDDLE, 900.0);
        check(Ended::Failed { reads: 1, retry_after: Some(Duration::MAX) }, MIDDLE, 86_400.0);
    }

    #[test]
    fn what_is_begun_again_waits_longer_each_time() {
        let wait = |failures, retry_after| {
            again_after((Duration::from_secs(1), Duration::from_secs(300)), failures, retry_after, MIDDLE).as_secs()
        };
        assert_eq!([1, 2, 3, 9, 10, 33, u32::MAX].map(|failures| wait(failures, None)), [1, 2, 4, 256, 300, 300, 300]);
        assert_eq!((wait(1, asked(900)), wait(9, asked(5))), (900, 256));
    }

    #[test]
    fn randomness_out_of_range_does_no_harm() {
        check(Ended::Fruitful { next_poll: None }, -7.0, 48.0);
        check(Ended::Fruitful { next_poll: None }, 7.0, 72.0);
    }

    #[test]
    fn a_poll_of_the_longest_times_does_not_overflow() {
        let poll = Poll { base: Duration::MAX, floor: Duration::ZERO, ceiling: Duration::MAX, ..Poll::default() };
        assert!(wait_after(Ended::Empty { reads: 3, next_poll: None }, &poll, 0.0) > Duration::from_secs(1 << 40));
        assert_eq!(wait_after(Ended::Empty { reads: 3, next_poll: None }, &poll, 1.0), Duration::MAX);
    }

    #[test]
    fn a_single_outbox_is_read_at_once_and_many_are_spread() {
        let wait = |others, random| first_wait(others, &Poll::default(), random);
        assert_eq!(wait(0, 1.0), Duration::ZERO);
        assert_eq!(wait(999, 0.0), Duration::ZERO);
        assert_eq!(wait(999, 1.0), Duration::from_millis(59_940));
        assert_eq!(wait(usize::MAX, 1.0), Duration::from_secs(60), "never longer than the base");
    }
}
