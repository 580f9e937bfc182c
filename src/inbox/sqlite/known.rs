//! What routes may know of the past, in short reads.

use std::collections::HashMap;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::read::workspace;
use super::rows::{self, BYTES, SEQ_BITS, moment, prepare, row_id, seq_of, wrong};
use super::{InboxError, Known, Name};
use crate::inbox::{KNOWN_MAX, SET_BACK_MAX};

pub(super) fn known(connection: &Connection, name: &Name, from: u64, limit: u32) -> Result<Vec<Known>, InboxError> {
    // One look at the store, so that each source is there that something came from.
    let _look = connection.unchecked_transaction().map_err(unavailable)?;
    let Some(workspace) = workspace(connection, name)? else { return Ok(Vec::new()) };
    let sources = sources(connection, workspace)?;
    let seq_end = 1_i64 << SEQ_BITS;
    let from = i64::try_from(from).unwrap_or(seq_end).min(seq_end);
    let sql = format!(
        "SELECT n.id, n.source, n.received_at, n.name, n.subject, n.level, n.effective_level, {BYTES}, n.acknowledged_at,
                n.acknowledged_by, n.acknowledged_agent, n.first_read IS NOT NULL
         FROM notification n WHERE n.id >= ?1 AND n.id < ?2 ORDER BY n.id LIMIT ?3"
    );
    let mut statement = prepare(connection, &sql)?;
    let values = params![row_id(workspace, from), row_id(workspace, seq_end), limit.min(KNOWN_MAX)];
    let found = statement.query_map(values, |row| one(row, &sources)).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn one(row: &Row<'_>, sources: &HashMap<i64, Name>) -> rusqlite::Result<Known> {
    Ok(Known {
        seq: seq_of(row.get(0)?),
        source: sources.get(&row.get(1)?).cloned().ok_or_else(|| wrong(1))?,
        received_at: moment(row.get(2)?),
        name: row.get(3)?,
        subject: row.get(4)?,
        level: rows::level(row, 5)?,
        effective_level: rows::level(row, 6)?,
        bytes: row.get::<_, i64>(7)?.unsigned_abs(),
        acknowledged: rows::mark(row, 8)?,
        is_first: row.get(11)?,
    })
}

/// The sources of a workspace, by their rows.
pub(super) fn sources(connection: &Connection, workspace: i64) -> Result<HashMap<i64, Name>, InboxError> {
    let mut statement = prepare(connection, "SELECT id, name FROM source WHERE workspace = ?1")?;
    let row = |row: &Row<'_>| Ok((row.get(0)?, rows::name(row, 1)?));
    let found = statement.query_map([workspace], row).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

/// By bisection for a moment that is [`SET_BACK_MAX`] earlier: a clock that was set back by no more than that never came below
/// it again once it had shown the moment itself.
pub(super) fn seq_since(connection: &Connection, name: &Name, since: Timestamp) -> Result<u64, InboxError> {
    let Some(workspace) = workspace(connection, name)? else { return Ok(1) };
    let since = since.checked_sub(SET_BACK_MAX).unwrap_or(Timestamp::MIN).as_millisecond();
    let select = "SELECT last_seq FROM workspace WHERE id = ?1";
    let last: i64 = prepare(connection, select)?.query_row([workspace], |row| row.get(0)).map_err(unavailable)?;
    let select = "SELECT id, received_at FROM notification WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1";
    let mut statement = prepare(connection, select)?;
    let (mut from, mut end) = (row_id(workspace, 1), row_id(workspace, last + 1));
    while from < end {
        let middle = from + (end - from) / 2;
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        match statement.query_row([middle, end], row).optional().map_err(unavailable)? {
            Some((id, received_at)) if received_at < since => from = id + 1,
            _ => end = middle,
        }
    }
    Ok(seq_of(from))
}
