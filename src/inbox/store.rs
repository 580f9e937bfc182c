//! The contract of a store.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

use super::book::{Admission, Book, QueueKey};
use super::{
    Accepted, Adopted, Changes, Claimed, Consumed, Deed, DeliveryView, Expired, Expiry, Finished, Handled, InboxError,
    Intake, Kept, Known, LaneRecord, Listed, Mark, Marked, Marks, News, Page, Paused, Pending, Query, QueueView,
    Reading, Recording, TargetState, Token, Want, Which,
};
use crate::notification::{Name, Notification};
use crate::route::timing::AtMost;

/// The contract of a store. Every write is durable when its future is ready, and all or nothing.
pub trait Inbox: Send + Sync + fmt::Debug {
    /// Writes notifications, the deliveries that new ones owe, and the new position. An event whose id the source has
    /// used before changes nothing, whatever else it says. How the read went is kept too. A large intake is written in
    /// chunks of [`CHUNK_ROWS_MAX`](super::intake::CHUNK_ROWS_MAX) rows, in order; the notices, the position and how the
    /// read went with the last. What is due at once and admitted is in flight from this very write on; see [`Inbox::news`].
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

    /// The versions of plugins that attempts which go on began on: a plugin's name and the SHA-256 of the version, in hex, in
    /// order, each once. An attempt under way of which nothing was kept yet is not among them.
    fn plugins_in_use(&self) -> BoxFuture<'_, Result<Vec<(Name, String)>, InboxError>>;

    /// Has deliveries made again, at once: the same one when it is dead, blocked or retrying, a new one that names it when
    /// it is delivered, unknown, suppressed or cancelled. What blocked a target is taken as mended, and all that is
    /// blocked of it goes on.
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

    /// What routes may know of the notifications of a workspace with this number or a greater one, oldest first: at most
    /// `limit`, and [`KNOWN_MAX`](super::KNOWN_MAX). Each call is one short read, so that whoever goes through a long inbox
    /// call by call holds up no writer.
    fn known<'a>(&'a self, workspace: &'a Name, from: u64, limit: u32)
    -> BoxFuture<'a, Result<Vec<Known>, InboxError>>;

    /// A number from which on everything lies that was received at this moment or later; the one after the last where there
    /// is nothing. Up to [`SET_BACK_MAX`](super::SET_BACK_MAX) of what was received before lies behind it too, since numbers
    /// grow with time only as long as the clock is not set back.
    fn seq_since<'a>(&'a self, workspace: &'a Name, moment: Timestamp) -> BoxFuture<'a, Result<u64, InboxError>>;

    /// One notification.
    fn notification<'a>(
        &'a self,
        workspace: &'a Name,
        seq: u64,
    ) -> BoxFuture<'a, Result<Option<Notification>, InboxError>>;

    /// Whether a notification came with the first answer of its outbox, so that it owes nothing.
    fn is_of_first_read<'a>(&'a self, workspace: &'a Name, seq: u64) -> BoxFuture<'a, Result<bool, InboxError>>;

    /// Lists the newest deliveries of a workspace, by their first notification, newest first.
    fn deliveries(&self, page: Page, which: Which) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>>;

    /// What a target's timing depends on, as it stands at `now`; nothing of a target that the store does not know.
    fn target_state<'a>(
        &'a self,
        queue: &'a QueueKey,
        at_most: Option<&'a AtMost>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<TargetState, InboxError>>;

    /// What lanes have seen, as it was kept last.
    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneRecord>, InboxError>>;

    /// Keeps a recording, and forgets those of its plugin that are neither among the newest
    /// [`RECORDINGS_KEPT`](super::RECORDINGS_KEPT) nor the newest of their outcome. One that is larger than
    /// [`RECORDING_BYTES_MAX`](super::RECORDING_BYTES_MAX), or is about a notification that there is none of, is not kept.
    fn record(&self, recording: Recording) -> BoxFuture<'_, Result<(), InboxError>>;

    /// The recordings of a plugin, newest first.
    fn recordings<'a>(&'a self, plugin: &'a Name) -> BoxFuture<'a, Result<Vec<Recording>, InboxError>>;
}

/// What readers ask of a store.
pub trait Reader: Send + Sync + fmt::Debug {
    /// Lists notifications with what was done with them.
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Listed, InboxError>>;

    /// How many notifications of a workspace nobody has read, counted up to `most`.
    fn unread<'a>(&'a self, workspace: &'a Name, most: u32) -> BoxFuture<'a, Result<u32, InboxError>>;

    /// The number of the newest notification that ever was in a workspace, whether it is kept or not; 0 when there was none.
    fn last_seq<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<u64, InboxError>>;

    /// What changed in a workspace behind this number, oldest first: at most `limit`, and
    /// [`CHANGES_MAX`](super::CHANGES_MAX).
    fn changes<'a>(&'a self, workspace: &'a Name, after: u64, limit: u32)
    -> BoxFuture<'a, Result<Changes, InboxError>>;

    /// Follows a workspace: the number of its last change, told again after each commit that changed something. It is never
    /// ahead of what [`Reader::changes`] answers. A store that is open for reading only tells what there was at the start.
    fn follow<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>>;
}

/// Who may read and change. Every write is durable when its future is ready.
pub trait Tokens: Send + Sync + fmt::Debug {
    /// Keeps a token; returns its id.
    fn add_token(&self, token: Token) -> BoxFuture<'_, Result<i64, InboxError>>;

    /// The token of this hash, good or not; one whose parent is revoked is revoked.
    fn token(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Token>, InboxError>>;

    /// Every bearer token, oldest first, and every link and session that is still good.
    fn tokens(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Token>, InboxError>>;

    /// Revokes a token and all that were made from it; whether there was one that was good.
    fn revoke_token(&self, id: i64, now: Timestamp) -> BoxFuture<'_, Result<bool, InboxError>>;

    /// Spends a link: keeps `session` in its place, whose scope is the link's, and returns it with its id; none when the link is
    /// unknown, spent or over. Of several that come at once one gets it.
    fn redeem(
        &self,
        link: [u8; 32],
        session: Token,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Token>, InboxError>>;

    /// Notes when tokens were used last. Links and sessions that have been over for a day are forgotten on the way.
    fn tokens_used(&self, used: Vec<(i64, Timestamp)>) -> BoxFuture<'_, Result<(), InboxError>>;
}

/// What goes when it is old.
pub trait Retention: Send + Sync + fmt::Debug {
    /// Every workspace that the store holds something of, by name.
    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Name>, InboxError>>;

    /// The oldest notifications that may go, with what was done with them, at most `limit`, and where to go on behind: none
    /// that a delivery which is not over stands for.
    fn expiring<'a>(
        &'a self,
        workspace: &'a Name,
        expiry: Expiry,
        limit: u32,
    ) -> BoxFuture<'a, Result<Listed, InboxError>>;

    /// Removes notifications with the deliveries that stand for nothing else, each only if no delivery that is not over stands
    /// for it. Event ids stay known.
    fn expire<'a>(
        &'a self,
        workspace: &'a Name,
        seqs: Vec<u64>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Expired, InboxError>>;

    /// Forgets the oldest changes of a workspace beyond [`CHANGES_KEPT`](super::CHANGES_KEPT), in at most `limit` steps; returns
    /// how many steps that took.
    fn forget_changes<'a>(&'a self, workspace: &'a Name, limit: u32) -> BoxFuture<'a, Result<u64, InboxError>>;

    /// Forgets event ids that were used last before this moment, at most `limit`; returns how many. Those of the day before it
    /// may stay. When it forgets less than `limit`, all were looked through, and what plugins had remembered for longer went,
    /// too. Each call may look at every id, in short reads.
    fn forget_seen(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, Result<u64, InboxError>>;
}

/// The queues of consumers. [`Inbox::accept`] fills them. Every write is durable when its future is ready.
pub trait Queues: Send + Sync + fmt::Debug {
    /// What waits for a consumer behind this number, oldest first: at most `limit`, [`PAGE_EVENTS_MAX`](super::PAGE_EVENTS_MAX) and
    /// [`PAGE_BYTES_MAX`](super::PAGE_BYTES_MAX). Nothing for a consumer that nothing ever joined the queue of.
    fn pending<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Pending, InboxError>>;

    /// Takes events out of a queue, by their [global ids](crate::notification::global_id). Ids that are not in it change nothing.
    fn consume<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
        ids: Vec<String>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Consumed, InboxError>>;

    /// Follows a queue: the number of the notification that joined it last, told again after each commit that one joined in; 0
    /// before the first. It is never ahead of what [`Queues::pending`] answers.
    fn follow_queue<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
    ) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>>;

    /// Follows losses: a number that grows with each commit in which a queue began to lose events (see
    /// [`QueueView::losses`](super::QueueView::losses)). What it is means nothing.
    fn follow_losses(&self) -> watch::Receiver<u64>;

    /// Every queue of a workspace that something ever joined, by name.
    fn queues<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<QueueView>, InboxError>>;
}

/// All that a server asks of a store.
pub trait Store: Inbox + Reader + Tokens + Retention + Queues {}

impl<T: Inbox + Reader + Tokens + Retention + Queues> Store for T {}
