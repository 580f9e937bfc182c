//! What waits before it may be claimed: escalations, quiet hours, digests, a surplus. The plan says what happens next
//! (`route/plan.rs`); here it is carried out, in the transaction that asked.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::accept::at_once;
use super::digest::{Digest, Joining, insert, join, stay};
use super::errors::unavailable;
use super::rows::{self, moment, prepare};
use super::session::{Session, Target};
use super::{InboxError, Name};
use crate::clock::later;
use crate::inbox::delivery::{Input, Next, State, transition};
use crate::notification::{Event, Level};
use crate::route::timing::{AtMost, Timing};
use crate::route::{Acknowledged, Stage, Standing, Step, Subject, plan};

/// A notification that matched just now.
pub(super) struct Arrival<'a> {
    pub(super) row_id: i64,
    pub(super) source: &'a Name,
    pub(super) received_at: Timestamp,
    pub(super) level: Level,
    pub(super) event: &'a Event,
    pub(super) plugin: &'a Name,
}

/// A delivery that was not claimed yet.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) id: i64,
    pub(super) state: State,
    /// Its first notification.
    pub(super) notification: i64,
    pub(super) gather: Option<String>,
    pub(super) level: Level,
    pub(super) items: u32,
    pub(super) bytes: i64,
    pub(super) omitted: u32,
}

pub(super) const WAITING: &str = "id, state, notification, gather, level, items, bytes, omitted";

pub(super) fn waiting(row: &Row<'_>) -> rusqlite::Result<Waiting> {
    Ok(Waiting {
        id: row.get(0)?,
        state: rows::state(row, 1)?,
        notification: row.get(2)?,
        gather: row.get(3)?,
        level: rows::level(row, 4)?,
        items: row.get(5)?,
        bytes: row.get(6)?,
        omitted: row.get(7)?,
    })
}

/// Puts a notification that matched where its target's timing wants it.
pub(super) fn matched(
    session: &mut Session,
    target: &Target,
    arrival: &Arrival<'_>,
    now: Timestamp,
) -> Result<(), InboxError> {
    let subject = Subject {
        received_at: arrival.received_at,
        level: arrival.level,
        source: arrival.source.as_str(),
        name: &arrival.event.name,
        subject: arrival.event.subject.as_deref(),
        acknowledged: Acknowledged::No,
    };
    match ask(session, target, (Stage::Matched, 0), &subject, now)? {
        Step::Wait { until } => {
            insert(session, target, arrival, Next { state: State::Scheduled, next_at: Some(until) }, None, now)?;
            session.now_due(&target.queue, until);
            Ok(())
        }
        Step::Suppress => {
            insert(session, target, arrival, Next { state: State::Suppressed, next_at: None }, None, now).map(drop)
        }
        Step::Gather { key, why, until } => {
            join(session, target, &Joining::New(arrival), &Digest { key: &key, why, until }, now)
        }
        Step::Go => at_once(session, target, arrival, now, target.has_at_most()),
    }
}

/// Moves on what has waited long enough. Afterwards its row may be pending, wait again, be suppressed, or be part of
/// another digest.
pub(super) fn advance(
    session: &mut Session,
    target: &Target,
    row: &Waiting,
    stage: Stage,
    now: Timestamp,
) -> Result<(), InboxError> {
    let has_unless = target.timing().is_some_and(|timing| timing.unless.is_some());
    let (source, name, text, received_at) = facts(session, row.notification)?;
    let acknowledged = if has_unless { acknowledged(session, row)? } else { Acknowledged::No };
    let subject =
        Subject { received_at, level: row.level, source: &source, name: &name, subject: text.as_deref(), acknowledged };
    match ask(session, target, (stage, row.id), &subject, now)? {
        Step::Go => release(session, target, row, now),
        Step::Wait { until } => wait(session, target, row, until),
        Step::Suppress => suppress(session, row),
        Step::Gather { key, why, until } if row.gather.as_ref() == Some(&key) => {
            stay(session, target, row, &Digest { key: &key, why, until })
        }
        Step::Gather { key, why, until } => {
            join(session, target, &Joining::Row(row), &Digest { key: &key, why, until }, now)
        }
    }
}

/// Asks the plan about something; `own` is its row, where it has one.
fn ask(
    session: &Session,
    target: &Target,
    (stage, own): (Stage, i64),
    subject: &Subject<'_>,
    now: Timestamp,
) -> Result<Step, InboxError> {
    let plain = Timing::default();
    let timing = target.timing().unwrap_or(&plain);
    let Some(at_most) = &timing.at_most else {
        return Ok(plan(timing, stage, subject, &Standing::default(), now));
    };
    let (reached, going) = standing(session.connection, target.row.id, at_most, now)?;
    let surplus_until = surplus_until(session, target, own)?;
    Ok(plan(timing, stage, subject, &Standing { reached: &reached, going, surplus_until }, now))
}

/// When the surplus of a target closes, or was let go, if there is one that can be joined.
fn surplus_until(session: &Session, target: &Target, own: i64) -> Result<Option<Timestamp>, InboxError> {
    let select = "SELECT next_at FROM delivery WHERE target = ?1 AND gather = 'surplus' AND id <> ?2";
    let found: Option<Option<i64>> = prepare(session.connection, select)?
        .query_row([target.row.id, own], |row| row.get(0))
        .optional()
        .map_err(unavailable)?;
    Ok(found.flatten().map(moment))
}

fn later_ago(now: Timestamp, ago: std::time::Duration) -> Timestamp {
    jiff::SignedDuration::try_from(ago).ok().and_then(|ago| now.checked_sub(ago).ok()).unwrap_or(Timestamp::MIN)
}

/// When attempts reached the destination in the time of the limit before `now`, or in as much after it by a clock that was
/// set back since, and how many deliveries are on their way. Both are cut where more would change nothing.
pub(super) fn standing(
    connection: &Connection,
    target: i64,
    at_most: &AtMost,
    now: Timestamp,
) -> Result<(Vec<Timestamp>, u32), InboxError> {
    let select = "SELECT at, times FROM reached WHERE target = ?1 AND at > ?2 AND at <= ?3 ORDER BY at DESC LIMIT ?4";
    let mut statement = prepare(connection, select)?;
    let row = |row: &Row<'_>| Ok((moment(row.get(0)?), row.get::<_, u32>(1)?));
    let (oldest, newest) = (later_ago(now, at_most.per), later(now, at_most.per));
    let values = params![target, oldest.as_millisecond(), newest.as_millisecond(), at_most.count];
    let found = statement.query_map(values, row).map_err(unavailable)?;
    let count = usize::try_from(at_most.count).unwrap_or(usize::MAX);
    let mut reached = Vec::new();
    for found in found {
        let (at, times) = found.map_err(unavailable)?;
        let times = usize::try_from(times).unwrap_or(usize::MAX).min(count - reached.len().min(count));
        reached.extend(std::iter::repeat_n(at, times));
    }
    reached.reverse();
    let counted = "SELECT count(*) FROM (SELECT 1 FROM delivery WHERE target = ?1 AND slot IS NOT NULL LIMIT ?2)";
    let going = prepare(connection, counted)?
        .query_row(params![target, at_most.count], |row| row.get(0))
        .map_err(unavailable)?;
    Ok((reached, going))
}

type Facts = (String, String, Option<String>, Timestamp);

fn facts(session: &Session, notification: i64) -> Result<Facts, InboxError> {
    let select = "SELECT s.name, n.name, n.subject, n.received_at FROM notification n JOIN source s ON s.id = n.source
                  WHERE n.id = ?1";
    let row = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, moment(row.get(3)?)));
    prepare(session.connection, select)?.query_row([notification], row).map_err(unavailable)
}

/// Who acknowledged all that a delivery stands for.
pub(super) fn acknowledged(session: &Session, row: &Waiting) -> Result<Acknowledged, InboxError> {
    let select =
        "SELECT min(CASE WHEN n.acknowledged_at IS NULL THEN 0 WHEN n.acknowledged_agent = 1 THEN 1 ELSE 2 END)
                  FROM notification n
                  WHERE n.id = ?2 AND NOT EXISTS (SELECT 1 FROM item i WHERE i.delivery = ?1)
                     OR n.id IN (SELECT i.notification FROM item i WHERE i.delivery = ?1)";
    let least: Option<u8> = prepare(session.connection, select)?
        .query_row(params![row.id, row.notification], |row| row.get(0))
        .map_err(unavailable)?;
    Ok(match least {
        Some(2) => Acknowledged::ByPerson,
        Some(1) => Acknowledged::ByAgent,
        _ => Acknowledged::No,
    })
}

/// One delivery that was not claimed yet.
pub(super) fn find(session: &Session, id: i64) -> Result<Option<Waiting>, InboxError> {
    let sql = format!("SELECT {WAITING} FROM delivery WHERE id = ?1");
    prepare(session.connection, &sql)?.query_row([id], waiting).optional().map_err(unavailable)
}

/// Lets it go. Until it is claimed more may join.
fn release(session: &mut Session, target: &Target, row: &Waiting, now: Timestamp) -> Result<(), InboxError> {
    if row.state == State::Pending {
        return Ok(());
    }
    let next = moved(row.state, Input::Released, now)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = ?3, due_at = ?3, slot = ?4 WHERE id = ?1";
    let at = next.next_at.map(Timestamp::as_millisecond);
    let values = params![row.id, next.state.as_str(), at, target.has_at_most().then_some(1)];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    session.changes.moved(row.id);
    session.now_due(&target.queue, now);
    Ok(())
}

/// Has it wait on, since a reload made its `after` longer.
fn wait(session: &mut Session, target: &Target, row: &Waiting, until: Timestamp) -> Result<(), InboxError> {
    let next = moved(row.state, Input::Gathered { state: State::Scheduled, until }, until)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = ?3, due_at = ?3 WHERE id = ?1";
    let values = params![row.id, next.state.as_str(), until.as_millisecond()];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    if next.state != row.state {
        session.changes.moved(row.id);
    }
    session.now_due(&target.queue, until);
    Ok(())
}

/// Its `unless` is met.
pub(super) fn suppress(session: &mut Session, row: &Waiting) -> Result<(), InboxError> {
    let next = moved(row.state, Input::Suppressed, Timestamp::MIN)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, slot = NULL, why = 'it was acknowledged'
               WHERE id = ?1";
    prepare(session.connection, sql)?.execute(params![row.id, next.state.as_str()]).map_err(unavailable)?;
    session.changes.moved(row.id);
    Ok(())
}

/// Where an input moves a delivery; the store asks only for what its rows allow.
pub(super) fn moved(state: State, input: Input, now: Timestamp) -> Result<Next, InboxError> {
    transition(state, input, now).map_err(|error| InboxError::Unavailable(error.to_string()))
}
