//! The states of a delivery and the one function that moves it from one to the next.
//!
//! ```text
//!  matched ──▶ scheduled ──▶ held / collecting ──▶ pending ◀───────────────┐
//!     │  (after)  │   (quiet hours, digest, surplus)  │ claimed            │ retried by a person, or the plugin is there
//!     └───────────┴────────────────┐                  ▼                    │
//!                                  │              in_flight ──▶ delivered   │
//!                  suppressed ◀────┘               │ ▲ │ │ │              │
//!                  cancelled  ◀── a person, or     │ │ │ │ └─▶ blocked ───┤  reconnect, or no plugin
//!                                 the target is    │ │ │ └───▶ unknown    │  where a repeat does harm
//!                                 gone             │ │ └─────▶ dead ──────┘  rejected, or given up
//!                                                  ▼ │
//!                             retrying (next attempt) / waiting (the same attempt)
//! ```

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Its `after` has not passed; time moves it, or an acknowledgement.
    Scheduled,
    /// It waits for the end of quiet hours, perhaps with others; time moves it.
    Held,
    /// It is a digest that is still open, or a surplus; time moves it, or its being full.
    Collecting,
    /// Due; the dispatcher moves it when its lanes are free.
    Pending,
    /// An attempt runs; its outcome moves it, or the next start of the store.
    InFlight,
    /// The plugin asked to wait; the dispatcher goes on with the same attempt when the time has come.
    Waiting,
    /// An attempt failed; the dispatcher moves it when its time has come.
    Retrying,
    /// A person must mend something, or its plugin is not loaded; `deliveries retry` or the plugin moves it.
    Blocked,
    /// Made. Nobody moves it.
    Delivered,
    /// Given up, or impossible. Only a person moves it.
    Dead,
    /// It may or may not have been made, and a repeat would do harm. Only a person repeats it, as a new delivery.
    Unknown,
    /// Its `unless` was met. Nobody moves it.
    Suppressed,
    /// A person cancelled it, or its target is gone. Nobody moves it.
    Cancelled,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 13] = [
        Self::Scheduled,
        Self::Held,
        Self::Collecting,
        Self::Pending,
        Self::InFlight,
        Self::Waiting,
        Self::Retrying,
        Self::Blocked,
        Self::Delivered,
        Self::Dead,
        Self::Unknown,
        Self::Suppressed,
        Self::Cancelled,
    ];

    /// The spelling used on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Held => "held",
            Self::Collecting => "collecting",
            Self::Pending => "pending",
            Self::InFlight => "in_flight",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Blocked => "blocked",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
            Self::Suppressed => "suppressed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state spelled `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether it has come to an end that only a person undoes.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Dead | Self::Unknown | Self::Suppressed | Self::Cancelled)
    }

    /// Whether no attempt of it has begun and its content may still change.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Scheduled | Self::Held | Self::Collecting)
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

/// Why an attempt is made, as the plugin contract spells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// It is the first.
    #[default]
    First,
    /// The one before failed.
    Retry,
    /// The one before may or may not have happened.
    Repeat,
    /// A person asked for it.
    Manual,
    /// Nobody acknowledged in time.
    Escalation,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 5] = [Self::First, Self::Retry, Self::Repeat, Self::Manual, Self::Escalation];

    /// The spelling of the plugin contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Retry => "retry",
            Self::Repeat => "repeat",
            Self::Manual => "manual",
            Self::Escalation => "escalation",
        }
    }

    /// The cause spelled `text`.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cause| cause.as_str() == text)
    }
}

/// When failed attempts are repeated, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The wait after the first failure.
    pub first: Duration,
    /// No wait of our own is longer.
    pub most: Duration,
    /// How long after its first attempt began, or a person asked again, a delivery is given up.
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

/// What becomes of a delivery that may or may not have been made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnUnknown {
    /// It is repeated, with the cause `repeat`.
    #[default]
    Retry,
    /// It stays as it is.
    Stop,
}

/// How an attempt's end moves its delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// When it is repeated.
    pub schedule: Schedule,
    /// What an unknown outcome means.
    pub on_unknown: OnUnknown,
}

/// The end of an attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// How it ended.
    pub outcome: Outcome,
    /// How long the destination asked to wait.
    pub destination_delay: Option<Duration>,
    /// Attempts so far, this one included, from 1.
    pub attempt: u32,
    /// What giving up counts from.
    pub since: Timestamp,
    /// A random number from 0 to 1.
    pub jitter: f64,
    /// What the target asks.
    pub policy: Policy,
}

/// What happens to a delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// The plan lets it wait for its `after` (`Scheduled`), for the end of quiet hours (`Held`) or for more (`Collecting`).
    Gathered {
        /// Which of the three.
        state: State,
        /// Until when.
        until: Timestamp,
    },
    /// The plan lets it go.
    Released,
    /// Its `unless` is met.
    Suppressed,
    /// The dispatcher takes it for an attempt.
    Claimed,
    /// Its plugin asked to wait, or a stop cut its attempt off between two steps: the same attempt goes on then.
    Paused {
        /// When.
        until: Timestamp,
    },
    /// The store was opened again while an attempt ran: the same attempt goes on at once.
    CutOff,
    /// Its attempt ended.
    Ended(End),
    /// Its plugin is not loaded, or its target waits for a person.
    Blocked,
    /// A person asks for another attempt, or what blocked it is mended.
    Retried,
    /// A person cancels it, or its target is gone.
    Cancelled,
}

/// The next state, and when it is moved next where time does that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// The state.
    pub state: State,
    /// When it is looked at again.
    pub next_at: Option<Timestamp>,
}

impl Next {
    fn at(state: State, next_at: Timestamp) -> Self {
        Self { state, next_at: Some(next_at) }
    }

    fn still(state: State) -> Self {
        Self { state, next_at: None }
    }
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
pub fn transition(state: State, input: Input, now: Timestamp) -> Result<Next, NotAllowed> {
    use State::{
        Blocked, Cancelled, Collecting, Dead, Held, InFlight, Pending, Retrying, Scheduled, Suppressed, Waiting,
    };
    let next = match (state, input) {
        (Scheduled | Held | Collecting | Pending, Input::Gathered { state, until }) if state.is_open() => {
            Next::at(state, until)
        }
        (Scheduled | Held | Collecting, Input::Released) => Next::at(Pending, now),
        (Scheduled | Held | Collecting | Pending, Input::Suppressed) => Next::still(Suppressed),
        (Pending | Retrying | Waiting, Input::Claimed) => Next::still(InFlight),
        (InFlight, Input::Paused { until }) => Next::at(Waiting, until),
        (InFlight, Input::CutOff) => Next::at(Waiting, now),
        (InFlight, Input::Ended(end)) => after_attempt(&end, now),
        (Pending | Retrying | Waiting, Input::Blocked) => Next::still(Blocked),
        (Blocked | Dead, Input::Retried) => Next::at(Pending, now),
        (Retrying, Input::Retried) => Next::at(Retrying, now),
        (Scheduled | Held | Collecting | Pending | Retrying | Waiting | Blocked | Dead, Input::Cancelled) => {
            Next::still(Cancelled)
        }
        (state, _) => return Err(NotAllowed { state }),
    };
    Ok(next)
}

fn after_attempt(end: &End, now: Timestamp) -> Next {
    match end.outcome {
        Outcome::Delivered => Next::still(State::Delivered),
        Outcome::Reject => Next::still(State::Dead),
        Outcome::Reconnect => Next::still(State::Blocked),
        Outcome::Interrupted if end.attempt <= 1 => Next::at(State::Pending, now),
        Outcome::Interrupted => Next::at(State::Retrying, now),
        Outcome::Unknown if end.policy.on_unknown == OnUnknown::Stop => Next::still(State::Unknown),
        Outcome::Retry | Outcome::Unknown => {
            let own = end.policy.schedule.delay_after(end.attempt, end.jitter);
            let asked = end.destination_delay.unwrap_or_default().min(DESTINATION_DELAY_MAX);
            let next_at = later(now, own.max(asked));
            if next_at > later(end.since, end.policy.schedule.give_up) {
                Next::still(State::Dead)
            } else {
                Next::at(State::Retrying, next_at)
            }
        }
    }
}

#[cfg(test)]
mod tests;
