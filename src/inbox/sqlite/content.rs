//! What an attempt is handed: what is owed, what it is about, and what its target remembers of that.

use rusqlite::{Row, params};

use super::InboxError;
use super::errors::unavailable;
use super::gather::{self, Waiting};
use super::rows::{self, NOTIFICATION, prepare};
use super::session::{Session, Target};
use crate::inbox::{Memory, Written};
use crate::notification::Notification;
use crate::route::Acknowledged;
use crate::route::timing::Unless;

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
    prepare(session.connection, select)?
        .query_row(params![row.id, row.notification], |row| row.get(0))
        .map_err(unavailable)
}

/// What somebody acknowledged meanwhile is left out of a digest that its `unless` concerns; from now on it is fixed.
pub(super) fn leave_out_acknowledged(session: &Session, target: &Target, row: &Waiting) -> Result<(), InboxError> {
    let Some(unless) = target.timing().and_then(|timing| timing.unless) else { return Ok(()) };
    let sql = "UPDATE item SET omitted = 2
               WHERE delivery = ?1 AND omitted = 0 AND EXISTS (
                   SELECT 1 FROM notification n WHERE n.id = item.notification AND n.acknowledged_at IS NOT NULL
                          AND (?2 OR n.acknowledged_agent = 0))";
    let anyone = unless == Unless::AcknowledgedByAnyone;
    prepare(session.connection, sql)?.execute(params![row.id, anyone]).map(drop).map_err(unavailable)
}

/// What is owed, oldest first, and how many more.
pub(super) fn contents(session: &Session, row: &Waiting) -> Result<(Vec<Notification>, u32), InboxError> {
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
    let mut statement = prepare(session.connection, sql)?;
    let found = statement.query_map([id], rows::notification).map_err(unavailable)?;
    found.collect::<Result<_, _>>().map_err(unavailable)
}

pub(super) fn memory(session: &Session, target: &Target, subject: Option<&str>) -> Result<Option<Memory>, InboxError> {
    let Some(subject) = subject else { return Ok(None) };
    let select = "SELECT value, plugin_version, version FROM memory WHERE target = ?1 AND subject = ?2";
    let mut statement = prepare(session.connection, select)?;
    let row = |row: &Row<'_>| {
        let written = Written { value: row.get(0)?, plugin_version: row.get(1)? };
        Ok(Memory { written, version: row.get(2)? })
    };
    let mut found = statement.query_map(params![target.row.id, subject], row).map_err(unavailable)?;
    found.next().transpose().map_err(unavailable)
}
