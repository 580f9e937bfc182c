//! Deliveries that are due are handed out, each to one attempt.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::adopt::GONE;
use super::errors::unavailable;
use super::gather::{self, Waiting, moved};
use super::rows::{self, NOTIFICATION, moment, prepare};
use super::session::{Session, Target};
use super::{Claimed, InboxError, Name};
use crate::clock::later;
use crate::inbox::delivery::{Cause, Input, Outcome, State};
use crate::inbox::{Begun, Claim, DeliveryId, Fence, KeptEffect, Memory, Moved, Progress, Want};
use crate::notification::Notification;
use crate::route::timing::Unless;
use crate::route::{Acknowledged, Stage};

/// An effect of the attempt was accepted, or may have been.
pub(super) const TOUCHED: i64 = 1;
/// The destination was reached.
pub(super) const REACHED: i64 = 2;
/// The attempt goes on after a plugin's wait.
pub(super) const WAITED: i64 = 4;
/// The next effect may have begun.
pub(super) const CUT_OFF: i64 = 8;
/// Effects are kept.
pub(super) const HAS_EFFECTS: i64 = 16;

/// Rows looked at for each delivery that is wanted: those that wait for time, or for another of their subject, are passed.
const LOOKED_AT: u32 = 4;

/// The wait before a queue is looked at again whose due deliveries all wait for others of their subject.
const BUSY_PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// A delivery that time has come for.
struct Due {
    waiting: Waiting,
    plugin: Name,
    attempts: u32,
    due_at: Timestamp,
    started_at: Option<Timestamp>,
    last_outcome: Option<Outcome>,
    since: Option<Timestamp>,
    cause: Option<Cause>,
    resume: Option<String>,
    steps: u32,
    flags: i64,
}

const DUE: &str = "id, state, notification, gather, level, items, bytes, omitted, plugin, attempts, due_at, started_at,
                   last_outcome, since, cause, resume, steps, flags";

fn due(row: &Row<'_>) -> rusqlite::Result<Due> {
    let text = |column| row.get::<_, Option<String>>(column);
    Ok(Due {
        waiting: gather::waiting(row)?,
        plugin: rows::name(row, 8)?,
        attempts: row.get(9)?,
        due_at: moment(row.get(10)?),
        started_at: row.get::<_, Option<i64>>(11)?.map(moment),
        last_outcome: text(12)?.and_then(|text| Outcome::parse(&text)),
        since: row.get::<_, Option<i64>>(13)?.map(moment),
        cause: text(14)?.and_then(|text| Cause::parse(&text)),
        resume: row.get(15)?,
        steps: row.get(16)?,
        flags: row.get(17)?,
    })
}

/// Hands out what is wanted, as far as it is there.
pub(super) fn claim(session: &mut Session, now: Timestamp, wants: &[Want]) -> Result<Claimed, InboxError> {
    let mut claimed = Claimed::default();
    for want in wants {
        let next_due = one_queue(session, now, want, &mut claimed)?;
        claimed.next_due.push((want.queue.clone(), next_due));
    }
    Ok(claimed)
}

/// One queue; returns when something of it is due next.
fn one_queue(
    session: &mut Session,
    now: Timestamp,
    want: &Want,
    claimed: &mut Claimed,
) -> Result<Option<Timestamp>, InboxError> {
    let target = session.target(&want.queue)?;
    let looked_at = want.most.saturating_mul(LOOKED_AT).max(16);
    let mut busy = want.busy.clone();
    let mut wanted = want.most;
    let mut passed = 0_usize;
    let found = find_due(session, &target, now, want.only, looked_at)?;
    let is_whole = u32::try_from(found.len()).is_ok_and(|found| found < looked_at);
    for due in found {
        if wanted == 0 {
            return Ok(Some(now));
        }
        match fate(session, &target, due, now, &mut busy, claimed)? {
            Fate::Claimed(claim) => {
                claimed.claims.push(*claim);
                wanted -= 1;
            }
            Fate::Busy => passed += 1,
            Fate::Elsewhere => {}
        }
    }
    match (passed, is_whole) {
        // Others of other subjects may stand behind them.
        (1.., false) => Ok(Some(later(now, BUSY_PAUSE))),
        // What is busy is due all the same: whoever asks knows when to ask again.
        _ => next_due(session, &target),
    }
}

enum Fate {
    Claimed(Box<Claim>),
    /// Another of its subject has an attempt under way.
    Busy,
    /// It waits again, is blocked, suppressed, or part of another.
    Elsewhere,
}

fn fate(
    session: &mut Session,
    target: &Target,
    mut due: Due,
    now: Timestamp,
    busy: &mut Vec<String>,
    claimed: &mut Claimed,
) -> Result<Fate, InboxError> {
    if due.waiting.state.is_open() {
        let stage = if due.waiting.state == State::Scheduled { Stage::Waited } else { Stage::Closed };
        gather::advance(session, target, &due.waiting, stage, now)?;
        match find_one(session, due.waiting.id)? {
            Some(moved) if moved.waiting.state == State::Pending => due = moved,
            Some(moved) => {
                tell(session, target, &moved, moved.waiting.state, claimed);
                return Ok(Fate::Elsewhere);
            }
            None => return Ok(Fate::Elsewhere),
        }
    }
    if session.is_gone(target) {
        put_aside(session, &due, Input::Cancelled, GONE, now)?;
        tell(session, target, &due, State::Cancelled, claimed);
        return Ok(Fate::Elsewhere);
    }
    if let Some(why) = target.blocked().map(str::to_owned) {
        put_aside(session, &due, Input::Blocked, &why, now)?;
        tell(session, target, &due, State::Blocked, claimed);
        return Ok(Fate::Elsewhere);
    }
    let is_fresh = due.attempts == 0 && due.waiting.state == State::Pending && due.cause != Some(Cause::Manual);
    if is_fresh && is_needless(session, target, &due.waiting)? {
        gather::suppress(session, &due.waiting)?;
        tell(session, target, &due, State::Suppressed, claimed);
        return Ok(Fate::Elsewhere);
    }
    let subject = if target.by_subject() { subject(session, &due.waiting)? } else { None };
    if let Some(subject) = &subject {
        if busy.contains(subject) {
            return Ok(Fate::Busy);
        }
        busy.push(subject.clone());
    }
    hand_out(session, target, due, subject.as_deref(), is_fresh, now).map(|claim| Fate::Claimed(Box::new(claim)))
}

fn find_due(
    session: &Session,
    target: &Target,
    now: Timestamp,
    only: Option<i64>,
    most: u32,
) -> Result<Vec<Due>, InboxError> {
    let sql = format!(
        "SELECT {DUE} FROM delivery
         WHERE target = ?1 AND next_at <= ?2 AND (?3 IS NULL OR id = ?3) ORDER BY next_at, id LIMIT ?4"
    );
    let mut statement = prepare(&session.connection, &sql)?;
    let values = params![target.row.id, now.as_millisecond(), only, most];
    let found = statement.query_map(values, due).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn find_one(session: &Session, id: i64) -> Result<Option<Due>, InboxError> {
    let sql = format!("SELECT {DUE} FROM delivery WHERE id = ?1");
    let mut statement = prepare(&session.connection, &sql)?;
    let mut found = statement.query_map([id], due).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}

/// When something of a queue is due next.
fn next_due(session: &Session, target: &Target) -> Result<Option<Timestamp>, InboxError> {
    let select = "SELECT min(next_at) FROM delivery WHERE target = ?1 AND next_at IS NOT NULL";
    let next: Option<i64> =
        prepare(&session.connection, select)?.query_row([target.row.id], |row| row.get(0)).map_err(unavailable)?;
    Ok(next.map(moment))
}

fn put_aside(session: &Session, due: &Due, input: Input, why: &str, now: Timestamp) -> Result<(), InboxError> {
    let next = moved(due.waiting.state, input, now)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, slot = NULL, why = ?3 WHERE id = ?1";
    let values = params![due.waiting.id, next.state.as_str(), why];
    prepare(&session.connection, sql)?.execute(values).map(drop).map_err(unavailable)
}

fn tell(session: &Session, target: &Target, due: &Due, state: State, claimed: &mut Claimed) {
    claimed.moved.push(Moved {
        id: id_of(session, due.waiting.id),
        queue: target.queue.clone(),
        plugin: due.plugin.clone(),
        seq: rows::seq_of(due.waiting.notification),
        state,
    });
}

fn id_of(session: &Session, number: i64) -> DeliveryId {
    DeliveryId { store: Arc::clone(&session.store.tag), number }
}

/// Whether its `unless` is met.
pub(super) fn is_needless(session: &Session, target: &Target, row: &Waiting) -> Result<bool, InboxError> {
    let Some(unless) = target.timing().and_then(|timing| timing.unless) else { return Ok(false) };
    let acknowledged = gather::acknowledged(session, row)?;
    Ok(match unless {
        Unless::AcknowledgedByPerson => acknowledged == Acknowledged::ByPerson,
        Unless::AcknowledgedByAnyone => acknowledged != Acknowledged::No,
    })
}

/// The subject that all it stands for share.
pub(super) fn subject(session: &Session, row: &Waiting) -> Result<Option<String>, InboxError> {
    let select =
        "SELECT CASE WHEN count(DISTINCT n.subject) = 1 AND count(n.subject) = count(*) THEN min(n.subject) END
                  FROM notification n
                  WHERE n.id = ?2 OR n.id IN (SELECT i.notification FROM item i WHERE i.delivery = ?1)";
    prepare(&session.connection, select)?
        .query_row(params![row.id, row.notification], |row| row.get(0))
        .map_err(unavailable)
}

fn hand_out(
    session: &Session,
    target: &Target,
    due: Due,
    subject: Option<&str>,
    is_fresh: bool,
    now: Timestamp,
) -> Result<Claim, InboxError> {
    let number = due.waiting.id;
    if is_fresh {
        leave_out_acknowledged(session, target, &due.waiting)?;
    }
    let next = moved(due.waiting.state, Input::Claimed, now)?;
    let attempt = due.attempts + u32::from(due.started_at.is_none());
    let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, attempts = ?3, epoch = ?4,
                      started_at = coalesce(started_at, ?5), slot = CASE WHEN ?6 THEN 1 ELSE slot END
               WHERE id = ?1";
    let takes_slot = is_fresh && target.has_at_most();
    let values = params![number, next.state.as_str(), attempt, session.store.epoch, now.as_millisecond(), takes_slot];
    prepare(&session.connection, sql)?.execute(values).map_err(unavailable)?;
    let (notifications, omitted) = contents(session, &due.waiting)?;
    Ok(Claim {
        id: id_of(session, number),
        fence: Fence { epoch: session.store.epoch, until: None },
        queue: target.queue.clone(),
        begun: begun(session, &due)?,
        memory: memory(session, target, subject)?,
        cause: cause(&due),
        plugin: due.plugin,
        attempt: NonZeroU32::new(attempt).unwrap_or(NonZeroU32::MIN),
        since: due.since.unwrap_or(due.due_at),
        due_at: due.due_at,
        notifications,
        omitted,
        resume: due.resume,
    })
}

fn cause(due: &Due) -> Cause {
    match (due.cause, due.last_outcome) {
        (Some(cause), _) => cause,
        (None, None) => Cause::First,
        (None, Some(Outcome::Unknown)) => Cause::Repeat,
        (None, Some(_)) => Cause::Retry,
    }
}

/// What somebody acknowledged meanwhile is left out of a digest that its `unless` concerns; from now on it is fixed.
fn leave_out_acknowledged(session: &Session, target: &Target, row: &Waiting) -> Result<(), InboxError> {
    let Some(unless) = target.timing().and_then(|timing| timing.unless) else { return Ok(()) };
    let sql = "UPDATE item SET omitted = 2
               WHERE delivery = ?1 AND omitted = 0 AND EXISTS (
                   SELECT 1 FROM notification n WHERE n.id = item.notification AND n.acknowledged_at IS NOT NULL
                          AND (?2 OR n.acknowledged_agent = 0))";
    let anyone = unless == Unless::AcknowledgedByAnyone;
    prepare(&session.connection, sql)?.execute(params![row.id, anyone]).map(drop).map_err(unavailable)
}

/// What is owed, oldest first, and how many more.
fn contents(session: &Session, row: &Waiting) -> Result<(Vec<Notification>, u32), InboxError> {
    let from = format!(
        "SELECT {NOTIFICATION} FROM notification n JOIN source s ON s.id = n.source
                JOIN workspace w ON w.id = s.workspace"
    );
    let listed =
        format!("{from} JOIN item i ON i.notification = n.id WHERE i.delivery = ?1 AND i.omitted = 0 ORDER BY n.id");
    // What never waited for others has no size.
    let found = if row.bytes == 0 { Vec::new() } else { select(session, &listed, row.id)? };
    if !found.is_empty() {
        return Ok((found, row.omitted));
    }
    let found = select(session, &format!("{from} WHERE n.id = ?1"), row.notification)?;
    if found.is_empty() { Err(rows::unreadable("delivery")) } else { Ok((found, row.omitted)) }
}

fn select(session: &Session, sql: &str, id: i64) -> Result<Vec<Notification>, InboxError> {
    let mut statement = prepare(&session.connection, sql)?;
    let found = statement.query_map([id], rows::notification).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

fn memory(session: &Session, target: &Target, subject: Option<&str>) -> Result<Option<Memory>, InboxError> {
    let Some(subject) = subject else { return Ok(None) };
    let select = "SELECT value, version FROM memory WHERE target = ?1 AND subject = ?2";
    let mut statement = prepare(&session.connection, select)?;
    let row = |row: &Row<'_>| Ok(Memory { value: row.get(0)?, version: row.get(1)? });
    let mut found = statement.query_map(params![target.row.id, subject], row).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}

/// What there is of an attempt that goes on.
fn begun(session: &Session, due: &Due) -> Result<Option<Begun>, InboxError> {
    let Some(started_at) = due.started_at else { return Ok(None) };
    let has = |flag| due.flags & flag != 0;
    let mut past = Vec::new();
    if has(HAS_EFFECTS) {
        let select = "SELECT at, digest, answer FROM effect WHERE delivery = ?1 ORDER BY number";
        let mut statement = prepare(&session.connection, select)?;
        let row =
            |row: &Row<'_>| Ok(KeptEffect { at: moment(row.get(0)?), action_digest: row.get(1)?, answer: row.get(2)? });
        let found = statement.query_map([due.waiting.id], row).map_err(unavailable)?;
        past = found.collect::<Result<_, _>>().map_err(unavailable)?;
    }
    Ok(Some(Begun {
        started_at,
        progress: Progress { steps: due.steps, touched: has(TOUCHED), reached: has(REACHED) },
        past,
        waited: has(WAITED),
        cut_off: has(CUT_OFF),
    }))
}
