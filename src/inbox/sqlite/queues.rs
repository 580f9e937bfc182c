//! The queues of consumers.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::read;
use super::rows::{self, NOTIFICATION, ids, moment, prepare, row_id, seq_of};
use super::session::{QueueOf, Session};
use super::{InboxError, Name};
use crate::inbox::{Consumed, PAGE_BYTES_MAX, PAGE_EVENTS_MAX, Pending, QUEUE_EVENTS_MAX, QueueView};
use crate::route::timing::bytes_in_digest;

/// Puts a notification, by its row, into a queue, unless it is there by its id. Where that is full, the oldest leaves it.
/// [`Session::joins`] is the caller's, once for many.
pub(super) fn join(
    session: &mut Session,
    (workspace, consumer): (&Name, &Name),
    row: i64,
    id: &str,
    now: Timestamp,
) -> Result<(), InboxError> {
    let number = session.workspace(workspace)?;
    let connection = session.connection;
    let sql = "INSERT INTO consumer (workspace, name, last, pending, joined) VALUES (?1, ?2, ?3, 1, 1)
               ON CONFLICT (workspace, name)
               DO UPDATE SET last = excluded.last, pending = pending + 1, joined = joined + 1
               RETURNING id, pending";
    let (queue, pending): (i64, i64) = prepare(connection, sql)?
        .query_row(params![number, consumer.as_str(), row], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(unavailable)?;
    let sql = "INSERT INTO pending (consumer, notification, event_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    if prepare(connection, sql)?.execute(params![queue, row, id]).map_err(unavailable)? == 0 {
        // Its id was forgotten while it waited, and it came once more.
        let sql = "UPDATE consumer SET pending = pending - 1, joined = joined - 1 WHERE id = ?1";
        return prepare(connection, sql)?.execute([queue]).map(drop).map_err(unavailable);
    }
    let surplus = pending.saturating_sub(i64::try_from(QUEUE_EVENTS_MAX).unwrap_or(i64::MAX));
    if surplus > 0 {
        let sql = "DELETE FROM pending WHERE consumer = ?1 AND notification IN (
                       SELECT notification FROM pending WHERE consumer = ?1 ORDER BY notification LIMIT ?2)";
        prepare(connection, sql)?.execute([queue, surplus]).map_err(unavailable)?;
        count_lost(session, queue, (surplus, 0), now)?;
    }
    Ok(())
}

/// Takes a notification that is about to be removed out of every queue.
pub(super) fn lose(session: &mut Session, notification: i64) -> Result<(), InboxError> {
    let connection = session.connection;
    let select = "SELECT consumer FROM pending WHERE notification = ?1";
    let queues = ids(connection, select, [notification])?;
    if queues.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM pending WHERE notification = ?1";
    prepare(connection, sql)?.execute([notification]).map_err(unavailable)?;
    for queue in queues {
        count_lost(session, queue, (1, 1), session.changes.now())?;
    }
    Ok(())
}

/// Counts events that left a queue unacknowledged, and how many of them were too old to be kept.
fn count_lost(
    session: &mut Session,
    queue: i64,
    (lost, too_old): (i64, i64),
    now: Timestamp,
) -> Result<(), InboxError> {
    let connection = session.connection;
    let select = "SELECT losing FROM consumer WHERE id = ?1";
    let was_losing: bool = prepare(connection, select)?.query_row([queue], |row| row.get(0)).map_err(unavailable)?;
    let sql = "UPDATE consumer SET pending = pending - ?2, lost = lost + ?2, too_old = too_old + ?3, lost_at = ?4,
                      losses = losses + (losing = 0), losing = pending - ?2 > 0
               WHERE id = ?1";
    prepare(connection, sql)?.execute([queue, lost, too_old, now.as_millisecond()]).map_err(unavailable)?;
    if !was_losing {
        session.loses();
    }
    Ok(())
}

/// The row of a queue; none where nothing ever joined it.
fn found(connection: &Connection, (workspace, consumer): &QueueOf) -> Result<Option<i64>, InboxError> {
    let select = "SELECT c.id FROM consumer c JOIN workspace w ON w.id = c.workspace WHERE w.name = ?1 AND c.name = ?2";
    let names = [workspace.as_str(), consumer.as_str()];
    prepare(connection, select)?.query_row(names, |row| row.get(0)).optional().map_err(unavailable)
}

/// What waits behind a number.
pub(super) fn pending(connection: &Connection, queue: &QueueOf, after: u64, limit: u32) -> Result<Pending, InboxError> {
    let _look = connection.unchecked_transaction().map_err(unavailable)?;
    let mut page = Pending::default();
    let (Some(workspace), Some(consumer)) = (read::workspace(connection, &queue.0)?, found(connection, queue)?) else {
        return Ok(page);
    };
    let end = row_id(workspace + 1, 0);
    let after = row_id(workspace, 0).saturating_add(i64::try_from(after).unwrap_or(i64::MAX)).min(end);
    let select = format!(
        "SELECT {NOTIFICATION} FROM pending p JOIN notification n ON n.id = p.notification
             JOIN source s ON s.id = n.source JOIN workspace w ON w.id = s.workspace
         WHERE p.consumer = ?1 AND p.notification > ?2 ORDER BY p.notification LIMIT ?3"
    );
    let most = limit.clamp(1, PAGE_EVENTS_MAX);
    let mut statement = prepare(connection, &select)?;
    let mut rows = statement.query(params![consumer, after, most + 1]).map_err(unavailable)?;
    let mut bytes = 0;
    while let Some(row) = rows.next().map_err(unavailable)? {
        let notification = rows::notification(row).map_err(unavailable)?;
        bytes += usize::try_from(bytes_in_digest(&notification.event)).unwrap_or(usize::MAX);
        let is_full = page.items.len() >= most as usize || bytes > PAGE_BYTES_MAX;
        if is_full && !page.items.is_empty() {
            page.has_more = true;
            break;
        }
        page.items.push(notification);
    }
    Ok(page)
}

/// Takes events out of a queue.
pub(super) fn consume(
    connection: &Connection,
    queue: &QueueOf,
    ids: &[String],
    now: Timestamp,
) -> Result<Consumed, InboxError> {
    let Some(consumer) = found(connection, queue)? else { return Ok(Consumed::default()) };
    let mut taken: i64 = 0;
    for id in ids {
        let sql = "DELETE FROM pending WHERE consumer = ?1 AND event_id = ?2";
        let gone = prepare(connection, sql)?.execute(params![consumer, id]).map_err(unavailable)?;
        taken += i64::from(gone > 0);
    }
    let sql = "UPDATE consumer SET pending = pending - ?2, acknowledged = acknowledged + ?2,
                      acknowledged_at = CASE WHEN ?2 > 0 THEN ?3 ELSE acknowledged_at END,
                      losing = losing AND pending - ?2 > 0
               WHERE id = ?1 RETURNING pending";
    let pending: i64 = prepare(connection, sql)?
        .query_row([consumer, taken, now.as_millisecond()], |row| row.get(0))
        .map_err(unavailable)?;
    Ok(Consumed { taken: taken.unsigned_abs(), pending: pending.unsigned_abs() })
}

/// The number of the notification that joined last; 0 before the first.
pub(super) fn last(connection: &Connection, queue: &QueueOf) -> Result<u64, InboxError> {
    let Some(consumer) = found(connection, queue)? else { return Ok(0) };
    let select = "SELECT last FROM consumer WHERE id = ?1";
    let last = prepare(connection, select)?.query_row([consumer], |row| row.get(0)).map_err(unavailable)?;
    Ok(seq_of(last))
}

/// How every queue of a workspace stands.
pub(super) fn queues(connection: &Connection, workspace: &Name) -> Result<Vec<QueueView>, InboxError> {
    let select =
        "SELECT c.name, c.pending, o.id, o.received_at, c.joined, c.acknowledged, c.acknowledged_at, c.lost, c.lost_at,
                         c.losses, c.losing, c.too_old
                  FROM consumer c JOIN workspace w ON w.id = c.workspace
                       LEFT JOIN notification o ON o.id = (SELECT min(notification) FROM pending WHERE consumer = c.id)
                  WHERE w.name = ?1 ORDER BY c.name";
    let mut statement = prepare(connection, select)?;
    let rows = statement.query_map([workspace.as_str()], view).map_err(unavailable)?;
    rows.collect::<Result<_, _>>().map_err(unavailable)
}

fn view(row: &Row<'_>) -> rusqlite::Result<QueueView> {
    let at = |column| row.get::<_, Option<i64>>(column).map(|at| at.map(moment));
    let count = |column| row.get(column).map(i64::unsigned_abs);
    let oldest: Option<i64> = row.get(2)?;
    Ok(QueueView {
        consumer: rows::name(row, 0)?,
        pending: count(1)?,
        oldest: oldest.map(seq_of).zip(at(3)?),
        joined: count(4)?,
        acknowledged: count(5)?,
        acknowledged_at: at(6)?,
        lost: count(7)?,
        lost_at: at(8)?,
        losses: count(9)?,
        is_losing: row.get(10)?,
        too_old: count(11)?,
    })
}
