//! Connections to the relay that are open and idle, and how many there may be.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::relay::Conversation;

/// Connections at once: relays commonly take tens from one client, and others want some too.
pub(super) const CONNECTIONS_MAX: usize = 8;

/// The longest a connection is kept idle: well under the minutes after which relays give one up.
pub(super) const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

/// How long a relay may take to say goodbye.
const GOODBYE_TIME_MAX: Duration = Duration::from_millis(250);

/// The idle connections, the latest last, and seats for those in use.
#[derive(Debug)]
pub(super) struct Pool {
    idle: Mutex<Vec<(Instant, Conversation)>>,
    seats: Semaphore,
    returned: Notify,
}

impl Pool {
    /// With nothing open.
    pub(super) fn new() -> Self {
        Self { idle: Mutex::default(), seats: Semaphore::new(CONNECTIONS_MAX), returned: Notify::new() }
    }

    /// The right to use one connection; none when there is none in time.
    pub(super) async fn seat(&self, until: Instant) -> Option<SemaphorePermit<'_>> {
        timeout_at(until, self.seats.acquire()).await.ok()?.ok()
    }

    /// The connection that was idle for the shortest time. A new one is opened only while none is idle.
    pub(super) fn take(&self) -> Option<Conversation> {
        let now = Instant::now();
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, latest) = idle.pop()?;
        if now.duration_since(since) < IDLE_TIME_MAX {
            return Some(latest);
        }
        // All others were idle for longer.
        idle.clear();
        None
    }

    /// Gives up all idle connections: one that was idle for less than they were has turned out to be dead.
    pub(super) fn forget(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps a connection for the next mail.
    pub(super) fn give_back(&self, conversation: Conversation) {
        // Every connection in use had a seat, and those that are idle were in use before: there is no more of them.
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CONNECTIONS_MAX {
            idle.push((Instant::now(), conversation));
            self.returned.notify_one();
        }
    }

    /// Closes connections that were idle for too long, until told to stop; then closes all.
    pub(super) async fn tend(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            let oldest = self.oldest();
            let next = async {
                match oldest {
                    Some(since) => tokio::time::sleep_until(since + IDLE_TIME_MAX).await,
                    None => self.returned.notified().await,
                }
            };
            tokio::select! {
                () = next => self.close_older_than(IDLE_TIME_MAX).await,
                () = stop.cancelled() => {}
            }
        }
        self.close_older_than(Duration::ZERO).await;
    }

    fn oldest(&self) -> Option<Instant> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).first().map(|(since, _)| *since)
    }

    async fn close_older_than(&self, age: Duration) {
        let now = Instant::now();
        let old = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            let count = idle.iter().take_while(|(since, _)| now.duration_since(*since) >= age).count();
            idle.drain(..count).collect::<Vec<_>>()
        };
        futures_util::future::join_all(old.into_iter().map(|(_, open)| open.close(GOODBYE_TIME_MAX))).await;
    }
}
