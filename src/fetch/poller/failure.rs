//! Why a read came to nothing.

use std::fmt;
use std::time::Duration;

use crate::fetch::answer::{NotAnAnswer, WHOLE_EVENTS_MAX};
use crate::fetch::outbox::ReadError;
use crate::fetch::push::page::NotAPage;
use crate::inbox::InboxError;

/// Why a read came to nothing. The position is where it was.
#[derive(Debug)]
pub(in crate::fetch) enum Failure {
    Read(ReadError),
    Answer(NotAnAnswer),
    /// The first answer gives no position to go on from.
    NoPosition,
    /// The answer has more events than are ever taken at once, and none says where it stands.
    TooMany {
        events: usize,
    },
    /// The answer of a push queue is no page.
    Page(NotAPage),
    /// A push queue does not do what it should: what, and what to do.
    Queue(&'static str),
    Inbox(InboxError),
}

impl Failure {
    /// How long the server asked to wait.
    pub(in crate::fetch) fn retry_after(&self) -> Option<Duration> {
        if let Self::Read(error) = self { error.retry_after() } else { None }
    }

    /// Whether a person must sign in.
    pub(in crate::fetch) fn is_signed_out(&self) -> bool {
        matches!(self, Self::Read(ReadError::Reauthorize(_)))
    }

    /// Whether only a person can end it, so that nothing is gained by waiting before the admin is told.
    pub(in crate::fetch) fn needs_a_person(&self) -> bool {
        matches!(self, Self::NoPosition) || self.is_signed_out()
    }

    /// Whether the server does not know the position any more, or cannot answer from it: `events_asked` were asked for.
    pub(in crate::fetch) fn is_about_the_position(&self, events_asked: u32) -> bool {
        match self {
            Self::Read(ReadError::NotFound(_)) => true,
            Self::Read(ReadError::TooLarge { .. }) => events_asked == 1,
            Self::Read(error) => error.speaks_of_cursor(),
            _ => false,
        }
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
                "the answer has {events} events and no cursors of their own; at most {WHOLE_EVENTS_MAX} are taken: let the \
                 outbox heed maxEvents"
            ),
            Self::Page(error) => error.fmt(out),
            Self::Queue(what) => out.write_str(what),
            Self::Inbox(error) => write!(out, "the inbox is not available: {error}"),
        }
    }
}
