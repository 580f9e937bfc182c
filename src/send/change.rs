//! Another version of a plugin, or none, while attempts are made.

use std::sync::Arc;

use super::rules::rebook;
use super::{Current, Dispatcher};
use crate::config::Problem;
use crate::inbox::InboxError;
use crate::inbox::book::{Admission, Book};
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

    async fn adopt(&self, book: &Arc<Book>) -> Result<(), InboxError> {
        let (queues, now) = (Arc::clone(&self.means.queues), self.means.clock.now());
        queues.take_up(book);
        let admission: Arc<dyn Admission> = Arc::clone(&queues) as Arc<dyn Admission>;
        let adopted = self.means.inbox.adopt(Arc::clone(book), Some(admission), now).await?;
        queues.restore(&adopted);
        Ok(())
    }
}
