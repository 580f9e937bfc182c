//! Where readers come to and workspaces are followed from.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::places::{Place, Places};
use super::topic::Topic;
use crate::clock::Clock;
use crate::inbox::{Reader, Store};
use crate::notification::Name;
use crate::serve::problem::Problem;

/// Readers that read what they missed from the store at the same moment; others wait in line. After a restart all come at
/// once, and a part that was read is in memory until it is sent.
const REPLAYS_MAX: usize = 8;

/// Tells live readers what changes.
#[derive(Clone, Debug)]
pub struct Hub(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    inbox: Arc<dyn Reader>,
    clock: Clock,
    topics: Mutex<BTreeMap<Name, Arc<Topic>>>,
    /// Those of the topics that nobody follows yet.
    new: Mutex<Vec<Arc<Topic>>>,
    has_new: Notify,
    places: Places,
    replays: Semaphore,
}

impl Hub {
    /// A hub without readers.
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self::of(store as Arc<dyn Reader>, clock)
    }

    pub(super) fn of(inbox: Arc<dyn Reader>, clock: Clock) -> Self {
        Self(Arc::new(Inner {
            inbox,
            clock,
            topics: Mutex::default(),
            new: Mutex::default(),
            has_new: Notify::new(),
            places: Places::default(),
            replays: Semaphore::new(REPLAYS_MAX),
        }))
    }

    /// Follows the workspaces that are read, until told to stop.
    pub async fn run(self, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        loop {
            let new = std::mem::take(&mut *lock(&self.0.new));
            for topic in new {
                let (hub, stop) = (self.clone(), stop.clone());
                tasks.spawn(async move { topic.follow(&hub, &stop).await });
            }
            tokio::select! {
                () = self.0.has_new.notified() => {}
                Some(_) = tasks.join_next() => {}
                () = stop.cancelled() => break,
            }
        }
        while tasks.join_next().await.is_some() {}
    }

    /// How many read.
    pub fn readers(&self) -> usize {
        self.0.places.taken()
    }

    pub(super) fn inbox(&self) -> &dyn Reader {
        &*self.0.inbox
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Ready when so much time has passed.
    pub(super) fn after(&self, delay: Duration) -> BoxFuture<'static, ()> {
        let clock = self.0.clock.clone();
        Box::pin(async move { clock.sleep(delay).await })
    }

    /// A place for a reader.
    pub(super) fn place(&self, token: Option<i64>) -> Result<Place, Problem> {
        self.0.places.take(token)
    }

    /// Turns of those who read from the store.
    pub(super) fn replays(&self) -> &Semaphore {
        &self.0.replays
    }

    /// The topic of a workspace, followed from now on, and its level.
    pub(super) fn join(&self, workspace: &Name) -> (Arc<Topic>, watch::Receiver<Option<u64>>) {
        let mut topics = lock(&self.0.topics);
        let topic = topics.entry(workspace.clone()).or_insert_with(|| {
            let topic = Arc::new(Topic::new(workspace.clone()));
            lock(&self.0.new).push(Arc::clone(&topic));
            self.0.has_new.notify_one();
            topic
        });
        (Arc::clone(topic), topic.level())
    }

    /// Forgets a topic that nobody reads; whether it is so.
    pub(super) fn forget(&self, topic: &Topic) -> bool {
        let mut topics = lock(&self.0.topics);
        let is_alone = topic.readers() == 0;
        if is_alone {
            topics.remove(&topic.workspace);
        }
        is_alone
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
