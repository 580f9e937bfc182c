//! What routes may know of notifications that are stored, to decide them again.

use jiff::Timestamp;

use super::Mark;
use crate::notification::{Level, Name};

/// Rows of one read of [`Inbox::known`](super::Inbox::known): a few milliseconds, for which the store's log is not copied.
pub const KNOWN_MAX: u32 = 1_000;

/// How far a clock may have been set back without hiding something from
/// [`Inbox::seq_since`](super::Inbox::seq_since).
pub const SET_BACK_MAX: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// What routes may know of a stored notification, and what its timing depends on. The payload and the texts are not among
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its number in the workspace.
    pub seq: u64,
    /// When the host accepted it.
    pub received_at: Timestamp,
    /// The connector it came from.
    pub source: Name,
    /// The dotted name.
    pub name: String,
    /// What it is about.
    pub subject: Option<String>,
    /// The level that the source gave.
    pub level: Level,
    /// That level, capped by the ceiling that the source had when it was accepted.
    pub effective_level: Level,
    /// What it takes of a digest ([`bytes_in_digest`](crate::route::timing::bytes_in_digest)).
    pub bytes: u64,
    /// Whether it came with the first answer of its source: it owes nothing.
    pub is_first: bool,
    /// Who acknowledged it, and when.
    pub acknowledged: Option<Mark>,
}
