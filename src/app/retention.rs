//! What is old goes, a little at a time, so that nobody who writes waits for it.

mod export;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, later};
use crate::config::{Config, Kept};
use crate::inbox::{Expiry, InboxError, Page, Store, Which};
use crate::notification::Name;
use crate::serve::Served;
use crate::telemetry::metrics::Metrics;

/// How often it is looked for what is old.
const EVERY: Duration = Duration::from_secs(600);

/// Notifications that one write removes: a millisecond or two, for which all that is to be written waits.
const BATCH: u32 = 50;

/// Batches of one workspace before it is another's turn.
const TURN: usize = 20;

/// Rows of changes, each of up to a thousand, that one write removes.
const CHANGES_BATCH: u32 = 20;

/// Event ids that one write forgets.
const SEEN_BATCH: u32 = 500;

/// How often event ids are looked through: every one of them, without an index.
const SEEN_EVERY: Duration = Duration::from_secs(86_400);

/// Deliveries that a line of the export holds.
const DELIVERIES_MAX: u32 = 1_000;

/// Removes what is old.
#[derive(Debug)]
pub(super) struct Retaining {
    store: Arc<dyn Store>,
    config: watch::Receiver<Arc<Config>>,
    clock: Clock,
    metrics: Arc<Metrics>,
    /// When event ids are looked through next.
    seen_at: Timestamp,
    /// What was said of why it cannot be done.
    said: Option<String>,
}

/// Why it cannot be done.
#[derive(Debug)]
enum Trouble {
    Store(InboxError),
    Export(std::io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(error) => error.fmt(out),
            Self::Export(error) => write!(
                out,
                "the folder `retention.export` cannot be written, and until it can, nothing goes: free space, change its \
                 permissions, or name another ({error})"
            ),
        }
    }
}

impl From<InboxError> for Trouble {
    fn from(error: InboxError) -> Self {
        Self::Store(error)
    }
}

impl Retaining {
    /// What is old in the store that is served. Nothing is removed before [`Retaining::run`].
    pub(super) fn of(served: &Served) -> Self {
        let metrics = Arc::clone(&served.metrics);
        Self::new(Arc::clone(&served.store), served.config.clone(), served.clock.clone(), metrics)
    }

    fn new(store: Arc<dyn Store>, config: watch::Receiver<Arc<Config>>, clock: Clock, metrics: Arc<Metrics>) -> Self {
        Self { store, config, clock, metrics, seen_at: Timestamp::MIN, said: None }
    }

    /// Looks at once, then every ten minutes, and when the configuration changes.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let done = self.round(&stop).await;
            self.say(done.err());
            let changed = async {
                // Without a sender there is no other configuration any more.
                if self.config.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep(EVERY) => {}
                () = changed => {}
            }
        }
    }

    /// Trouble is told once, and when it is over.
    fn say(&mut self, trouble: Option<Trouble>) {
        self.metrics.retaining(trouble.is_none());
        let trouble = trouble.map(|trouble| trouble.to_string());
        match (&self.said, &trouble) {
            (None, Some(error)) => {
                tracing::error!(%error, "what is old cannot be removed; trying again every ten minutes")
            }
            (Some(_), None) => tracing::info!("what is old is removed again"),
            _ => {}
        }
        self.said = trouble;
    }

    /// Removes all that is old by now. What can be done is done, whatever cannot.
    async fn round(&mut self, stop: &CancellationToken) -> Result<(), Trouble> {
        let mut done = self.forget_seen(stop).await.map_err(Trouble::Store);
        // The store may hold some that are not in the configuration any more.
        let mut open: VecDeque<(Name, u64)> =
            self.store.workspaces().await?.into_iter().map(|name| (name, 0)).collect();
        while let Some((name, after)) = open.pop_front() {
            if stop.is_cancelled() {
                break;
            }
            match self.turn(&name, after, stop).await {
                Ok(Some(next)) => open.push_back((name, next)),
                Ok(None) => {}
                Err(trouble) => done = Err(trouble),
            }
        }
        done
    }

    /// Removes some of a workspace; returns where to go on, if there is more.
    async fn turn(&self, name: &Name, mut after: u64, stop: &CancellationToken) -> Result<Option<u64>, Trouble> {
        let mut began = Instant::now();
        while self.store.forget_changes(name, CHANGES_BATCH).await? == u64::from(CHANGES_BATCH) && !stop.is_cancelled()
        {
            rest(began).await;
            began = Instant::now();
        }
        for _ in 0..TURN {
            let began = Instant::now();
            let (expiry, export) = self.expiry(name, after);
            let found = self.store.expiring(name, expiry, BATCH).await?;
            if !found.items.is_empty() {
                if let Some(folder) = export {
                    self.export(&folder, name, &found.items).await?;
                }
                let seqs = found.items.iter().map(|(one, _)| one.seq).collect();
                let expired = self.store.expire(name, seqs, self.clock.now()).await?;
                self.metrics.expired(name, expired);
            }
            match found.next {
                Some(next) if !stop.is_cancelled() => after = next,
                _ => return Ok(None),
            }
            rest(began).await;
        }
        Ok(Some(after))
    }

    /// What may go by the configuration as it is now, and where it is written to before.
    fn expiry(&self, name: &Name, after: u64) -> (Expiry, Option<PathBuf>) {
        let config = self.config.borrow();
        let Kept { age, count } = config.workspaces.get(name).map_or(config.retention.kept, |workspace| workspace.kept);
        let before = Some(ago(self.clock.now(), age));
        (Expiry { before, keep: Some(count.into()), after }, config.retention.export.clone())
    }

    async fn export(&self, folder: &Path, name: &Name, items: &[export::Item]) -> Result<(), Trouble> {
        let mut lines = String::new();
        for item in items {
            let which = Which { seq: Some(item.0.seq), ..Which::default() };
            let page = Page { workspace: name.clone(), before: None, limit: DELIVERIES_MAX };
            let deliveries = self.store.deliveries(page, which).await?;
            lines.push_str(&export::line(item, &deliveries).map_err(Trouble::Export)?);
        }
        export::append(folder, name, self.clock.now(), lines).await.map_err(Trouble::Export)
    }

    /// Forgets event ids once a day.
    async fn forget_seen(&mut self, stop: &CancellationToken) -> Result<(), InboxError> {
        let now = self.clock.now();
        if now < self.seen_at && self.seen_at < later(now, 2 * SEEN_EVERY) {
            return Ok(());
        }
        let before = ago(now, self.config.borrow().retention.dedupe);
        loop {
            let began = Instant::now();
            let forgotten = self.store.forget_seen(before, SEEN_BATCH).await?;
            self.metrics.forgot(forgotten);
            if forgotten < u64::from(SEEN_BATCH) || stop.is_cancelled() {
                break;
            }
            rest(began).await;
        }
        self.seen_at = later(now, SEEN_EVERY);
        Ok(())
    }
}

/// Leaves the store to others for as long as it was just used, so that whoever writes or reads meanwhile waits for a removal as
/// seldom as not.
async fn rest(began: Instant) {
    tokio::time::sleep(began.elapsed()).await;
}

fn ago(now: Timestamp, age: Duration) -> Timestamp {
    SignedDuration::try_from(age).ok().and_then(|age| now.checked_sub(age).ok()).unwrap_or(Timestamp::MIN)
}
