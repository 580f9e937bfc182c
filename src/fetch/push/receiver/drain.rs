//! What is pending is got page by page, each accepted and acknowledged before the next.

use tokio_util::sync::CancellationToken;

use super::{End, Receiver, refused, unless_stopped};
use crate::clock::until;
use crate::fetch::outbox::ReadError;
use crate::fetch::poller::Polled;
use crate::fetch::poller::failure::Failure;
use crate::fetch::push::page;
use crate::telemetry::Happening;

/// Events asked for at once.
const LIMIT: u32 = 100;

/// A page that is too large is asked for again with so many times fewer events.
const FEWER: u32 = 4;

const NO_PROGRESS: &str = "the server says that there is more, and gives nothing that was not acknowledged before: an event \
                           that is acknowledged leaves the queue at once, and each needs an eventId of its own, a string";

impl Receiver {
    /// Gets all that is pending.
    pub(super) async fn drain(&mut self, stop: &CancellationToken) -> Result<Polled, End> {
        let mut polled = Polled::default();
        let mut limit = LIMIT;
        self.notice_calm();
        loop {
            self.wait_for_budget(polled.reads == 0, stop).await?;
            polled.reads += 1;
            let text = match unless_stopped(stop, self.queue.get(limit)).await? {
                Err(ReadError::TooLarge { .. }) if limit > 1 => {
                    limit = (limit / FEWER).max(1);
                    continue;
                }
                text => text.map_err(refused)?,
            };
            let page = page::parse(&text).map_err(|error| End::Failed(Failure::Page(error)))?;
            (self.heard_at, self.looked_at) = (self.ledger.now(), self.ledger.now());
            polled.events += page.events.len();
            let taken = self.take(&page.events, page.is_handed_on).await?;
            polled.new += taken.new;
            polled.dropped += taken.dropped;
            self.tell_read(page.events.len());
            self.acknowledge(&taken.ids, stop).await?;
            let is_progress = taken.ids.iter().any(|id| !self.acknowledged.contains(id));
            if is_progress {
                self.is_of_use();
                self.acknowledged = taken.ids;
            }
            if !page.has_more {
                break;
            }
            if !is_progress {
                self.is_unsteady = true;
                return Err(End::Failed(Failure::Queue(NO_PROGRESS)));
            }
        }
        (self.heard_at, self.looked_at) = (self.ledger.now(), self.ledger.now());
        Ok(polled)
    }

    /// The same for a person: a failure is kept, told, and part of the answer.
    pub(super) async fn look_for_a_person(&mut self, stop: &CancellationToken) -> Result<Polled, End> {
        let looked = match self.know().await {
            Ok(()) => self.drain(stop).await,
            Err(end) => Err(end),
        };
        match looked {
            Err(End::Failed(failure)) => {
                let due = self.failed(&failure).await?;
                let next_in = until(self.ledger.now(), due);
                Ok(Polled { failure: Some(failure.to_string()), next_in, ..Polled::default() })
            }
            Ok(polled) => Ok(Polled { next_in: self.poll()?.ceiling, ..polled }),
            Err(End::Stopped) => Err(End::Stopped),
        }
    }

    /// The first page is there to see whether there is anything; what follows waits its turn in the workspace.
    async fn wait_for_budget(&mut self, is_first: bool, stop: &CancellationToken) -> Result<(), End> {
        if is_first {
            self.budget.take_at_once();
            return Ok(());
        }
        if self.budget.left() == 0 {
            let (workspace, source) = (self.ledger.workspace.clone(), self.ledger.source.clone());
            self.ledger.shared.observer.happened(&Happening::Deferred { workspace, source });
            self.ledger.desk.update(|status| status.is_deferred = true);
        }
        let taken = unless_stopped(stop, self.budget.take()).await;
        self.ledger.desk.update(|status| status.is_deferred = false);
        taken
    }

    fn tell_read(&self, events: usize) {
        let (workspace, source) = (self.ledger.workspace.clone(), self.ledger.source.clone());
        tracing::debug!(%workspace, %source, events, "got a page of pending events");
        let next_in = self.poll().map(|poll| poll.ceiling).unwrap_or_default();
        let read = Happening::Read { workspace, source, events, bootstrap: false, next_in };
        self.ledger.shared.observer.happened(&read);
    }
}
