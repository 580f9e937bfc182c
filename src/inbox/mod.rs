//! Durable memory: notifications, the deliveries they owe, and how far each outbox was read.
//!
//! [`Inbox`] is the contract every store keeps; `sqlite` is the store for one machine.

pub mod delivery;
pub mod intake;
pub mod sqlite;

use std::fmt;
use std::num::NonZeroU32;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::notification::{Event, Level, Name, Notification};
use delivery::{Next, Outcome, State};

/// Events of one read of one outbox, with what they owe: written whole or, in chunks, from the first on.
#[derive(Clone, Debug)]
pub struct Intake {
    /// The workspace whose inbox they go to.
    pub workspace: Name,
    /// The connector they came from.
    pub source: Name,
    /// When they were read.
    pub received_at: Timestamp,
    /// Oldest first.
    pub entries: Vec<Entry>,
    /// The host's own notices about this read, from the source `switchbell`: written together with the position.
    pub notices: Vec<Entry>,
    /// Where the next read starts; absent leaves the position as it is.
    pub cursor: Option<String>,
    /// How the read went, for those who look at the connector.
    pub ended: Ended,
}

/// How a read of an outbox went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It brought an answer.
    Answered {
        /// The revision of the protocol that the server spoke.
        revision: Option<String>,
        /// Whether the next answer still belongs to the first: the outbox has more from before anyone asked.
        is_backlog: bool,
    },
    /// It failed.
    Failed {
        /// Why, and what to do; without a secret.
        reason: String,
        /// Failures in a row, this one included.
        failures: u32,
        /// What the admin has been told of them.
        told: Told,
    },
}

/// Which bad news of a connector the admin has been told that is not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Told {
    /// None.
    #[default]
    Nothing,
    /// That it cannot be read.
    Failing,
    /// That a person must sign in again.
    Reauthorize,
}

/// One event and what it owes.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What the source said.
    pub event: Event,
    /// Its level, capped by the source's ceiling.
    pub effective_level: Level,
    /// The deliveries it owes if it is new.
    pub owed: Vec<Owed>,
}

/// One target that a notification owes a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The route that matched.
    pub route: Name,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: Name,
    /// When it comes due.
    pub due_at: Timestamp,
}

/// What became of the entries and the notices of an [`Intake`], in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// The number a new notification got; none for one that was there already.
    pub seqs: Vec<Option<u64>>,
    /// The same for the notices.
    pub notice_seqs: Vec<Option<u64>>,
}

/// A delivery's id: the store's tag and a number, stable for ever.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeliveryId {
    /// Eight hexadecimal digits, drawn when the store was made, so that ids of two stores differ.
    pub store: std::sync::Arc<str>,
    /// From 1.
    pub number: i64,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.store, self.number)
    }
}

/// A delivery handed out for one attempt. Nobody else holds it until its outcome is recorded, or the store is opened
/// again.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Which.
    pub id: DeliveryId,
    /// The route that matched.
    pub route: Name,
    /// The target's identity.
    pub target: String,
    /// The target's plugin when the delivery was made.
    pub plugin: Name,
    /// The number of this attempt, from 1.
    pub attempt: NonZeroU32,
    /// When the delivery was made: what giving up counts from.
    pub created_at: Timestamp,
    /// When it first came due; the same for every attempt.
    pub due_at: Timestamp,
    /// How the attempt before ended.
    pub last_outcome: Option<Outcome>,
    /// What is owed.
    pub notification: Notification,
}

/// What [`Inbox::claim`] handed out.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// Longest due first.
    pub claims: Vec<Claim>,
    /// When the next delivery comes due that was not handed out, if one waits.
    pub next_due: Option<Timestamp>,
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
    /// How it went; the number of an attempt that was interrupted is given back.
    pub attempt: Attempt,
    /// Where it leaves the delivery.
    pub next: Next,
}

/// A delivery as readers see it.
#[derive(Clone, Debug)]
pub struct DeliveryView {
    /// Which.
    pub id: DeliveryId,
    /// The workspace.
    pub workspace: Name,
    /// The route that matched.
    pub route: Name,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: Name,
    /// Where it stands.
    pub state: State,
    /// When it first came due.
    pub due_at: Timestamp,
    /// When the next attempt comes due, if one does.
    pub next_at: Option<Timestamp>,
    /// The attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// The notifications it stands for.
    pub seqs: Vec<u64>,
}

/// How one outbox has been read so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Where the next read starts; none before the first answer.
    pub cursor: Option<String>,
    /// When that changed last.
    pub moved_at: Option<Timestamp>,
    /// When a read brought an answer last.
    pub read_at: Option<Timestamp>,
    /// The last failure: when, and why. It is kept when later reads succeed.
    pub failure: Option<(Timestamp, String)>,
    /// Failures in a row; 0 after an answer.
    pub failures: u32,
    /// What the admin has been told of them.
    pub told: Told,
    /// Whether the next answer still belongs to the first.
    pub is_backlog: bool,
    /// The revision of the protocol that the server spoke last.
    pub revision: Option<String>,
}

/// Which entries of an inbox to list: the newest `limit` before `before`, newest first.
#[derive(Clone, Debug)]
pub struct Page {
    /// Of this workspace.
    pub workspace: Name,
    /// Only with a smaller number.
    pub before: Option<u64>,
    /// At most so many, 1–1,000.
    pub limit: u32,
}

/// Why the store could not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InboxError {
    /// It cannot be opened as asked: what is wrong and what to do.
    Open(String),
    /// Another process has it open for writing.
    InUse(String),
    /// It refused a read or write just now (a full disk, say). Nothing was changed.
    Unavailable(String),
}

impl fmt::Display for InboxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(what) | Self::InUse(what) | Self::Unavailable(what) => out.write_str(what),
        }
    }
}

impl std::error::Error for InboxError {}

/// The contract of a store. Every write is durable when its future is ready, and all or nothing.
pub trait Inbox: Send + Sync + fmt::Debug {
    /// Writes notifications, the deliveries that new ones owe, and the new position. An event whose id the source has
    /// used before changes nothing, whatever else it says. How the read went is kept too. A large intake is written in chunks of
    /// [`intake::CHUNK_ROWS_MAX`] rows, in order; the notices, the position and how the read went with the last.
    fn accept(&self, intake: Intake) -> BoxFuture<'_, Result<Accepted, InboxError>>;

    /// How this connector's outbox has been read so far.
    fn reading<'a>(&'a self, workspace: &'a Name, source: &'a Name) -> BoxFuture<'a, Result<Reading, InboxError>>;

    /// How every outbox of a workspace that was ever read has been read so far, by name.
    fn readings<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<(Name, Reading)>, InboxError>>;

    /// Hands out at most `most` deliveries that are due, longest due first, each in flight from now on.
    fn claim(&self, now: Timestamp, most: u32) -> BoxFuture<'_, Result<Claimed, InboxError>>;

    /// Ready once a write may have changed when the next delivery comes due, since the last time this was ready. One
    /// task waits.
    fn owed(&self) -> BoxFuture<'_, ()>;

    /// Records the end of an attempt.
    fn finish(&self, finished: Finished) -> BoxFuture<'_, Result<(), InboxError>>;

    /// Lists an inbox.
    fn notifications(&self, page: Page) -> BoxFuture<'_, Result<Vec<Notification>, InboxError>>;

    /// One notification.
    fn notification<'a>(
        &'a self,
        workspace: &'a Name,
        seq: u64,
    ) -> BoxFuture<'a, Result<Option<Notification>, InboxError>>;

    /// Lists the newest deliveries of a workspace, newest first; those of one notification when `seq` names it.
    fn deliveries(&self, page: Page, seq: Option<u64>) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>>;
}
