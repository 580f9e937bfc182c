//! Attempts that are kept, so that they can be made again on another version of their plugin.

use std::num::NonZeroU32;

use jiff::Timestamp;

use super::DeliveryId;
use super::delivery::Outcome;
use crate::notification::Name;

/// Recordings kept of each plugin, besides the last one of each outcome: enough to notice what another version does
/// otherwise, few enough to be made again while somebody waits.
pub const RECORDINGS_KEPT: u32 = 20;

/// Bytes of the content of one recording: far more than a usual one, and little enough for a store to keep without being
/// noticed.
pub const RECORDING_BYTES_MAX: usize = 64 * 1024;

/// A recorded attempt, or the part of one up to a wait, or from one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Of which delivery.
    pub delivery: DeliveryId,
    /// Which attempt, from 1.
    pub attempt: NonZeroU32,
    /// Whose.
    pub workspace: Name,
    /// The notifications that it is about, oldest first. It is forgotten with the first of them that is.
    pub seqs: Vec<u64>,
    /// The plugin that ran.
    pub plugin: Name,
    /// Its version.
    pub plugin_version: String,
    /// The SHA-256 of its file, in hex.
    pub plugin_digest: String,
    /// How it ended; none where it went on to wait.
    pub outcome: Option<Outcome>,
    /// When.
    pub at: Timestamp,
    /// JSON that the sender reads ([`crate::send::record::Recorded`]); no secret is in it.
    pub content: String,
}
