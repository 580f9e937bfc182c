//! Why a read came to nothing.

use std::fmt;
use std::time::Duration;

use crate::fetch::answer::{EVENTS_MAX, NotAnAnswer};
use crate::fetch::outbox::ReadError;
use crate::inbox::InboxError;

/// Why a read came to nothing. The position is where it was.
#[derive(Debug)]
pub(super) enum Failure {
    Read(ReadError),
    Answer(NotAnAnswer),
    /// The first answer gives no position to go on from.
    NoPosition,
    /// The answer has more events than are taken, and none says where it stands.
    TooMany {
        events: usize,
    },
    Inbox(InboxError),
}

impl Failure {
    /// How long the server asked to wait.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        if let Self::Read(error) = self { error.retry_after() } else { None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(out),
            Self::Answer(error) => error.fmt(out),
            Self::NoPosition => out.write_str(
                "the first answer has no \"cursor\", so that there is no place to go on from: answer a read without a \
                 query with {\"events\": [], \"cursor\": \"<the position of now>\"}",
            ),
            Self::TooMany { events } => write!(
                out,
                "the answer has {events} events, of which {} are taken, and they have no cursors of their own: let \
                 the outbox heed maxEvents",
                EVENTS_MAX
            ),
            Self::Inbox(error) => write!(out, "the inbox is not available: {error}"),
        }
    }
}
