//! Why an event is dropped.

use std::fmt;

use super::{CURSOR_CHARS_MAX, DATA_DEPTH_MAX, EVENT_BYTES_MAX, EVENT_ID_CHARS_MAX, FORBIDDEN_SCHEMES, NAME_CHARS_MAX};
use crate::fetch::json::Kind;

/// A field of an event, as the notifications seed spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `eventId`
    EventId,
    /// `name`
    Name,
    /// `timestamp`
    Timestamp,
    /// `data`
    Data,
    /// `cursor`
    Cursor,
    /// `_meta`
    Meta,
    /// The block `ai.nimblebrain/notification` of `_meta`.
    Block,
    /// `subject` of the block.
    Subject,
    /// `level` of the block.
    Level,
    /// `title` of the block.
    Title,
    /// `body` of the block.
    Body,
    /// `link` of the block.
    Link,
    /// `resource` of the link.
    LinkResource,
    /// `type` of an event of a push queue.
    Type,
    /// `createdAt` of an event of a push queue.
    CreatedAt,
    /// `sourceId` of an event of a push queue.
    SourceId,
    /// `content` of an event of a push queue.
    Content,
}

impl fmt::Display for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::EventId => "eventId",
            Self::Name => "name",
            Self::Timestamp => "timestamp",
            Self::Data => "data",
            Self::Cursor => "cursor",
            Self::Meta => "_meta",
            Self::Block => "_meta[\"ai.nimblebrain/notification\"]",
            Self::Subject => "subject",
            Self::Level => "level",
            Self::Title => "title",
            Self::Body => "body",
            Self::Link => "link",
            Self::LinkResource => "link.resource",
            Self::Type => "type",
            Self::CreatedAt => "createdAt",
            Self::SourceId => "sourceId",
            Self::Content => "content",
        })
    }
}

impl Field {
    /// What the field must be.
    fn wanted(self) -> String {
        let string = |chars_max| format!("a string of 1 to {chars_max} characters");
        match self {
            Self::EventId => string(EVENT_ID_CHARS_MAX),
            Self::Name | Self::Type => string(NAME_CHARS_MAX),
            Self::SourceId => "a string, or left out".to_owned(),
            Self::Content => "an array of content blocks, or left out".to_owned(),
            Self::Timestamp | Self::CreatedAt => "a string such as \"2026-09-01T18:42:10Z\"".to_owned(),
            Self::Data => "an object".to_owned(),
            Self::Cursor => format!("{}, or left out", string(CURSOR_CHARS_MAX)),
            Self::Meta | Self::Block => "an object, or left out".to_owned(),
            Self::Subject | Self::Title | Self::Body => "a string, or left out".to_owned(),
            Self::Level => "\"info\", \"attention\" or \"urgent\", or left out".to_owned(),
            Self::Link => "an object with a resource, or left out".to_owned(),
            Self::LinkResource => "a URI with a scheme".to_owned(),
        }
    }
}

/// Which rule an event broke: the first one found. Its text names the field, what was found, and what is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The whole event is larger than [`EVENT_BYTES_MAX`].
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// A field nests deeper than [`DATA_DEPTH_MAX`].
    TooDeep {
        /// Which.
        field: Field,
        /// Its levels.
        levels: usize,
    },
    /// The event is no object.
    NotAnObject {
        /// What it is.
        found: Kind,
    },
    /// A required field is not there.
    Missing(Field),
    /// A field holds something else.
    WrongType {
        /// Which.
        field: Field,
        /// What it holds.
        found: Kind,
    },
    /// A string that names something is `""`.
    Empty(Field),
    /// A string that may not be cut is too long.
    TooLong {
        /// Which.
        field: Field,
        /// Its characters.
        chars: usize,
        /// As many as it may have.
        chars_max: usize,
    },
    /// A string has a character that it must not have: a control character, or white space in a name.
    Character {
        /// Which.
        field: Field,
        /// The character.
        found: char,
        /// Where it stands, from 1.
        at: usize,
    },
    /// A string that names something holds half a surrogate pair, which is no text.
    NotText(Field),
    /// The timestamp cannot be read.
    NotAMoment {
        /// Which field.
        field: Field,
        /// What it says, cut.
        found: String,
    },
    /// The level is invented.
    NotALevel {
        /// What it says, cut.
        found: String,
    },
    /// The link has no scheme.
    NoScheme,
    /// The link's scheme may run or show something that is not a place to go to.
    Scheme {
        /// The scheme, in lower case.
        found: &'static str,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(out, "the event has {bytes} bytes; one event may have at most {EVENT_BYTES_MAX}")
            }
            Self::TooDeep { field, levels } => {
                write!(
                    out,
                    "{field} nests {levels} levels deep; it may nest at most {DATA_DEPTH_MAX}, as deep as readers of JSON go"
                )
            }
            Self::NotAnObject { found } => write!(out, "the event is {found}; it must be an object"),
            Self::Missing(field) => write!(out, "{field} is missing; it must be {}", field.wanted()),
            Self::WrongType { field, found } => write!(out, "{field} is {found}; it must be {}", field.wanted()),
            Self::Empty(field) => write!(out, "{field} is empty; it must be {}", field.wanted()),
            Self::TooLong { field, chars, chars_max } => {
                write!(out, "{field} has {chars} characters; it may have at most {chars_max}")
            }
            Self::Character { field, found, at } => {
                let kind = if found.is_control() { "the control character" } else { "the white space" };
                let code = u32::from(*found);
                write!(out, "{field} has {kind} U+{code:04X} at character {at}; take it out")
            }
            Self::NotText(field) => {
                write!(out, "{field} holds half a surrogate pair, which is no text; it must be {}", field.wanted())
            }
            Self::NotAMoment { field, found } => write!(
                out,
                "{field} is {found:?}; it must be RFC 3339 or ISO 8601 with date, `T`, time, and `Z` or an offset \
                 such as `+02:00`, as in \"2026-09-01T18:42:10Z\""
            ),
            Self::NotALevel { found } => {
                write!(out, "level is {found:?}; it must be {}", Field::Level.wanted())
            }
            Self::NoScheme => {
                write!(out, "link.resource has no scheme; it must be a URI with one, as in \"acme://orders/1\"")
            }
            Self::Scheme { found } => write!(
                out,
                "link.resource has the scheme {found}, which no link may have (nor {}); use another",
                others(found)
            ),
        }
    }
}

impl std::error::Error for Reason {}

fn others(found: &str) -> String {
    FORBIDDEN_SCHEMES.into_iter().filter(|scheme| *scheme != found).collect::<Vec<_>>().join(", ")
}

/// Longest piece of an event that a reason repeats, in characters.
const FOUND_CHARS_MAX: usize = 40;

/// The beginning of `text`, for a reason.
pub(super) fn beginning(text: &str) -> String {
    match text.char_indices().nth(FOUND_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
