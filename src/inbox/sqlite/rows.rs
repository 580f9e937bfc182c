//! How values become columns and columns values.

use jiff::Timestamp;
use rusqlite::{Connection, Params, Row};

use super::errors::unavailable;
use super::{InboxError, Name};
use crate::inbox::delivery::State;
use crate::inbox::{Actor, Mark, Told};
use crate::notification::{Event, Level, Notification};

/// Bits of a notification's row id that hold its number in the workspace: a trillion of them.
pub(super) const SEQ_BITS: u32 = 40;

/// What [`notification`] reads, of `notification n`, `source s` and `workspace w`.
pub(super) const NOTIFICATION: &str = "w.name, n.id, s.name, n.received_at, n.effective_level, n.event_id, n.name,
                                       n.timestamp, n.level, n.subject, n.title, n.body, n.link, n.data, n.content";

/// How many columns that are.
pub(super) const NOTIFICATION_COLUMNS: usize = 15;

/// What `notification n` takes of a digest: [`bytes_in_digest`](crate::route::timing::bytes_in_digest).
pub(super) const BYTES: &str =
    "200 + octet_length(n.data) + octet_length(n.title) + octet_length(n.name) + coalesce(octet_length(n.subject), 0)
         + coalesce(octet_length(n.body), 0) + coalesce(octet_length(n.link), 0)
         + coalesce(octet_length(n.content), 0)";

/// The row id of a workspace's notification.
pub(super) fn row_id(workspace: i64, seq: i64) -> i64 {
    (workspace << SEQ_BITS) + seq
}

/// The row id of a number that somebody names; none for one that no notification can have.
pub(super) fn row_of(workspace: i64, seq: u64) -> Option<i64> {
    i64::try_from(seq).ok().filter(|seq| (1..1 << SEQ_BITS).contains(seq)).map(|seq| row_id(workspace, seq))
}

/// The number that a row id holds.
pub(super) fn seq_of(row_id: i64) -> u64 {
    row_id.unsigned_abs() & ((1 << SEQ_BITS) - 1)
}

pub(super) fn moment(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::MAX)
}

pub(super) fn level_number(level: Level) -> u8 {
    match level {
        Level::Info => 0,
        Level::Attention => 1,
        Level::Urgent => 2,
    }
}

pub(super) fn level(row: &Row<'_>, column: usize) -> rusqlite::Result<Level> {
    let number: u8 = row.get(column)?;
    Level::ALL.get(usize::from(number)).copied().ok_or_else(|| wrong(column))
}

pub(super) fn told_number(told: Told) -> u8 {
    match told {
        Told::Nothing => 0,
        Told::Failing => 1,
        Told::Reauthorize => 2,
    }
}

pub(super) fn told(number: u8) -> Told {
    match number {
        0 => Told::Nothing,
        1 => Told::Failing,
        _ => Told::Reauthorize,
    }
}

pub(super) fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    State::parse(row.get_ref(column)?.as_str()?).ok_or_else(|| wrong(column))
}

pub(super) fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    row.get_ref(column)?.as_str()?.parse().map_err(|_| wrong(column))
}

/// A mark in three columns: when, who, whether it is an agent.
pub(super) fn mark(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Mark>> {
    let Some(at) = row.get::<_, Option<i64>>(first)? else { return Ok(None) };
    let by = Actor { name: row.get(first + 1)?, is_agent: row.get(first + 2)? };
    Ok(Some(Mark { at: moment(at), by }))
}

/// What [`NOTIFICATION`] lists.
pub(super) fn notification(row: &Row<'_>) -> rusqlite::Result<Notification> {
    Ok(Notification {
        workspace: name(row, 0)?,
        seq: seq_of(row.get(1)?),
        source: name(row, 2)?,
        received_at: moment(row.get(3)?),
        effective_level: level(row, 4)?,
        event: Event {
            event_id: row.get(5)?,
            name: row.get(6)?,
            timestamp: row.get_ref(7)?.as_str()?.parse().map_err(|_| wrong(7))?,
            level: level(row, 8)?,
            subject: row.get(9)?,
            title: row.get(10)?,
            body: row.get(11)?,
            link: row.get(12)?,
            data: row.get(13)?,
            content: row.get(14)?,
        },
    })
}

pub(super) fn wrong(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "a value this version knows".to_owned(), rusqlite::types::Type::Text)
}

pub(super) fn unreadable(what: &str) -> InboxError {
    InboxError::Unavailable(format!("the store holds a {what} that cannot be read: it was changed by something else"))
}

/// The numbers that a statement returns.
pub(super) fn ids(connection: &Connection, sql: &str, values: impl Params) -> Result<Vec<i64>, InboxError> {
    let mut statement = prepare(connection, sql)?;
    let found = statement.query_map(values, |row| row.get(0)).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

pub(super) fn prepare<'a>(connection: &'a Connection, sql: &str) -> Result<rusqlite::CachedStatement<'a>, InboxError> {
    connection.prepare_cached(sql).map_err(unavailable)
}
