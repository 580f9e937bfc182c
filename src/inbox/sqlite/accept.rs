//! Events come in: notifications, and the deliveries that they owe.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::adopt::GONE;
use super::changes::Standing;
use super::errors::unavailable;
use super::gather::{self, Arrival};
use super::rows::{self, prepare};
use super::session::{Session, Target};
use super::{Accepted, InboxError, Intake, Name, queues};
use crate::inbox::book::QueueKey;
use crate::inbox::change::GAP_NAME;
use crate::inbox::delivery::{Cause, State};
use crate::inbox::{Claim, DeliveryId, Ended, Entry, Fence, Owed};
use crate::notification::{HOST_SOURCE, Notification, global_id};

/// An event id's last use is written down when what is written is older than this, in milliseconds: a day.
pub(super) const USE_WRITTEN_EVERY: i64 = 86_400_000;

/// Writes one chunk of an intake; the position and how the read went with the last.
pub(super) fn accept(session: &mut Session, intake: &Intake, is_last: bool) -> Result<Accepted, InboxError> {
    session.changes.at(intake.received_at);
    let workspace = session.workspace(&intake.workspace)?;
    let source = source(session, workspace, &intake.source)?;
    // The host's own source is written to and never read.
    if is_last && intake.source.as_str() != HOST_SOURCE {
        end_read(session, source, intake)?;
    }
    let (name, source_name, received_at) = (&intake.workspace, &intake.source, intake.received_at);
    let is_first = intake.is_first;
    let place = Place { workspace, name, source, source_name, received_at, is_first };
    let seqs = insert(session, &place, &intake.entries)?;
    let notice_seqs = insert_notices(session, name, received_at, &intake.notices)?;
    Ok(Accepted { seqs, notice_seqs })
}

/// Writes the host's own notices.
pub(super) fn insert_notices(
    session: &mut Session,
    name: &Name,
    now: Timestamp,
    notices: &[Entry],
) -> Result<Vec<Option<u64>>, InboxError> {
    let Some(host) = HOST_SOURCE.parse().ok().filter(|_| !notices.is_empty()) else { return Ok(Vec::new()) };
    let workspace = session.workspace(name)?;
    let source = source(session, workspace, &host)?;
    let place = Place { workspace, name, source, source_name: &host, received_at: now, is_first: false };
    insert(session, &place, notices)
}

/// Where entries go.
struct Place<'a> {
    workspace: i64,
    name: &'a Name,
    source: i64,
    source_name: &'a Name,
    received_at: Timestamp,
    is_first: bool,
}

fn insert(session: &mut Session, place: &Place<'_>, entries: &[Entry]) -> Result<Vec<Option<u64>>, InboxError> {
    if entries.is_empty() {
        return Ok(Vec::new());
    }
    let before = last_seq(session, place.workspace)?;
    let mut seq = before;
    let mut known = Known::default();
    let mut seqs = Vec::with_capacity(entries.len());
    let mut joined = BTreeMap::new();
    for entry in entries {
        let is_new = insert_seen(session, place, &entry.event.event_id)?;
        if is_new {
            seq += 1;
            let row = rows::row_id(place.workspace, seq);
            insert_notification(session, place, row, entry)?;
            if let Some(source) = skipping(place, entry) {
                session.changes.gap(row, source);
            }
            owe(session, &mut known, place, seq, entry)?;
            join_queues(session, place, row, entry)?;
            joined.extend(entry.consumers.iter().map(|consumer| (consumer, seq)));
        }
        seqs.push(if is_new { Some(seq.unsigned_abs()) } else { None });
    }
    for (consumer, last) in joined {
        session.joins((place.name.clone(), consumer.clone()), last.unsigned_abs());
    }
    if seq != before {
        session.changes.created(rows::row_id(place.workspace, before + 1), seq - before);
        let update = "UPDATE workspace SET last_seq = ?2 WHERE id = ?1";
        prepare(session.connection, update)?.execute([place.workspace, seq]).map_err(unavailable)?;
    }
    Ok(seqs)
}

/// The connector that skipped events, if the host says so here.
fn skipping<'a>(place: &Place<'_>, entry: &'a Entry) -> Option<&'a str> {
    let is_gap = place.source_name.as_str() == HOST_SOURCE && entry.event.name == GAP_NAME;
    entry.event.subject.as_deref().filter(|_| is_gap)
}

fn last_seq(session: &Session, workspace: i64) -> Result<i64, InboxError> {
    let select = "SELECT last_seq FROM workspace WHERE id = ?1";
    prepare(session.connection, select)?.query_row([workspace], |row| row.get(0)).map_err(unavailable)
}

/// Targets that the entries before owed something: neighbours mostly owe the same.
#[derive(Default)]
struct Known<'a> {
    targets: Vec<(&'a Owed, Rc<Target>)>,
}

/// Targets looked through before one is looked up.
const KNOWN_MAX: usize = 8;

impl<'a> Known<'a> {
    fn target(&mut self, session: &mut Session, workspace: &Name, owed: &'a Owed) -> Result<Rc<Target>, InboxError> {
        let is_same = |known: &Owed| known.target == owed.target && known.route == owed.route;
        if let Some((_, target)) = self.targets.iter().find(|(known, _)| is_same(known)) {
            return Ok(Rc::clone(target));
        }
        let Owed { route, target, .. } = owed;
        let queue = QueueKey { workspace: workspace.clone(), route: route.clone(), target: target.as_str().into() };
        let target = session.target(&queue)?;
        if self.targets.len() >= KNOWN_MAX {
            self.targets.clear();
        }
        self.targets.push((owed, Rc::clone(&target)));
        Ok(target)
    }
}

/// Writes what a new notification owes, each delivery where its target's timing puts it.
fn owe<'a>(
    session: &mut Session,
    known: &mut Known<'a>,
    place: &Place<'_>,
    seq: i64,
    entry: &'a Entry,
) -> Result<(), InboxError> {
    for owed in &entry.owed {
        let target = known.target(session, place.name, owed)?;
        let arrival = Arrival {
            row_id: rows::row_id(place.workspace, seq),
            source: place.source_name,
            received_at: place.received_at,
            level: entry.effective_level,
            event: &entry.event,
            plugin: &owed.plugin,
        };
        if session.is_gone(&target) {
            // It was decided before the target went.
            let why = Some(GONE.to_owned());
            let new = New { state: State::Cancelled, now: place.received_at, takes_slot: false, why };
            insert_waiting(session, &target, &arrival, &new)?;
            session.strand(&target.queue);
        } else if target.timing().is_some() {
            gather::matched(session, &target, &arrival, place.received_at)?;
        } else {
            at_once(session, &target, &arrival, place.received_at, false)?;
        }
    }
    Ok(())
}

/// Puts a new notification into the queues of the consumers that are to have it.
fn join_queues(session: &mut Session, place: &Place<'_>, row: i64, entry: &Entry) -> Result<(), InboxError> {
    if entry.consumers.is_empty() {
        return Ok(());
    }
    let id = global_id(place.name, place.source_name, &entry.event.event_id);
    for consumer in &entry.consumers {
        queues::join(session, (place.name, consumer), row, &id, place.received_at)?;
    }
    Ok(())
}

/// Writes a delivery of one notification that may go now: in flight if it is let in, blocked if its target is.
pub(super) fn at_once(
    session: &mut Session,
    target: &Target,
    arrival: &Arrival<'_>,
    now: Timestamp,
    takes_slot: bool,
) -> Result<(), InboxError> {
    if let Some(why) = target.blocked(None) {
        let why = why.to_owned();
        let new = New { state: State::Blocked, now, takes_slot, why: Some(why) };
        return insert_waiting(session, target, arrival, &new);
    }
    let subject = if target.by_subject() { arrival.event.subject.as_deref() } else { None };
    // What a target remembers is read with a claim of its own.
    if target.by_subject() || !session.admit(&target.queue, subject) {
        insert_waiting(session, target, arrival, &New { state: State::Pending, now, takes_slot, why: None })?;
        session.now_due(&target.queue, now);
        return Ok(());
    }
    match insert_in_flight(session, target, arrival, now, takes_slot) {
        Ok(number) => {
            let claim = claim_of(session, target, arrival, number, now);
            session.claimed(claim, None);
            Ok(())
        }
        Err(error) => {
            session.not_claimed(&target.queue, None);
            Err(error)
        }
    }
}

fn claim_of(session: &Session, target: &Target, arrival: &Arrival<'_>, number: i64, now: Timestamp) -> Claim {
    Claim {
        id: DeliveryId { store: Arc::clone(&session.store.tag), number },
        fence: Fence { epoch: session.store.epoch, until: None },
        queue: target.queue.clone(),
        plugin: arrival.plugin.clone(),
        attempt: NonZeroU32::MIN,
        since: now,
        due_at: now,
        cause: Cause::First,
        notifications: vec![notification(target, arrival)],
        omitted: 0,
        resume: None,
        memory: None,
        begun: None,
    }
}

fn notification(target: &Target, arrival: &Arrival<'_>) -> Notification {
    Notification {
        workspace: target.queue.workspace.clone(),
        seq: rows::seq_of(arrival.row_id),
        source: arrival.source.clone(),
        received_at: arrival.received_at,
        effective_level: arrival.level,
        event: arrival.event.clone(),
    }
}

struct New {
    state: State,
    now: Timestamp,
    takes_slot: bool,
    why: Option<String>,
}

fn insert_in_flight(
    session: &mut Session,
    target: &Target,
    arrival: &Arrival<'_>,
    now: Timestamp,
    takes_slot: bool,
) -> Result<i64, InboxError> {
    let sql =
        "INSERT INTO delivery (target, notification, plugin, state, created_at, due_at, attempts, epoch, started_at,
                                     level, slot)
               VALUES (?1, ?2, ?3, 'in_flight', ?4, ?4, 1, ?5, ?4, ?6, ?7)";
    let values = params![
        target.row.id,
        arrival.row_id,
        arrival.plugin.as_str(),
        now.as_millisecond(),
        session.store.epoch,
        rows::level_number(arrival.level),
        takes_slot.then_some(1),
    ];
    session.hot.insert_in_flight.execute(session.connection, sql, values)?;
    let number = session.connection.last_insert_rowid();
    session.changes.made(number, standing(target, arrival, State::InFlight));
    Ok(number)
}

/// Writes a delivery that waits.
fn insert_waiting(session: &mut Session, target: &Target, arrival: &Arrival<'_>, new: &New) -> Result<(), InboxError> {
    let sql =
        "INSERT INTO delivery (target, notification, plugin, state, created_at, due_at, next_at, level, slot, why)
               VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?9)";
    let now = new.now.as_millisecond();
    let values = params![
        target.row.id,
        arrival.row_id,
        arrival.plugin.as_str(),
        new.state.as_str(),
        now,
        (new.state == State::Pending).then_some(now),
        rows::level_number(arrival.level),
        new.takes_slot.then_some(1),
        new.why,
    ];
    session.hot.insert_waiting.execute(session.connection, sql, values)?;
    session.changes.made(session.connection.last_insert_rowid(), standing(target, arrival, new.state));
    Ok(())
}

/// How a delivery of one notification stands that was just made.
pub(super) fn standing(target: &Target, arrival: &Arrival<'_>, state: State) -> Standing {
    Standing { target: target.row.id, plugin: arrival.plugin.clone(), state, notification: arrival.row_id }
}

/// Keeps the position and how the read went.
fn end_read(session: &Session, source: i64, intake: &Intake) -> Result<(), InboxError> {
    let now = intake.received_at.as_millisecond();
    match &intake.ended {
        Ended::Answered { revision, is_backlog } => {
            let sql =
                "UPDATE source SET moved_at = CASE WHEN ?2 IS NOT NULL AND ?2 IS NOT cursor THEN ?3 ELSE moved_at END,
                              cursor = coalesce(?2, cursor), read_at = ?3, failures = 0, told = 0, backlog = ?5,
                              revision = coalesce(?4, revision)
                       WHERE id = ?1";
            let values = params![source, intake.cursor, now, revision, is_backlog];
            prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
        }
        Ended::Failed { reason, failures, told } => {
            let sql = "UPDATE source SET failed_at = ?2, failure = ?3, failures = ?4, told = ?5 WHERE id = ?1";
            let values = params![source, now, reason, failures, rows::told_number(*told)];
            prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
        }
    }
    Ok(())
}

fn source(session: &Session, workspace: i64, name: &Name) -> Result<i64, InboxError> {
    let connection = session.connection;
    let select = "SELECT id FROM source WHERE workspace = ?1 AND name = ?2";
    let found = prepare(connection, select)?
        .query_row(params![workspace, name.as_str()], |row| row.get(0))
        .optional()
        .map_err(unavailable)?;
    if let Some(found) = found {
        return Ok(found);
    }
    let insert = "INSERT INTO source (workspace, name) VALUES (?1, ?2)";
    prepare(connection, insert)?.execute(params![workspace, name.as_str()]).map_err(unavailable)?;
    Ok(connection.last_insert_rowid())
}

/// Whether the source uses this id for the first time.
fn insert_seen(session: &mut Session, place: &Place<'_>, event_id: &str) -> Result<bool, InboxError> {
    let sql = "INSERT INTO seen (source, event_id, received_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let now = place.received_at.as_millisecond();
    let is_new = session.hot.insert_seen.execute(session.connection, sql, params![place.source, event_id, now])? == 1;
    if !is_new {
        // What is forgotten leaves this much room.
        let sql = "UPDATE seen SET received_at = ?3 WHERE source = ?1 AND event_id = ?2 AND received_at < ?4";
        let values = params![place.source, event_id, now, now.saturating_sub(USE_WRITTEN_EVERY)];
        prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    }
    Ok(is_new)
}

fn insert_notification(session: &mut Session, place: &Place<'_>, id: i64, entry: &Entry) -> Result<(), InboxError> {
    let sql = "INSERT INTO notification (id, source, event_id, name, timestamp, received_at, level, effective_level,
                                         subject, title, body, link, data, first_read, content)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";
    let event = &entry.event;
    let values = params![
        id,
        place.source,
        event.event_id,
        event.name,
        event.timestamp.to_string(),
        place.received_at.as_millisecond(),
        rows::level_number(event.level),
        rows::level_number(entry.effective_level),
        event.subject,
        event.title,
        event.body,
        event.link,
        event.data,
        place.is_first.then_some(1),
        event.content,
    ];
    session.hot.insert_notification.execute(session.connection, sql, values).map(drop)
}
