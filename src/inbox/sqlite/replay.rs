//! What changed, as it is read back.

use std::sync::Arc;

use rusqlite::{Connection, Row};

use super::changes::{Kind, last};
use super::errors::unavailable;
use super::read::workspace;
use super::rows::{self, SEQ_BITS, moment, prepare, row_id, seq_of, wrong};
use super::{Changes, InboxError, Name, Store};
use crate::inbox::change::Change;
use crate::inbox::{Actor, CHANGES_KEPT, CHANGES_MAX, Changed, DeliveryId, Mark};

/// The changes of a workspace behind a number. Where some of them are forgotten there are none.
pub(super) fn changes(
    connection: &Connection,
    store: &Store,
    name: &Name,
    after: u64,
    limit: u32,
) -> Result<Changes, InboxError> {
    // One look at the store, so that the last is not behind what is listed.
    let _look = connection.unchecked_transaction().map_err(unavailable)?;
    let Some(workspace) = workspace(connection, name)? else {
        return Ok(Changes { is_cut: after > 0, ..Changes::default() });
    };
    let last = last(connection, workspace)?.unsigned_abs();
    if after > last || after < first(connection, workspace)?.saturating_sub(1) {
        return Ok(Changes { last, is_cut: true, ..Changes::default() });
    }
    let limit = usize::try_from(limit.min(CHANGES_MAX)).unwrap_or(usize::MAX);
    let select = "SELECT c.id, c.count, c.at, c.kind, c.list, c.name, c.agent, c.state, t.route, t.name
                  FROM change c LEFT JOIN target t ON t.id = c.target WHERE c.id > ?1 AND c.id < ?2 ORDER BY c.id";
    let mut statement = prepare(connection, select)?;
    let from = row_id(workspace, i64::try_from(after).unwrap_or(i64::MAX));
    let mut rows = statement.query([from, row_id(workspace + 1, 0)]).map_err(unavailable)?;
    let mut changes = Vec::new();
    while changes.len() < limit
        && let Some(row) = rows.next().map_err(unavailable)?
    {
        let of_row = of_row(row, store).map_err(unavailable)?;
        changes.extend(of_row.into_iter().filter(|change| change.number > after));
    }
    changes.truncate(limit);
    Ok(Changes { changes, last, is_cut: false })
}

/// The number of the oldest change that is kept; 0 where there is none.
fn first(connection: &Connection, workspace: i64) -> Result<u64, InboxError> {
    let select = "SELECT id, count FROM change WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1";
    let range = [row_id(workspace, 0), row_id(workspace + 1, 0)];
    let mut statement = prepare(connection, select)?;
    let mut found = statement.query(range).map_err(unavailable)?;
    let Some(row) = found.next().map_err(unavailable)? else { return Ok(0) };
    let (id, count): (i64, u32) = (row.get(0).map_err(unavailable)?, row.get(1).map_err(unavailable)?);
    Ok((seq_of(id) + 1).saturating_sub(u64::from(count)))
}

/// The changes of one row, oldest first.
fn of_row(row: &Row<'_>, store: &Store) -> rusqlite::Result<Vec<Change>> {
    let count = u64::from(row.get::<_, u32>(1)?);
    let number = (seq_of(row.get(0)?) + 1).saturating_sub(count);
    let at = moment(row.get(2)?);
    let kind = Kind::parse(row.get_ref(3)?.as_str()?).ok_or_else(|| wrong(3))?;
    let list = row.get_ref(4)?.as_str()?;
    let numbers: Vec<i64> = list.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let id = |number: i64| DeliveryId { store: Arc::clone(&store.tag), number };
    let each = |what: &dyn Fn(&[i64]) -> rusqlite::Result<Changed>, size| {
        let whats = numbers.chunks_exact(size).map(what);
        (number..).zip(whats).map(|(number, what)| Ok(Change { number, at, what: what? })).collect()
    };
    match kind {
        Kind::Created => {
            let &[first] = numbers.as_slice() else { return Err(wrong(4)) };
            let seqs = first.unsigned_abs()..first.unsigned_abs() + count;
            Ok((number..)
                .zip(seqs)
                .map(|(number, seq)| Change { number, at, what: Changed::Created { seq } })
                .collect())
        }
        Kind::Read | Kind::Acknowledged => {
            let mark = Mark { at, by: Actor { name: row.get(5)?, is_agent: row.get(6)? } };
            let is_acknowledged = kind == Kind::Acknowledged;
            each(&|one| Ok(Changed::Marked { seq: seq(one, 0)?, is_acknowledged, mark: mark.clone() }), 1)
        }
        Kind::Gap => {
            let source: String = row.get(5)?;
            each(&|one| Ok(Changed::Gap { seq: seq(one, 0)?, source: source.clone() }), 1)
        }
        Kind::Delivery => {
            let (plugin, state) = (rows::name(row, 5)?, rows::state(row, 7)?);
            let (route, target) = (rows::name(row, 8)?, row.get::<_, String>(9)?);
            let what = |one: &[i64]| {
                let (route, target, plugin) = (route.clone(), target.clone(), plugin.clone());
                Ok(Changed::Delivery { id: id(at_place(one, 0)?), route, target, plugin, state, seq: seq(one, 1)? })
            };
            each(&what, 2)
        }
        Kind::Joined => each(
            &|one| Ok(Changed::Joined { id: id(at_place(one, 0)?), into: id(at_place(one, 1)?), seq: seq(one, 2)? }),
            3,
        ),
    }
}

fn at_place(numbers: &[i64], place: usize) -> rusqlite::Result<i64> {
    numbers.get(place).copied().ok_or_else(|| wrong(4))
}

fn seq(numbers: &[i64], place: usize) -> rusqlite::Result<u64> {
    at_place(numbers, place).map(i64::unsigned_abs)
}

/// Forgets the oldest changes of a workspace beyond those that are kept, in whole rows, at most `limit` rows; returns how
/// many rows went.
pub(super) fn forget(connection: &Connection, name: &Name, limit: u32) -> Result<u64, InboxError> {
    let Some(workspace) = workspace(connection, name)? else { return Ok(0) };
    let kept = i64::try_from(CHANGES_KEPT).unwrap_or(i64::MAX);
    let oldest = last(connection, workspace)?.saturating_sub(kept).clamp(0, 1 << SEQ_BITS);
    let sql = "DELETE FROM change WHERE id IN (SELECT id FROM change WHERE id >= ?1 AND id <= ?2 ORDER BY id LIMIT ?3)";
    let values = (row_id(workspace, 0), row_id(workspace, oldest), limit);
    let rows = prepare(connection, sql)?.execute(values).map_err(unavailable)?;
    Ok(rows.try_into().unwrap_or(u64::MAX))
}
