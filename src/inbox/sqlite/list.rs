//! Lists for readers: what is asked is decided on narrow columns, and only what is returned is read whole.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, Row};

use super::errors::unavailable;
use super::known::{seq_since, sources};
use super::read::workspace;
use super::rows::{self, NOTIFICATION, NOTIFICATION_COLUMNS, level_number, moment, prepare, row_id, seq_of, wrong};
use super::{InboxError, Listed, Marks, Name, Notification, Query};
use crate::inbox::{Order, QUERY_LIMIT_MAX};
use crate::notification::Level;
use crate::route::Facts;

/// What one call may cost: it bounds how long a reader holds the write-ahead log, to some hundredths of a second.
const COST_MAX: u32 = 200_000;

/// What looking at a notification's row costs, where passing one in an index costs 1.
const COST_OF_ROW: u32 = 10;

/// Lists notifications with what was done with them.
pub(super) fn list(connection: &Connection, query: &Query) -> Result<Listed, InboxError> {
    // One look at the store, so that what is found can be read.
    let _look = connection.unchecked_transaction().map_err(unavailable)?;
    let Some(workspace) = workspace(connection, &query.workspace)? else { return Ok(Listed::default()) };
    let Some(range) = range(connection, workspace, query)? else { return Ok(Listed::default()) };
    let mut judge = Judge::new(connection, workspace, query)?;
    let most = usize::try_from(query.limit.clamp(1, QUERY_LIMIT_MAX)).unwrap_or(1);
    let (mut found, mut cost, mut last, mut next) = (Vec::new(), 0, None, None);
    candidates(connection, workspace, range, query, |id, level| {
        if found.len() >= most || cost >= COST_MAX {
            next = last;
            return Ok(false);
        }
        last = Some(seq_of(id));
        cost += 1;
        if judge.may_accept(level) {
            cost += COST_OF_ROW;
            if judge.accepts(id)? {
                found.push(id);
            }
        }
        Ok(true)
    })?;
    let mut read = prepare(connection, &whole())?;
    let items = found.into_iter().map(|id| read.query_row([id], marked).map_err(unavailable));
    Ok(Listed { items: items.collect::<Result<_, _>>()?, next })
}

/// How a notification is read with its marks, by its row.
pub(super) fn whole() -> String {
    format!(
        "SELECT {NOTIFICATION}, n.read_at, n.read_by, n.read_agent, n.acknowledged_at, n.acknowledged_by, n.acknowledged_agent
         FROM notification n JOIN source s ON s.id = n.source JOIN workspace w ON w.id = s.workspace WHERE n.id = ?1"
    )
}

/// What [`whole`] reads.
pub(super) fn marked(row: &Row<'_>) -> rusqlite::Result<(Notification, Marks)> {
    let first = NOTIFICATION_COLUMNS;
    let marks = Marks { read: rows::mark(row, first)?, acknowledged: rows::mark(row, first + 3)? };
    Ok((rows::notification(row)?, marks))
}

/// The rows between which all lies that is asked for: from the first up to before the second.
fn range(connection: &Connection, workspace: i64, query: &Query) -> Result<Option<[i64; 2]>, InboxError> {
    let end = row_id(workspace + 1, 0);
    let number = |seq: u64| i64::try_from(seq).ok().and_then(|seq| row_id(workspace, 0).checked_add(seq));
    let mut from = match query.after {
        Some(after) => number(after).map_or(end, |row| row.saturating_add(1)),
        None => row_id(workspace, 1),
    };
    if let Some(since) = query.since {
        from = from.max(number(seq_since(connection, &query.workspace, since)?).unwrap_or(end));
    }
    let before = query.before.map_or(end, |before| number(before).unwrap_or(end).min(end));
    Ok((from < before).then_some([from, before]))
}

/// Goes through what may be meant, in the order that is asked for, as long as `visit` wants more. It is told the effective
/// level where that costs nothing.
fn candidates(
    connection: &Connection,
    workspace: i64,
    range: [i64; 2],
    query: &Query,
    mut visit: impl FnMut(i64, Option<u8>) -> Result<bool, InboxError>,
) -> Result<(), InboxError> {
    let is_newest = query.order == Order::Newest;
    if !query.seqs.is_empty() {
        let known = query.seqs.iter().filter_map(|seq| rows::row_of(workspace, *seq));
        let mut ids: Vec<i64> = known.filter(|id| (range[0]..range[1]).contains(id)).collect();
        ids.sort_unstable();
        ids.dedup();
        if is_newest {
            ids.reverse();
        }
        for id in ids {
            if !visit(id, None)? {
                break;
            }
        }
        return Ok(());
    }
    let mut statement = prepare(connection, &scan(query))?;
    let mut rows = statement.query(range).map_err(unavailable)?;
    while let Some(row) = rows.next().map_err(unavailable)? {
        if !visit(row.get(0).map_err(unavailable)?, row.get(1).map_err(unavailable)?)? {
            break;
        }
    }
    Ok(())
}

/// The walk that passes least: along what nobody has read, along what has the level that is asked for, or along all.
fn scan(query: &Query) -> String {
    let order = if query.order == Order::Newest { "DESC" } else { "ASC" };
    let within = "id >= ?1 AND id < ?2";
    if query.is_unread {
        return format!(
            "SELECT id, effective_level FROM notification INDEXED BY notification_unread
             WHERE read_at IS NULL AND {within} ORDER BY id {order}"
        );
    }
    let least = query.when.as_ref().and_then(|when| when.matcher().level).unwrap_or(Level::Info);
    let of_level = |level: Level| {
        format!(
            "SELECT id, NULL FROM notification INDEXED BY notification_level
             WHERE effective_level = {} AND effective_level > 0 AND {within}",
            level_number(level)
        )
    };
    match least {
        Level::Info => format!("SELECT id, NULL FROM notification WHERE {within} ORDER BY id {order}"),
        Level::Attention => {
            let (attention, urgent) = (of_level(Level::Attention), of_level(Level::Urgent));
            format!("{attention} UNION ALL {urgent} ORDER BY 1 {order}")
        }
        Level::Urgent => format!("{} ORDER BY id {order}", of_level(Level::Urgent)),
    }
}

/// Decides which are meant.
struct Judge<'a> {
    query: &'a Query,
    text: Option<String>,
    least: u8,
    sources: HashMap<i64, Name>,
    /// None where all that is passed is meant.
    narrow: Option<CachedStatement<'a>>,
}

impl<'a> Judge<'a> {
    fn new(connection: &'a Connection, workspace: i64, query: &'a Query) -> Result<Self, InboxError> {
        let text = query.text.as_ref().filter(|text| !text.is_empty()).map(|text| text.to_lowercase());
        let is_by_mark = query.is_unacknowledged || query.is_unread && !query.seqs.is_empty();
        // One of the numbers that are asked for may be none.
        let is_judged =
            is_by_mark || !query.seqs.is_empty() || text.is_some() || query.when.is_some() || query.since.is_some();
        // What stands behind the payload is read only where it is needed.
        let marks = if is_by_mark { "read_at IS NULL, acknowledged_at IS NULL" } else { "1, 1" };
        let texts = if text.is_some() { "title, body" } else { "NULL, NULL" };
        let select = format!(
            "SELECT source, name, subject, effective_level, received_at, {marks}, {texts} FROM notification WHERE id = ?1"
        );
        let least = query.when.as_ref().and_then(|when| when.matcher().level).map_or(0, level_number);
        Ok(Self {
            query,
            text,
            least,
            sources: sources(connection, workspace)?,
            narrow: if is_judged { Some(prepare(connection, &select)?) } else { None },
        })
    }

    /// Whether one of this level is worth a look.
    fn may_accept(&self, level: Option<u8>) -> bool {
        level.is_none_or(|level| level >= self.least)
    }

    fn accepts(&mut self, id: i64) -> Result<bool, InboxError> {
        let (query, text, sources) = (self.query, self.text.as_deref(), &self.sources);
        let judge = |row: &Row<'_>| judge(row, query, text, sources);
        match &mut self.narrow {
            None => Ok(true),
            Some(narrow) => {
                let mut rows = narrow.query([id]).map_err(unavailable)?;
                rows.next().map_err(unavailable)?.map_or(Ok(false), judge).map_err(unavailable)
            }
        }
    }
}

fn judge(row: &Row<'_>, query: &Query, text: Option<&str>, sources: &HashMap<i64, Name>) -> rusqlite::Result<bool> {
    if query.since.is_some_and(|since| row.get(4).is_ok_and(|at| moment(at) < since)) {
        return Ok(false);
    }
    if query.is_unread && !row.get::<_, bool>(5)? || query.is_unacknowledged && !row.get::<_, bool>(6)? {
        return Ok(false);
    }
    let name = row.get_ref(1)?.as_str()?;
    let subject = row.get_ref(2)?.as_str_or_null()?;
    if let Some(when) = &query.when {
        let source = sources.get(&row.get(0)?).ok_or_else(|| wrong(0))?;
        let facts = Facts { source, name, effective_level: rows::level(row, 3)?, subject };
        if !when.matches(&facts) {
            return Ok(false);
        }
    }
    let Some(text) = text else { return Ok(true) };
    let holds = |field: Option<&str>| field.is_some_and(|field| field.to_lowercase().contains(text));
    let (title, body) = (row.get_ref(7)?.as_str_or_null()?, row.get_ref(8)?.as_str_or_null()?);
    Ok([Some(name), subject, title, body].into_iter().any(holds))
}

/// How many notifications of a workspace nobody has read, counted up to `most`.
pub(super) fn unread(connection: &Connection, name: &Name, most: u32) -> Result<u32, InboxError> {
    let Some(workspace) = workspace(connection, name)? else { return Ok(0) };
    let select = "SELECT count(*) FROM (SELECT 1 FROM notification INDEXED BY notification_unread
                  WHERE read_at IS NULL AND id >= ?1 AND id < ?2 LIMIT ?3)";
    let values = (row_id(workspace, 1), row_id(workspace + 1, 0), most);
    prepare(connection, select)?.query_row(values, |row| row.get(0)).map_err(unavailable)
}
