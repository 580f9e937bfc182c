//! The start of a store, and what a new book of targets changes.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use ring::rand::{SecureRandom, SystemRandom};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use super::changes::Changes;
use super::claim::CUT_OFF;
use super::errors::unavailable;
use super::finish;
use super::rows::{self, moment, prepare};
use super::session::Session;
use super::{InboxError, Store};
use crate::clock::later;
use crate::inbox::Adopted;
use crate::inbox::book::{Admission, Book, QueueKey};
use crate::inbox::delivery::State;
use crate::route::timing::Timing;

/// Why deliveries of a target that is gone are cancelled.
pub(super) const GONE: &str = "its target is not in the configuration any more";

/// No retry waits longer: the longest `retry.most`, which is a day, and its jitter, generously.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(2 * 86_400);

/// Deliveries moved by one statement.
const NOTED_AT_ONCE: u32 = 1_000;

/// What is not over, as the indexes have it.
const WAITS: [&str; 2] = ["next_at IS NOT NULL", "state = 'blocked'"];

/// Begins a new epoch and takes back what earlier ones left in flight: each attempt goes on, and what it was about to do
/// may have begun.
pub(super) fn begin_epoch(connection: &mut Connection, now: Timestamp) -> Result<Store, InboxError> {
    let transaction = connection.transaction().map_err(unavailable)?;
    let tag = format!("{:08x}", fastrand::u32(..));
    let sql = "INSERT INTO store (only, tag, epoch, key) VALUES (1, ?1, 1, ?2)
               ON CONFLICT (only) DO UPDATE SET epoch = epoch + 1, key = coalesce(key, ?2)";
    transaction.execute(sql, params![tag, random_key()?]).map_err(unavailable)?;
    let store = current_epoch(&transaction)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = ?3, epoch = NULL, flags = flags | ?4 WHERE epoch < ?1
               RETURNING id";
    let values = params![store.epoch, State::Waiting.as_str(), now.as_millisecond(), CUT_OFF];
    let mut changes = Changes::default();
    changes.at(now);
    rows::ids(&transaction, sql, values)?.into_iter().for_each(|number| changes.moved(number));
    changes.write(&transaction)?;
    transaction.commit().map_err(unavailable)?;
    Ok(store)
}

fn random_key() -> Result<Vec<u8>, InboxError> {
    let mut key = vec![0; 32];
    let refused = |_| InboxError::Open("the system gives no random numbers".to_owned());
    SystemRandom::new().fill(&mut key).map_err(refused)?;
    Ok(key)
}

pub(super) fn current_epoch(connection: &Connection) -> Result<Store, InboxError> {
    let row = |row: &Row<'_>| {
        let key: Option<[u8; 32]> = row.get(2)?;
        Ok(Store { tag: row.get::<_, String>(0)?.into(), epoch: row.get(1)?, key: key.unwrap_or_default() })
    };
    connection.query_row("SELECT tag, epoch, key FROM store", [], row).map_err(unavailable)
}

/// A target as it stands in the store.
struct Known {
    id: i64,
    queue: QueueKey,
    is_blocked: bool,
}

/// Takes up a book.
pub(super) fn adopt(
    session: &mut Session,
    book: &Arc<Book>,
    admission: Option<&Arc<dyn Admission>>,
    now: Timestamp,
) -> Result<Adopted, InboxError> {
    session.forget();
    session.changes.at(now);
    let mut adopted = Adopted::default();
    let before = known(session)?;
    let mut taken = HashSet::new();
    for known in &before {
        let is_used = session.book.as_ref().is_some_and(|book| book.get(&known.queue).is_some());
        if is_used || owes(session, known.id)? {
            taken.insert(known.queue.clone());
        }
    }
    let is_gone = |known: &&Known| book.get(&known.queue).is_none() && !book.is_aside(&known.queue.workspace);
    for known in before.iter().filter(is_gone) {
        // A namesake that was not used before is this one under another name; one that was is another.
        let mut new = book.namesakes(&known.queue).filter(|there| !taken.contains(*there));
        match (new.next().cloned(), new.next()) {
            (Some(there), None) => {
                move_to(session, known, &there)?;
                session.moves(&known.queue, &there);
                taken.insert(there);
            }
            _ => cancel(session, known, &mut adopted)?,
        }
    }
    for rule in book.rules() {
        session.target_at(&rule.queue)?;
    }
    for known in known(session)? {
        let Some(rule) = book.get(&known.queue) else { continue };
        if rule.blocked.is_none() && !known.is_blocked {
            unblock(session, known.id, now)?;
        }
        bring_back(session, known.id, now)?;
        follow_after(session, known.id, &rule.timing, now)?;
        if let Some(at) = first_due(session, known.id)? {
            adopted.due.push((known.queue.clone(), at));
        }
        if rule.is_strict
            && let Some((number, at)) = head(session, known.id)?
        {
            adopted.heads.push((known.queue, number, at));
        }
    }
    adopted.lanes = finish::lanes(session.connection)?;
    session.forget();
    session.book = Some(Arc::clone(book));
    session.admission = admission.cloned();
    Ok(adopted)
}

fn known(session: &Session) -> Result<Vec<Known>, InboxError> {
    let select = "SELECT t.id, w.name, t.route, t.name, t.blocked IS NOT NULL
                  FROM target t JOIN workspace w ON w.id = t.workspace ORDER BY t.id";
    let mut statement = prepare(session.connection, select)?;
    let row = |row: &Row<'_>| {
        let queue = QueueKey {
            workspace: rows::name(row, 1)?,
            route: rows::name(row, 2)?,
            target: row.get::<_, String>(3)?.into(),
        };
        Ok(Known { id: row.get(0)?, queue, is_blocked: row.get(4)? })
    };
    let found = statement.query_map([], row).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

/// Whether a target is owed something that is not over.
fn owes(session: &Session, target: i64) -> Result<bool, InboxError> {
    for which in WAITS {
        let select = format!("SELECT EXISTS (SELECT 1 FROM delivery WHERE target = ?1 AND {which})");
        let owes: bool =
            prepare(session.connection, &select)?.query_row([target], |row| row.get(0)).map_err(unavailable)?;
        if owes {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The target stands under another route now. One that stood there once and is not used any more takes its name.
fn move_to(session: &Session, known: &Known, there: &QueueKey) -> Result<(), InboxError> {
    let put = |id: i64, route: &str| {
        let sql = "UPDATE target SET route = ?2 WHERE id = ?1";
        prepare(session.connection, sql)?.execute(params![id, route]).map(drop).map_err(unavailable)
    };
    let select = "SELECT t.id FROM target t JOIN workspace w ON w.id = t.workspace
                  WHERE w.name = ?1 AND t.route = ?2 AND t.name = ?3";
    let values = params![there.workspace.as_str(), there.route.as_str(), &*there.target];
    let left: Option<i64> =
        prepare(session.connection, select)?.query_row(values, |row| row.get(0)).optional().map_err(unavailable)?;
    if let Some(left) = left {
        // No route has such a name.
        put(left, "~")?;
        put(known.id, there.route.as_str())?;
        return put(left, known.queue.route.as_str());
    }
    put(known.id, there.route.as_str())
}

/// The target is gone, and with it whatever it still was owed.
fn cancel(session: &mut Session, known: &Known, adopted: &mut Adopted) -> Result<(), InboxError> {
    let set = "UPDATE delivery SET state = 'cancelled', next_at = NULL, gather = NULL, slot = NULL, started_at = NULL,
                                   plugin_digest = NULL, why = ?2";
    let mut rows = 0;
    for which in WAITS {
        let values = params![known.id, GONE, NOTED_AT_ONCE];
        rows += move_all(session, &format!("{set} WHERE {}", some(which)), values)?;
    }
    if rows > 0 {
        adopted.cancelled.push((known.queue.clone(), rows));
    }
    Ok(())
}

/// As many deliveries of the target `?1` as `?3` says.
fn some(which: &str) -> String {
    format!("id IN (SELECT id FROM delivery WHERE target = ?1 AND {which} LIMIT ?3)")
}

/// Moves deliveries, [`NOTED_AT_ONCE`] at a time, until there are no more of them; returns how many there were.
fn move_all(session: &mut Session, update: &str, values: impl Params + Copy) -> Result<u64, InboxError> {
    let sql = format!("{update} RETURNING id");
    let mut rows = 0;
    loop {
        let moved = rows::ids(session.connection, &sql, values)?;
        moved.iter().for_each(|number| session.changes.moved(*number));
        rows += u64::try_from(moved.len()).unwrap_or_default();
        if session.changes.is_long() {
            session.write_changes()?;
        }
        if u32::try_from(moved.len()).is_ok_and(|moved| moved < NOTED_AT_ONCE) {
            return Ok(rows);
        }
    }
}

/// What was blocked is due. Nobody tried it meanwhile, so that giving up counts from now.
pub(super) fn unblock(session: &mut Session, target: i64, now: Timestamp) -> Result<(), InboxError> {
    let update = "UPDATE delivery SET state = 'pending', next_at = ?2, since = ?2, why = NULL";
    let values = params![target, now.as_millisecond(), NOTED_AT_ONCE];
    move_all(session, &format!("{update} WHERE {}", some("state = 'blocked'")), values).map(drop)
}

/// A clock that was ahead and was set back since leaves behind what comes due far too late: what is pending is due now, and
/// so is a retry that is later than any that there is.
fn bring_back(session: &Session, target: i64, now: Timestamp) -> Result<(), InboxError> {
    let sql = "UPDATE delivery SET next_at = ?2
               WHERE target = ?1 AND next_at > ?2 AND (state = 'pending' OR state = 'retrying' AND next_at > ?3)";
    let values = [target, now.as_millisecond(), later(now, RETRY_WAIT_MAX).as_millisecond()];
    prepare(session.connection, sql)?.execute(values).map(drop).map_err(unavailable)
}

/// What waits alone follows what its target says of that now.
fn follow_after(session: &Session, target: i64, timing: &Timing, now: Timestamp) -> Result<(), InboxError> {
    let wait = timing.after.as_ref().map_or(Duration::ZERO, |after| after.wait);
    let wait = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX >> 1);
    let sql =
        "UPDATE delivery SET next_at = max(?2, (SELECT received_at FROM notification n WHERE n.id = notification) + ?3)
               WHERE target = ?1 AND next_at IS NOT NULL AND state = 'scheduled'";
    prepare(session.connection, sql)?.execute([target, now.as_millisecond(), wait]).map(drop).map_err(unavailable)
}

fn first_due(session: &Session, target: i64) -> Result<Option<Timestamp>, InboxError> {
    let select = "SELECT min(next_at) FROM delivery WHERE target = ?1 AND next_at IS NOT NULL";
    let at: Option<i64> =
        prepare(session.connection, select)?.query_row([target], |row| row.get(0)).map_err(unavailable)?;
    Ok(at.map(moment))
}

/// The oldest delivery that was begun: in a queue that keeps its order the others wait for it.
fn head(session: &Session, target: i64) -> Result<Option<(i64, Timestamp)>, InboxError> {
    let select = "SELECT id, next_at FROM delivery
                  WHERE target = ?1 AND next_at IS NOT NULL AND attempts > 0 ORDER BY id LIMIT 1";
    let mut statement = prepare(session.connection, select)?;
    let mut found = statement.query_map([target], |row| Ok((row.get(0)?, moment(row.get(1)?)))).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}
