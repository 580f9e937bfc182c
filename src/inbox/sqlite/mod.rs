//! The store for one machine: a SQLite database in WAL mode with one writer.
//!
//! One thread owns the writing connection. It takes what is asked for, runs each request in a savepoint of one
//! transaction, commits with `synchronous=FULL`, and answers only then: what waited while the last commit ran shares
//! the next one. Reading has connections of its own, in this process and in others.

mod accept;
mod adopt;
mod changes;
mod claim;
mod connect;
mod content;
mod contract;
mod digest;
mod errors;
mod expiry;
mod finish;
mod follow;
mod gather;
mod hot;
mod known;
mod list;
mod lock;
mod log;
mod people;
mod private;
mod queues;
mod read;
mod recordings;
mod replay;
mod rows;
mod schema;
mod session;
mod state;
mod tokens;
mod views;
mod which;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use rusqlite::{Connection, OpenFlags};

use super::book::{Admission, Book, QueueKey};
use super::intake::chunks;
use super::{
    Accepted, Adopted, Changes, Claimed, Deed, DeliveryView, Expired, Expiry, Finished, Handled, Inbox, InboxError,
    Intake, Kept, Known, LaneRecord, Listed, Mark, Marked, Marks, Name, News, Page, Paused, Query, Reading, Recording,
    TargetState, Token, Want, Which,
};
use crate::clock::later;
use crate::notification::Notification;
use crate::route::timing::AtMost;
use connect::{connect, connect_copier, connect_reader, prepare_to_write};
use lock::Lock;
use log::{Bound, Copier, Log};
use session::{Desk, Session};
use writer::Writer;

/// The wait before a queue is asked for again that cannot be claimed from while others can.
const FAILED_PAUSE: Duration = Duration::from_secs(1);

/// Reading connections kept open when idle; more are opened under load and closed again.
const IDLE_READERS_MAX: usize = 4;

/// A SQLite store.
#[derive(Debug)]
pub struct SqliteInbox {
    path: PathBuf,
    store: Store,
    readers: Arc<Mutex<Vec<Connection>>>,
    writer: Option<Writer>,
    /// None where the store is only read.
    _copier: Option<Copier>,
    desk: Arc<Desk>,
    /// How far event ids were looked through for those that may be forgotten.
    seen: expiry::Place,
    /// Held as long as the store may be written.
    _lock: Option<Lock>,
}

/// The store's identity and which opening of it this is.
#[derive(Clone, Debug)]
struct Store {
    tag: Arc<str>,
    epoch: i64,
    key: [u8; 32],
}

impl SqliteInbox {
    /// Opens the store for reading and writing, makes it if there is none, and takes back what an earlier process left
    /// in flight: each attempt goes on, and what it was about to do may have begun.
    ///
    /// # Errors
    /// [`InboxError::InUse`] when another process has it open for writing, [`InboxError::Open`] when it cannot be
    /// opened.
    pub fn open(path: &Path, now: Timestamp) -> Result<Self, InboxError> {
        let of_file = |error| errors::of_file(path, &error);
        private::make_folder(path).map_err(of_file)?;
        let lock = Lock::take(path)?;
        private::keep(path).map_err(of_file)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let log = Arc::new(Log::default());
        let opened = connect(path, flags).and_then(|mut connection| {
            prepare_to_write(&mut connection)?;
            log.watch(&mut connection)?;
            let store = adopt::begin_epoch(&mut connection, now)?;
            let mut changes = changes::Changes::default();
            changes.at(now);
            changes.watch(&connection)?;
            Ok((connection, store, changes, connect_copier(path)?))
        });
        let (connection, store, changes, copying) = opened.map_err(|error| errors::open(path, error))?;
        let desk = Arc::new(Desk::default());
        let bound = Bound::new(Arc::clone(&log));
        let writer = Writer::start(connection, store.clone(), Arc::clone(&desk), changes, bound);
        Ok(Self {
            path: path.to_owned(),
            store,
            readers: Arc::default(),
            desk,
            seen: expiry::Place::default(),
            writer: Some(writer.map_err(|error| errors::open(path, error))?),
            _copier: Some(Copier::start(log, copying).map_err(|error| errors::open(path, error))?),
            _lock: Some(lock),
        })
    }

    /// Opens the store for reading only, beside a process that may be writing.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn open_to_read(path: &Path) -> Result<Self, InboxError> {
        if !path.exists() {
            let message = "there is none yet: start `switchbell serve`, which makes it";
            return Err(errors::open(path, message));
        }
        let opened = connect_reader(path).and_then(|connection| {
            schema::require_current(&connection)?;
            let store = adopt::current_epoch(&connection)?;
            Ok((connection, store))
        });
        let (connection, store) = opened.map_err(|error| errors::open(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            store,
            readers: Arc::new(Mutex::new(vec![connection])),
            writer: None,
            _copier: None,
            desk: Arc::default(),
            seen: expiry::Place::default(),
            _lock: None,
        })
    }

    async fn write<T, F>(&self, work: F) -> Result<T, InboxError>
    where
        T: Send + 'static,
        F: FnMut(&mut Session<'_>) -> Result<T, InboxError> + Send + 'static,
    {
        match &self.writer {
            Some(writer) => writer.run(work).await,
            None => Err(InboxError::Unavailable("the store is open for reading only".to_owned())),
        }
    }

    async fn read<T, F>(&self, work: F) -> Result<T, InboxError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, InboxError> + Send + 'static,
    {
        let readers = Arc::clone(&self.readers);
        let path = self.path.clone();
        let run = move || {
            let idle = readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = idle.map_or_else(|| connect_reader(&path), Ok)?;
            let answer = work(&connection);
            let mut idle = readers.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < IDLE_READERS_MAX {
                idle.push(connection);
            }
            answer
        };
        match tokio::task::spawn_blocking(run).await {
            Ok(answer) => answer,
            Err(stopped) => Err(InboxError::Unavailable(format!("reading the store was cut off: {stopped}"))),
        }
    }
}

impl Inbox for SqliteInbox {
    fn accept(&self, intake: Intake) -> BoxFuture<'_, Result<Accepted, InboxError>> {
        async move {
            let mut accepted = Accepted::default();
            let chunks = chunks(intake);
            let last = chunks.len();
            for (number, chunk) in (1..).zip(chunks) {
                let part = self.write(move |session| accept::accept(session, &chunk, number == last)).await?;
                accepted.seqs.extend(part.seqs);
                accepted.notice_seqs.extend(part.notice_seqs);
            }
            Ok(accepted)
        }
        .boxed()
    }

    fn reading<'a>(&'a self, workspace: &'a Name, source: &'a Name) -> BoxFuture<'a, Result<Reading, InboxError>> {
        let (workspace, source) = (workspace.clone(), source.clone());
        self.read(move |connection| read::reading(connection, &workspace, &source)).boxed()
    }

    fn readings<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<(Name, Reading)>, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| read::readings(connection, &workspace)).boxed()
    }

    fn key(&self) -> [u8; 32] {
        self.store.key
    }

    fn adopt(
        &self,
        book: Arc<Book>,
        admission: Option<Arc<dyn Admission>>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Adopted, InboxError>> {
        self.write(move |session| adopt::adopt(session, &book, admission.as_ref(), now)).boxed()
    }

    fn claim(&self, now: Timestamp, wants: Vec<Want>) -> BoxFuture<'_, Result<Claimed, InboxError>> {
        async move {
            let claim = |wants: Vec<Want>| self.write(move |session| claim::claim(session, now, &wants));
            match claim(wants.clone()).await {
                Err(_) if wants.len() > 1 => {}
                done => return done,
            }
            // What cannot be read of one queue must not keep all the others.
            let (mut claimed, mut failed) = (Claimed::default(), Ok(()));
            for want in wants {
                let queue = want.queue.clone();
                match claim(vec![want]).await {
                    Ok(more) => {
                        claimed.claims.extend(more.claims);
                        claimed.next_due.extend(more.next_due);
                        claimed.moved.extend(more.moved);
                    }
                    Err(error) => {
                        tracing::error!(%queue, %error, "what is due of this queue cannot be claimed; trying again");
                        claimed.next_due.push((queue, Some(later(now, FAILED_PAUSE))));
                        failed = Err(error);
                    }
                }
            }
            if claimed.claims.is_empty() { failed.map(|()| claimed) } else { Ok(claimed) }
        }
        .boxed()
    }

    fn news(&self) -> BoxFuture<'_, News> {
        self.desk.news().boxed()
    }

    fn keep(&self, kept: Kept) -> BoxFuture<'_, Result<(), InboxError>> {
        self.write(move |session| finish::keep(session, &kept)).boxed()
    }

    fn pause(&self, paused: Paused) -> BoxFuture<'_, Result<(), InboxError>> {
        self.write(move |session| finish::pause(session, &paused)).boxed()
    }

    fn finish(&self, finished: Finished) -> BoxFuture<'_, Result<Vec<Option<u64>>, InboxError>> {
        self.write(move |session| finish::finish(session, &finished)).boxed()
    }

    fn plugins_in_use(&self) -> BoxFuture<'_, Result<Vec<(Name, String)>, InboxError>> {
        self.read(read::plugins_in_use).boxed()
    }

    fn retry<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Handled, InboxError>> {
        let workspace = workspace.clone();
        self.write(move |session| people::retry(session, &workspace, &which, now)).boxed()
    }

    fn cancel<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        why: String,
    ) -> BoxFuture<'a, Result<Handled, InboxError>> {
        let workspace = workspace.clone();
        self.write(move |session| people::cancel(session, &workspace, &which, &why)).boxed()
    }

    fn mark<'a>(
        &'a self,
        workspace: &'a Name,
        seqs: Vec<u64>,
        deed: Deed,
        mark: Mark,
    ) -> BoxFuture<'a, Result<Marked, InboxError>> {
        let workspace = workspace.clone();
        self.write(move |session| people::mark(session, &workspace, &seqs, deed, &mark)).boxed()
    }

    fn marks<'a>(&'a self, workspace: &'a Name, seqs: Vec<u64>) -> BoxFuture<'a, Result<Vec<Marks>, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| read::marks(connection, &workspace, &seqs)).boxed()
    }

    fn notifications(&self, page: Page) -> BoxFuture<'_, Result<Vec<Notification>, InboxError>> {
        self.read(move |connection| read::notifications(connection, &page)).boxed()
    }

    fn known<'a>(
        &'a self,
        workspace: &'a Name,
        from: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Known>, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| known::known(connection, &workspace, from, limit)).boxed()
    }

    fn seq_since<'a>(&'a self, workspace: &'a Name, moment: Timestamp) -> BoxFuture<'a, Result<u64, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| known::seq_since(connection, &workspace, moment)).boxed()
    }

    fn notification<'a>(
        &'a self,
        workspace: &'a Name,
        seq: u64,
    ) -> BoxFuture<'a, Result<Option<Notification>, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| read::notification(connection, &workspace, seq)).boxed()
    }

    fn is_of_first_read<'a>(&'a self, workspace: &'a Name, seq: u64) -> BoxFuture<'a, Result<bool, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| read::is_of_first_read(connection, &workspace, seq)).boxed()
    }

    fn deliveries(&self, page: Page, which: Which) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>> {
        let store = self.store.clone();
        self.read(move |connection| views::deliveries(connection, &store, &page, &which)).boxed()
    }

    fn target_state<'a>(
        &'a self,
        queue: &'a QueueKey,
        at_most: Option<&'a AtMost>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<TargetState, InboxError>> {
        let (queue, at_most) = (queue.clone(), at_most.cloned());
        self.read(move |connection| state::of(connection, &queue, at_most.as_ref(), now)).boxed()
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneRecord>, InboxError>> {
        self.read(finish::lanes).boxed()
    }

    fn record(&self, recording: Recording) -> BoxFuture<'_, Result<(), InboxError>> {
        self.write(move |session| recordings::record(session, &recording)).boxed()
    }

    fn recordings<'a>(&'a self, plugin: &'a Name) -> BoxFuture<'a, Result<Vec<Recording>, InboxError>> {
        let (store, plugin) = (self.store.clone(), plugin.clone());
        self.read(move |connection| recordings::recordings(connection, &store, &plugin)).boxed()
    }
}

#[cfg(test)]
mod tests;
