//! The states of a delivery and the one function that moves it from one to the next.
//!
//! ```text
//!              claimed                    delivered
//!  pending ───────────────▶ in_flight ───────────────▶ delivered
//!                           ▲      │
//!                   claimed │      │ retry, unknown, interrupted; reconnect and reject ─▶ dead
//!                           │      ▼
//!                          retrying ──── given up ────▶ dead
//! ```

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Due, or soon; the dispatcher moves it.
    Pending,
    /// An attempt runs; its outcome moves it, or the next start of the store.
    InFlight,
    /// An attempt failed; the dispatcher moves it when its time has come.
    Retrying,
    /// Made. Nobody moves it.
    Delivered,
    /// Given up, or impossible. Only a person moves it.
    Dead,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 5] = [Self::Pending, Self::InFlight, Self::Retrying, Self::Delivered, Self::Dead];

    /// The spelling used on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InFlight => "in_flight",
            Self::Retrying => "retrying",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    /// The state spelled `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The plugin says it was made.
    Delivered,
    /// Transient: trying later may succeed.
    Retry,
    /// Permanent: it can never succeed.
    Reject,
    /// A person must mend the credential or the channel.
    Reconnect,
    /// It may or may not have happened.
    Unknown,
    /// Cut off by a stop before any effect began: the attempt's number is given back.
    Interrupted,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] =
        [Self::Delivered, Self::Retry, Self::Reject, Self::Reconnect, Self::Unknown, Self::Interrupted];

    /// The spelling used on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Retry => "retry",
            Self::Reject => "reject",
            Self::Reconnect => "reconnect",
            Self::Unknown => "unknown",
            Self::Interrupted => "interrupted",
        }
    }

    /// The outcome spelled `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.as_str() == text)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// When failed attempts are repeated, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The wait after the first failure.
    pub first: Duration,
    /// No wait of our own is longer.
    pub most: Duration,
    /// How long after the delivery was made it is given up.
    pub give_up: Duration,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { first: Duration::from_secs(1), most: Duration::from_secs(3600), give_up: Duration::from_secs(86_400) }
    }
}

/// A destination's own delay is honoured up to here: beyond, it would outlive the delivery.
pub const DESTINATION_DELAY_MAX: Duration = Duration::from_secs(6 * 3600);

impl Schedule {
    /// The wait after `failures` failed attempts: doubling from the first to the most, then spread by `jitter` (0 to 1)
    /// over 75–125 % so that what failed together does not return together.
    pub fn delay_after(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let plain = self.first.saturating_mul(1 << doublings).min(self.most);
        plain.mul_f64(0.75 + 0.5 * jitter.clamp(0.0, 1.0))
    }
}

/// What happens to a delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// The dispatcher takes it for an attempt.
    Claimed,
    /// Its attempt ended.
    Ended {
        /// How.
        outcome: Outcome,
        /// How long the destination asked to wait.
        destination_delay: Option<Duration>,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// When the delivery was made.
        created_at: Timestamp,
        /// A random number from 0 to 1.
        jitter: f64,
    },
}

/// The next state, and when the next attempt comes due where one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The state.
    pub state: State,
    /// When the dispatcher moves it.
    pub next_at: Option<Timestamp>,
}

/// An input that its state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllowed {
    /// The state.
    pub state: State,
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a delivery that is {} cannot do that", self.state)
    }
}

impl std::error::Error for NotAllowed {}

/// Moves a delivery.
///
/// # Errors
/// When `state` does not allow `input`: the delivery stays where it is.
pub fn transition(state: State, input: Input, schedule: &Schedule, now: Timestamp) -> Result<Next, NotAllowed> {
    match (state, input) {
        (State::Pending | State::Retrying, Input::Claimed) => Ok(Next { state: State::InFlight, next_at: None }),
        (State::InFlight, Input::Ended { outcome, destination_delay, attempt, created_at, jitter }) => {
            Ok(match outcome {
                Outcome::Delivered => Next { state: State::Delivered, next_at: None },
                Outcome::Reject | Outcome::Reconnect => Next { state: State::Dead, next_at: None },
                Outcome::Interrupted => Next { state: State::Retrying, next_at: Some(now) },
                Outcome::Retry | Outcome::Unknown => {
                    let own = schedule.delay_after(attempt, jitter);
                    let asked = destination_delay.unwrap_or_default().min(DESTINATION_DELAY_MAX);
                    let next_at = later(now, own.max(asked));
                    if next_at > later(created_at, schedule.give_up) {
                        Next { state: State::Dead, next_at: None }
                    } else {
                        Next { state: State::Retrying, next_at: Some(next_at) }
                    }
                }
            })
        }
        (state, _) => Err(NotAllowed { state }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome, destination_delay: Option<Duration>, attempt: u32) -> Input {
        Input::Ended { outcome, destination_delay, attempt, created_at: Timestamp::UNIX_EPOCH, jitter: 0.5 }
    }

    fn check(state: State, input: Input, now_seconds: i64, expected: Result<(State, Option<i64>), State>) {
        let now = Timestamp::from_second(now_seconds).unwrap();
        let next = transition(state, input, &Schedule::default(), now);
        let seen = next
            .map(|next| (next.state, next.next_at.map(Timestamp::as_second)))
            .map_err(|not_allowed| not_allowed.state);
        assert_eq!(seen, expected, "{state} {input:?}");
    }

    #[test]
    fn a_delivery_is_claimed_from_the_states_that_wait_only() {
        for state in State::ALL {
            let expected = match state {
                State::Pending | State::Retrying => Ok((State::InFlight, None)),
                State::InFlight | State::Delivered | State::Dead => Err(state),
            };
            check(state, Input::Claimed, 0, expected);
        }
    }

    #[test]
    fn only_a_delivery_in_flight_can_end() {
        for state in State::ALL.into_iter().filter(|&state| state != State::InFlight) {
            for outcome in Outcome::ALL {
                check(state, ended(outcome, None, 1), 0, Err(state));
            }
        }
    }

    #[test]
    fn each_outcome_has_its_state() {
        check(State::InFlight, ended(Outcome::Delivered, None, 1), 10, Ok((State::Delivered, None)));
        check(State::InFlight, ended(Outcome::Reject, None, 1), 10, Ok((State::Dead, None)));
        check(State::InFlight, ended(Outcome::Reconnect, None, 1), 10, Ok((State::Dead, None)));
        check(State::InFlight, ended(Outcome::Interrupted, None, 1), 10, Ok((State::Retrying, Some(10))));
        check(State::InFlight, ended(Outcome::Retry, None, 1), 10, Ok((State::Retrying, Some(11))));
        check(State::InFlight, ended(Outcome::Unknown, None, 3), 10, Ok((State::Retrying, Some(14))));
    }

    #[test]
    fn the_destinations_delay_is_honoured_within_reason() {
        let asked = |seconds| ended(Outcome::Retry, Some(Duration::from_secs(seconds)), 1);
        check(State::InFlight, asked(30), 0, Ok((State::Retrying, Some(30))));
        check(State::InFlight, asked(0), 0, Ok((State::Retrying, Some(1))));
        check(State::InFlight, asked(u64::MAX), 0, Ok((State::Retrying, Some(6 * 3600))));
    }

    #[test]
    fn what_never_succeeds_is_given_up_after_a_day() {
        check(State::InFlight, ended(Outcome::Retry, None, 30), 86_400 - 3601, Ok((State::Retrying, Some(86_399))));
        check(State::InFlight, ended(Outcome::Retry, None, 30), 86_400 - 3599, Ok((State::Dead, None)));
    }

    #[test]
    fn waits_double_up_to_the_most_and_are_spread() {
        let schedule = Schedule::default();
        let seconds = |failures, jitter| schedule.delay_after(failures, jitter).as_secs_f64();
        assert_eq!([1, 2, 3, 4].map(|failures| seconds(failures, 0.5)), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(seconds(u32::MAX, 0.5), 3600.0);
        assert_eq!((seconds(1, 0.0), seconds(1, 1.0)), (0.75, 1.25));
        assert_eq!(seconds(0, 0.5), 1.0);
    }
}
