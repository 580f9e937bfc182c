//! The statements that write. Each runs inside the writer's transaction.

use std::num::NonZeroU32;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use super::errors::unavailable;
use super::read::{self, moment, prepare, unreadable};
use super::{Accepted, Claimed, Finished, InboxError, Intake, Name, Store};
use crate::inbox::delivery::{Input, Outcome, Schedule, State, transition};
use crate::inbox::{Claim, DeliveryId, Ended, Entry};
use crate::notification::HOST_SOURCE;

const INTERRUPTED: &str = "the server stopped during this attempt: it may or may not have happened";

/// Begins a new epoch and takes back what earlier ones left in flight.
pub(super) fn begin_epoch(connection: &mut Connection, now: Timestamp) -> Result<Store, InboxError> {
    let transaction = connection.transaction().map_err(unavailable)?;
    let tag = format!("{:08x}", fastrand::u32(..));
    transaction
        .execute(
            "INSERT INTO store (only, tag, epoch) VALUES (1, ?1, 1) ON CONFLICT (only) DO UPDATE SET epoch = epoch + 1",
            [tag],
        )
        .map_err(unavailable)?;
    let store = current_epoch(&transaction)?;
    let recorded = "INSERT INTO attempt (delivery, number, started_at, ended_at, outcome, reason, steps)
                    SELECT id, attempts, claimed_at, ?2, ?3, ?4, 0 FROM delivery WHERE epoch < ?1";
    transaction
        .execute(recorded, params![store.epoch, now.as_millisecond(), Outcome::Unknown.as_str(), INTERRUPTED])
        .map_err(unavailable)?;
    let moved = "UPDATE delivery SET state = ?2, next_at = ?3, last_outcome = ?4, epoch = NULL, claimed_at = NULL
                 WHERE epoch < ?1";
    transaction
        .execute(moved, params![store.epoch, State::Retrying.as_str(), now.as_millisecond(), Outcome::Unknown.as_str()])
        .map_err(unavailable)?;
    transaction.commit().map_err(unavailable)?;
    Ok(store)
}

pub(super) fn current_epoch(connection: &Connection) -> Result<Store, InboxError> {
    let row =
        |row: &rusqlite::Row<'_>| Ok(Store { tag: row.get::<_, String>(0)?.into(), epoch: row.get(1)?, key: [0; 32] });
    connection.query_row("SELECT tag, epoch FROM store", [], row).map_err(unavailable)
}

pub(super) fn accept(connection: &Connection, intake: &Intake, is_last: bool) -> Result<Accepted, InboxError> {
    let (workspace, mut seq) = workspace(connection, &intake.workspace)?;
    let before = seq;
    let received_at = intake.received_at.as_millisecond();
    let source = source(connection, workspace, &intake.source)?;
    let seqs = insert(connection, (workspace, source), &mut seq, received_at, &intake.entries)?;
    let notice_seqs = match host(&intake.notices) {
        Some(host) => {
            let host = self::source(connection, workspace, &host)?;
            insert(connection, (workspace, host), &mut seq, received_at, &intake.notices)?
        }
        None => Vec::new(),
    };
    if seq != before {
        let mut update = prepare(connection, "UPDATE workspace SET last_seq = ?2 WHERE id = ?1")?;
        update.execute([workspace, seq]).map_err(unavailable)?;
    }
    if is_last {
        end_read(connection, source, intake)?;
    }
    Ok(Accepted { seqs, notice_seqs })
}

/// The source of notices, where there are any.
fn host(notices: &[Entry]) -> Option<Name> {
    if notices.is_empty() { None } else { HOST_SOURCE.parse().ok() }
}

fn insert(
    connection: &Connection,
    (workspace, source): (i64, i64),
    seq: &mut i64,
    received_at: i64,
    entries: &[Entry],
) -> Result<Vec<Option<u64>>, InboxError> {
    let mut seqs = Vec::with_capacity(entries.len());
    for entry in entries {
        let new = insert_seen(connection, source, &entry.event.event_id, received_at)?;
        if new {
            *seq += 1;
            let id = read::row_id(workspace, *seq);
            insert_notification(connection, id, source, received_at, entry)?;
            insert_deliveries(connection, id, received_at, entry)?;
        }
        seqs.push(if new { Some(seq.unsigned_abs()) } else { None });
    }
    Ok(seqs)
}

/// Keeps the position and how the read went.
fn end_read(connection: &Connection, source: i64, intake: &Intake) -> Result<(), InboxError> {
    let now = intake.received_at.as_millisecond();
    match &intake.ended {
        Ended::Answered { revision, is_backlog } => {
            let sql =
                "UPDATE source SET moved_at = CASE WHEN ?2 IS NOT NULL AND ?2 IS NOT cursor THEN ?3 ELSE moved_at END,
                              cursor = coalesce(?2, cursor), read_at = ?3, failures = 0, told = 0, backlog = ?5,
                              revision = coalesce(?4, revision)
                       WHERE id = ?1";
            let values = params![source, intake.cursor, now, revision, is_backlog];
            prepare(connection, sql)?.execute(values).map_err(unavailable)?;
        }
        Ended::Failed { reason, failures, told } => {
            let sql = "UPDATE source SET failed_at = ?2, failure = ?3, failures = ?4, told = ?5 WHERE id = ?1";
            let values = params![source, now, reason, failures, read::told_number(*told)];
            prepare(connection, sql)?.execute(values).map_err(unavailable)?;
        }
    }
    Ok(())
}

fn workspace(connection: &Connection, name: &Name) -> Result<(i64, i64), InboxError> {
    let mut insert = prepare(connection, "INSERT INTO workspace (name) VALUES (?1) ON CONFLICT (name) DO NOTHING")?;
    let mut select = prepare(connection, "SELECT id, last_seq FROM workspace WHERE name = ?1")?;
    let mut find = || select.query_row([name.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional();
    if let Some(found) = find().map_err(unavailable)? {
        return Ok(found);
    }
    insert.execute([name.as_str()]).map_err(unavailable)?;
    find().map_err(unavailable)?.ok_or_else(|| unreadable("workspace"))
}

fn source(connection: &Connection, workspace: i64, name: &Name) -> Result<i64, InboxError> {
    let mut select = prepare(connection, "SELECT id FROM source WHERE workspace = ?1 AND name = ?2")?;
    let mut find = || select.query_row(params![workspace, name.as_str()], |row| row.get(0)).optional();
    if let Some(found) = find().map_err(unavailable)? {
        return Ok(found);
    }
    let mut insert = prepare(connection, "INSERT INTO source (workspace, name) VALUES (?1, ?2)")?;
    insert.execute(params![workspace, name.as_str()]).map_err(unavailable)?;
    Ok(connection.last_insert_rowid())
}

/// Whether the source uses this id for the first time.
fn insert_seen(connection: &Connection, source: i64, event_id: &str, received_at: i64) -> Result<bool, InboxError> {
    let sql = "INSERT INTO seen (source, event_id, received_at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
    let rows = prepare(connection, sql)?.execute(params![source, event_id, received_at]).map_err(unavailable)?;
    Ok(rows == 1)
}

fn insert_notification(
    connection: &Connection,
    id: i64,
    source: i64,
    received_at: i64,
    entry: &Entry,
) -> Result<(), InboxError> {
    let sql = "INSERT INTO notification (id, source, event_id, name, timestamp, received_at, level, effective_level,
                                         subject, title, body, link, data)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
    let event = &entry.event;
    let values = params![
        id,
        source,
        event.event_id,
        event.name,
        event.timestamp.to_string(),
        received_at,
        read::level_number(event.level),
        read::level_number(entry.effective_level),
        event.subject,
        event.title,
        event.body,
        event.link,
        event.data,
    ];
    prepare(connection, sql)?.execute(values).map_err(unavailable)?;
    Ok(())
}

fn insert_deliveries(connection: &Connection, notification: i64, now: i64, entry: &Entry) -> Result<(), InboxError> {
    if entry.owed.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO delivery (notification, route, target, plugin, state, created_at, due_at, next_at)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7)";
    let mut insert = prepare(connection, sql)?;
    for owed in &entry.owed {
        let due_at = now;
        let (route, plugin) = (owed.route.as_str(), owed.plugin.as_str());
        let values = params![notification, route, owed.target, plugin, State::Pending.as_str(), now, due_at];
        insert.execute(values).map_err(unavailable)?;
    }
    Ok(())
}
