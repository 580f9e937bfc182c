//! Deliveries as readers see them.

use std::num::NonZeroU32;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

use super::errors::unavailable;
use super::read::LISTED_MAX;
use super::rows::{self, moment, prepare, seq_of, wrong};
use super::{DeliveryView, InboxError, Page, Store, which};
use crate::inbox::delivery::Outcome;
use crate::inbox::{Attempt, DeliveryId, Which};

/// Lists the newest deliveries of a workspace, by their first notification.
pub(super) fn deliveries(
    connection: &Connection,
    store: &Store,
    page: &Page,
    which: &Which,
) -> Result<Vec<DeliveryView>, InboxError> {
    let find = "SELECT id FROM workspace WHERE name = ?1";
    let workspace = prepare(connection, find)?.query_row([page.workspace.as_str()], |row| row.get(0)).optional();
    let Some(workspace) = workspace.map_err(unavailable)? else { return Ok(Vec::new()) };
    let before = page.before.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(1 << rows::SEQ_BITS);
    let range = [rows::row_id(workspace, 0), rows::row_id(workspace, before.clamp(0, 1 << rows::SEQ_BITS))];
    let limit = page.limit.min(LISTED_MAX);
    let mut found = select(connection, store, (page, workspace), which, range, (i64::MAX, limit))?;
    if let Some((last, _)) = found.last().filter(|_| u32::try_from(found.len()).is_ok_and(|count| count == limit)) {
        // A page does not end in the middle of a notification, or the next one could not go on behind it.
        let row = last.seqs.first().and_then(|seq| rows::row_of(workspace, *seq)).unwrap_or_default();
        let below = (last.id.number, LISTED_MAX);
        found.extend(select(connection, store, (page, workspace), which, [row, row + 1], below)?);
    }
    let mut views = Vec::with_capacity(found.len());
    for (mut view, may_be_digest) in found {
        view.attempts = attempts(connection, view.id.number)?;
        if may_be_digest {
            let items = items(connection, view.id.number)?;
            if !items.is_empty() {
                view.seqs = items;
            }
        }
        views.push(view);
    }
    Ok(views)
}

/// Those of some notifications with a smaller number, as many as asked for, each with whether it may be a digest.
fn select(
    connection: &Connection,
    store: &Store,
    (page, workspace): (&Page, i64),
    which: &Which,
    range: [i64; 2],
    (below, limit): (i64, u32),
) -> Result<Vec<(DeliveryView, bool)>, InboxError> {
    let mut condition = which::condition(workspace, which, store);
    condition.values.extend(range.map(Value::Integer));
    condition.values.push(Value::Integer(below));
    let which::Condition { from, notification, .. } = condition;
    let sql = format!(
        "SELECT d.id, t.route, t.name, d.plugin, d.state, d.why, d.created_at, d.due_at, d.next_at, d.notification, d.omitted,
                d.retry_of, d.bytes
         FROM {from} WHERE {} AND {notification} >= ? AND {notification} < ? AND d.id < ?
         ORDER BY {notification} DESC, d.id DESC LIMIT {limit}",
        condition.sql,
    );
    let mut statement = prepare(connection, &sql)?;
    let view = |row: &Row<'_>| Ok((view(row, store, page)?, row.get::<_, i64>(12)? > 0));
    let found = statement.query_map(params_from_iter(condition.values), view).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn view(row: &Row<'_>, store: &Store, page: &Page) -> rusqlite::Result<DeliveryView> {
    let id = |number| DeliveryId { store: Arc::clone(&store.tag), number };
    Ok(DeliveryView {
        id: id(row.get(0)?),
        workspace: page.workspace.clone(),
        route: rows::name(row, 1)?,
        target: row.get(2)?,
        plugin: rows::name(row, 3)?,
        state: rows::state(row, 4)?,
        why: row.get(5)?,
        created_at: moment(row.get(6)?),
        due_at: moment(row.get(7)?),
        next_at: row.get::<_, Option<i64>>(8)?.map(moment),
        attempts: Vec::new(),
        seqs: vec![seq_of(row.get(9)?)],
        omitted: row.get(10)?,
        retry_of: row.get::<_, Option<i64>>(11)?.map(id),
    })
}

fn items(connection: &Connection, delivery: i64) -> Result<Vec<u64>, InboxError> {
    let select = "SELECT notification FROM item WHERE delivery = ?1 AND omitted = 0 ORDER BY notification";
    let mut statement = prepare(connection, select)?;
    let found = statement.query_map([delivery], |row| Ok(seq_of(row.get(0)?))).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn attempts(connection: &Connection, delivery: i64) -> Result<Vec<Attempt>, InboxError> {
    let sql = "SELECT number, started_at, ended_at, outcome, reason, steps, plugin_version, plugin_digest
               FROM attempt WHERE delivery = ?1 ORDER BY number";
    let mut statement = prepare(connection, sql)?;
    let row = |row: &Row<'_>| {
        Ok(Attempt {
            number: NonZeroU32::new(row.get(0)?).ok_or_else(|| wrong(0))?,
            started_at: moment(row.get(1)?),
            ended_at: moment(row.get(2)?),
            outcome: Outcome::parse(row.get_ref(3)?.as_str()?).ok_or_else(|| wrong(3))?,
            reason: row.get(4)?,
            steps: row.get(5)?,
            plugin_version: row.get(6)?,
            plugin_digest: row.get(7)?,
        })
    };
    let rows = statement.query_map([delivery], row).map_err(unavailable)?;
    rows.collect::<Result<_, _>>().map_err(unavailable)
}
