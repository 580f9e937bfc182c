//! Durable memory: notifications, the deliveries they owe, and how far each outbox was read.
//!
//! [`Inbox`] is the contract every store keeps; `sqlite` is the store for one machine.

mod attempt;
pub mod book;
pub mod change;
mod claim;
pub mod delivery;
mod delivery_id;
pub mod intake;
mod known;
mod people;
mod query;
mod queue;
mod recording;
mod retention;
pub mod sqlite;
mod store;
mod target_state;
mod token;
pub mod walk;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::notification::{Event, Level, Name};

pub use attempt::{
    Attempt, Begun, Change, Claim, Fence, Finished, Kept, KeptEffect, LaneRecord, Memory, Paused, Progress, Written,
};
pub use change::{CHANGES_KEPT, CHANGES_MAX, Changed, Changes};
pub use claim::{Adopted, Claimed, Moved, News, Want};
pub use known::{KNOWN_MAX, Known, SET_BACK_MAX};
pub use people::{Actor, Deed, DeliveryView, HANDLED_MAX, Handled, Mark, Marked, Marks, Which};
pub use query::{Listed, Order, QUERY_LIMIT_MAX, QUERY_TEXT_CHARS_MAX, Query};
pub use queue::{
    CONSUMERS_MAX, Consumed, LOSING_NAME, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Pending, QUEUE_EVENTS_MAX, QueueView,
};
pub use recording::{RECORDING_BYTES_MAX, RECORDINGS_KEPT, Recording};
pub use retention::{Expired, Expiry};
pub use store::{Inbox, Queues, Reader, Retention, Store, Tokens};
pub use target_state::{TargetState, WAITING_MAX};
pub use token::{OPERATOR_TOKENS_KEPT, SESSIONS_MAX, Scope, TOKENS_MAX, Token, TokenKind, WORKSPACE_TOKENS_MAX};

/// Events of one read of one outbox, with what they owe: written whole or, in chunks, from the first on.
#[derive(Clone, Debug)]
pub struct Intake {
    /// The workspace whose inbox they go to.
    pub workspace: Name,
    /// The connector they came from.
    pub source: Name,
    /// When they were read.
    pub received_at: Timestamp,
    /// Whether they are of a first answer: they happened before anybody asked, and owe nothing.
    pub is_first: bool,
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
    /// The consumers whose queues it joins if it is new.
    pub consumers: Vec<Name>,
}

/// One target that a notification owes a delivery. When it goes is decided as it is written, by the
/// [`Book`](book::Book).
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
    /// The delivery is not in the hands of whoever asked any more: its claim is void, and asking again does not help.
    NotHeld(DeliveryId),
}

impl fmt::Display for InboxError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(what) | Self::InUse(what) | Self::Unavailable(what) => out.write_str(what),
            Self::NotHeld(id) => write!(out, "delivery {id} is not in the hands of this attempt any more"),
        }
    }
}

impl std::error::Error for InboxError {}
