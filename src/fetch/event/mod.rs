//! The rules of an event (notifications seed, "The event envelope"): one pure function from its JSON to an event that
//! is accepted, or the reason why it is dropped.
//!
//! The payload is carried as the text it came as; nothing of it is looked at but how deep it nests. In the envelope a key that stands twice
//! has its last value, as JavaScript and Python read it.

pub(in crate::fetch) mod moment;
mod reason;
#[cfg(test)]
mod tests;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::json::{self, Kind, fields, kind};
use crate::notification::{Event, Level};
use crate::text;
pub use reason::{Field, Reason};

/// Largest event, as it came, in bytes: what one row, one plugin call and one page must be able to carry.
pub const EVENT_BYTES_MAX: usize = 64 << 10;
/// Levels that `data` may nest, itself the first: as deep as usual readers of JSON go. Whoever reads a page of an inbox would lose
/// all of it by one payload that is deeper.
pub const DATA_DEPTH_MAX: usize = 128;
/// Longest `eventId`, in characters.
pub const EVENT_ID_CHARS_MAX: usize = 200;
/// Longest `name`, in characters.
pub const NAME_CHARS_MAX: usize = 200;
/// Longest cursor, in characters: it travels in a URI, and in a header too.
pub const CURSOR_CHARS_MAX: usize = 1_024;
/// Subject and title are cut to so many characters.
pub const LINE_CHARS_MAX: usize = 200;
/// The body is cut to so many characters.
pub const BODY_CHARS_MAX: usize = 2_000;
/// Longest link, in characters. A link cannot be cut.
pub const LINK_CHARS_MAX: usize = 2_048;
/// Schemes that run or show something instead of leading somewhere.
pub const FORBIDDEN_SCHEMES: [&str; 5] = ["javascript", "data", "vbscript", "file", "blob"];

/// The key of the block that the host renders and matches on.
const BLOCK: &str = "ai.nimblebrain/notification";

/// An event that passed every rule, and the position after it where it told one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// The event, normalised.
    pub event: Event,
    /// Its own cursor.
    pub cursor: Option<String>,
}

/// Judges one event by its JSON text.
///
/// # Errors
/// The first rule it breaks.
pub fn judge(event: &RawValue) -> Result<Judged, Reason> {
    let bytes = event.get().len();
    if bytes > EVENT_BYTES_MAX {
        return Err(Reason::TooLarge { bytes });
    }
    let not_an_object = |_| Reason::NotAnObject { found: kind(event) };
    let [event_id, name, timestamp, data, cursor, meta] =
        fields(event.get(), ["eventId", "name", "timestamp", "data", "cursor", "_meta"]).map_err(not_an_object)?;

    let event_id = named(Field::EventId, required(Field::EventId, event_id)?, EVENT_ID_CHARS_MAX)?;
    let name = named(Field::Name, required(Field::Name, name)?, NAME_CHARS_MAX)?;
    let timestamp = moment_of(Field::Timestamp, timestamp)?;
    let data = payload(required(Field::Data, data)?)?.to_owned();
    let cursor = optional(cursor).map(position).transpose()?;
    let block = block(meta)?;

    let title = block.title.filter(|title| !title.is_empty()).unwrap_or_else(|| title_from(&name));
    let Block { subject, level, body, link, .. } = block;
    Ok(Judged {
        event: Event { event_id, name, timestamp, level, subject, title, body, link, data, content: None },
        cursor,
    })
}

/// The moment that a required field names.
pub(super) fn moment_of(field: Field, value: Option<&RawValue>) -> Result<Timestamp, Reason> {
    let text = string(field, required(field, value)?)?;
    moment::parse(&text).ok_or_else(|| Reason::NotAMoment { field, found: reason::beginning(&text) })
}

/// The `eventId` of an event that may be dropped, where it has one, shortened for a message.
pub fn id_of(event: &RawValue) -> Option<String> {
    let [event_id] = fields(event.get(), ["eventId"]).ok()?;
    json::string(event_id?).map(|id| reason::beginning(&id))
}

/// What the block `ai.nimblebrain/notification` says.
struct Block {
    subject: Option<String>,
    level: Level,
    title: Option<String>,
    body: Option<String>,
    link: Option<String>,
}

fn block(meta: Option<&RawValue>) -> Result<Block, Reason> {
    let mut block = Block { subject: None, level: Level::Info, title: None, body: None, link: None };
    let Some(meta) = optional(meta) else { return Ok(block) };
    let [found] = within(Field::Meta, meta, [BLOCK])?;
    let Some(found) = optional(found) else { return Ok(block) };
    let [subject, level, title, body, link] =
        within(Field::Block, found, ["subject", "level", "title", "body", "link"])?.map(optional);

    let line = |field| move |value| shown(field, value).map(|shown| text::line(&shown, LINE_CHARS_MAX));
    let not_empty = |text: &String| !text.is_empty();
    block.subject = subject.map(line(Field::Subject)).transpose()?.filter(not_empty);
    block.level = level.map_or(Ok(Level::Info), level_of)?;
    block.title = title.map(line(Field::Title)).transpose()?;
    let lines = |value| shown(Field::Body, value).map(|shown| text::lines(&shown, BODY_CHARS_MAX));
    block.body = body.map(lines).transpose()?.filter(not_empty);
    if let Some(link) = link {
        let [resource] = within(Field::Link, link, ["resource"])?;
        block.link = optional(resource).map(link_to).transpose()?;
    }
    Ok(block)
}

fn level_of(value: &RawValue) -> Result<Level, Reason> {
    let level = string(Field::Level, value)?;
    Level::parse(&level).ok_or_else(|| Reason::NotALevel { found: reason::beginning(&level) })
}

pub(super) fn link_to(value: &RawValue) -> Result<String, Reason> {
    let link = bounded(Field::LinkResource, value, LINK_CHARS_MAX)?;
    without(Field::LinkResource, &link, char::is_control)?;
    let scheme = scheme_of(&link).ok_or(Reason::NoScheme)?;
    match FORBIDDEN_SCHEMES.into_iter().find(|forbidden| forbidden.eq_ignore_ascii_case(scheme)) {
        Some(found) => Err(Reason::Scheme { found }),
        None => Ok(link),
    }
}

/// The scheme of a URI (RFC 3986 §3.1).
fn scheme_of(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let fits = scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(inner);
    fits.then_some(scheme)
}

/// A name stands in for a title that is missing. It may hold what no title may, and then still is not empty.
pub(super) fn title_from(name: &str) -> String {
    let title = text::line(name, LINE_CHARS_MAX);
    if title.is_empty() { name.to_owned() } else { title }
}

/// A string that names something: not empty, bounded, without control characters, and without white space in `name`.
pub(super) fn named(field: Field, value: &RawValue, chars_max: usize) -> Result<String, Reason> {
    let name = bounded(field, value, chars_max)?;
    without(field, &name, |found| found.is_control() || (field == Field::Name && found.is_whitespace()))?;
    Ok(name)
}

pub(super) fn payload(value: &RawValue) -> Result<&str, Reason> {
    let data = object(Field::Data, value)?;
    match json::depth(value) {
        levels if levels > DATA_DEPTH_MAX => Err(Reason::TooDeep { field: Field::Data, levels }),
        _ => Ok(data),
    }
}

fn position(value: &RawValue) -> Result<String, Reason> {
    bounded(Field::Cursor, value, CURSOR_CHARS_MAX)
}

fn bounded(field: Field, value: &RawValue, chars_max: usize) -> Result<String, Reason> {
    let text = string(field, value)?;
    match text.chars().count() {
        0 => Err(Reason::Empty(field)),
        chars if chars > chars_max => Err(Reason::TooLong { field, chars, chars_max }),
        _ => Ok(text),
    }
}

fn without(field: Field, text: &str, forbidden: impl Fn(char) -> bool) -> Result<(), Reason> {
    match text.chars().zip(1..).find(|&(found, _)| forbidden(found)) {
        Some((found, at)) => Err(Reason::Character { field, found, at }),
        None => Ok(()),
    }
}

pub(super) fn required(field: Field, value: Option<&RawValue>) -> Result<&RawValue, Reason> {
    value.ok_or(Reason::Missing(field))
}

/// `null` in an optional field means that it is absent.
pub(super) fn optional(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| kind(value) != Kind::Null)
}

/// A string that identifies something, exactly.
pub(super) fn string(field: Field, value: &RawValue) -> Result<String, Reason> {
    typed(field, value, Kind::String)?;
    json::string(value).map(Into::into).ok_or(Reason::NotText(field))
}

/// A string that is shown to people, made text where it is not.
fn shown(field: Field, value: &RawValue) -> Result<std::borrow::Cow<'_, str>, Reason> {
    typed(field, value, Kind::String)?;
    json::text(value).ok_or(Reason::NotText(field))
}

pub(super) fn object(field: Field, value: &RawValue) -> Result<&str, Reason> {
    typed(field, value, Kind::Object).map(|()| value.get())
}

fn within<'a, const COUNT: usize>(
    field: Field,
    value: &'a RawValue,
    keys: [&str; COUNT],
) -> Result<[Option<&'a RawValue>; COUNT], Reason> {
    fields(object(field, value)?, keys).map_err(|_| Reason::WrongType { field, found: kind(value) })
}

fn typed(field: Field, value: &RawValue, wanted: Kind) -> Result<(), Reason> {
    let found = kind(value);
    if found == wanted { Ok(()) } else { Err(Reason::WrongType { field, found }) }
}
