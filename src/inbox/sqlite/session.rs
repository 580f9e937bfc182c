//! What the writing thread has at hand: the connection, what it remembers of rows, the book of targets, and what is to be
//! told once a commit holds.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::{Notify, watch};

use super::adopt::GONE;
use super::changes::{self, Changes};
use super::errors::unavailable;
use super::follow::Followers;
use super::hot::Hot;
use super::rows::{prepare, unreadable};
use super::{InboxError, Name, Store};
use crate::inbox::book::{Admission, Book, QueueKey, Rule};
use crate::inbox::{Claim, News};
use crate::route::timing::Timing;

/// Rows remembered; beyond, all are forgotten and looked up again.
const REMEMBERED_MAX: usize = 100_000;

/// Times that a target may have moved since something was decided about it.
const MOVES_MAX: usize = 16;

/// The writing thread's own.
pub(super) struct Session<'c> {
    pub(super) connection: &'c Connection,
    pub(super) hot: Hot<'c>,
    pub(super) store: Store,
    /// None until one is adopted.
    pub(super) book: Option<Arc<Book>>,
    pub(super) admission: Option<Arc<dyn Admission>>,
    /// What the open transaction changes, for live readers.
    pub(super) changes: Changes,
    desk: Arc<Desk>,
    workspaces: HashMap<Name, i64>,
    /// With their rules: forgotten when there is a new book.
    targets: HashMap<QueueKey, Rc<Target>>,
    /// What the open transaction claimed as it wrote, with the subject it was admitted for.
    admitted: Vec<(Claim, Option<String>)>,
    /// What the open transaction made due.
    due: Vec<(QueueKey, Timestamp)>,
    /// Of which queues it cancelled something because they are gone, once for each.
    stranded: Vec<QueueKey>,
    /// Which queues the open transaction put something in, each with the number of the last.
    joined: Vec<(QueueOf, u64)>,
    /// How many queues the open transaction has begin to lose events.
    losses: u64,
    /// Under which route a target went on that is not there any more under its own.
    moved: HashMap<QueueKey, QueueKey>,
}

/// A row of `target`.
#[derive(Clone, Debug)]
pub(super) struct TargetRow {
    pub(super) id: i64,
    /// Why a person must mend something first.
    pub(super) blocked: Option<String>,
}

/// A target with what the configuration says of it now.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) queue: QueueKey,
    pub(super) row: TargetRow,
    /// None when the configuration does not have it any more.
    pub(super) rule: Option<Arc<Rule>>,
}

impl Target {
    pub(super) fn timing(&self) -> Option<&Timing> {
        self.rule.as_ref().map(|rule| &rule.timing).filter(|timing| !timing.is_plain())
    }

    /// Why nothing can be delivered to it now, by an attempt that goes on with this version of its plugin or by a new one.
    pub(super) fn blocked(&self, plugin_digest: Option<&str>) -> Option<&str> {
        let is_there = |rule: &Rule| plugin_digest.is_some_and(|digest| rule.goes_on.iter().any(|one| one == digest));
        let rule = self.rule.as_deref().filter(|rule| !is_there(rule));
        self.row.blocked.as_deref().or_else(|| rule?.blocked.as_deref())
    }

    pub(super) fn by_subject(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.by_subject)
    }

    pub(super) fn has_at_most(&self) -> bool {
        self.timing().is_some_and(|timing| timing.at_most.is_some())
    }
}

/// Where the news waits for the one who asks.
#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) followers: Followers<Name>,
    /// Of queues, by workspace and consumer.
    pub(super) queues: Followers<QueueOf>,
    /// Grows when queues begin to lose events.
    pub(super) losses: watch::Sender<u64>,
    news: Mutex<News>,
    changed: Notify,
}

impl Desk {
    pub(super) async fn news(&self) -> News {
        loop {
            let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
            if !news.claims.is_empty() || !news.due.is_empty() || !news.cancelled.is_empty() {
                return news;
            }
            self.changed.notified().await;
        }
    }
}

/// A queue: of a workspace, its consumer.
pub(super) type QueueOf = (Name, Name);

/// How much was to be told when a request began.
#[derive(Clone, Copy)]
pub(super) struct Told {
    admitted: usize,
    due: usize,
    stranded: usize,
    joined: usize,
    losses: u64,
    changes: changes::Before,
}

impl<'c> Session<'c> {
    pub(super) fn new(connection: &'c Connection, store: Store, desk: Arc<Desk>, changes: Changes) -> Self {
        Self {
            connection,
            changes,
            hot: Hot::default(),
            store,
            book: None,
            admission: None,
            desk,
            workspaces: HashMap::new(),
            targets: HashMap::new(),
            admitted: Vec::new(),
            due: Vec::new(),
            stranded: Vec::new(),
            joined: Vec::new(),
            losses: 0,
            moved: HashMap::new(),
        }
    }

    pub(super) fn told(&self) -> Told {
        Told {
            admitted: self.admitted.len(),
            due: self.due.len(),
            stranded: self.stranded.len(),
            joined: self.joined.len(),
            losses: self.losses,
            changes: self.changes.before(),
        }
    }

    /// Something was rolled back: what was to be told of it is not, and no row is remembered any more.
    pub(super) fn undo(&mut self, since: Told) {
        self.forget();
        self.changes.undo(since.changes);
        self.due.truncate(since.due);
        self.stranded.truncate(since.stranded);
        self.joined.truncate(since.joined);
        self.losses = since.losses;
        for (claim, subject) in self.admitted.drain(since.admitted.min(self.admitted.len())..) {
            if let Some(admission) = &self.admission {
                admission.give_back(&claim.queue, subject.as_deref());
            }
        }
    }

    /// The commit holds.
    pub(super) fn tell(&mut self) {
        self.tell_followers();
        for (queue, seq) in self.joined.drain(..) {
            self.desk.queues.tell(&queue, seq);
        }
        match std::mem::take(&mut self.losses) {
            0 => {}
            losses => self.desk.losses.send_modify(|told| *told = told.wrapping_add(losses)),
        }
        if self.admitted.is_empty() && self.due.is_empty() && self.stranded.is_empty() {
            return;
        }
        let mut news = self.desk.news.lock().unwrap_or_else(PoisonError::into_inner);
        news.claims.extend(self.admitted.drain(..).map(|(claim, _)| claim));
        for (queue, at) in self.due.drain(..) {
            // Neighbours are mostly of one queue; the one who asks sorts out the rest.
            match news.due.last_mut() {
                Some((last, due)) if *last == queue => *due = at.min(*due),
                _ => news.due.push((queue, at)),
            }
        }
        let mut cancelled: BTreeMap<QueueKey, u64> = std::mem::take(&mut news.cancelled).into_iter().collect();
        self.stranded.drain(..).for_each(|queue| *cancelled.entry(queue).or_default() += 1);
        news.cancelled = cancelled.into_iter().collect();
        drop(news);
        self.desk.changed.notify_one();
    }

    fn tell_followers(&mut self) {
        let written = self.changes.take_written();
        if self.desk.followers.is_nobody() {
            return;
        }
        for (workspace, last) in written {
            // Whoever changed something in it has looked it up by its name.
            let name = self.workspaces.iter().find(|(_, id)| **id == workspace).map(|(name, _)| name.clone());
            if let Some(name) = name.or_else(|| self.name_of(workspace)) {
                self.desk.followers.tell(&name, last.unsigned_abs());
            }
        }
    }

    /// Something joined a queue. Who follows it is looked at once the commit holds: somebody may come meanwhile.
    pub(super) fn joins(&mut self, queue: QueueOf, seq: u64) {
        self.joined.push((queue, seq));
    }

    /// A queue began to lose events.
    pub(super) fn loses(&mut self) {
        self.losses += 1;
    }

    fn name_of(&self, workspace: i64) -> Option<Name> {
        let mut statement = prepare(self.connection, "SELECT name FROM workspace WHERE id = ?1").ok()?;
        statement.query_row([workspace], |row| super::rows::name(row, 0)).ok()
    }

    /// Writes the changes so far; what follows is noted anew.
    pub(super) fn write_changes(&mut self) -> Result<(), InboxError> {
        self.changes.write(self.connection)
    }

    pub(super) fn forget(&mut self) {
        self.workspaces.clear();
        self.targets.clear();
    }

    pub(super) fn now_due(&mut self, queue: &QueueKey, at: Timestamp) {
        self.due.push((queue.clone(), at));
    }

    /// Whether an attempt may start now; then it is the caller's to write and to hand over by [`Session::claimed`].
    pub(super) fn admit(&self, queue: &QueueKey, subject: Option<&str>) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.admit(queue, subject))
    }

    pub(super) fn claimed(&mut self, claim: Claim, subject: Option<String>) {
        self.admitted.push((claim, subject));
    }

    /// Takes back an admission whose delivery could not be written.
    pub(super) fn not_claimed(&self, queue: &QueueKey, subject: Option<&str>) {
        if let Some(admission) = &self.admission {
            admission.give_back(queue, subject);
        }
    }

    /// The row of a workspace, made if there is none.
    pub(super) fn workspace(&mut self, name: &Name) -> Result<i64, InboxError> {
        if let Some(id) = self.workspaces.get(name) {
            return Ok(*id);
        }
        let connection = self.connection;
        let insert = "INSERT INTO workspace (name) VALUES (?1) ON CONFLICT (name) DO NOTHING";
        prepare(connection, insert)?.execute([name.as_str()]).map_err(unavailable)?;
        let id = prepare(connection, "SELECT id FROM workspace WHERE name = ?1")?
            .query_row([name.as_str()], |row| row.get(0))
            .optional()
            .map_err(unavailable)?
            .ok_or_else(|| unreadable("workspace"))?;
        if self.workspaces.len() >= REMEMBERED_MAX {
            self.workspaces.clear();
        }
        self.workspaces.insert(name.clone(), id);
        Ok(id)
    }

    /// The target of a queue, wherever it stands now, with its row, which is made if there is none.
    pub(super) fn target(&mut self, queue: &QueueKey) -> Result<Rc<Target>, InboxError> {
        if let Some(target) = self.targets.get(queue) {
            return Ok(Rc::clone(target));
        }
        let queue = self.now_at(queue).clone();
        self.target_at(&queue)
    }

    /// The target that stands at this very place.
    pub(super) fn target_at(&mut self, queue: &QueueKey) -> Result<Rc<Target>, InboxError> {
        if let Some(target) = self.targets.get(queue) {
            return Ok(Rc::clone(target));
        }
        let workspace = self.workspace(&queue.workspace)?;
        let key = params![workspace, queue.route.as_str(), &*queue.target];
        let insert = "INSERT INTO target (workspace, route, name) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        prepare(self.connection, insert)?.execute(key).map_err(unavailable)?;
        let select = "SELECT id, blocked FROM target WHERE workspace = ?1 AND route = ?2 AND name = ?3";
        let row = prepare(self.connection, select)?
            .query_row(key, |row| Ok(TargetRow { id: row.get(0)?, blocked: row.get(1)? }))
            .map_err(unavailable)?;
        if self.targets.len() >= REMEMBERED_MAX {
            self.targets.clear();
        }
        let rule = self.book.as_ref().and_then(|book| book.get(queue)).map(Arc::clone);
        let target = Rc::new(Target { queue: queue.clone(), row, rule });
        self.targets.insert(queue.clone(), Rc::clone(&target));
        Ok(target)
    }

    /// Whether nothing is known of this target now, because its workspace is set aside.
    pub(super) fn is_aside(&self, target: &Target) -> bool {
        self.book.as_ref().is_some_and(|book| book.is_aside(&target.queue.workspace))
    }

    /// Whether the configuration does not have this target any more.
    pub(super) fn is_gone(&self, target: &Target) -> bool {
        self.book.is_some() && target.rule.is_none() && !self.is_aside(target)
    }

    /// A target goes on under another route.
    pub(super) fn moves(&mut self, from: &QueueKey, to: &QueueKey) {
        if self.moved.len() >= REMEMBERED_MAX {
            self.moved.clear();
        }
        self.moved.insert(from.clone(), to.clone());
    }

    /// The queue of something that was decided while the target stood under this one: the same, unless the target went on
    /// under another route since.
    fn now_at<'q>(&'q self, queue: &'q QueueKey) -> &'q QueueKey {
        let Some(book) = &self.book else { return queue };
        let mut at = queue;
        for _ in 0..MOVES_MAX {
            if book.get(at).is_some() {
                return at;
            }
            let Some(there) = self.moved.get(at) else { break };
            at = there;
        }
        queue
    }

    /// Cancels a delivery that nobody would make any more if its target is gone: what was decided or begun before.
    pub(super) fn cancel_if_gone(&mut self, target: &Target, delivery: i64) -> Result<bool, InboxError> {
        if !self.is_gone(target) {
            return Ok(false);
        }
        let sql = "UPDATE delivery SET state = 'cancelled', next_at = NULL, gather = NULL, slot = NULL,
                          started_at = NULL, plugin_digest = NULL, why = ?2
                   WHERE id = ?1";
        prepare(self.connection, sql)?.execute(params![delivery, GONE]).map_err(unavailable)?;
        self.changes.moved(delivery);
        self.strand(&target.queue);
        Ok(true)
    }

    /// Something of a queue that is gone was cancelled.
    pub(super) fn strand(&mut self, queue: &QueueKey) {
        self.stranded.push(queue.clone());
    }

    /// Says, or takes back, that a person must mend something for this target first.
    pub(super) fn set_blocked(&mut self, queue: &QueueKey, why: Option<&str>) -> Result<(), InboxError> {
        let id = self.target(queue)?.row.id;
        let update = "UPDATE target SET blocked = ?2 WHERE id = ?1";
        prepare(self.connection, update)?.execute(params![id, why]).map_err(unavailable)?;
        self.targets.remove(queue);
        Ok(())
    }
}
