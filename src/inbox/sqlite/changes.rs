//! What changed: noted while a transaction runs, numbered and written with its commit.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::errors::unavailable;
use super::rows::{self, SEQ_BITS, prepare};
use super::{InboxError, Name};
use crate::inbox::Mark;
use crate::inbox::delivery::State;

/// Changes in one row: it bounds what a reader decodes to find one.
const ROW_CHANGES_MAX: i64 = 1_000;

/// Changes noted by one long request before they are written.
pub(super) const NOTED_MAX: usize = 10_000;

/// Groups of alike changes looked through before another is begun.
const GROUPS_MAX: usize = 16;

/// Whether it is made sure of each commit that every delivery whose state it changed was noted. That finds mistakes of this
/// module, which tests are for.
const CHECKS: bool = cfg!(debug_assertions);

/// What a row of `change` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Created,
    Read,
    Acknowledged,
    Gap,
    Delivery,
    Joined,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Created, Self::Read, Self::Acknowledged, Self::Gap, Self::Delivery, Self::Joined];

    fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Read => "read",
            Self::Acknowledged => "acknowledged",
            Self::Gap => "gap",
            Self::Delivery => "delivery",
            Self::Joined => "joined",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A delivery as it stands.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) target: i64,
    pub(super) plugin: Name,
    pub(super) state: State,
    /// Its first notification.
    pub(super) notification: i64,
}

/// What became of a delivery.
#[derive(Debug)]
enum Now {
    /// It was just made so.
    Made(Standing),
    /// It was moved: where it stands is looked up.
    Moved,
    /// It became part of another.
    Joined { into: i64, notification: i64 },
}

/// Something that changed. Notifications are named by their rows.
#[derive(Debug)]
enum Noted {
    Created { first: i64, count: i64 },
    Gap { notification: i64, source: String },
    Marked { notification: i64, is_acknowledged: bool, mark: Mark },
    Delivery { number: i64, now: Now },
}

/// What the open transaction changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    noted: Vec<Noted>,
    /// The number of each workspace's last change, as far as known.
    lasts: HashMap<i64, i64>,
    /// Workspaces with new rows, each with the number of its last change, in the order they were written.
    written: Vec<(i64, i64)>,
    /// The last moment that the store was told.
    now: Timestamp,
    is_watched: bool,
}

/// How much there was when a request began.
#[derive(Clone, Copy)]
pub(super) struct Before {
    noted: usize,
    written: usize,
}

impl Changes {
    /// Has the connection list what changes, where [`CHECKS`].
    pub(super) fn watch(&mut self, connection: &Connection) -> Result<(), InboxError> {
        self.is_watched = CHECKS;
        if !CHECKS {
            return Ok(());
        }
        let sql = "CREATE TEMP TABLE moved_delivery (id INTEGER PRIMARY KEY);
                   CREATE TEMP TRIGGER delivery_made AFTER INSERT ON main.delivery
                   BEGIN INSERT OR IGNORE INTO moved_delivery VALUES (NEW.id); END;
                   CREATE TEMP TRIGGER delivery_moved AFTER UPDATE OF state ON main.delivery WHEN OLD.state <> NEW.state
                   BEGIN INSERT OR IGNORE INTO moved_delivery VALUES (NEW.id); END;";
        connection.execute_batch(sql).map_err(unavailable)
    }

    /// What is noted from now on was so at this moment.
    pub(super) fn at(&mut self, now: Timestamp) {
        self.now = now;
    }

    /// The moment that the store was told last.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// A run of notifications was accepted.
    pub(super) fn created(&mut self, first: i64, count: i64) {
        self.noted.push(Noted::Created { first, count });
    }

    /// A notice tells that a source skipped events.
    pub(super) fn gap(&mut self, notification: i64, source: &str) {
        self.noted.push(Noted::Gap { notification, source: source.to_owned() });
    }

    /// Somebody marked a notification that was not marked so before.
    pub(super) fn marked(&mut self, notification: i64, is_acknowledged: bool, mark: &Mark) {
        self.noted.push(Noted::Marked { notification, is_acknowledged, mark: mark.clone() });
    }

    /// A delivery was made.
    pub(super) fn made(&mut self, number: i64, standing: Standing) {
        self.noted.push(Noted::Delivery { number, now: Now::Made(standing) });
    }

    /// A delivery stands elsewhere.
    pub(super) fn moved(&mut self, number: i64) {
        self.noted.push(Noted::Delivery { number, now: Now::Moved });
    }

    /// A delivery became part of another, and is no more.
    pub(super) fn joined(&mut self, number: i64, into: i64, notification: i64) {
        self.noted.push(Noted::Delivery { number, now: Now::Joined { into, notification } });
    }

    /// Whether so much is noted that a long request should write it before it goes on.
    pub(super) fn is_long(&self) -> bool {
        self.noted.len() >= NOTED_MAX
    }

    pub(super) fn before(&self) -> Before {
        Before { noted: self.noted.len(), written: self.written.len() }
    }

    /// What was noted and written since was rolled back.
    pub(super) fn undo(&mut self, before: Before) {
        self.noted.truncate(before.noted);
        self.written.truncate(before.written);
        self.lasts.clear();
    }

    /// The commit holds: each workspace that changed, with the number of its last change.
    pub(super) fn take_written(&mut self) -> Vec<(i64, i64)> {
        let mut written = std::mem::take(&mut self.written);
        written.reverse();
        written.sort_by_key(|(workspace, _)| *workspace);
        written.dedup_by_key(|(workspace, _)| *workspace);
        written
    }

    /// Numbers and writes what was noted.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), InboxError> {
        if self.is_watched {
            self.check(connection)?;
        }
        if self.noted.is_empty() {
            return Ok(());
        }
        let noted = std::mem::take(&mut self.noted);
        for group in group(connection, noted)? {
            self.insert(connection, &group)?;
        }
        Ok(())
    }

    fn insert(&mut self, connection: &Connection, group: &Group) -> Result<(), InboxError> {
        let key = &group.key;
        let number = self.last(connection, key.workspace)? + group.count;
        let sql = "INSERT INTO change (id, count, at, kind, list, name, agent, target, state)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            rows::row_id(key.workspace, number),
            group.count,
            key.at.unwrap_or(self.now).as_millisecond(),
            key.kind.as_str(),
            group.list.trim_end(),
            key.name,
            key.is_agent,
            key.target,
            key.state.map(State::as_str),
        ];
        prepare(connection, sql)?.execute(values).map_err(unavailable)?;
        self.lasts.insert(key.workspace, number);
        self.written.push((key.workspace, number));
        Ok(())
    }

    fn last(&self, connection: &Connection, workspace: i64) -> Result<i64, InboxError> {
        match self.lasts.get(&workspace) {
            Some(last) => Ok(*last),
            None => last(connection, workspace),
        }
    }

    /// Makes sure that nothing changed that was not noted.
    fn check(&self, connection: &Connection) -> Result<(), InboxError> {
        let numbers: Vec<i64> = {
            let mut statement = prepare(connection, "SELECT id FROM moved_delivery")?;
            let found = statement.query_map([], |row| row.get(0)).map_err(unavailable)?;
            found.collect::<Result<_, _>>().map_err(unavailable)?
        };
        if numbers.is_empty() {
            return Ok(());
        }
        let noted: HashSet<i64> = self.noted.iter().filter_map(Noted::delivery).collect();
        if let Some(number) = numbers.iter().find(|number| !noted.contains(number)) {
            return Err(InboxError::Unavailable(format!("a change of delivery {number} was written and not noted")));
        }
        prepare(connection, "DELETE FROM moved_delivery")?.execute([]).map(drop).map_err(unavailable)
    }
}

impl Noted {
    fn delivery(&self) -> Option<i64> {
        if let Self::Delivery { number, .. } = self { Some(*number) } else { None }
    }
}

/// The number of the last change of a workspace; 0 before the first.
pub(super) fn last(connection: &Connection, workspace: i64) -> Result<i64, InboxError> {
    let select = "SELECT id FROM change WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT 1";
    let range = [rows::row_id(workspace, 0), rows::row_id(workspace + 1, 0)];
    let found: Option<i64> =
        prepare(connection, select)?.query_row(range, |row| row.get(0)).optional().map_err(unavailable)?;
    Ok(found.map_or(0, |id| id & ((1 << SEQ_BITS) - 1)))
}

/// What the changes of one row share.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    workspace: i64,
    kind: Kind,
    name: Option<String>,
    is_agent: Option<bool>,
    target: Option<i64>,
    state: Option<State>,
    /// Of marks, which say when they were made.
    at: Option<Timestamp>,
}

impl Key {
    fn new(workspace: i64, kind: Kind) -> Self {
        Self { workspace, kind, name: None, is_agent: None, target: None, state: None, at: None }
    }
}

/// The changes of one row.
struct Group {
    key: Key,
    count: i64,
    list: String,
}

#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    /// Adds a change to the last group of its kind that has room. The order of marks is kept, since they are told of one
    /// notification time and again; notifications come before all that is told of them.
    fn add(&mut self, key: Key, numbers: &[i64]) {
        let looked_at = if matches!(key.kind, Kind::Delivery | Kind::Joined) { GROUPS_MAX } else { 1 };
        let mut latest = self.0.iter_mut().rev().take(looked_at);
        let group = match latest.find(|group| group.key == key && group.count < ROW_CHANGES_MAX) {
            Some(group) => group,
            None => {
                self.0.push(Group { key, count: 0, list: String::new() });
                let Some(group) = self.0.last_mut() else { return };
                group
            }
        };
        group.count += 1;
        for number in numbers {
            // Writing to a string cannot fail.
            let _ = write!(group.list, "{number} ");
        }
    }
}

/// Puts what was noted into rows: each delivery once, as it stands now.
fn group(connection: &Connection, noted: Vec<Noted>) -> Result<Vec<Group>, InboxError> {
    let (mut created, mut groups) = (Vec::new(), Groups::default());
    let mut deliveries = Vec::new();
    for one in noted {
        match one {
            Noted::Created { first, count } => add_run(&mut created, first, count),
            Noted::Gap { notification, source } => {
                let key = Key::new(notification >> SEQ_BITS, Kind::Gap);
                groups.add(Key { name: Some(source), ..key }, &[seq(notification)]);
            }
            Noted::Marked { notification, is_acknowledged, mark } => {
                let kind = if is_acknowledged { Kind::Acknowledged } else { Kind::Read };
                let key = Key::new(notification >> SEQ_BITS, kind);
                let (name, is_agent) = (Some(mark.by.name), Some(mark.by.is_agent));
                groups.add(Key { name, is_agent, at: Some(mark.at), ..key }, &[seq(notification)]);
            }
            Noted::Delivery { number, now } => deliveries.push((number, now)),
        }
    }
    // The last that was noted of each.
    deliveries.reverse();
    deliveries.sort_by_key(|(number, _)| *number);
    deliveries.dedup_by_key(|(number, _)| *number);
    let mut look = prepare(connection, STANDING)?;
    for (number, now) in deliveries {
        let standing = match now {
            Now::Made(standing) => Some(standing),
            Now::Moved => look.query_row([number], standing).optional().map_err(unavailable)?,
            Now::Joined { into, notification } => {
                let key = Key::new(notification >> SEQ_BITS, Kind::Joined);
                groups.add(key, &[number, into, seq(notification)]);
                None
            }
        };
        if let Some(Standing { target, plugin, state, notification }) = standing {
            let key = Key::new(notification >> SEQ_BITS, Kind::Delivery);
            let name = Some(plugin.to_string());
            groups.add(Key { name, target: Some(target), state: Some(state), ..key }, &[number, seq(notification)]);
        }
    }
    created.extend(groups.0);
    Ok(created)
}

/// A run of notifications, in rows that are not too long.
fn add_run(created: &mut Vec<Group>, mut first: i64, mut count: i64) {
    while count > 0 {
        let most = count.min(ROW_CHANGES_MAX);
        let key = Key::new(first >> SEQ_BITS, Kind::Created);
        created.push(Group { key, count: most, list: seq(first).to_string() });
        first += most;
        count -= most;
    }
}

fn seq(notification: i64) -> i64 {
    notification & ((1 << SEQ_BITS) - 1)
}

/// How a delivery stands.
const STANDING: &str = "SELECT target, plugin, state, notification FROM delivery WHERE id = ?1";

fn standing(row: &Row<'_>) -> rusqlite::Result<Standing> {
    Ok(Standing {
        target: row.get(0)?,
        plugin: rows::name(row, 1)?,
        state: rows::state(row, 2)?,
        notification: row.get(3)?,
    })
}
