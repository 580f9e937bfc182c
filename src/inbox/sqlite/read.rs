//! The statements that read, and how rows become values.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::{DeliveryView, InboxError, Name, Notification, Page, Reading, Store};
use crate::inbox::delivery::{Outcome, State};
use crate::inbox::{Attempt, DeliveryId, Told};
use crate::notification::{Event, Level};

/// Bits of a notification's row id that hold its number in the workspace: a trillion of them.
const SEQ_BITS: u32 = 40;

/// Rows one listing may return: it bounds how long a reader holds the write-ahead log.
pub(super) const LISTED_MAX: u32 = 1_000;

const NOTIFICATION: &str = "w.name, n.id, s.name, n.received_at, n.effective_level, n.event_id, n.name, n.timestamp,
                            n.level, n.subject, n.title, n.body, n.link, n.data";
const NOTIFICATION_COLUMNS: usize = 14;

/// A delivery that can be claimed.
pub(super) struct Due {
    pub(super) id: i64,
    pub(super) state: State,
    pub(super) route: Name,
    pub(super) target: String,
    pub(super) plugin: Name,
    pub(super) attempts: u32,
    pub(super) created_at: Timestamp,
    pub(super) due_at: Timestamp,
    pub(super) last_outcome: Option<Outcome>,
    pub(super) notification: Notification,
}

/// The row id of a workspace's notification.
pub(super) fn row_id(workspace: i64, seq: i64) -> i64 {
    (workspace << SEQ_BITS) + seq
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

pub(super) fn told_number(told: Told) -> u8 {
    match told {
        Told::Nothing => 0,
        Told::Failing => 1,
        Told::Reauthorize => 2,
    }
}

fn told(number: u8) -> Told {
    match number {
        0 => Told::Nothing,
        1 => Told::Failing,
        _ => Told::Reauthorize,
    }
}

pub(super) fn unreadable(what: &str) -> InboxError {
    InboxError::Unavailable(format!("the store holds a {what} that cannot be read: it was changed by something else"))
}

pub(super) fn reading(connection: &Connection, workspace: &Name, source: &Name) -> Result<Reading, InboxError> {
    let all = readings(connection, workspace)?;
    Ok(all.into_iter().find(|(name, _)| name == source).map(|(_, reading)| reading).unwrap_or_default())
}

/// Of those that were ever read, which the host's own source never is.
pub(super) fn readings(connection: &Connection, workspace: &Name) -> Result<Vec<(Name, Reading)>, InboxError> {
    let sql = "SELECT s.name, s.cursor, s.moved_at, s.read_at, s.failed_at, s.failure, s.failures, s.revision, s.told,
                      s.backlog
               FROM source s JOIN workspace w ON w.id = s.workspace
               WHERE w.name = ?1 AND coalesce(s.cursor, s.read_at, s.failed_at) IS NOT NULL ORDER BY s.name";
    let mut statement = prepare(connection, sql)?;
    let at = |row: &Row<'_>, column| row.get::<_, Option<i64>>(column).map(|found| found.map(moment));
    let row = |row: &Row<'_>| {
        let reading = Reading {
            cursor: row.get(1)?,
            moved_at: at(row, 2)?,
            read_at: at(row, 3)?,
            failure: at(row, 4)?.zip(row.get(5)?),
            failures: row.get(6)?,
            revision: row.get(7)?,
            told: told(row.get(8)?),
            is_backlog: row.get(9)?,
        };
        Ok((name(row, 0)?, reading))
    };
    let rows = statement.query_map([workspace.as_str()], row).map_err(unavailable)?;
    rows.collect::<Result<_, _>>().map_err(unavailable)
}

pub(super) fn notifications(connection: &Connection, page: &Page) -> Result<Vec<Notification>, InboxError> {
    let Some((first, end)) = rows_of(connection, page)? else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {NOTIFICATION} FROM notification n JOIN source s ON s.id = n.source JOIN workspace w ON w.id = s.workspace
         WHERE n.id >= ?1 AND n.id < ?2 ORDER BY n.id DESC LIMIT ?3"
    );
    let mut statement = prepare(connection, &sql)?;
    let values = params![first, end, page.limit.min(LISTED_MAX)];
    let rows = statement.query_map(values, notification_row).map_err(unavailable)?;
    rows.collect::<Result<_, _>>().map_err(unavailable)
}

pub(super) fn notification(
    connection: &Connection,
    workspace: &Name,
    seq: u64,
) -> Result<Option<Notification>, InboxError> {
    let page = Page { workspace: workspace.clone(), before: seq.checked_add(1), limit: 1 };
    let newest = notifications(connection, &page)?.pop();
    Ok(newest.filter(|notification| notification.seq == seq))
}

/// The run of row ids that a page may show; none when the workspace has no inbox yet.
fn rows_of(connection: &Connection, page: &Page) -> Result<Option<(i64, i64)>, InboxError> {
    let mut statement = prepare(connection, "SELECT id FROM workspace WHERE name = ?1")?;
    let found: Option<i64> =
        statement.query_row([page.workspace.as_str()], |row| row.get(0)).optional().map_err(unavailable)?;
    let seq_end = 1_i64 << SEQ_BITS;
    let before = page.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(seq_end).min(seq_end);
    Ok(found.map(|workspace| (row_id(workspace, 0), row_id(workspace, before))))
}

fn notification_row(row: &Row<'_>) -> rusqlite::Result<Notification> {
    Ok(Notification {
        workspace: name(row, 0)?,
        seq: seq_of(row.get(1)?),
        source: name(row, 2)?,
        received_at: moment(row.get(3)?),
        effective_level: level(row, 4)?,
        event: Event {
            event_id: row.get(5)?,
            name: row.get(6)?,
            timestamp: row.get::<_, String>(7)?.parse().map_err(|_| wrong(7))?,
            level: level(row, 8)?,
            subject: row.get(9)?,
            title: row.get(10)?,
            body: row.get(11)?,
            link: row.get(12)?,
            data: row.get(13)?,
        },
    })
}

fn seq_of(row_id: i64) -> u64 {
    row_id.unsigned_abs() & ((1 << SEQ_BITS) - 1)
}

fn level(row: &Row<'_>, column: usize) -> rusqlite::Result<Level> {
    let number: u8 = row.get(column)?;
    Level::ALL.get(usize::from(number)).copied().ok_or_else(|| wrong(column))
}

fn state(row: &Row<'_>, column: usize) -> rusqlite::Result<State> {
    State::parse(&row.get::<_, String>(column)?).ok_or_else(|| wrong(column))
}

fn name(row: &Row<'_>, column: usize) -> rusqlite::Result<Name> {
    row.get::<_, String>(column)?.parse().map_err(|_| wrong(column))
}

fn wrong(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "a value this version knows".to_owned(), rusqlite::types::Type::Text)
}

pub(super) fn prepare<'a>(connection: &'a Connection, sql: &str) -> Result<rusqlite::CachedStatement<'a>, InboxError> {
    connection.prepare_cached(sql).map_err(unavailable)
}
