//! Deliveries that are due are handed out, each to one attempt.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::adopt::GONE;
use super::changes::Standing;
use super::content::{contents, is_needless, leave_out_acknowledged, memory, subject};
use super::errors::unavailable;
use super::finish::surplus_may_go;
use super::gather::{self, Waiting, moved};
use super::rows::{self, moment, prepare};
use super::session::{Session, Target};
use super::{Claimed, InboxError, Name};
use crate::inbox::delivery::{Cause, Input, Outcome, State};
use crate::inbox::{Begun, Claim, DeliveryId, Fence, KeptEffect, Moved, Progress, Want, Written};
use crate::route::Stage;

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
/// The attempt is told what its target remembers of its subject, and told it again when it goes on.
pub(super) const TOLD_MEMORY: i64 = 32;

/// Rows read at once for each delivery that is wanted: those that wait for time, or for another of their subject, are
/// passed.
const LOOKED_AT: u32 = 4;

/// Rows of one queue that one claim looks at: a few milliseconds, for which all that is to be written waits.
const EXAMINED_MAX: u32 = 512;

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
    resume: Option<Written>,
    steps: u32,
    flags: i64,
    next_at: i64,
    has_slot: bool,
    plugin_digest: Option<String>,
}

const DUE: &str = "id, state, notification, gather, level, items, bytes, omitted, plugin, attempts, due_at, started_at,
                   last_outcome, since, cause, resume, steps, flags, next_at, slot IS NOT NULL, resume_version, plugin_digest";

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
        resume: resume(row)?,
        steps: row.get(16)?,
        flags: row.get(17)?,
        next_at: row.get::<_, Option<i64>>(18)?.unwrap_or_default(),
        has_slot: row.get(19)?,
        plugin_digest: row.get(21)?,
    })
}

fn resume(row: &Row<'_>) -> rusqlite::Result<Option<Written>> {
    let Some(value) = row.get(15)? else { return Ok(None) };
    Ok(Some(Written { value, plugin_version: row.get(20)? }))
}

/// Hands out what is wanted, as far as it is there.
pub(super) fn claim(session: &mut Session, now: Timestamp, wants: &[Want]) -> Result<Claimed, InboxError> {
    session.changes.at(now);
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
    if session.is_aside(&target) {
        return Ok(None);
    }
    // It is asked for again by the name that it has now.
    if target.queue != want.queue {
        return Ok(Some(now));
    }
    // Where nothing waits for time or for another, every row that is due can be handed out.
    let is_plain = target.timing().is_none() && !target.by_subject();
    let looked_at = if is_plain { want.most } else { want.most.saturating_mul(LOOKED_AT).max(16) };
    let mut busy = want.busy.clone();
    let (mut wanted, mut examined, mut passed) = (want.most, 0, 0_usize);
    let head = match want.only {
        Some(number) => find_waiting(session, &target, number)?,
        None => None,
    };
    let keeps_order = head.is_some();
    let mut page: Vec<Due> = head.into_iter().filter(|head| head.next_at <= now.as_millisecond()).collect();
    let mut last = (i64::MIN, 0);
    loop {
        let mut is_whole = keeps_order;
        if !keeps_order {
            page = find_due(session, &target, now, last, looked_at)?;
            is_whole = u32::try_from(page.len()).is_ok_and(|found| found < looked_at);
        }
        for due in page.drain(..) {
            if wanted == 0 {
                return Ok(Some(now));
            }
            last = (due.next_at, due.waiting.id);
            examined += 1;
            match fate(session, &target, due, now, &mut busy, claimed)? {
                Fate::Claimed(claim) => {
                    claimed.claims.push(*claim);
                    wanted -= 1;
                }
                Fate::Busy => passed += 1,
                Fate::Elsewhere => {}
            }
        }
        if is_whole || wanted == 0 || examined >= EXAMINED_MAX {
            break;
        }
    }
    // Whoever asked asks again when one of these subjects is free.
    if passed > 0 { Ok(Some(now)) } else { next_due(session, &target) }
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
        // What was looked at before it may have filled it, let it go, or made one of it and another.
        match find_waiting(session, target, due.waiting.id)? {
            Some(found) if found.next_at <= now.as_millisecond() => due = found,
            _ => return Ok(Fate::Elsewhere),
        }
    }
    // What was blocked before it was ever tried gave its place up: whether it may go now is decided anew.
    let has_no_place = target.has_at_most() && !due.has_slot && is_fresh(&due);
    if due.waiting.state.is_open() || has_no_place {
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
        put_aside(session, target, &due, (Input::Cancelled, GONE), now)?;
        tell(session, target, &due, State::Cancelled, claimed);
        return Ok(Fate::Elsewhere);
    }
    if let Some(why) = target.blocked(due.plugin_digest.as_deref()).map(str::to_owned) {
        put_aside(session, target, &due, (Input::Blocked, &why), now)?;
        tell(session, target, &due, State::Blocked, claimed);
        return Ok(Fate::Elsewhere);
    }
    let is_fresh = is_fresh(&due);
    if is_fresh && is_needless(session, target, &due.waiting)? {
        gather::suppress(session, &due.waiting)?;
        if due.has_slot {
            surplus_may_go(session, &target.queue, target.row.id, now)?;
        }
        tell(session, target, &due, State::Suppressed, claimed);
        return Ok(Fate::Elsewhere);
    }
    let subject =
        if target.by_subject() || is_told_memory(target, &due) { subject(session, &due.waiting)? } else { None };
    if let Some(subject) = subject.as_ref().filter(|_| target.by_subject()) {
        if busy.contains(subject) {
            return Ok(Fate::Busy);
        }
        busy.push(subject.clone());
    }
    hand_out(session, target, due, subject.as_deref(), is_fresh, now).map(|claim| Fate::Claimed(Box::new(claim)))
}

/// What an attempt was told when it began it is told when it goes on, whatever its target says now.
fn is_told_memory(target: &Target, due: &Due) -> bool {
    if due.started_at.is_some() { due.flags & TOLD_MEMORY != 0 } else { target.by_subject() }
}

/// Whether no attempt of it was made, and no person asked for it.
fn is_fresh(due: &Due) -> bool {
    due.attempts == 0 && due.waiting.state == State::Pending && due.cause != Some(Cause::Manual)
}

/// What is due, longest due first, after the row that was looked at last.
fn find_due(
    session: &Session,
    target: &Target,
    now: Timestamp,
    last: (i64, i64),
    most: u32,
) -> Result<Vec<Due>, InboxError> {
    let sql = format!(
        "SELECT {DUE} FROM delivery
         WHERE target = ?1 AND next_at <= ?2 AND (next_at, id) > (?3, ?4) ORDER BY next_at, id LIMIT ?5"
    );
    let mut statement = prepare(session.connection, &sql)?;
    let values = params![target.row.id, now.as_millisecond(), last.0, last.1, most];
    let found = statement.query_map(values, due).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

/// A delivery of a queue while it waits: a person, or what was done before it, may have taken it away.
fn find_waiting(session: &Session, target: &Target, number: i64) -> Result<Option<Due>, InboxError> {
    let sql = format!("SELECT {DUE} FROM delivery WHERE id = ?1 AND target = ?2 AND next_at IS NOT NULL");
    let mut statement = prepare(session.connection, &sql)?;
    let mut found = statement.query_map([number, target.row.id], due).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}

fn find_one(session: &Session, id: i64) -> Result<Option<Due>, InboxError> {
    let sql = format!("SELECT {DUE} FROM delivery WHERE id = ?1");
    let mut statement = prepare(session.connection, &sql)?;
    let mut found = statement.query_map([id], due).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}

/// When something of a queue is due next.
fn next_due(session: &Session, target: &Target) -> Result<Option<Timestamp>, InboxError> {
    let select = "SELECT min(next_at) FROM delivery WHERE target = ?1 AND next_at IS NOT NULL";
    let next: Option<i64> =
        prepare(session.connection, select)?.query_row([target.row.id], |row| row.get(0)).map_err(unavailable)?;
    Ok(next.map(moment))
}

/// Ends or blocks what was due. What it counted for `at_most` may go to others.
fn put_aside(
    session: &mut Session,
    target: &Target,
    due: &Due,
    (input, why): (Input, &str),
    now: Timestamp,
) -> Result<(), InboxError> {
    let next = moved(due.waiting.state, input, now)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, slot = NULL, why = ?3,
                      plugin_digest = CASE ?2 WHEN 'blocked' THEN plugin_digest END
               WHERE id = ?1";
    let values = params![due.waiting.id, next.state.as_str(), why];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    session.changes.moved(due.waiting.id);
    if due.has_slot { surplus_may_go(session, &target.queue, target.row.id, now) } else { Ok(()) }
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

fn hand_out(
    session: &mut Session,
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
    // However long it was due before, giving up counts from the first time that it could be tried.
    let since = due.since.unwrap_or(if due.attempts == 0 { now } else { due.due_at });
    let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, attempts = ?3, epoch = ?4,
                      started_at = coalesce(started_at, ?5), slot = CASE WHEN ?6 THEN 1 ELSE slot END, since = ?7,
                      flags = flags | ?8
               WHERE id = ?1";
    let takes_slot = is_fresh && target.has_at_most();
    let (started_at, since_at) = (now.as_millisecond(), since.as_millisecond());
    let subject = subject.filter(|_| is_told_memory(target, &due));
    let told = if is_told_memory(target, &due) { TOLD_MEMORY } else { 0 };
    let (state, epoch) = (next.state.as_str(), session.store.epoch);
    let values = params![number, state, attempt, epoch, started_at, takes_slot, since_at, told];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    let plugin = due.plugin.clone();
    let standing =
        Standing { target: target.row.id, plugin, state: next.state, notification: due.waiting.notification };
    session.changes.made(number, standing);
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
        since,
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

/// What there is of an attempt that goes on.
fn begun(session: &Session, due: &Due) -> Result<Option<Begun>, InboxError> {
    let Some(started_at) = due.started_at else { return Ok(None) };
    let has = |flag| due.flags & flag != 0;
    let mut past = Vec::new();
    if has(HAS_EFFECTS) {
        let select = "SELECT at, digest, answer FROM effect WHERE delivery = ?1 ORDER BY number";
        let mut statement = prepare(session.connection, select)?;
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
        plugin_digest: due.plugin_digest.clone(),
    }))
}
