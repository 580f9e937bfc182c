//! The statements that readers run.

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::rows::{self, NOTIFICATION, SEQ_BITS, moment, name, prepare, row_id};
use super::{InboxError, Marks, Name, Notification, Page, Reading};

/// Rows one listing may return: it bounds how long a reader holds the write-ahead log.
pub(super) const LISTED_MAX: u32 = 1_000;

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
            told: rows::told(row.get(8)?),
            is_backlog: row.get(9)?,
        };
        Ok((name(row, 0)?, reading))
    };
    let rows = statement.query_map([workspace.as_str()], row).map_err(unavailable)?;
    rows.collect::<Result<_, _>>().map_err(unavailable)
}

/// The number of the newest notification that ever was.
pub(super) fn last_seq(connection: &Connection, workspace: &Name) -> Result<u64, InboxError> {
    let select = "SELECT last_seq FROM workspace WHERE name = ?1";
    let found = prepare(connection, select)?.query_row([workspace.as_str()], |row| row.get::<_, i64>(0)).optional();
    Ok(found.map_err(unavailable)?.unwrap_or_default().unsigned_abs())
}

pub(super) fn notifications(connection: &Connection, page: &Page) -> Result<Vec<Notification>, InboxError> {
    let Some(workspace) = workspace(connection, &page.workspace)? else {
        return Ok(Vec::new());
    };
    let seq_end = 1_i64 << SEQ_BITS;
    let before = page.before.and_then(|before| i64::try_from(before).ok()).unwrap_or(seq_end).min(seq_end);
    let sql = format!(
        "SELECT {NOTIFICATION} FROM notification n JOIN source s ON s.id = n.source JOIN workspace w ON w.id = s.workspace
         WHERE n.id >= ?1 AND n.id < ?2 ORDER BY n.id DESC LIMIT ?3"
    );
    let mut statement = prepare(connection, &sql)?;
    let values = params![row_id(workspace, 0), row_id(workspace, before), page.limit.min(LISTED_MAX)];
    let rows = statement.query_map(values, rows::notification).map_err(unavailable)?;
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

pub(super) fn is_of_first_read(connection: &Connection, name: &Name, seq: u64) -> Result<bool, InboxError> {
    let Some(id) = workspace(connection, name)?.and_then(|workspace| rows::row_of(workspace, seq)) else {
        return Ok(false);
    };
    let mut statement = prepare(connection, "SELECT first_read IS NOT NULL FROM notification WHERE id = ?1")?;
    let found = statement.query_row([id], |row| row.get(0)).optional().map_err(unavailable)?;
    Ok(found.unwrap_or_default())
}

pub(super) fn marks(connection: &Connection, name: &Name, seqs: &[u64]) -> Result<Vec<Marks>, InboxError> {
    let Some(workspace) = workspace(connection, name)? else {
        return Ok(vec![Marks::default(); seqs.len()]);
    };
    let sql = "SELECT read_at, read_by, read_agent, acknowledged_at, acknowledged_by, acknowledged_agent
               FROM notification WHERE id = ?1";
    let mut statement = prepare(connection, sql)?;
    let row = |row: &Row<'_>| Ok(Marks { read: rows::mark(row, 0)?, acknowledged: rows::mark(row, 3)? });
    let mut of = |seq: &u64| {
        let Some(id) = rows::row_of(workspace, *seq) else { return Ok(Marks::default()) };
        statement.query_row(params![id], row).optional().map(Option::unwrap_or_default).map_err(unavailable)
    };
    seqs.iter().map(&mut of).collect()
}

pub(super) fn workspaces(connection: &Connection) -> Result<Vec<Name>, InboxError> {
    let mut statement = prepare(connection, "SELECT name FROM workspace ORDER BY name")?;
    let found = statement.query_map([], |row| name(row, 0)).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

pub(super) fn workspace(connection: &Connection, name: &Name) -> Result<Option<i64>, InboxError> {
    let mut statement = prepare(connection, "SELECT id FROM workspace WHERE name = ?1")?;
    statement.query_row([name.as_str()], |row| row.get(0)).optional().map_err(unavailable)
}

/// One look into the index for each, however many attempts go on with it.
pub(super) fn plugins_in_use(connection: &Connection) -> Result<Vec<(Name, String)>, InboxError> {
    let select = "SELECT plugin, plugin_digest FROM delivery
                  WHERE plugin_digest IS NOT NULL AND (plugin, plugin_digest) > (?1, ?2)
                  ORDER BY plugin, plugin_digest LIMIT 1";
    let mut statement = prepare(connection, select)?;
    let mut found: Vec<(Name, String)> = Vec::new();
    loop {
        let (plugin, digest) =
            found.last().map_or(("", ""), |(plugin, digest): &(Name, String)| (plugin.as_str(), digest.as_str()));
        let row = |row: &Row<'_>| Ok((name(row, 0)?, row.get(1)?));
        match statement.query_row([plugin, digest], row).optional().map_err(unavailable)? {
            Some(next) => found.push(next),
            None => return Ok(found),
        }
    }
}
