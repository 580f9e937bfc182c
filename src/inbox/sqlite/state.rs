//! What a target's timing depends on, read as it stands.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::gather;
use super::rows::{self, moment, prepare};
use super::{InboxError, TargetState};
use crate::inbox::WAITING_MAX;
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::State;
use crate::route::Acknowledged;
use crate::route::forecast::{Place, Waiting};
use crate::route::timing::AtMost;

/// The target of this queue.
pub(super) fn of(
    connection: &Connection,
    queue: &QueueKey,
    at_most: Option<&AtMost>,
    now: Timestamp,
) -> Result<TargetState, InboxError> {
    let select = "SELECT t.id, t.blocked FROM target t JOIN workspace w ON w.id = t.workspace
                  WHERE w.name = ?1 AND t.route = ?2 AND t.name = ?3";
    let key = params![queue.workspace.as_str(), queue.route.as_str(), &*queue.target];
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let found: Option<(i64, Option<String>)> =
        prepare(connection, select)?.query_row(key, row).optional().map_err(unavailable)?;
    let Some((target, blocked)) = found else { return Ok(TargetState::default()) };
    let (reached, going) = match at_most {
        Some(at_most) => gather::standing(connection, target, at_most, now)?,
        None => (Vec::new(), 0),
    };
    let mut waiting = waiting(connection, target, at_most.is_some())?;
    let has_more = waiting.len() > WAITING_MAX as usize;
    waiting.truncate(WAITING_MAX as usize);
    Ok(TargetState { blocked, reached, going, waiting, has_more })
}

/// What was never attempted and time moves. What a person wants made again is asked nothing any more.
fn waiting(connection: &Connection, target: i64, has_at_most: bool) -> Result<Vec<Waiting>, InboxError> {
    let select = "SELECT d.id, d.state, d.gather, d.next_at, d.level, d.items, d.bytes, d.slot IS NOT NULL,
                         n.received_at, s.name, n.name, n.subject,
                         (SELECT min(CASE WHEN a.acknowledged_at IS NULL THEN 0 WHEN a.acknowledged_agent = 1 THEN 1 ELSE 2 END)
                          FROM notification a
                          WHERE a.id = d.notification AND NOT EXISTS (SELECT 1 FROM item i WHERE i.delivery = d.id)
                             OR a.id IN (SELECT i.notification FROM item i WHERE i.delivery = d.id))
                  FROM delivery d JOIN notification n ON n.id = d.notification JOIN source s ON s.id = n.source
                  WHERE d.target = ?1 AND d.next_at IS NOT NULL AND d.attempts = 0 AND d.cause IS NOT 'manual'
                  ORDER BY d.next_at, d.id LIMIT ?2";
    let mut statement = prepare(connection, select)?;
    let found =
        statement.query_map(params![target, WAITING_MAX + 1], |row| one(row, has_at_most)).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn one(row: &Row<'_>, has_at_most: bool) -> rusqlite::Result<Waiting> {
    let (state, gather, has_slot): (State, Option<String>, bool) = (rows::state(row, 1)?, row.get(2)?, row.get(7)?);
    let place = match (state, gather) {
        (State::Scheduled, _) => Place::Alone,
        (State::Held | State::Collecting, Some(key)) => Place::Digest { key },
        (State::Pending, _) if has_at_most && !has_slot => Place::Due,
        (_, key) => Place::LetGo { key },
    };
    let bytes: i64 = row.get(6)?;
    Ok(Waiting {
        number: row.get(0)?,
        at: moment(row.get(3)?),
        place,
        received_at: moment(row.get(8)?),
        level: rows::level(row, 4)?,
        source: row.get(9)?,
        name: row.get(10)?,
        subject: row.get(11)?,
        acknowledged: match row.get(12)? {
            Some(2) => Acknowledged::ByPerson,
            Some(1) => Acknowledged::ByAgent,
            _ => Acknowledged::No,
        },
        items: row.get(5)?,
        bytes: bytes.unsigned_abs(),
    })
}
