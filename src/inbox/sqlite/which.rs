//! Which deliveries a person means, as SQL.

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::errors::unavailable;
use super::rows::{self, prepare};
use super::{InboxError, Store};
use crate::inbox::Which;
use crate::inbox::delivery::State;

/// A condition over `delivery d` and `target t`, with its values.
pub(super) struct Condition {
    /// The two tables, joined.
    pub(super) from: &'static str,
    /// The first notification, spelled so that its index is used or not.
    pub(super) notification: &'static str,
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// The deliveries of a workspace's row that `which` means. Ids of another store mean none.
pub(super) fn condition(workspace: i64, which: &Which, store: &Store) -> Condition {
    let mut sql = "t.workspace = ?".to_owned();
    let mut values = vec![Value::Integer(workspace)];
    if !which.ids.is_empty() {
        let ours = which.ids.iter().filter(|id| id.store == store.tag);
        let ours: Vec<Value> = ours.map(|id| Value::Integer(id.number)).collect();
        sql.push_str(&format!(" AND d.id IN ({})", vec!["?"; ours.len()].join(", ")));
        values.extend(ours);
    }
    if !which.states.is_empty() {
        sql.push_str(&format!(" AND ({})", in_states(&which.states)));
    }
    let texts = [("t.route", &which.route), ("d.plugin", &which.plugin)];
    for (column, name) in texts {
        if let Some(name) = name {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(Value::Text(name.to_string()));
        }
    }
    if let Some(since) = which.since {
        sql.push_str(" AND d.created_at >= ?");
        values.push(Value::Integer(since.as_millisecond()));
    }
    if let Some(seq) = which.seq {
        sql.push_str(" AND (d.notification = ? OR d.id IN (SELECT i.delivery FROM item i WHERE i.notification = ?))");
        let row_id = rows::row_of(workspace, seq).map_or(Value::Null, Value::Integer);
        values.extend([row_id.clone(), row_id]);
    }
    // Target by target, where that finds the few that are not over among all that ever were.
    let is_indexed = !which.states.is_empty() && which.states.iter().all(|state| index(*state).is_some());
    let by_target = is_indexed && which.ids.is_empty() && which.seq.is_none();
    let (from, notification) = if by_target {
        ("target t CROSS JOIN delivery d ON d.target = t.id", "+d.notification")
    } else {
        ("delivery d JOIN target t ON t.id = d.target", "d.notification")
    };
    Condition { from, notification, sql, values }
}

/// What the index holds that has the deliveries in this state, where one does.
fn index(state: State) -> Option<&'static str> {
    match state {
        State::Scheduled | State::Held | State::Collecting | State::Pending | State::Retrying | State::Waiting => {
            Some("d.next_at IS NOT NULL")
        }
        State::InFlight => Some("d.epoch > 0"),
        // Part of the state's own condition.
        State::Blocked | State::Dead | State::Unknown => Some("TRUE"),
        State::Delivered | State::Suppressed | State::Cancelled => None,
    }
}

/// Spelled out for each index, so that it can be used.
fn in_states(states: &[State]) -> String {
    let one = |state: &State| match index(*state) {
        Some("TRUE") | None => format!("d.state = '{state}'"),
        Some(held) => format!("{held} AND d.state = '{state}'"),
    };
    states.iter().map(one).collect::<Vec<_>>().join(" OR ")
}

/// Numbers and states of those meant, oldest first, `most` at most.
pub(super) fn find(
    connection: &Connection,
    workspace: i64,
    which: &Which,
    store: &Store,
    most: u32,
) -> Result<Vec<(i64, State)>, InboxError> {
    let condition = condition(workspace, which, store);
    let sql =
        format!("SELECT d.id, d.state FROM {} WHERE {} ORDER BY d.id LIMIT {most}", condition.from, condition.sql);
    let mut statement = prepare(connection, &sql)?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, rows::state(row, 1)?));
    let found = statement.query_map(params_from_iter(condition.values), row).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}
