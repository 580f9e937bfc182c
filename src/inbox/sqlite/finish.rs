//! What attempts leave behind: the past of those that go on, the end of those that are over, and what is kept for later.

use std::fmt::Write as _;
use std::rc::Rc;

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::InboxError;
use super::accept::insert_notices;
use super::claim::{HAS_EFFECTS, REACHED, TOLD_MEMORY, TOUCHED, WAITED};
use super::content::subject;
use super::errors::unavailable;
use super::gather::{self, moved};
use super::people::target_of;
use super::rows::{moment, prepare};
use super::session::{Session, Target};
use crate::inbox::book::{LaneKey, QueueKey};
use crate::inbox::delivery::{Input, Next, Outcome, State};
use crate::inbox::{Change, DeliveryId, Fence, Finished, Kept, LaneRecord, Paused, Progress, Written};

/// Subjects that one target remembers; beyond, those forgotten longest go.
const SUBJECTS_MAX: u32 = 10_000;

/// What is remembered and not touched for this long is forgotten.
const MEMORY_AGE_MAX: SignedDuration = SignedDuration::from_hours(90 * 24);

/// A delivery in flight, as far as its end concerns.
struct InFlight {
    target: i64,
    slot: Option<i64>,
    flags: i64,
}

/// The delivery, if it is still in the hands of whoever has this fence.
fn held(session: &Session, id: &DeliveryId, fence: Fence) -> Result<InFlight, InboxError> {
    let select = "SELECT target, slot, flags FROM delivery WHERE id = ?1 AND epoch = ?2";
    let row = |row: &Row<'_>| Ok(InFlight { target: row.get(0)?, slot: row.get(1)?, flags: row.get(2)? });
    prepare(session.connection, select)?
        .query_row(params![id.number, fence.epoch], row)
        .optional()
        .map_err(unavailable)?
        .ok_or_else(|| InboxError::NotHeld(id.clone()))
}

fn flags_of(progress: Progress) -> i64 {
    let flag = |is, flag| if is { flag } else { 0 };
    flag(progress.touched, TOUCHED) | flag(progress.reached, REACHED)
}

/// Keeps the past of an attempt that goes on.
pub(super) fn keep(session: &Session, kept: &Kept) -> Result<(), InboxError> {
    let held = held(session, &kept.id, kept.fence)?;
    let flags = flags_of(kept.progress) | (held.flags & (WAITED | TOLD_MEMORY)) | HAS_EFFECTS;
    let sql = "UPDATE delivery SET steps = ?2, flags = ?3, plugin_digest = ?4 WHERE id = ?1";
    let values = params![kept.id.number, kept.progress.steps, flags, kept.plugin_digest];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    add_effects(session, kept)
}

fn add_effects(session: &Session, kept: &Kept) -> Result<(), InboxError> {
    let sql = "INSERT INTO effect (delivery, number, at, digest, answer) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (delivery, number) DO UPDATE SET at = ?3, digest = ?4, answer = ?5";
    let mut insert = prepare(session.connection, sql)?;
    for (number, effect) in (kept.kept_before..).zip(&kept.effects) {
        let at = effect.at.as_millisecond();
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        insert
            .execute(params![kept.id.number, number, at, effect.action_digest, effect.answer])
            .map_err(unavailable)?;
    }
    Ok(())
}

/// Lets an attempt rest.
pub(super) fn pause(session: &mut Session, paused: &Paused) -> Result<(), InboxError> {
    let id = paused.kept.id.number;
    let held = held(session, &paused.kept.id, paused.kept.fence)?;
    let until = paused.until;
    let next = moved(State::InFlight, Input::Paused { until }, until)?;
    let mut flags = flags_of(paused.kept.progress) | (held.flags & TOLD_MEMORY);
    if paused.is_wait {
        forget_effects(session, id)?;
        flags |= WAITED;
    } else {
        add_effects(session, &paused.kept)?;
        flags |= (held.flags & (WAITED | HAS_EFFECTS)) | if paused.kept.effects.is_empty() { 0 } else { HAS_EFFECTS };
    }
    let sql = "UPDATE delivery SET state = ?2, next_at = ?3, epoch = NULL, steps = ?4, flags = ?5, plugin_digest = ?6
               WHERE id = ?1";
    let at = next.next_at.map(Timestamp::as_millisecond);
    let Kept { progress, plugin_digest, .. } = &paused.kept;
    let values = params![id, next.state.as_str(), at, progress.steps, flags, plugin_digest];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    session.changes.moved(id);
    change_resume(session, id, &paused.resume)?;
    keep_lanes(session, &paused.lanes)?;
    let target = target_of(session, id)?;
    if session.cancel_if_gone(&target, id)? {
        return forget_effects(session, id);
    }
    session.now_due(&target.queue, until);
    Ok(())
}

pub(super) fn forget_effects(session: &Session, id: i64) -> Result<(), InboxError> {
    prepare(session.connection, "DELETE FROM effect WHERE delivery = ?1")?.execute([id]).map(drop).map_err(unavailable)
}

fn change_resume(session: &Session, id: i64, change: &Change) -> Result<(), InboxError> {
    let (value, version) = match change {
        Change::Keep => return Ok(()),
        Change::Set(Written { value, plugin_version }) => (Some(value), plugin_version.as_ref()),
        Change::Forget => (None, None),
    };
    let sql = "UPDATE delivery SET resume = ?2, resume_version = ?3 WHERE id = ?1";
    prepare(session.connection, sql)?.execute(params![id, value, version]).map(drop).map_err(unavailable)
}

/// Records the end of an attempt; returns the numbers that its notices got.
pub(super) fn finish(session: &mut Session, finished: &Finished) -> Result<Vec<Option<u64>>, InboxError> {
    session.changes.at(finished.attempt.ended_at);
    let mut target = session.target(&finished.queue)?;
    if !end_plainly(session, finished, &target)? {
        target = end_as_held(session, finished, target)?;
    }
    session.changes.moved(finished.id.number);
    if !is_given_back(finished) {
        insert_attempt(session, finished)?;
    }
    change_resume(session, finished.id.number, &finished.resume)?;
    remember(session, finished, target.row.id)?;
    keep_lanes(session, &finished.lanes)?;
    insert_notices(session, &target.queue.workspace, finished.attempt.ended_at, &finished.notices)
}

fn is_given_back(finished: &Finished) -> bool {
    finished.attempt.outcome == Outcome::Interrupted
}

/// Any end, by what the delivery is found to be; returns the target that it is for.
fn end_as_held(session: &mut Session, finished: &Finished, mut target: Rc<Target>) -> Result<Rc<Target>, InboxError> {
    let number = finished.id.number;
    let held = held(session, &finished.id, finished.fence)?;
    if target.row.id != held.target {
        // It went over to another route meanwhile.
        target = target_of(session, number)?;
    }
    end(session, finished, &held, is_given_back(finished))?;
    if held.flags & HAS_EFFECTS != 0 {
        forget_effects(session, number)?;
    }
    count_for_at_most(session, &target, &held, finished)?;
    if finished.next.state == State::Blocked {
        let why = finished.attempt.reason.as_deref().unwrap_or("the plugin asks for a person");
        session.set_blocked(&target.queue, Some(why))?;
    }
    let goes_on = !finished.next.state.is_final();
    if goes_on && session.cancel_if_gone(&target, number)? {
        return Ok(target);
    }
    if let Some(at) = finished.next.next_at {
        session.now_due(&target.queue, at);
    }
    Ok(target)
}

/// The end that nearly all come to: made, and nothing was kept of it, nor a place of `at_most`. One statement finds that the
/// delivery is held and ends it. Returns whether it was so; where it was not, nothing has changed.
fn end_plainly(session: &mut Session, finished: &Finished, target: &Target) -> Result<bool, InboxError> {
    let is_plain = finished.next == Next { state: State::Delivered, next_at: None }
        && finished.attempt.outcome == Outcome::Delivered
        && !target.has_at_most();
    if !is_plain {
        return Ok(false);
    }
    let sql = "UPDATE delivery SET state = 'delivered', epoch = NULL, started_at = NULL, last_outcome = 'delivered',
                      cause = NULL, steps = 0, flags = 0, why = NULL
               WHERE id = ?1 AND epoch = ?2 AND target = ?3 AND slot IS NULL AND flags & ?4 = 0
                     AND plugin_digest IS NULL";
    let values = params![finished.id.number, finished.fence.epoch, target.row.id, HAS_EFFECTS];
    Ok(session.hot.end_plainly.execute(session.connection, sql, values)? == 1)
}

fn end(session: &Session, finished: &Finished, held: &InFlight, is_given_back: bool) -> Result<(), InboxError> {
    let attempt = &finished.attempt;
    let next = finished.next;
    // What reached the destination is counted by the time it did; what is over counts no more.
    let keeps_slot = held.slot.is_some() && !finished.reached && !next.state.is_final() && next.state != State::Blocked;
    // What was given back before it was ever tried keeps its place in the queue.
    let sql = "UPDATE delivery SET state = ?2, attempts = attempts - ?4, epoch = NULL, started_at = NULL,
                      next_at = CASE WHEN ?4 = 1 AND ?2 = 'pending' THEN min(?3, due_at) ELSE ?3 END,
                      last_outcome = CASE ?4 WHEN 1 THEN last_outcome ELSE ?5 END,
                      cause = CASE ?4 WHEN 1 THEN cause END, slot = ?6, steps = 0, flags = 0,
                      plugin_digest = NULL, why = CASE ?2 WHEN 'blocked' THEN ?7 END
               WHERE id = ?1";
    let values = params![
        finished.id.number,
        next.state.as_str(),
        next.next_at.map(Timestamp::as_millisecond),
        i64::from(is_given_back),
        attempt.outcome.as_str(),
        keeps_slot.then_some(1),
        attempt.reason,
    ];
    prepare(session.connection, sql)?.execute(values).map(drop).map_err(unavailable)
}

fn insert_attempt(session: &mut Session, finished: &Finished) -> Result<(), InboxError> {
    let attempt = &finished.attempt;
    let sql = "INSERT INTO attempt (delivery, number, started_at, ended_at, outcome, reason, steps, plugin_version,
                                    plugin_digest)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let values = params![
        finished.id.number,
        attempt.number.get(),
        attempt.started_at.as_millisecond(),
        attempt.ended_at.as_millisecond(),
        attempt.outcome.as_str(),
        attempt.reason,
        attempt.steps,
        attempt.plugin_version,
        attempt.plugin_digest,
    ];
    session.hot.insert_attempt.execute(session.connection, sql, values).map(drop)
}

/// Keeps what the target remembers of the subject, unless something newer is there.
fn remember(session: &Session, finished: &Finished, target: i64) -> Result<(), InboxError> {
    let (change, version) = &finished.remember;
    if *change == Change::Keep {
        return Ok(());
    }
    let Some(row) = gather::find(session, finished.id.number)? else { return Ok(()) };
    let Some(subject) = subject(session, &row)? else { return Ok(()) };
    let connection = session.connection;
    let now = finished.attempt.ended_at;
    match change {
        Change::Keep => {}
        Change::Forget => {
            let sql = "DELETE FROM memory WHERE target = ?1 AND subject = ?2 AND version = ?3";
            prepare(connection, sql)?.execute(params![target, subject, version]).map_err(unavailable)?;
        }
        Change::Set(Written { value, plugin_version }) => {
            let sql = "INSERT INTO memory (target, subject, value, version, updated_at, plugin_version)
                       VALUES (?1, ?2, ?3, ?4 + 1, ?5, ?6)
                       ON CONFLICT (target, subject)
                       DO UPDATE SET value = ?3, version = ?4 + 1, updated_at = ?5, plugin_version = ?6 WHERE version = ?4";
            let values = params![target, subject, value, version, now.as_millisecond(), plugin_version];
            prepare(connection, sql)?.execute(values).map_err(unavailable)?;
            if *version == 0 {
                forget_old(session, target, now)?;
            }
        }
    }
    Ok(())
}

/// A new subject is the moment to forget old ones.
fn forget_old(session: &Session, target: i64, now: Timestamp) -> Result<(), InboxError> {
    let connection = session.connection;
    let oldest = now.checked_sub(MEMORY_AGE_MAX).unwrap_or(Timestamp::MIN).as_millisecond();
    let sql = "DELETE FROM memory WHERE target = ?1 AND updated_at < ?2";
    prepare(connection, sql)?.execute([target, oldest]).map_err(unavailable)?;
    let sql = "DELETE FROM memory WHERE target = ?1 AND subject IN (
                   SELECT subject FROM memory WHERE target = ?1 ORDER BY updated_at DESC LIMIT -1 OFFSET ?2)";
    prepare(connection, sql)?.execute(params![target, SUBJECTS_MAX]).map(drop).map_err(unavailable)
}

/// Counts an attempt that reached the destination; looks at the surplus again when one came to nothing.
fn count_for_at_most(
    session: &mut Session,
    target: &Target,
    held: &InFlight,
    finished: &Finished,
) -> Result<(), InboxError> {
    let Some(at_most) = target.timing().and_then(|timing| timing.at_most.clone()) else { return Ok(()) };
    let now = finished.attempt.ended_at;
    if finished.reached {
        let sql = "INSERT INTO reached (target, at, times) VALUES (?1, ?2, 1)
                   ON CONFLICT (target, at) DO UPDATE SET times = times + 1";
        prepare(session.connection, sql)?.execute([held.target, now.as_millisecond()]).map_err(unavailable)?;
        let per = SignedDuration::try_from(at_most.per).unwrap_or(SignedDuration::MAX);
        let oldest = now.checked_sub(per).unwrap_or(Timestamp::MIN).as_millisecond();
        // A clock that was years ahead leaves nothing behind either.
        let newest = now.checked_add(per).unwrap_or(Timestamp::MAX).as_millisecond();
        let sql = "DELETE FROM reached WHERE target = ?1 AND (at < ?2 OR at > ?3)";
        prepare(session.connection, sql)?.execute([held.target, oldest, newest]).map_err(unavailable)?;
    } else if held.slot.is_some() && (finished.next.state.is_final() || finished.next.state == State::Blocked) {
        surplus_may_go(session, &target.queue, held.target, now)?;
    }
    Ok(())
}

/// The surplus of a target is looked at again now.
pub(super) fn surplus_may_go(
    session: &mut Session,
    queue: &QueueKey,
    target: i64,
    now: Timestamp,
) -> Result<(), InboxError> {
    let sql = "UPDATE delivery SET next_at = ?2 WHERE target = ?1 AND gather = 'surplus' AND next_at > ?2";
    let rows = prepare(session.connection, sql)?.execute([target, now.as_millisecond()]).map_err(unavailable)?;
    if rows > 0 {
        session.now_due(queue, now);
    }
    Ok(())
}

fn keep_lanes(session: &Session, lanes: &[LaneRecord]) -> Result<(), InboxError> {
    let sql = "INSERT INTO lane (workspace, plugin, key, paused_until, effects) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (workspace, plugin, key) DO UPDATE SET paused_until = ?4, effects = ?5";
    for record in lanes {
        let LaneKey { workspace, plugin, key } = &record.lane;
        let effects = record.effects.iter().fold(String::new(), |mut text, (at, times)| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{}*{times}", if text.is_empty() { "" } else { " " }, at.as_millisecond());
            text
        });
        let paused_until = record.paused_until.map(Timestamp::as_millisecond);
        let values = params![workspace.as_str(), plugin.as_str(), &**key, paused_until, effects];
        prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    }
    Ok(())
}

/// Every lane's record. One that cannot be read is taken as empty: a pace is lost, no delivery.
pub(super) fn lanes(connection: &Connection) -> Result<Vec<LaneRecord>, InboxError> {
    let select = "SELECT workspace, plugin, key, paused_until, effects FROM lane";
    let mut statement = prepare(connection, select)?;
    let row = |row: &Row<'_>| {
        let effects = row.get::<_, String>(4)?;
        let effect = |word: &str| {
            let (at, times) = word.split_once('*')?;
            Some((moment(at.parse().ok()?), times.parse().ok()?))
        };
        Ok(LaneRecord {
            lane: LaneKey {
                workspace: super::rows::name(row, 0)?,
                plugin: super::rows::name(row, 1)?,
                key: row.get::<_, String>(2)?.into(),
            },
            paused_until: row.get::<_, Option<i64>>(3)?.map(moment),
            effects: effects.split_whitespace().filter_map(effect).collect(),
        })
    };
    let found = statement.query_map([], row).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}
