//! Tells a workspace that the queue of a consumer loses events, once each time that it begins. The store says when there is
//! something to tell, and a start looks by itself; the notice's id says which time it is, so that nothing is told twice.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Workspace};
use crate::inbox::{Ended, InboxError, Intake, LOSING_NAME, QUEUE_EVENTS_MAX, QueueView, Store};
use crate::notification::{Event, HOST_SOURCE, Level, Name};
use crate::route::entry;
use crate::serve::Served;

/// How long it waits when the store does not answer.
const RETRY: Duration = Duration::from_secs(30);

/// How long ago a loss that is over may have been for a start to tell of it still. Ids of events are known for longer.
const OLD_AFTER: SignedDuration = SignedDuration::from_hours(24 * 30);

/// Tells of losses.
#[derive(Debug)]
pub(super) struct Losses {
    store: Arc<dyn Store>,
    news: watch::Receiver<u64>,
    config: watch::Receiver<Arc<Config>>,
    clock: Clock,
    /// Of each queue, by workspace and consumer, which time was told last.
    told: BTreeMap<(Name, Name), u64>,
}

impl Losses {
    /// Those of the store that is served. Nothing is told before [`Losses::run`].
    pub(super) fn of(served: &Served) -> Self {
        Self::new(Arc::clone(&served.store), served.config.clone(), served.clock.clone())
    }

    fn new(store: Arc<dyn Store>, config: watch::Receiver<Arc<Config>>, clock: Clock) -> Self {
        let news = store.follow_losses();
        Self { store, news, config, clock, told: BTreeMap::new() }
    }

    /// Looks at once, when the store says that there is something to tell, and when the configuration changes: it may have a
    /// workspace again.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            self.news.mark_unchanged();
            let is_done = match self.round().await {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(%error, "that queues lose events cannot be told; trying again");
                    false
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed(&mut self.news) => {}
                () = changed(&mut self.config) => {}
                () = self.clock.sleep(RETRY), if !is_done => {}
            }
        }
    }

    /// Tells all that was not told.
    async fn round(&mut self) -> Result<(), InboxError> {
        let config = self.config.borrow_and_update().clone();
        for workspace in config.workspaces.values() {
            for queue in self.store.queues(&workspace.name).await? {
                self.tell(workspace, &queue).await?;
            }
        }
        Ok(())
    }

    async fn tell(&mut self, workspace: &Workspace, queue: &QueueView) -> Result<(), InboxError> {
        let now = self.clock.now();
        let key = (workspace.name.clone(), queue.consumer.clone());
        let is_told = self.told.get(&key).is_some_and(|told| *told >= queue.losses);
        if queue.losses == 0 || is_told || is_over_for_long(queue, now) {
            return Ok(());
        }
        let Some(intake) = intake(workspace, queue, now) else { return Ok(()) };
        let written = self.store.accept(intake).await?;
        if written.seqs.iter().any(Option::is_some) {
            let QueueView { consumer, lost, too_old, pending, .. } = queue;
            tracing::warn!(workspace = %workspace.name, %consumer, lost, too_old, pending, "the queue of a consumer loses events");
        }
        self.told.insert(key, queue.losses);
        Ok(())
    }
}

/// Ready when there is another value. Without a sender there is none any more.
async fn changed<T>(receiver: &mut watch::Receiver<T>) {
    if receiver.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn is_over_for_long(queue: &QueueView, now: Timestamp) -> bool {
    !queue.is_losing && queue.lost_at.is_none_or(|at| now.duration_since(at) > OLD_AFTER)
}

fn intake(workspace: &Workspace, queue: &QueueView, now: Timestamp) -> Option<Intake> {
    let source: Name = HOST_SOURCE.parse().ok()?;
    let event = event(queue, workspace.consumers.has(&queue.consumer), now);
    Some(Intake {
        workspace: workspace.name.clone(),
        received_at: now,
        entries: vec![entry(event, Level::Attention, (workspace, &source)).0],
        source,
        notices: Vec::new(),
        cursor: None,
        is_first: false,
        ended: Ended::Answered { revision: None, is_backlog: false },
    })
}

/// The notice.
fn event(of: &QueueView, is_configured: bool, now: Timestamp) -> Event {
    let consumer = &of.consumer;
    let data = json!({
        "consumer": consumer.as_str(), "lost": of.lost, "lostTooOld": of.too_old, "pending": of.pending, "losses": of.losses,
    });
    Event {
        event_id: format!("{LOSING_NAME}:{consumer}:{}", of.losses),
        name: LOSING_NAME.to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: Some(consumer.to_string()),
        title: format!("{consumer}: its queue loses events"),
        body: Some(body(of, is_configured)),
        link: None,
        data: data.to_string(),
        content: None,
    }
}

fn body(of: &QueueView, is_configured: bool) -> String {
    let full = of.lost.saturating_sub(of.too_old);
    let from_full = format!("{full} because it was full (it holds {QUEUE_EVENTS_MAX})");
    let too_old = format!("{} because they were too old to be kept", of.too_old);
    let why = match (full, of.too_old) {
        (_, 0) => from_full,
        (0, _) => too_old,
        _ => format!("{from_full}, {too_old}"),
    };
    let events = if of.lost == 1 { "1 event has".to_owned() } else { format!("{} events have", of.lost) };
    let remedy = if is_configured {
        format!(
            "See whether the agent runs and acknowledges what it has taken over, or have fewer match under \
             `consumers.{}.when`.",
            of.consumer
        )
    } else {
        format!(
            "`consumers` has no {} any more, so that nothing new joins: put it back, or let the rest go.",
            of.consumer
        )
    };
    format!(
        "{events} left the queue unacknowledged so far: {why}. {} still wait. What left the queue stays in the inbox as long \
         as it is kept there. {remedy}",
        of.pending
    )
}
