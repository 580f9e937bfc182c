//! Digests: what joins one, when it is full, and how two become one.

use jiff::Timestamp;
use rusqlite::{OptionalExtension, params};

use super::InboxError;
use super::accept::standing;
use super::errors::unavailable;
use super::gather::{Arrival, WAITING, Waiting, advance, find, moved, waiting};
use super::rows::{self, BYTES, prepare};
use super::session::{Session, Target};
use crate::inbox::delivery::{Cause, Input, Next, State};
use crate::notification::{Event, Level};
use crate::route::timing::{DIGEST_BYTES_MAX, DIGEST_MOST, bytes_in_digest};
use crate::route::{Stage, Why};

/// [`DIGEST_BYTES_MAX`], as SQLite counts.
const BYTES_MAX: i64 = DIGEST_BYTES_MAX as i64;

/// What joins a digest.
pub(super) enum Joining<'a> {
    New(&'a Arrival<'a>),
    Row(&'a Waiting),
}

/// Where and for how long.
pub(super) struct Digest<'a> {
    pub(super) key: &'a str,
    pub(super) why: Why,
    pub(super) until: Timestamp,
}

/// Has something join the digest with this key, or open it.
pub(super) fn join(
    session: &mut Session,
    target: &Target,
    joining: &Joining<'_>,
    digest: &Digest<'_>,
    now: Timestamp,
) -> Result<(), InboxError> {
    let own = if let Joining::Row(row) = joining { row.id } else { 0 };
    let Some(open) = find_open(session, target, digest.key, own)? else {
        return begin(session, target, joining, digest, now);
    };
    let most = most(target, digest.why);
    let (items, bytes) = joining.size();
    let fits = open.items + items <= most && open.bytes + bytes <= BYTES_MAX;
    let closes_early = digest.why == Why::Collect && open.state == State::Collecting;
    if fits || !(closes_early || open.state == State::Pending) {
        add(session, &open, joining, most)?;
        if fits && closes_early && open.items + items == most {
            return close(session, target, open.id, now);
        }
        return Ok(());
    }
    if closes_early {
        close(session, target, open.id, now)?;
    }
    freeze(session, open.id)?;
    begin(session, target, joining, digest, now)
}

impl Joining<'_> {
    fn size(&self) -> (u32, i64) {
        match self {
            Self::New(arrival) => (1, event_bytes(arrival.event)),
            Self::Row(row) => (row.items, row.bytes),
        }
    }

    fn level(&self) -> Level {
        match self {
            Self::New(arrival) => arrival.level,
            Self::Row(row) => row.level,
        }
    }
}

fn most(target: &Target, why: Why) -> u32 {
    let collect = target.timing().and_then(|timing| timing.collect.as_ref()).filter(|_| why == Why::Collect);
    collect.map_or(DIGEST_MOST, |collect| collect.most.clamp(1, DIGEST_MOST))
}

fn event_bytes(event: &Event) -> i64 {
    i64::try_from(bytes_in_digest(event)).unwrap_or(i64::MAX)
}

/// Opens a digest.
fn begin(
    session: &mut Session,
    target: &Target,
    joining: &Joining<'_>,
    digest: &Digest<'_>,
    now: Timestamp,
) -> Result<(), InboxError> {
    let id = match joining {
        Joining::New(arrival) => {
            let next = Next { state: state_of(digest.why), next_at: Some(digest.until) };
            insert(session, target, arrival, next, Some(digest.key), now)?
        }
        Joining::Row(row) => {
            stay(session, target, row, digest)?;
            row.id
        }
    };
    let sql = "INSERT INTO item (delivery, notification) SELECT id, notification FROM delivery WHERE id = ?1
               ON CONFLICT DO NOTHING";
    prepare(session.connection, sql)?.execute([id]).map_err(unavailable)?;
    session.now_due(&target.queue, digest.until);
    // One that may hold no more than this is full already.
    let is_full = digest.why == Why::Collect && joining.size().0 >= most(target, digest.why);
    if is_full { close(session, target, id, now) } else { Ok(()) }
}

/// Has a digest wait under this key.
pub(super) fn stay(
    session: &mut Session,
    target: &Target,
    row: &Waiting,
    digest: &Digest<'_>,
) -> Result<(), InboxError> {
    let state = state_of(digest.why);
    let next = moved(row.state, Input::Gathered { state, until: digest.until }, digest.until)?;
    let sql = "UPDATE delivery SET state = ?2, next_at = ?3, due_at = ?3, gather = ?4, slot = NULL WHERE id = ?1";
    let until = next.next_at.map(Timestamp::as_millisecond);
    let values = params![row.id, next.state.as_str(), until, digest.key];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    if next.state != row.state {
        session.changes.moved(row.id);
    }
    session.now_due(&target.queue, digest.until);
    Ok(())
}

fn state_of(why: Why) -> State {
    match why {
        Why::Hold => State::Held,
        Why::Collect | Why::Surplus => State::Collecting,
    }
}

/// Adds to a digest that is open; what does not fit is only counted.
fn add(session: &mut Session, open: &Waiting, joining: &Joining<'_>, most: u32) -> Result<(), InboxError> {
    match joining {
        Joining::New(arrival) => {
            let bytes = event_bytes(arrival.event);
            let fits = open.items < most && open.bytes + bytes <= BYTES_MAX;
            let sql = "INSERT INTO item (delivery, notification, omitted) VALUES (?1, ?2, ?3)";
            let values = params![open.id, arrival.row_id, !fits];
            prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
            let (items, bytes, omitted) = if fits { (1, bytes, 0) } else { (0, 0, 1) };
            grow(session, open, joining.level(), (items, bytes, omitted))
        }
        Joining::Row(row) => merge(session, open, row, most),
    }
}

fn grow(session: &Session, open: &Waiting, level: Level, more: (u32, i64, u32)) -> Result<(), InboxError> {
    let sql =
        "UPDATE delivery SET items = items + ?2, bytes = bytes + ?3, omitted = omitted + ?4, level = max(level, ?5)
               WHERE id = ?1";
    let values = params![open.id, more.0, more.1, more.2, rows::level_number(level)];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    Ok(())
}

/// Makes one digest of two; the row of the second is no more, since no destination was told its number.
fn merge(session: &mut Session, open: &Waiting, row: &Waiting, most: u32) -> Result<(), InboxError> {
    let connection = session.connection;
    let sql = "INSERT INTO item (delivery, notification) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    prepare(connection, sql)?.execute([row.id, row.notification]).map_err(unavailable)?;
    let sql = format!(
        "SELECT i.notification, {BYTES} FROM item i JOIN notification n ON n.id = i.notification
         WHERE i.delivery = ?1 AND i.omitted = 0 ORDER BY i.notification"
    );
    let mut statement = prepare(connection, &sql)?;
    let found = statement.query_map([row.id], |row| Ok((row.get(0)?, row.get(1)?))).map_err(unavailable)?;
    let found: Vec<(i64, i64)> = found.collect::<Result<_, _>>().map_err(unavailable)?;
    let (mut items, mut bytes, mut omitted) = (0, 0, row.omitted);
    for (notification, own) in found {
        let fits = open.items + items < most && open.bytes + bytes + own <= BYTES_MAX;
        if fits {
            items += 1;
            bytes += own;
        } else {
            omitted += 1;
            let sql = "UPDATE item SET omitted = 1 WHERE delivery = ?1 AND notification = ?2";
            prepare(connection, sql)?.execute([row.id, notification]).map_err(unavailable)?;
        }
    }
    // Deliveries that came together from two routes may stand for the same.
    let sql = "UPDATE OR IGNORE item SET delivery = ?2 WHERE delivery = ?1";
    prepare(connection, sql)?.execute([row.id, open.id]).map_err(unavailable)?;
    prepare(connection, "DELETE FROM item WHERE delivery = ?1")?.execute([row.id]).map_err(unavailable)?;
    prepare(connection, "DELETE FROM delivery WHERE id = ?1")?.execute([row.id]).map_err(unavailable)?;
    session.changes.joined(row.id, open.id, row.notification);
    grow(session, open, row.level, (items, bytes, omitted))
}

fn close(session: &mut Session, target: &Target, id: i64, now: Timestamp) -> Result<(), InboxError> {
    match find(session, id)? {
        Some(row) => advance(session, target, &row, Stage::Closed, now),
        None => Ok(()),
    }
}

/// Nothing more joins it.
fn freeze(session: &Session, id: i64) -> Result<(), InboxError> {
    let sql = "UPDATE delivery SET gather = NULL WHERE id = ?1 AND state = 'pending'";
    prepare(session.connection, sql)?.execute([id]).map(drop).map_err(unavailable)
}

fn find_open(session: &Session, target: &Target, key: &str, but: i64) -> Result<Option<Waiting>, InboxError> {
    let sql = format!("SELECT {WAITING} FROM delivery WHERE target = ?1 AND gather = ?2 AND id <> ?3");
    prepare(session.connection, &sql)?
        .query_row(params![target.row.id, key, but], waiting)
        .optional()
        .map_err(unavailable)
}

/// Writes a delivery of one notification that waits, or is over at once.
pub(super) fn insert(
    session: &mut Session,
    target: &Target,
    arrival: &Arrival<'_>,
    next: Next,
    gather: Option<&str>,
    now: Timestamp,
) -> Result<i64, InboxError> {
    let sql =
        "INSERT INTO delivery (target, notification, plugin, state, created_at, due_at, next_at, cause, gather, level,
                                     bytes)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
    let escalates = next.state == State::Scheduled;
    let values = params![
        target.row.id,
        arrival.row_id,
        arrival.plugin.as_str(),
        next.state.as_str(),
        now.as_millisecond(),
        next.next_at.unwrap_or(now).as_millisecond(),
        next.next_at.map(Timestamp::as_millisecond),
        escalates.then_some(Cause::Escalation.as_str()),
        gather,
        rows::level_number(arrival.level),
        event_bytes(arrival.event),
    ];
    prepare(session.connection, sql)?.execute(values).map_err(unavailable)?;
    let number = session.connection.last_insert_rowid();
    session.changes.made(number, standing(target, arrival, next.state));
    Ok(number)
}
