//! The parts of the contract that are not about the engine: readers, tokens, retention, the queues of consumers.

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use tokio::sync::watch;

use super::{SqliteInbox, changes, expiry, list, queues, read, replay, tokens};
use crate::inbox::{
    Changes, Consumed, Expired, Expiry, InboxError, Listed, Pending, Query, QueueView, Queues, Reader, Retention,
    Token, Tokens,
};
use crate::notification::Name;

impl Reader for SqliteInbox {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Listed, InboxError>> {
        self.read(move |connection| list::list(connection, &query)).boxed()
    }

    fn unread<'a>(&'a self, workspace: &'a Name, most: u32) -> BoxFuture<'a, Result<u32, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| list::unread(connection, &workspace, most)).boxed()
    }

    fn last_seq<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<u64, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| read::last_seq(connection, &workspace)).boxed()
    }

    fn changes<'a>(
        &'a self,
        workspace: &'a Name,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Changes, InboxError>> {
        let (store, workspace) = (self.store.clone(), workspace.clone());
        self.read(move |connection| replay::changes(connection, &store, &workspace, after, limit)).boxed()
    }

    fn follow<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>> {
        async move {
            // Whoever joins first is told of every commit from now on; what was before is read after that.
            let receiver = self.desk.followers.join(workspace);
            let name = workspace.clone();
            let last = self.read(move |connection| match read::workspace(connection, &name)? {
                Some(workspace) => changes::last(connection, workspace),
                None => Ok(0),
            });
            self.desk.followers.tell(workspace, last.await?.unsigned_abs());
            Ok(receiver)
        }
        .boxed()
    }
}

impl Tokens for SqliteInbox {
    fn add_token(&self, token: Token) -> BoxFuture<'_, Result<i64, InboxError>> {
        self.write(move |session| tokens::add(session, &token)).boxed()
    }

    fn token(&self, hash: [u8; 32]) -> BoxFuture<'_, Result<Option<Token>, InboxError>> {
        self.read(move |connection| tokens::find(connection, &hash)).boxed()
    }

    fn tokens(&self, now: Timestamp) -> BoxFuture<'_, Result<Vec<Token>, InboxError>> {
        self.read(move |connection| tokens::all(connection, now)).boxed()
    }

    fn revoke_token(&self, id: i64, now: Timestamp) -> BoxFuture<'_, Result<bool, InboxError>> {
        self.write(move |session| tokens::revoke(session, id, now)).boxed()
    }

    fn redeem(
        &self,
        link: [u8; 32],
        session: Token,
        now: Timestamp,
    ) -> BoxFuture<'_, Result<Option<Token>, InboxError>> {
        let kept = session;
        self.write(move |session| tokens::redeem(session, &link, &kept, now)).boxed()
    }

    fn tokens_used(&self, used: Vec<(i64, Timestamp)>) -> BoxFuture<'_, Result<(), InboxError>> {
        self.write(move |session| tokens::used(session, &used)).boxed()
    }
}

impl Retention for SqliteInbox {
    fn workspaces(&self) -> BoxFuture<'_, Result<Vec<Name>, InboxError>> {
        self.read(read::workspaces).boxed()
    }

    fn expiring<'a>(
        &'a self,
        workspace: &'a Name,
        expiry: Expiry,
        limit: u32,
    ) -> BoxFuture<'a, Result<Listed, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| expiry::expiring(connection, &workspace, &expiry, limit)).boxed()
    }

    fn expire<'a>(
        &'a self,
        workspace: &'a Name,
        seqs: Vec<u64>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Expired, InboxError>> {
        let workspace = workspace.clone();
        self.write(move |session| expiry::expire(session, &workspace, &seqs, now)).boxed()
    }

    fn forget_changes<'a>(&'a self, workspace: &'a Name, limit: u32) -> BoxFuture<'a, Result<u64, InboxError>> {
        let workspace = workspace.clone();
        self.write(move |session| replay::forget(session.connection, &workspace, limit)).boxed()
    }

    fn forget_seen(&self, before: Timestamp, limit: u32) -> BoxFuture<'_, Result<u64, InboxError>> {
        async move {
            let most = usize::try_from(limit).unwrap_or(usize::MAX);
            let mut found = Vec::new();
            let mut place = self.seen.get();
            let is_end = loop {
                let (after, rest) = (place.clone(), most.saturating_sub(found.len()));
                let (more, next) =
                    self.read(move |connection| expiry::old_seen(connection, &after, before, rest)).await?;
                found.extend(more);
                let Some(next) = next else { break true };
                place = next;
                if found.len() >= most {
                    break false;
                }
            };
            let forget = move |session: &mut super::Session<'_>| {
                if is_end {
                    expiry::forget_memory(session, before)?;
                }
                expiry::forget_seen(session, &found, before)
            };
            let forgotten = self.write(forget).await?;
            self.seen.set((!is_end).then_some(place));
            Ok(forgotten)
        }
        .boxed()
    }
}

impl Queues for SqliteInbox {
    fn pending<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
        after: u64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Pending, InboxError>> {
        let queue = (workspace.clone(), consumer.clone());
        self.read(move |connection| queues::pending(connection, &queue, after, limit)).boxed()
    }

    fn consume<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
        ids: Vec<String>,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Consumed, InboxError>> {
        let queue = (workspace.clone(), consumer.clone());
        self.write(move |session| queues::consume(session.connection, &queue, &ids, now)).boxed()
    }

    fn follow_queue<'a>(
        &'a self,
        workspace: &'a Name,
        consumer: &'a Name,
    ) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>> {
        async move {
            let queue = (workspace.clone(), consumer.clone());
            // As with workspaces: what comes from now on is told, what was before is read after that.
            let receiver = self.desk.queues.join(&queue);
            let asked = queue.clone();
            let last = self.read(move |connection| queues::last(connection, &asked)).await?;
            self.desk.queues.tell(&queue, last);
            Ok(receiver)
        }
        .boxed()
    }

    fn follow_losses(&self) -> watch::Receiver<u64> {
        self.desk.losses.subscribe()
    }

    fn queues<'a>(&'a self, workspace: &'a Name) -> BoxFuture<'a, Result<Vec<QueueView>, InboxError>> {
        let workspace = workspace.clone();
        self.read(move |connection| queues::queues(connection, &workspace)).boxed()
    }
}
