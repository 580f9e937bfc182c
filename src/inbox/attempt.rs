//! Attempts: what is handed out for one, what is kept while it goes on, and how it ended.

use std::num::NonZeroU32;

use jiff::Timestamp;

use super::book::{LaneKey, QueueKey};
use super::delivery::{Cause, Next, Outcome};
use super::{DeliveryId, Entry};
use crate::notification::{Name, Notification};

/// What a claim was handed out under. A store takes an outcome only from whoever still holds the delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fence {
    /// The start of the store, or the lease, that handed it out.
    pub epoch: i64,
    /// Until when it holds: an effect may not take longer. None where the store belongs to one process.
    pub until: Option<Timestamp>,
}

/// A delivery handed out for one attempt. Nobody else holds it until its outcome is recorded, or the store is opened
/// again.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which.
    pub id: DeliveryId,
    /// Under what.
    pub fence: Fence,
    /// The workspace, the route that matched and the target's identity.
    pub queue: QueueKey,
    /// The target's plugin when the delivery was made.
    pub plugin: Name,
    /// The number of this attempt, from 1.
    pub attempt: NonZeroU32,
    /// What giving up counts from: the first claim, or when a person asked again.
    pub since: Timestamp,
    /// When it first came due; the same for every attempt.
    pub due_at: Timestamp,
    /// Why the attempt is made.
    pub cause: Cause,
    /// What is owed, oldest first. Never empty.
    pub notifications: Vec<Notification>,
    /// How many more it stands for.
    pub omitted: u32,
    /// What the plugin asked to carry on with.
    pub resume: Option<Written>,
    /// JSON that the target remembers of this subject.
    pub memory: Option<Memory>,
    /// What is there of this attempt already, when it goes on after a wait, a stop or a crash.
    pub begun: Option<Begun>,
}

/// What a plugin asked to have kept for later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// JSON.
    pub value: String,
    /// The semantic version of the plugin that wrote it; none where that is not known.
    pub plugin_version: Option<String>,
}

/// What a target remembers of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The latest.
    pub written: Written,
    /// Counts the times it was written.
    pub version: i64,
}

/// An attempt that was begun before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// When.
    pub started_at: Timestamp,
    /// How often the plugin was asked since the attempt began or its last wait ended, for what is not repeated now.
    pub progress: Progress,
    /// The effects so far, oldest first; those before the last wait are forgotten.
    pub past: Vec<KeptEffect>,
    /// Whether it goes on after a plugin's wait: the past begins with `resumed`.
    pub waited: bool,
    /// Whether the effect after the past may have begun: the next action, if it is an effect, is answered `unanswered`
    /// and not performed.
    pub cut_off: bool,
    /// The SHA-256, in hex, of the plugin that something was kept of last or that rested; none where nothing was.
    pub plugin_digest: Option<String>,
}

/// How far an attempt has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many times the plugin was asked.
    pub steps: u32,
    /// Whether a destination accepted an effect, or may have.
    pub touched: bool,
    /// Whether a destination answered at all, or may have been reached.
    pub reached: bool,
}

/// An effect as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEffect {
    /// When its answer came.
    pub at: Timestamp,
    /// The SHA-256 of the action it answers, in hex.
    pub action_digest: String,
    /// JSON: the answer, without secrets.
    pub answer: String,
}

/// What of an attempt is to be kept while it goes on.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Of which delivery.
    pub id: DeliveryId,
    /// As claimed.
    pub fence: Fence,
    /// How far it has come.
    pub progress: Progress,
    /// How many effects were kept before.
    pub kept_before: usize,
    /// Those to be added.
    pub effects: Vec<KeptEffect>,
    /// The SHA-256 of the plugin that runs, in hex.
    pub plugin_digest: String,
}

/// A change of something kept for a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is, with the version that wrote it.
    #[default]
    Keep,
    /// This stands in its place.
    Set(Written),
    /// It is forgotten.
    Forget,
}

/// An attempt that rests: at its plugin's wish (a wait), or because the server stops between two of its steps.
#[derive(Clone, Debug)]
pub struct Paused {
    /// What is kept of it.
    pub kept: Kept,
    /// When it goes on.
    pub until: Timestamp,
    /// Whether the plugin asked: the past is forgotten.
    pub is_wait: bool,
    /// What the plugin carries on with.
    pub resume: Change,
    /// What its lanes have seen.
    pub lanes: Vec<LaneRecord>,
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// From 1.
    pub number: NonZeroU32,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// For the admin: why, or the destination's reference; without a secret.
    pub reason: Option<String>,
    /// How many times the plugin was asked.
    pub steps: u32,
    /// The version of the plugin that ran.
    pub plugin_version: Option<String>,
    /// The SHA-256 of the plugin that ran, in hex.
    pub plugin_digest: Option<String>,
}

/// The end of an attempt, to be recorded.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Of which delivery.
    pub id: DeliveryId,
    /// As claimed.
    pub fence: Fence,
    /// Of which queue.
    pub queue: QueueKey,
    /// How it went; the number of an attempt that was interrupted is given back.
    pub attempt: Attempt,
    /// Where it leaves the delivery.
    pub next: Next,
    /// Whether it reached the destination.
    pub reached: bool,
    /// What the next attempt carries on with.
    pub resume: Change,
    /// What the target remembers of the subject, and the version it knew (0 for none): newer memory stays.
    pub remember: (Change, i64),
    /// What its lanes have seen.
    pub lanes: Vec<LaneRecord>,
    /// The host's own notices about it, from the source `switchbell`.
    pub notices: Vec<Entry>,
}

/// What lanes have seen, to be kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRecord {
    /// Which.
    pub lane: LaneKey,
    /// Nothing is sent before.
    pub paused_until: Option<Timestamp>,
    /// When effects were made, and how many at that time, oldest first.
    pub effects: Vec<(Timestamp, u32)>,
}
