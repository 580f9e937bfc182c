//! The store of the poller's tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;

use crate::inbox::book::{Admission, Book, QueueKey};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::*;
use crate::notification::{Name, Notification};
use crate::route::timing::AtMost;

/// The store, with writes that fail on demand.
#[derive(Debug)]
pub(in crate::fetch) struct Store {
    pub(in crate::fetch) sqlite: SqliteInbox,
    pub(in crate::fetch) is_full: AtomicBool,
}

impl Inbox for Store {
    fn accept(&self, intake: Intake) -> BoxFuture<'_, Result<Accepted, InboxError>> {
        if self.is_full.load(Ordering::SeqCst) {
            return async { Err(InboxError::Unavailable("the disk is full".to_owned())) }.boxed();
        }
        self.sqlite.accept(intake)
    }

    fn reading<'a>(&'a self, workspace: &'a Name, source: &'a Name) -> BoxFuture<'a, Result<Reading, InboxError>> {
        self.sqlite.reading(workspace, source)
    }

    fn readings<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<(Name, Reading)>, InboxError>> {
        self.sqlite.readings(workspace)
    }

    fn key(&self) -> [u8; 32] {
        self.sqlite.key()
    }

    fn adopt(
        &self,
        book: Arc<Book>,
        admission: Option<Arc<dyn Admission>>,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Adopted, InboxError>> {
        self.sqlite.adopt(book, admission, now)
    }

    fn claim(&self, now: Timestamp, wants: Vec<Want>) -> BoxFuture<'_, Result<Claimed, InboxError>> {
        self.sqlite.claim(now, wants)
    }

    fn news(&self) -> BoxFuture<'_, News> {
        self.sqlite.news()
    }

    fn keep(&self, kept: Kept) -> BoxFuture<'_, Result<(), InboxError>> {
        self.sqlite.keep(kept)
    }

    fn pause(&self, paused: Paused) -> BoxFuture<'_, Result<(), InboxError>> {
        self.sqlite.pause(paused)
    }

    fn finish(&self, finished: Finished) -> BoxFuture<'_, Result<Vec<Option<u64>>, InboxError>> {
        self.sqlite.finish(finished)
    }

    fn plugins_in_use(&self) -> BoxFuture<'_, Result<Vec<(Name, String)>, InboxError>> {
        self.sqlite.plugins_in_use()
    }

    fn retry<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Handled, InboxError>> {
        self.sqlite.retry(workspace, which, now)
    }

    fn cancel<'a>(
        &'a self,
        workspace: &'a Name,
        which: Which,
        why: String,
    ) -> BoxFuture<'a, Result<Handled, InboxError>> {
        self.sqlite.cancel(workspace, which, why)
    }

    fn mark<'a>(
        &'a self,
        workspace: &'a Name,
        seqs: Vec<u64>,
        deed: Deed,
        mark: Mark,
    ) -> BoxFuture<'a, Result<Marked, InboxError>> {
        self.sqlite.mark(workspace, seqs, deed, mark)
    }

    fn marks<'a>(&'a self, workspace: &'a Name, seqs: Vec<u64>) -> BoxFuture<'a, Result<Vec<Marks>, InboxError>> {
        self.sqlite.marks(workspace, seqs)
    }

    fn notifications(&self, page: Page) -> BoxFuture<'_, Result<Vec<Notification>, InboxError>> {
        self.sqlite.notifications(page)
    }

    fn notification<'a>(
        &'a self,
        workspace: &'a Name,
        seq: u64,
    ) -> BoxFuture<'a, Result<Option<Notification>, InboxError>> {
        self.sqlite.notification(workspace, seq)
    }

    fn deliveries(&self, page: Page, which: Which) -> BoxFuture<'_, Result<Vec<DeliveryView>, InboxError>> {
        self.sqlite.deliveries(page, which)
    }

    fn known<'a>(
        &'a self,
        workspace: &'a Name,
        from: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Known>, InboxError>> {
        self.sqlite.known(workspace, from, limit)
    }

    fn seq_since<'a>(&'a self, workspace: &'a Name, moment: Timestamp) -> BoxFuture<'a, Result<u64, InboxError>> {
        self.sqlite.seq_since(workspace, moment)
    }

    fn record(&self, recording: Recording) -> BoxFuture<'_, Result<(), InboxError>> {
        self.sqlite.record(recording)
    }

    fn recordings<'a>(&'a self, plugin: &'a Name) -> BoxFuture<'a, Result<Vec<Recording>, InboxError>> {
        self.sqlite.recordings(plugin)
    }

    fn is_of_first_read<'a>(&'a self, workspace: &'a Name, seq: u64) -> BoxFuture<'a, Result<bool, InboxError>> {
        self.sqlite.is_of_first_read(workspace, seq)
    }

    fn target_state<'a>(
        &'a self,
        queue: &'a QueueKey,
        at_most: Option<&'a AtMost>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<TargetState, InboxError>> {
        self.sqlite.target_state(queue, at_most, now)
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneRecord>, InboxError>> {
        self.sqlite.lanes()
    }
}
