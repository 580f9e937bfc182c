//! Another version of a plugin, or none, and another configuration, while attempts are made.

use std::sync::Arc;

use super::rules::rebook;
use super::{Current, Dispatcher, Done, Means, notice};
use crate::config::Problem;
use crate::inbox::book::{Admission, Book, QueueKey};
use crate::inbox::{Adopted, InboxError};
use crate::notification::Name;
use crate::wasm::Catalog;

impl Dispatcher {
    /// Has attempts that are claimed from now on made with these plugins, of which `changed` is another than before, or
    /// gone. Those under way go on with what they have. One task does this at a time.
    ///
    /// Returns the mistakes that the plugin finds in settings of its targets, which are blocked.
    ///
    /// # Errors
    /// When the store refuses; then everything is as it was.
    pub async fn change(&self, catalog: Catalog, changed: &Name) -> Result<Vec<Problem>, InboxError> {
        let before = self.means.live.get();
        let (book, mistakes) = rebook(&before, &catalog, changed, &self.means.keys).await;
        let is_there = catalog.get(changed).is_some();
        let config = Arc::clone(&before.config);
        let Some(book) = book else {
            self.means.live.set(Current { config, catalog, book: Arc::clone(&before.book) });
            return Ok(mistakes);
        };
        let after = Current { config, catalog, book: Arc::new(book) };
        // What a new plugin unblocks is claimed at once, and must find it; what a plugin that goes still has claimed must,
        // too.
        if is_there {
            self.means.live.set(after.clone());
        }
        let adopted = self.adopt(&after.book).await;
        self.means.live.set(if adopted.is_ok() { after } else { Current::clone(&before) });
        if let Err(error) = adopted {
            self.means.queues.take_up(&before.book);
            return Err(error);
        }
        Ok(mistakes)
    }

    /// Has the versions at hand that attempts began on, where the plugins that run stay as they are.
    pub fn hold(&self, catalog: Catalog) {
        let before = self.means.live.get();
        let (config, book) = (Arc::clone(&before.config), Arc::clone(&before.book));
        self.means.live.set(Current { config, catalog, book });
    }

    /// Has attempts that are claimed from now on made by another configuration, with these plugins. Those under way go on
    /// with what they have. One task does this and [`Dispatcher::change`] at a time.
    ///
    /// Returns what was cancelled because its target is gone, by queue; its workspace is told.
    ///
    /// # Errors
    /// When the store refuses; then everything is as it was.
    pub async fn configure(&self, after: Current) -> Result<Vec<(QueueKey, u64)>, InboxError> {
        let before = self.means.live.get();
        // What a target that moved is claimed for at once must find it there.
        self.means.live.configure(after.clone());
        match self.adopt(&after.book).await {
            Ok(adopted) => {
                if let Err(error) = tell_cancelled(&self.means, &adopted.cancelled).await {
                    tracing::error!(%error, "a notice about deliveries that were cancelled cannot be written");
                }
                Ok(adopted.cancelled)
            }
            Err(error) => {
                self.means.live.set(Current::clone(&before));
                self.means.queues.take_up(&before.book);
                Err(error)
            }
        }
    }

    async fn adopt(&self, book: &Arc<Book>) -> Result<Adopted, InboxError> {
        let (queues, now) = (Arc::clone(&self.means.queues), self.means.clock.now());
        queues.take_up(book);
        let admission: Arc<dyn Admission> = Arc::clone(&queues) as Arc<dyn Admission>;
        let adopted = self.means.inbox.adopt(Arc::clone(book), Some(admission), now).await?;
        queues.restore(&adopted);
        Ok(adopted)
    }

    /// Tells of deliveries that the store cancelled by itself.
    pub(super) async fn tell_stranded(self: Arc<Self>, cancelled: Vec<(QueueKey, u64)>) -> Done {
        if let Err(error) = tell_cancelled(&self.means, &cancelled).await {
            tracing::error!(%error, "a notice about deliveries that were cancelled cannot be written");
        }
        Done::Told
    }
}

/// Tells each workspace of what was cancelled because its target is gone.
pub(super) async fn tell_cancelled(means: &Means, cancelled: &[(QueueKey, u64)]) -> Result<(), InboxError> {
    let (current, now) = (means.live.get(), means.clock.now());
    for (queue, deliveries) in cancelled {
        let workspace = &queue.workspace;
        tracing::warn!(%workspace, %queue, deliveries, "cancelled: the target is not in the configuration any more");
        let workspace = current.config.workspaces.get(workspace);
        if let Some(told) = workspace.and_then(|known| notice::cancelled(known, queue, *deliveries, now)) {
            means.inbox.accept(told).await?;
        }
    }
    Ok(())
}
