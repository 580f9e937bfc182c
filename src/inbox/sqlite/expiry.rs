//! What goes when it is old.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, Row, params};

use super::accept::USE_WRITTEN_EVERY;
use super::errors::unavailable;
use super::list::{marked, whole};
use super::read::{self, LISTED_MAX};
use super::rows::{self, ids, prepare, row_id, seq_of};
use super::session::Session;
use super::{Expired, Expiry, InboxError, Listed, Name, queues};

/// Notifications that one call looks at: it bounds how long a reader holds the write-ahead log.
const LOOKED_AT_MAX: usize = 10_000;

/// Event ids that one read looks at.
const SEEN_LOOKED_AT: u32 = 10_000;

/// Of deliveries `d` that are not over.
const IS_OWED: &str = "d.state NOT IN ('delivered', 'dead', 'unknown', 'suppressed', 'cancelled')";

/// An event id, with the row of its source.
pub(super) type Seen = (i64, String);

/// How far the event ids were looked through.
#[derive(Debug, Default)]
pub(super) struct Place(Mutex<Option<Seen>>);

impl Place {
    pub(super) fn get(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    pub(super) fn set(&self, place: Option<Seen>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

/// The oldest that may go.
pub(super) fn expiring(
    connection: &Connection,
    name: &Name,
    expiry: &Expiry,
    limit: u32,
) -> Result<Listed, InboxError> {
    let _look = connection.unchecked_transaction().map_err(unavailable)?;
    let Some(workspace) = read::workspace(connection, name)? else { return Ok(Listed::default()) };
    let surplus = match expiry.keep {
        Some(keep) => last_seq(connection, workspace)?.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX)),
        None => 0,
    };
    let before = expiry.before.map_or(i64::MIN, Timestamp::as_millisecond);
    let end = row_id(workspace + 1, 0);
    let after = row_id(workspace, 0).saturating_add(i64::try_from(expiry.after).unwrap_or(i64::MAX)).min(end);
    let most = usize::try_from(limit.min(LISTED_MAX)).unwrap_or(1);
    let select = "SELECT id, received_at FROM notification WHERE id > ?1 AND id < ?2 ORDER BY id";
    let mut statement = prepare(connection, select)?;
    let mut rows = statement.query([after, end]).map_err(unavailable)?;
    let (mut found, mut looked_at, mut last, mut next) = (Vec::new(), 0, None, None);
    while let Some(row) = rows.next().map_err(unavailable)? {
        let (id, received_at): (i64, i64) = (row.get(0).map_err(unavailable)?, row.get(1).map_err(unavailable)?);
        let is_old = received_at < before || seq_of(id) <= surplus.unsigned_abs() && surplus > 0;
        // What came later is no older, but for a clock that was set back: then it goes when its turn comes.
        if !is_old {
            break;
        }
        if found.len() >= most || looked_at >= LOOKED_AT_MAX {
            next = last;
            break;
        }
        looked_at += 1;
        last = Some(seq_of(id));
        if !is_owed(connection, id)? {
            found.push(id);
        }
    }
    let mut read = prepare(connection, &whole())?;
    let items = found.into_iter().map(|id| read.query_row([id], marked).map_err(unavailable));
    Ok(Listed { items: items.collect::<Result<_, _>>()?, next })
}

fn last_seq(connection: &Connection, workspace: i64) -> Result<i64, InboxError> {
    let select = "SELECT last_seq FROM workspace WHERE id = ?1";
    prepare(connection, select)?.query_row([workspace], |row| row.get(0)).map_err(unavailable)
}

/// Whether a delivery that is not over stands for it.
fn is_owed(connection: &Connection, notification: i64) -> Result<bool, InboxError> {
    let select = format!(
        "SELECT EXISTS (SELECT 1 FROM delivery d WHERE d.notification = ?1 AND {IS_OWED})
             OR EXISTS (SELECT 1 FROM item i JOIN delivery d ON d.id = i.delivery WHERE i.notification = ?1 AND {IS_OWED})"
    );
    prepare(connection, &select)?.query_row([notification], |row| row.get(0)).map_err(unavailable)
}

/// Removes notifications, and the deliveries that stand for nothing else.
pub(super) fn expire(session: &mut Session, name: &Name, seqs: &[u64], now: Timestamp) -> Result<Expired, InboxError> {
    session.changes.at(now);
    let connection = session.connection;
    let mut expired = Expired::default();
    let Some(workspace) = read::workspace(connection, name)? else { return Ok(expired) };
    for id in seqs.iter().filter_map(|seq| rows::row_of(workspace, *seq)) {
        if is_owed(connection, id)? {
            continue;
        }
        let select = "SELECT id FROM delivery WHERE notification = ?1
                      UNION SELECT delivery FROM item WHERE notification = ?1";
        for delivery in ids(connection, select, [id])? {
            expired.deliveries += u64::from(part(connection, delivery, id)?);
        }
        queues::lose(session, id)?;
        let rows = prepare(connection, "DELETE FROM notification WHERE id = ?1")?.execute([id]).map_err(unavailable)?;
        expired.notifications += u64::try_from(rows).unwrap_or_default();
    }
    Ok(expired)
}

/// Takes a notification out of a delivery; one that stands for nothing else goes. Returns whether it went.
fn part(connection: &Connection, delivery: i64, notification: i64) -> Result<bool, InboxError> {
    let run = |sql: &str| prepare(connection, sql)?.execute([delivery]).map_err(unavailable);
    let select = "SELECT min(notification) FROM item WHERE delivery = ?1 AND notification <> ?2";
    let other: Option<i64> =
        prepare(connection, select)?.query_row([delivery, notification], |row| row.get(0)).map_err(unavailable)?;
    let Some(other) = other else {
        run("DELETE FROM attempt WHERE delivery = ?1")?;
        run("DELETE FROM effect WHERE delivery = ?1")?;
        run("DELETE FROM item WHERE delivery = ?1")?;
        run("DELETE FROM delivery WHERE id = ?1")?;
        return Ok(true);
    };
    let sql = "UPDATE delivery SET notification = ?3 WHERE id = ?1 AND notification = ?2";
    prepare(connection, sql)?.execute([delivery, notification, other]).map_err(unavailable)?;
    let sql = "DELETE FROM item WHERE delivery = ?1 AND notification = ?2";
    prepare(connection, sql)?.execute([delivery, notification]).map_err(unavailable)?;
    Ok(false)
}

/// What the last use of an event id was written down before, if there was surely none since the moment that is asked about.
fn surely_unused(before: Timestamp) -> i64 {
    before.as_millisecond().saturating_sub(USE_WRITTEN_EVERY)
}

/// Event ids behind this one that were surely used last before a moment, at most `limit`, and where to go on; nowhere at the
/// end. Without an index, which every event would pay for.
pub(super) fn old_seen(
    connection: &Connection,
    after: &Seen,
    before: Timestamp,
    limit: usize,
) -> Result<(Vec<Seen>, Option<Seen>), InboxError> {
    let select = "SELECT source, event_id, received_at FROM seen WHERE (source, event_id) > (?1, ?2)
                  ORDER BY source, event_id LIMIT ?3";
    let mut statement = prepare(connection, select)?;
    let mut rows = statement.query(params![after.0, after.1, SEEN_LOOKED_AT]).map_err(unavailable)?;
    let before = surely_unused(before);
    let (mut found, mut last, mut looked_at) = (Vec::new(), None, 0);
    while found.len() < limit
        && let Some(row) = rows.next().map_err(unavailable)?
    {
        let seen = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let at = row.get::<_, i64>(2).map_err(unavailable)?;
        let seen: Seen = seen(row).map_err(unavailable)?;
        looked_at += 1;
        if at < before {
            found.push(seen.clone());
        }
        last = Some(seen);
    }
    let is_end = looked_at < SEEN_LOOKED_AT && found.len() < limit;
    Ok((found, last.filter(|_| !is_end)))
}

/// Forgets event ids, unless they were used meanwhile.
pub(super) fn forget_seen(session: &Session, seen: &[Seen], before: Timestamp) -> Result<u64, InboxError> {
    let sql = "DELETE FROM seen WHERE source = ?1 AND event_id = ?2 AND received_at < ?3";
    let mut delete = prepare(session.connection, sql)?;
    let mut rows = 0;
    for (source, event_id) in seen {
        rows += delete.execute(params![source, event_id, surely_unused(before)]).map_err(unavailable)?;
    }
    Ok(rows.try_into().unwrap_or(u64::MAX))
}

/// Forgets what targets were asked to remember, and when they were reached, longer ago than this. Most of it goes earlier, but
/// not of targets that nothing is delivered to any more.
pub(super) fn forget_memory(session: &Session, before: Timestamp) -> Result<(), InboxError> {
    let memory = "DELETE FROM memory WHERE (target, subject) IN (
                      SELECT m.target, m.subject FROM target t CROSS JOIN memory m ON m.target = t.id
                      WHERE m.updated_at < ?1 LIMIT 1000)";
    let reached = "DELETE FROM reached WHERE (target, at) IN (
                       SELECT r.target, r.at FROM target t CROSS JOIN reached r ON r.target = t.id
                       WHERE r.at < ?1 LIMIT 1000)";
    for sql in [memory, reached] {
        prepare(session.connection, sql)?.execute([before.as_millisecond()]).map_err(unavailable)?;
    }
    Ok(())
}
