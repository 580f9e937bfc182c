//! What people do: have deliveries made again, cancel them, read and acknowledge notifications.

use std::rc::Rc;
use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{Row, params};

use super::adopt::unblock;
use super::content::is_needless;
use super::errors::unavailable;
use super::finish::{forget_effects, surplus_may_go};
use super::gather;
use super::rows::{self, prepare};
use super::session::{Session, Target};
use super::{InboxError, Name, which};
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::{Cause, Input, State, transition};
use crate::inbox::{Deed, DeliveryId, HANDLED_MAX, Handled, Mark, Marked, Which};

/// Has deliveries made again.
pub(super) fn retry(
    session: &mut Session,
    workspace: &Name,
    which: &Which,
    now: Timestamp,
) -> Result<Handled, InboxError> {
    session.changes.at(now);
    each(session, workspace, which, |session, number, state| {
        let target = target_of(session, number)?;
        if session.is_gone(&target) {
            return Ok(None);
        }
        let again = match transition(state, Input::Retried, now) {
            Ok(next) => {
                // An attempt that goes on must see what it saw before.
                let sql = "UPDATE delivery SET state = ?2, next_at = ?3, since = ?3, why = NULL,
                                  cause = CASE WHEN started_at IS NULL THEN ?4 ELSE cause END
                           WHERE id = ?1";
                let at = next.next_at.map(Timestamp::as_millisecond);
                let values = params![number, next.state.as_str(), at, Cause::Manual.as_str()];
                prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
                session.changes.moved(number);
                None
            }
            Err(_) if state.is_final() => Some(copy(session, number, now)?),
            Err(_) => return Ok(None),
        };
        if target.row.blocked.is_some() {
            // It is mended, so all that waited for that goes on.
            session.set_blocked(&target.queue, None)?;
            unblock(session, target.row.id, now)?;
        }
        session.now_due(&target.queue, now);
        Ok(Some(again))
    })
}

/// Cancels deliveries.
pub(super) fn cancel(session: &mut Session, workspace: &Name, which: &Which, why: &str) -> Result<Handled, InboxError> {
    // No moment is needed but one that has come.
    let now = Timestamp::UNIX_EPOCH;
    each(session, workspace, which, |session, number, state| {
        let Ok(next) = transition(state, Input::Cancelled, now) else { return Ok(None) };
        let sql = "UPDATE delivery SET state = ?2, next_at = NULL, gather = NULL, slot = NULL, started_at = NULL,
                          plugin_digest = NULL, why = ?3
                   WHERE id = ?1";
        prepare(session.connection, sql)?.execute(params![number, next.state.as_str(), why]).map_err(unavailable)?;
        session.changes.moved(number);
        forget_effects(session, number)?;
        let target = target_of(session, number)?;
        surplus_may_go(session, &target.queue, target.row.id, now)?;
        // A queue that keeps its order may have waited for it.
        session.now_due(&target.queue, now);
        Ok(Some(None))
    })
}

/// What was done with one delivery: nothing, or something, perhaps a new delivery.
type Done = Option<Option<i64>>;

fn each(
    session: &mut Session,
    workspace: &Name,
    which: &Which,
    mut handle: impl FnMut(&mut Session, i64, State) -> Result<Done, InboxError>,
) -> Result<Handled, InboxError> {
    let row = session.workspace(workspace)?;
    let found = which::find(session.connection, row, which, &session.store, HANDLED_MAX + 1)?;
    let tag = Arc::clone(&session.store.tag);
    let id = |number| DeliveryId { store: Arc::clone(&tag), number };
    let most = usize::try_from(HANDLED_MAX).unwrap_or(usize::MAX);
    let mut handled = Handled { has_more: found.len() > most, ..Handled::default() };
    for &(number, state) in found.iter().take(most) {
        match handle(session, number, state)? {
            Some(again) => handled.done.push((id(number), again.map(id))),
            None => handled.refused.push((id(number), state)),
        }
    }
    let is_found = |id: &DeliveryId| id.store == tag && found.iter().any(|(number, _)| *number == id.number);
    handled.missing = which.ids.iter().filter(|id| !is_found(id)).cloned().collect();
    Ok(handled)
}

/// The target that a delivery is for.
pub(super) fn target_of(session: &mut Session, delivery: i64) -> Result<Rc<Target>, InboxError> {
    let select = "SELECT w.name, t.route, t.name FROM delivery d JOIN target t ON t.id = d.target
                  JOIN workspace w ON w.id = t.workspace WHERE d.id = ?1";
    let row = |row: &Row<'_>| {
        let target = row.get::<_, String>(2)?.into();
        Ok(QueueKey { workspace: rows::name(row, 0)?, route: rows::name(row, 1)?, target })
    };
    let queue = prepare(session.connection, select)?.query_row([delivery], row).map_err(unavailable)?;
    session.target(&queue)
}

/// A new delivery of what an old one stood for.
fn copy(session: &mut Session, old: i64, now: Timestamp) -> Result<i64, InboxError> {
    let connection = session.connection;
    let sql =
        "INSERT INTO delivery (target, notification, plugin, state, created_at, due_at, next_at, cause, level, items,
                                     bytes, omitted, retry_of)
               SELECT target, notification, plugin, 'pending', ?2, ?2, ?2, ?3, level, items, bytes, omitted, id
               FROM delivery WHERE id = ?1";
    let values = params![old, now.as_millisecond(), Cause::Manual.as_str()];
    prepare(connection, sql)?.execute(values).map_err(unavailable)?;
    let new = connection.last_insert_rowid();
    session.changes.moved(new);
    // Whoever has it made again wants what was left out as acknowledged, too.
    let sql = "INSERT INTO item (delivery, notification, omitted)
               SELECT ?2, notification, CASE omitted WHEN 1 THEN 1 ELSE 0 END FROM item WHERE delivery = ?1";
    prepare(connection, sql)?.execute([old, new]).map_err(unavailable)?;
    Ok(new)
}

/// Marks notifications, and suppresses what that makes needless.
pub(super) fn mark(
    session: &mut Session,
    workspace: &Name,
    seqs: &[u64],
    deed: Deed,
    mark: &Mark,
) -> Result<Marked, InboxError> {
    session.changes.at(mark.at);
    let row = session.workspace(workspace)?;
    let mut marked = Marked::default();
    for &seq in seqs {
        let id = rows::row_of(row, seq);
        if let Some(id) = id
            && write_mark(session, id, deed, mark)?
        {
            marked.seqs.push(seq);
            if deed == Deed::Acknowledge {
                marked.suppressed.extend(suppress_needless(session, id, mark.at)?);
            }
        } else {
            marked.missing.push(seq);
        }
    }
    Ok(marked)
}

/// Whether the notification is there.
fn write_mark(session: &mut Session, id: i64, deed: Deed, mark: &Mark) -> Result<bool, InboxError> {
    let (at, by, is_agent) = (mark.at.as_millisecond(), &mark.by.name, mark.by.is_agent);
    let values = params![id, at, by, is_agent];
    let read = "UPDATE notification SET read_at = ?2, read_by = ?3, read_agent = ?4 WHERE id = ?1 AND read_at IS NULL";
    let mut is_new = prepare(session.connection, read)?.execute(values).map_err(unavailable)? > 0;
    let mut exists = is_new;
    if !exists {
        let select = "SELECT 1 FROM notification WHERE id = ?1";
        exists = prepare(session.connection, select)?.exists([id]).map_err(unavailable)?;
    }
    let is_acknowledged = deed == Deed::Acknowledge && exists && {
        let acknowledge = "UPDATE notification SET acknowledged_at = ?2, acknowledged_by = ?3, acknowledged_agent = ?4
                           WHERE id = ?1 AND (acknowledged_at IS NULL OR acknowledged_agent = 1 AND NOT ?4)";
        prepare(session.connection, acknowledge)?.execute(values).map_err(unavailable)? > 0
    };
    is_new |= is_acknowledged;
    if is_new {
        session.changes.marked(id, is_acknowledged, mark);
    }
    Ok(exists)
}

fn suppress_needless(session: &mut Session, notification: i64, now: Timestamp) -> Result<Vec<DeliveryId>, InboxError> {
    let select = "SELECT id FROM delivery
                  WHERE (notification = ?1 OR id IN (SELECT i.delivery FROM item i WHERE i.notification = ?1))
                    AND attempts = 0 AND cause IS NOT 'manual'
                    AND state IN ('scheduled', 'held', 'collecting', 'pending')";
    let numbers: Vec<i64> = {
        let mut statement = prepare(session.connection, select)?;
        let found = statement.query_map([notification], |row| row.get(0)).map_err(unavailable)?;
        found.collect::<Result<_, _>>().map_err(unavailable)?
    };
    let mut suppressed = Vec::new();
    for number in numbers {
        let target = target_of(session, number)?;
        let Some(row) = gather::find(session, number)? else { continue };
        if is_needless(session, &target, &row)? {
            gather::suppress(session, &row)?;
            if target.has_at_most() {
                surplus_may_go(session, &target.queue, target.row.id, now)?;
            }
            suppressed.push(DeliveryId { store: Arc::clone(&session.store.tag), number });
        }
    }
    Ok(suppressed)
}
