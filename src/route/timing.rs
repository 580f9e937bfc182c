//! When a target wants to hear of what it is owed: plain values, checked by the configuration.

use std::time::Duration;

use jiff::civil;
use jiff::tz::TimeZone;

use crate::notification::Event;

/// Notifications in one digest, whatever a target asks: a message longer than that is read by nobody.
pub const DIGEST_MOST: u32 = 100;

/// Bytes of the events in one digest: what a plugin is handed at once.
pub const DIGEST_BYTES_MAX: u64 = 256 * 1024;

/// Bytes that a notification takes of a digest besides its texts.
const OVERHEAD_BYTES: usize = 200;

/// Bytes that an event takes of the [`DIGEST_BYTES_MAX`] of a digest.
pub fn bytes_in_digest(event: &Event) -> u64 {
    let optional = [&event.subject, &event.body, &event.link, &event.content];
    let optional: usize = optional.into_iter().flatten().map(String::len).sum();
    let bytes = event.data.len() + event.title.len() + event.name.len() + optional + OVERHEAD_BYTES;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A target's timing, in the order in which it is applied: `after` and `unless`, `hold`, `collect`, `at_most`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// `after`: an escalation.
    pub after: Option<After>,
    /// `unless`: whose acknowledgement makes the delivery needless.
    pub unless: Option<Unless>,
    /// `hold`: quiet hours.
    pub hold: Option<Hold>,
    /// `collect`: digests.
    pub collect: Option<Collect>,
    /// `at_most`: a limit with a surplus that is collected.
    pub at_most: Option<AtMost>,
}

impl Timing {
    /// Whether everything goes at once, alone.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

/// What a stage lets pass at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Except {
    /// Nothing.
    #[default]
    Nothing,
    /// What is urgent.
    Urgent,
}

/// `after: 15m`, or `after: { wait: 15m, except: urgent }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Counted from when the notification was received.
    pub wait: Duration,
    /// What does not wait.
    pub except: Except,
}

/// `unless: acknowledged`, or `unless: { acknowledged: anyone }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    /// A person acknowledged it.
    AcknowledgedByPerson,
    /// A person or an agent acknowledged it.
    AcknowledgedByAnyone,
}

/// `hold: { from: "22:00", to: "07:00", zone: Europe/Berlin }`: every day from one time of day to another, over midnight
/// when `to` is not later than `from`. The two differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// When it begins.
    pub from: civil::Time,
    /// When it ends.
    pub to: civil::Time,
    /// Where the clock hangs.
    pub zone: TimeZone,
    /// What is not held.
    pub except: Except,
}

/// `collect: { by: subject, wait: 5m, most: 50 }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collect {
    /// What goes into one digest.
    pub by: By,
    /// How long a digest is open, from its first notification on.
    pub wait: Duration,
    /// Notifications that close it early, 1–[`DIGEST_MOST`].
    pub most: u32,
    /// What goes alone at once.
    pub except: Except,
}

/// What notifications of one digest share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The subject.
    Subject,
    /// The connector.
    Source,
    /// The event's name.
    Name,
    /// Nothing: all go into one.
    None,
}

/// `at_most: { count: 5, per: 1h }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtMost {
    /// Attempts that may reach the destination, 1–1,000, …
    pub count: u32,
    /// … in any time of this length.
    pub per: Duration,
    /// What is not limited; urgent unless the target says otherwise.
    pub except: Except,
}
