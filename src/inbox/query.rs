//! What readers ask of an inbox.

use std::sync::Arc;

use jiff::Timestamp;

use super::Marks;
use crate::notification::{Name, Notification};
use crate::route::PreparedMatcher;

/// Notifications of one answer.
pub const QUERY_LIMIT_MAX: u32 = 1_000;

/// Longest text that is looked for, in characters: that of the longest title.
pub const QUERY_TEXT_CHARS_MAX: usize = 200;

/// Which way a list goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The newest first.
    #[default]
    Newest,
    /// The oldest first, to walk through a backlog.
    Oldest,
}

/// Which notifications of a workspace are meant: those for which everything holds that is asked.
#[derive(Clone, Debug)]
pub struct Query {
    /// Of this workspace.
    pub workspace: Name,
    /// These; any when empty. At most [`QUERY_LIMIT_MAX`].
    pub seqs: Vec<u64>,
    /// Only with a greater number.
    pub after: Option<u64>,
    /// Only with a smaller number.
    pub before: Option<u64>,
    /// Received at or after this moment.
    pub since: Option<Timestamp>,
    /// Only those that nobody has read.
    pub is_unread: bool,
    /// Only those that nobody has acknowledged.
    pub is_unacknowledged: bool,
    /// What its source, name, subject and effective level must be, as a route would ask it; any when absent.
    pub when: Option<Arc<PreparedMatcher>>,
    /// A text that stands in its name, subject, title or body; letters of either case. Never looked for in `data`.
    pub text: Option<String>,
    /// Which first.
    pub order: Order,
    /// At most so many, 1–[`QUERY_LIMIT_MAX`].
    pub limit: u32,
}

impl Query {
    /// All of a workspace, the newest first.
    pub fn all(workspace: Name, limit: u32) -> Self {
        Self {
            workspace,
            seqs: Vec::new(),
            after: None,
            before: None,
            since: None,
            is_unread: false,
            is_unacknowledged: false,
            when: None,
            text: None,
            order: Order::Newest,
            limit,
        }
    }
}

/// A part of what was asked for.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    /// In the order that was asked for.
    pub items: Vec<(Notification, Marks)>,
    /// Where to go on behind, in the same order: as `before` with the newest first, as `after` with the oldest first. None
    /// when there is no more. One answer looks at a bounded number of notifications, so there may be more even if few or
    /// none were found; whoever goes on misses none and gets none twice.
    pub next: Option<u64>,
}
