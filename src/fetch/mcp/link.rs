//! The one connection to a server that several may use at once: made when it is needed, and again when it is lost.
//!
//! Who polls an outbox and who calls the same server's tools share it where the server is a program, so that it runs
//! once. Requests run side by side over it; only its making and its end are one thing at a time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};

use super::connection::{self, Connection};
use super::era::{self, Era};
use super::way::Way;
use crate::fetch::outbox::ReadError;

/// Calls under way at once over one connection; a server that is asked for more of them is given them one after the
/// other.
pub(super) const CALLS_MAX: u32 = 16;

/// Requests that ran out of time in a row after which a connection is given up although somebody waits on it: what is
/// behind it does not answer any more.
const TIMEOUTS_MAX: u32 = 3;

#[derive(Debug)]
pub(super) struct Link {
    way: Way,
    /// Locked while a connection is made and while it is closed, so that there is never a second one.
    slot: Mutex<Option<Arc<Connection>>>,
    era: std::sync::Mutex<Era>,
    calls: Semaphore,
    /// Requests in a row that ran out of time.
    timeouts: AtomicU32,
}

impl Link {
    /// There is no connection yet.
    pub(super) fn new(way: Way, era: Era) -> Self {
        let (slot, era) = (Mutex::default(), std::sync::Mutex::new(era));
        Self { way, slot, era, calls: Semaphore::new(CALLS_MAX as usize), timeouts: AtomicU32::new(0) }
    }

    pub(super) fn way(&self) -> &Way {
        &self.way
    }

    /// The connection. A lost one is closed before another is made.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, ReadError> {
        let mut slot = self.slot.lock().await;
        if let Some(lost) = slot.as_ref().filter(|connection| connection.is_lost()) {
            lost.close(self.way.times.stop).await;
            *slot = None;
        }
        if let Some(connection) = &*slot {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(self.connect().await?);
        self.timeouts.store(0, Ordering::Relaxed);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    async fn connect(&self) -> Result<Connection, ReadError> {
        let begins_with_initialize = self.era().begins_with_initialize();
        // Unless it succeeds.
        self.era().failed();
        let connected = match self.way.connect(connection::lifecycle(begins_with_initialize)).await {
            // It is there, and knows only the newer way.
            Err(error) if begins_with_initialize && era::is_refusal(&error) => {
                self.way.connect(connection::lifecycle(false)).await.map_err(|_| error)
            }
            connected => connected,
        };
        let connection = connected?;
        if let Some(spoken) = &connection.spoken {
            self.remember(Era::of(Some(spoken)));
        }
        Ok(connection)
    }

    /// What is known of the server's revision from elsewhere.
    pub(super) fn remember(&self, era: Era) {
        *self.era() = era;
    }

    pub(super) fn era(&self) -> std::sync::MutexGuard<'_, Era> {
        self.era.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to call over it, to be held meanwhile. A link that is being closed gives none until it is closed.
    pub(super) async fn call(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.acquire().await.ok()
    }

    fn is_called(&self) -> bool {
        self.calls.available_permits() < CALLS_MAX as usize
    }

    /// Takes note of how a read went; the connection is closed when another is more likely to work. Time that ran out
    /// says less while calls are under way: they may keep the server busy, and would be lost. Whether it was closed.
    pub(super) async fn read<T>(&self, connection: &Arc<Connection>, read: &Result<T, ReadError>) -> bool {
        let timeouts = self.count(read);
        let Err(error) = read else { return false };
        let is_patient = matches!(error, ReadError::Timeout { .. }) && timeouts < TIMEOUTS_MAX && self.is_called();
        let loses = connection::is_in_doubt_after(error) && !is_patient;
        if loses {
            self.lose(connection).await;
        }
        loses
    }

    /// Takes note of how a call went. A tool may take its time: that says nothing of the connection, unless nothing else
    /// is ever answered either. Other failures of the connection are seen by who uses it next.
    pub(super) async fn called<T>(&self, connection: &Arc<Connection>, called: &Result<T, ReadError>) {
        if self.count(called) >= TIMEOUTS_MAX {
            self.lose(connection).await;
        }
    }

    fn count<T>(&self, came: &Result<T, ReadError>) -> u32 {
        if matches!(came, Err(ReadError::Timeout { .. })) {
            return self.timeouts.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        }
        self.timeouts.store(0, Ordering::Relaxed);
        0
    }

    /// Closes this connection, if it is still the one.
    pub(super) async fn lose(&self, connection: &Arc<Connection>) {
        let mut slot = self.slot.lock().await;
        if slot.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            connection.close(self.way.times.stop).await;
            *slot = None;
        }
    }

    /// Closes the connection once no call is under way, in bounded time where calls are. A later request would make
    /// another.
    pub(super) async fn close(&self) {
        let _no_calls = self.calls.acquire_many(CALLS_MAX).await;
        let mut slot = self.slot.lock().await;
        if let Some(connection) = &*slot {
            connection.close(self.way.times.stop).await;
            *slot = None;
        }
    }

    /// Whether there is a connection that can be used and nobody is about to make or close it.
    pub(super) fn is_up(&self) -> bool {
        self.slot.try_lock().is_ok_and(|slot| slot.as_ref().is_some_and(|connection| !connection.is_lost()))
    }

    /// Whether no call is under way.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_called()
    }
}
