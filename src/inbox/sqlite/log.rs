//! The write-ahead log is copied back into the database beside the writer, by a thread and a connection of their own, so
//! that no commit pays for it. Under a load that never rests that thread would find new pages for ever; then the writer
//! copies the rest itself between two commits, which lets the log begin anew.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, ErrorCode};

use super::InboxError;
use super::connect::BUSY_TIMEOUT;
use super::errors::unavailable;

/// Pages of the log at which it is copied: 4 MiB, so that each copy is a few milliseconds of the disk's time.
const COPIED_AT: u32 = 1_000;

/// Pages written before a copy is tried again that left something: others read, or wrote meanwhile.
const AGAIN_AFTER: u32 = 250;

/// Pages of the log at which the writer copies what is left: 16 MiB. More only while others read without a pause.
pub(super) const REST_AT: u32 = 4_000;

/// Pages of the log at which the writer waits for those who read: 64 MiB. It is doubled each time that this was in vain.
pub(super) const READERS_AT: u32 = 16_000;

/// How long it waits for them: a listing takes less.
const READERS_WAIT: Duration = Duration::from_millis(100);

/// Bytes of the log's file that are kept when it begins anew: 20 MiB, which is what it has under a load that never rests.
/// Writing over them is cheaper than making the file grow.
pub(super) const KEPT_BYTES: u32 = 20 * 1024 * 1024;

/// What the writer and the copying thread share.
#[derive(Debug, Default)]
pub(super) struct Log {
    state: Mutex<State>,
    changed: Condvar,
    /// Held while the log is copied.
    copying: Mutex<()>,
}

#[derive(Debug)]
struct State {
    /// Pages of the log as of the last commit.
    pages: u32,
    /// Pages at which it is copied.
    due_at: u32,
    is_failing: bool,
    is_closed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { pages: 0, due_at: COPIED_AT, is_failing: false, is_closed: false }
    }
}

impl State {
    fn is_due(&self) -> bool {
        self.pages >= self.due_at
    }
}

impl Log {
    /// Has the writer's connection say how long the log is after each commit, and leave it alone otherwise.
    pub(super) fn watch(self: &Arc<Self>, connection: &mut Connection) -> Result<(), InboxError> {
        connection.pragma_update(None, "journal_size_limit", KEPT_BYTES).map_err(unavailable)?;
        let log = Arc::clone(self);
        let hook = move |_: &mut Wal, pages| {
            log.committed(u32::try_from(pages).unwrap_or_default());
            Ok(())
        };
        // It stands in the place of SQLite's own, which would copy inside a commit.
        connection.wal_hook(Some(hook)).map_err(unavailable)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn committed(&self, pages: u32) {
        let mut state = self.state();
        if pages < state.pages {
            // All was copied: the log began anew.
            state.due_at = COPIED_AT;
        }
        state.pages = pages;
        if state.is_due() {
            self.changed.notify_one();
        }
    }

    /// Copies as much as can be.
    fn copy(&self, connection: &Connection, mode: CheckpointMode) {
        let _copying = self.copying.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.state().pages;
        let copied = connection.wal_checkpoint_v2(None::<&str>, mode);
        let failure = copied.err().filter(|error| error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy));
        let mut state = self.state();
        if state.pages >= before {
            state.due_at = state.pages.saturating_add(AGAIN_AFTER);
        }
        let was_failing = std::mem::replace(&mut state.is_failing, failure.is_some());
        drop(state);
        if let Some(error) = failure.filter(|_| !was_failing) {
            let error = unavailable(error);
            tracing::warn!(%error, "the write-ahead log cannot be copied into the store and grows meanwhile; trying again");
        }
    }

    fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }
}

/// The thread that copies; dropping it ends it.
#[derive(Debug)]
pub(super) struct Copier {
    log: Arc<Log>,
    thread: Option<JoinHandle<()>>,
}

impl Copier {
    pub(super) fn start(log: Arc<Log>, connection: Connection) -> std::io::Result<Self> {
        let shared = Arc::clone(&log);
        let run = move || copy_when_due(&shared, &connection);
        let thread = std::thread::Builder::new().name("inbox-copier".to_owned()).spawn(run)?;
        Ok(Self { log, thread: Some(thread) })
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.log.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn copy_when_due(log: &Log, connection: &Connection) {
    loop {
        let state = log.state();
        let waits = |state: &mut State| !state.is_closed && !state.is_due();
        let state = log.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        if state.is_closed {
            return;
        }
        drop(state);
        log.copy(connection, CheckpointMode::PASSIVE);
    }
}

/// The writer's part: it keeps the log from growing without end.
pub(super) struct Bound {
    log: Arc<Log>,
    rest_at: u32,
    readers_at: u32,
}

impl Bound {
    pub(super) fn new(log: Arc<Log>) -> Self {
        Self { log, rest_at: REST_AT, readers_at: READERS_AT }
    }

    /// Called between two transactions.
    pub(super) fn keep(&mut self, connection: &Connection) {
        let pages = self.log.state().pages;
        if pages < REST_AT {
            (self.rest_at, self.readers_at) = (REST_AT, READERS_AT);
        }
        if pages >= self.readers_at {
            // Only those who began to read before are waited for: whoever begins now reads the database itself.
            let _ = connection.busy_timeout(READERS_WAIT);
            self.log.copy(connection, CheckpointMode::RESTART);
            let _ = connection.busy_timeout(BUSY_TIMEOUT);
            self.readers_at = pages.saturating_mul(2);
        } else if pages >= self.rest_at {
            self.log.copy(connection, CheckpointMode::PASSIVE);
            self.rest_at = pages.saturating_add(COPIED_AT);
        }
    }
}
