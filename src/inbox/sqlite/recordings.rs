//! Recorded attempts.

use std::num::NonZeroU32;
use std::sync::Arc;

use rusqlite::{Connection, Row, params};

use super::errors::unavailable;
use super::rows::{self, SEQ_BITS, moment, prepare, seq_of, wrong};
use super::session::Session;
use super::{InboxError, Name, Recording, Store};
use crate::inbox::delivery::Outcome;
use crate::inbox::{DeliveryId, RECORDING_BYTES_MAX, RECORDINGS_KEPT};

/// Keeps one, and forgets what is too old.
pub(super) fn record(session: &mut Session, recording: &Recording) -> Result<(), InboxError> {
    if recording.content.len() > RECORDING_BYTES_MAX {
        return Ok(());
    }
    let workspace = session.workspace(&recording.workspace)?;
    let connection = session.connection;
    let Some(about) = about(connection, workspace, &recording.seqs)? else { return Ok(()) };
    let sql = "INSERT INTO recording (plugin, version, digest, delivery, attempt, outcome, at, content)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let values = params![
        recording.plugin.as_str(),
        recording.plugin_version,
        recording.plugin_digest,
        recording.delivery.number,
        recording.attempt.get(),
        recording.outcome.map(Outcome::as_str),
        recording.at.as_millisecond(),
        recording.content,
    ];
    prepare(connection, sql)?.execute(values).map_err(unavailable)?;
    let id = connection.last_insert_rowid();
    let mut link = prepare(connection, "INSERT OR IGNORE INTO recorded (recording, notification) VALUES (?1, ?2)")?;
    for notification in about {
        link.execute([id, notification]).map_err(unavailable)?;
    }
    forget_old(connection, &recording.plugin)
}

/// The rows of the notifications; none if one of them is not there, or there are none.
fn about(connection: &Connection, workspace: i64, seqs: &[u64]) -> Result<Option<Vec<i64>>, InboxError> {
    let mut exists = prepare(connection, "SELECT 1 FROM notification WHERE id = ?1")?;
    let mut found = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let Some(row) = rows::row_of(workspace, *seq) else { return Ok(None) };
        if !exists.exists([row]).map_err(unavailable)? {
            return Ok(None);
        }
        found.push(row);
    }
    Ok(Some(found).filter(|found| !found.is_empty()))
}

fn forget_old(connection: &Connection, plugin: &Name) -> Result<(), InboxError> {
    let sql = "DELETE FROM recording WHERE plugin = ?1
               AND id NOT IN (SELECT id FROM recording WHERE plugin = ?1 ORDER BY id DESC LIMIT ?2)
               AND id NOT IN (SELECT max(id) FROM recording WHERE plugin = ?1 GROUP BY outcome)";
    prepare(connection, sql)?.execute(params![plugin.as_str(), RECORDINGS_KEPT]).map(drop).map_err(unavailable)
}

/// Those of a plugin, newest first.
pub(super) fn recordings(connection: &Connection, store: &Store, plugin: &Name) -> Result<Vec<Recording>, InboxError> {
    let select = "SELECT id, version, digest, delivery, attempt, outcome, at, content
                  FROM recording WHERE plugin = ?1 ORDER BY id DESC";
    let mut statement = prepare(connection, select)?;
    let row = |row: &Row<'_>| {
        let outcome = row.get::<_, Option<String>>(5)?;
        let outcome = outcome.map(|outcome| Outcome::parse(&outcome).ok_or_else(|| wrong(5))).transpose()?;
        let id: i64 = row.get(0)?;
        let (workspace, seqs) = subject(connection, id)?;
        Ok(Recording {
            delivery: DeliveryId { store: Arc::clone(&store.tag), number: row.get(3)? },
            attempt: NonZeroU32::new(row.get(4)?).ok_or_else(|| wrong(4))?,
            workspace,
            seqs,
            plugin: plugin.clone(),
            plugin_version: row.get(1)?,
            plugin_digest: row.get(2)?,
            outcome,
            at: moment(row.get(6)?),
            content: row.get(7)?,
        })
    };
    let found = statement.query_map([plugin.as_str()], row).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

/// What a recording is about: of which workspace, and the numbers.
fn subject(connection: &Connection, recording: i64) -> rusqlite::Result<(Name, Vec<u64>)> {
    let sql = format!(
        "SELECT w.name, r.notification FROM recorded r JOIN workspace w ON w.id = r.notification >> {SEQ_BITS}
         WHERE r.recording = ?1 ORDER BY r.notification"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map([recording], |row| Ok((rows::name(row, 0)?, seq_of(row.get(1)?))))?;
    let found: Vec<(Name, u64)> = rows.collect::<Result<_, _>>()?;
    let workspace = found.first().map(|(workspace, _)| workspace.clone()).ok_or_else(|| wrong(0))?;
    Ok((workspace, found.into_iter().map(|(_, seq)| seq).collect()))
}
