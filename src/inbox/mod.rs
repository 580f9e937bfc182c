//! Durable memory: notifications, the deliveries they owe, and how far each outbox was read.
//!
//! [`Inbox`] is the contract every store keeps; `sqlite` is the store for one machine.

pub mod book;
pub mod delivery;
mod delivery_id;
pub mod intake;
pub mod sqlite;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use crate::notification::{Event, Level, Name, Notification};
use book::{Admission, Book, LaneKey, QueueKey};
use delivery::{Cause, Next, Outcome, State};

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

/// One target that a notification owes a delivery. When it goes is decided as it is written, by the [`Book`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The route that matched.
    pub route: Name,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: Name,
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
    pub store: Arc<str>,
    /// From 1.
    pub number: i64,
}

impl fmt::Display for DeliveryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.store, self.number)
    }
}

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
    /// What giving up counts from: when it first came due, or a person asked again.
    pub since: Timestamp,
    /// When it first came due; the same for every attempt.
    pub due_at: Timestamp,
    /// Why the attempt is made.
    pub cause: Cause,
    /// What is owed, oldest first. Never empty.
    pub notifications: Vec<Notification>,
    /// How many more it stands for.
    pub omitted: u32,
    /// JSON that the plugin asked to carry on with.
    pub resume: Option<String>,
    /// JSON that the target remembers of this subject.
    pub memory: Option<Memory>,
    /// What is there of this attempt already, when it goes on after a wait, a stop or a crash.
    pub begun: Option<Begun>,
}

/// What a target remembers of a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// JSON.
    pub value: String,
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
}

/// A change of something kept for a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change {
    /// It stays as it is.
    #[default]
    Keep,
    /// This JSON stands in its place.
    Set(String),
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

/// What [`Inbox::claim`] is asked for.
#[derive(Clone, Debug)]
pub struct Want {
    /// From whom.
    pub queue: QueueKey,
    /// At most so many.
    pub most: u32,
    /// This delivery and no other: the queue keeps its order.
    pub only: Option<i64>,
    /// Subjects that have an attempt under way, where the target remembers by subject: no second one.
    pub busy: Vec<String>,
}

/// What [`Inbox::claim`] handed out.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// In the order of what was asked for, longest due first.
    pub claims: Vec<Claim>,
    /// For every queue that was asked: when something of it is due next that was not handed out.
    pub next_due: Vec<(QueueKey, Option<Timestamp>)>,
    /// Deliveries that came to another end than a claim.
    pub moved: Vec<Moved>,
}

/// A delivery that went to another state than in flight, for those who watch.
#[derive(Clone, Debug)]
pub struct Moved {
    /// Which.
    pub id: DeliveryId,
    /// Of which queue.
    pub queue: QueueKey,
    /// Its plugin.
    pub plugin: Name,
    /// Its first notification.
    pub seq: u64,
    /// Where it is now.
    pub state: State,
}

/// What was written since the last time somebody asked.
#[derive(Clone, Debug, Default)]
pub struct News {
    /// Deliveries that were claimed as they were written: [`Admission`] let them in.
    pub claims: Vec<Claim>,
    /// Queues of which something is due then, at the earliest.
    pub due: Vec<(QueueKey, Timestamp)>,
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

/// What a store that takes up a [`Book`] knows already.
#[derive(Clone, Debug, Default)]
pub struct Adopted {
    /// Queues with work, and when something is due first.
    pub due: Vec<(QueueKey, Timestamp)>,
    /// For queues that keep their order: the delivery that all others wait for, and until when.
    pub heads: Vec<(QueueKey, i64, Timestamp)>,
    /// What lanes had seen.
    pub lanes: Vec<LaneRecord>,
    /// Deliveries cancelled because their target is gone, by queue.
    pub cancelled: Vec<(QueueKey, u64)>,
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

/// Which deliveries a person means.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// These; all that the rest allows when empty.
    pub ids: Vec<DeliveryId>,
    /// In one of these states; in any when empty.
    pub states: Vec<State>,
    /// Of this route.
    pub route: Option<Name>,
    /// Of this plugin.
    pub plugin: Option<Name>,
    /// Made at or after this moment.
    pub since: Option<Timestamp>,
    /// Of this notification.
    pub seq: Option<u64>,
}

/// What became of the deliveries that a person wanted retried or cancelled.
#[derive(Clone, Debug, Default)]
pub struct Handled {
    /// Those that were, with the new delivery where one was made.
    pub done: Vec<(DeliveryId, Option<DeliveryId>)>,
    /// Those that were not, each with its state.
    pub refused: Vec<(DeliveryId, State)>,
    /// Ids that the workspace does not have.
    pub missing: Vec<DeliveryId>,
    /// Whether there are more: one request handles [`HANDLED_MAX`] at most.
    pub has_more: bool,
}

/// Deliveries that one request may move.
pub const HANDLED_MAX: u32 = 1_000;

/// Who did something with a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A member, or the name of an agent's consumer; 1–254 characters.
    pub name: String,
    /// Whether it is an agent.
    pub is_agent: bool,
}

/// What somebody did with a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Read it.
    Read,
    /// Acknowledged it, which is reading it, too. A person's acknowledgement takes the place of an agent's.
    Acknowledge,
}

/// Who did something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Actor,
}

/// What people and agents did with a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Who read it first.
    pub read: Option<Mark>,
    /// Who acknowledged it.
    pub acknowledged: Option<Mark>,
}

/// What became of the notifications that somebody marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Those that were there, marked now or before.
    pub seqs: Vec<u64>,
    /// Those that the inbox does not have.
    pub missing: Vec<u64>,
    /// Deliveries that this made needless.
    pub suppressed: Vec<DeliveryId>,
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
    /// Why it stands there, where neither state nor attempts say: why it is blocked, suppressed, cancelled.
    pub why: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first came due, or will.
    pub due_at: Timestamp,
    /// When it is moved next, if time does that.
    pub next_at: Option<Timestamp>,
    /// The attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// The notifications it stands for, oldest first; those it only counts are not among them.
    pub seqs: Vec<u64>,
    /// How many more it counts.
    pub omitted: u32,
    /// The delivery that a person had repeated by this one.
    pub retry_of: Option<DeliveryId>,
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
    /// used before changes nothing, whatever else it says. How the read went is kept too. A large intake is written in
    /// chunks of [`intake::CHUNK_ROWS_MAX`] rows, in order; the notices, the position and how the read went with the
    /// last. What is due at once and admitted is in flight from this very write on; see [`Inbox::news`].
    fn accept(&self, intake: Intake) -> BoxFuture<'_, Result<Accepted, InboxError>>;

    /// How this connector's outbox has been read so far.
    fn reading<'a>(&'a self, workspace: &'a Name, source: &'a Name) -> BoxFuture<'a, Result<Reading, InboxError>>;

    /// How every outbox of a workspace that was ever read has been read so far, by name.
    fn readings<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<(Name, Reading)>, InboxError>>;

    /// A key of 32 bytes, drawn when the store was made, that no plugin knows: what must be the same when an attempt goes
    /// on after a restart is computed from it.
    fn key(&self) -> [u8; 32];

    /// Takes up what targets there are and who lets deliveries in, at the start and after each reload. Deliveries whose
    /// target is gone are cancelled; those that waited for their plugin are due again if it is there.
    fn adopt(
        &self,
        book: Arc<Book>,
        admission: Option<Arc<dyn Admission>>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Adopted, InboxError>>;

    /// Hands out deliveries that are due, each in flight from now on. What waited for time is moved on as the plan says
    /// first.
    fn claim(&self, now: Timestamp, wants: Vec<Want>) -> BoxFuture<'_, Result<Claimed, InboxError>>;

    /// Ready once there is news. One task waits.
    fn news(&self) -> BoxFuture<'_, News>;

    /// Keeps the past of an attempt, before a further effect.
    fn keep(&self, kept: Kept) -> BoxFuture<'_, Result<(), InboxError>>;

    /// Lets an attempt rest.
    fn pause(&self, paused: Paused) -> BoxFuture<'_, Result<(), InboxError>>;

    /// Records the end of an attempt. Returns the numbers that the notices got.
    fn finish(&self, finished: Finished) -> BoxFuture<'_, Result<Vec<Option<u64>>, InboxError>>;

    /// Has deliveries made again, at once: the same one when it is dead, blocked or retrying, a new one that names it when
    /// it is delivered, unknown, suppressed or cancelled. What blocked a target is taken as mended.
    fn retry<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Handled, InboxError>>;

    /// Cancels deliveries that are neither in flight nor over.
    fn cancel<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        why: String,
    ) -> BoxFuture<'a, Result<Handled, InboxError>>;

    /// Marks notifications. Deliveries whose `unless` that meets are suppressed at once.
    fn mark<'a>(
        &'a self,
        workspace: &'a Name,
        seqs: Vec<u64>,
        deed: Deed,
        mark: Mark,
    ) -> BoxFuture<'a, Result<Marked, InboxError>>;

    /// What was done with these notifications of a workspace, in their order.
    fn marks<'a>(&'a self, workspace: &'a Name, seqs: Vec<u64>) -> BoxFuture<'a, Result<Vec<Marks>, InboxError>>;

    /// Lists an inbox.
    fn notifications(&self, page: Page) -> BoxFuture<'_, Result<Vec<Notification>, InboxError>>;

    /// One notification.
    fn notification<'a>(
        &'a self,
        workspace: &'a Name,
        seq: u64,
    ) -> BoxFuture<'a, Result<Option<Notification>, InboxError>>;

    /// Lists the newest deliveries of a workspace, by their first notification, newest first.
    fn deliveries(&self, page: Page, which: Which) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>>;
}
