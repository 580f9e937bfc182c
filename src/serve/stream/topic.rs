//! A workspace that somebody reads live: one task renders each change once for all of them.

use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::frames::{self, Part};
use super::hub::Hub;
use super::ring::{Ring, Taken};
use crate::inbox::InboxError;
use crate::notification::Name;

/// Changes that are rendered at a time.
const RENDERED_AT_ONCE: u32 = 256;

/// How many changes from before the first reader are rendered at the beginning: those who were away for a moment, while the
/// server was started anew, say, find theirs there.
const RENDERED_BEFORE: u64 = 256;

/// How long a store that cannot be read is left alone.
const AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked whether anybody still reads; nobody twice in a row, and the workspace is no longer followed.
const KEPT: Duration = Duration::from_secs(60);

/// A workspace that is followed.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) workspace: Name,
    ring: RwLock<Ring>,
    level: watch::Sender<Option<u64>>,
}

impl Topic {
    /// One that nobody follows yet.
    pub(super) fn new(workspace: Name) -> Self {
        Self { workspace, ring: RwLock::new(Ring::new(0)), level: watch::Sender::new(None) }
    }

    /// The number of the last change that is rendered, told again after each; none before the beginning.
    pub(super) fn level(&self) -> watch::Receiver<Option<u64>> {
        self.level.subscribe()
    }

    /// How many read.
    pub(super) fn readers(&self) -> usize {
        self.level.receiver_count()
    }

    /// Frames for a reader at this number.
    pub(super) fn after(&self, position: u64, shows_work: bool) -> Taken {
        self.ring.read().unwrap_or_else(PoisonError::into_inner).after(position, shows_work)
    }

    /// Follows the workspace until nobody has read it for a while, or told to stop.
    pub(super) async fn follow(&self, hub: &Hub, stop: &CancellationToken) {
        let followed = async {
            loop {
                let Err(error) = self.followed(hub).await else { return };
                tracing::warn!(workspace = %self.workspace, %error, "live readers wait: the store cannot be read");
                hub.clock().sleep(AGAIN).await;
            }
        };
        tokio::select! {
            () = followed => {}
            () = stop.cancelled() => {}
        }
    }

    async fn followed(&self, hub: &Hub) -> Result<(), InboxError> {
        let mut told = hub.inbox().follow(&self.workspace).await?;
        self.begin(*told.borrow());
        let mut was_alone = false;
        let mut look = hub.after(KEPT);
        loop {
            let last = *told.borrow_and_update();
            self.render(hub, last).await?;
            tokio::select! {
                changed = told.changed() => {
                    changed.map_err(|_| InboxError::Unavailable("it does not tell what changes any more".to_owned()))?;
                }
                () = &mut look => {
                    look = hub.after(KEPT);
                    let is_alone = self.readers() == 0;
                    if is_alone && was_alone && hub.forget(self) {
                        return Ok(());
                    }
                    was_alone = is_alone;
                }
            }
        }
    }

    /// Takes the place from which changes are rendered, unless it has one.
    fn begin(&self, last: u64) {
        if self.level.borrow().is_none() {
            self.cut(last.saturating_sub(RENDERED_BEFORE));
        }
    }

    /// Renders what there is up to a number, and tells the readers.
    async fn render(&self, hub: &Hub, last: u64) -> Result<(), InboxError> {
        loop {
            let rendered = self.ring.read().unwrap_or_else(PoisonError::into_inner).last();
            if rendered >= last {
                break;
            }
            let Part { batches, last, is_cut } =
                frames::read(hub.inbox(), &self.workspace, rendered, RENDERED_AT_ONCE, usize::MAX).await?;
            if is_cut || batches.is_empty() {
                self.cut(last);
                break;
            }
            let mut ring = self.ring.write().unwrap_or_else(PoisonError::into_inner);
            batches.into_iter().for_each(|batch| ring.push(batch));
            drop(ring);
            self.tell();
        }
        self.tell();
        Ok(())
    }

    fn cut(&self, last: u64) {
        self.ring.write().unwrap_or_else(PoisonError::into_inner).cut(last);
    }

    fn tell(&self) {
        let last = self.ring.read().unwrap_or_else(PoisonError::into_inner).last();
        self.level.send_if_modified(|level| level.replace(last) != Some(last));
    }
}
