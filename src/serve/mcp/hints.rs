//! Hints that the outbox changed, for those who listen (MCP 2026-07-28, `subscriptions/listen`). A hint says nothing but that
//! it is worth reading now, and a reader that misses one reads at its usual time.

use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, select_all};
use rmcp::model::{ErrorData, ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification};
use rmcp::service::SubscriptionContext;
use tokio::sync::watch;

use super::outbox::Asked;
use super::server::{Server, caller};
use super::tools::workspace;
use crate::inbox::{CHANGES_MAX, Changed, InboxError, Store};
use crate::notification::Name;
use crate::serve::Served;
use crate::serve::auth::{Caller, Right};

/// Resources that one of them listens for.
pub(super) const URIS_MAX: usize = 16;

/// Hints of one listener are at least so far apart: what comes meanwhile is in the same hint.
const PAUSE: Duration = Duration::from_secs(1);

/// A resource that somebody listens for.
#[derive(Debug)]
struct Watched {
    uri: String,
    workspace: Name,
    follow: watch::Receiver<u64>,
    /// The change up to which nothing is left to be told.
    seen: u64,
}

/// Serves a listener until it goes, its token is not good any more, or the server stops.
pub(super) async fn listen(server: &Server, context: SubscriptionContext) -> Result<(), ErrorData> {
    let served = &server.served;
    let caller = caller(context.request_context())?;
    let _place = server.listeners.enter(caller.token).map_err(|why| ErrorData::internal_error(why, None))?;
    let watched = watched(served, caller, &context).await?;
    tokio::select! {
        // A token that was revoked hears nothing more.
        () = served.gate.ended(caller) => Ok(()),
        () = context.cancelled() => Ok(()),
        () = served.stop.cancelled() => Ok(()),
        () = tell(&*served.store, &context, watched) => Ok(()),
    }
}

/// What is listened for and may be.
async fn watched(served: &Served, caller: &Caller, context: &SubscriptionContext) -> Result<Vec<Watched>, ErrorData> {
    let unavailable = |error: InboxError| ErrorData::internal_error(error.to_string(), None);
    let mut watched = Vec::new();
    for uri in context.accepted().resource_subscriptions.iter().flatten() {
        let Some(Ok(asked)) = Asked::parse(uri) else { continue };
        let named = asked.workspace.as_deref();
        let workspace = workspace(served, caller, named, Right::ReadInbox)
            .map_err(|problem| ErrorData::invalid_params(problem.to_string(), None))?;
        let mut follow = served.store.follow(&workspace).await.map_err(unavailable)?;
        let seen = *follow.borrow_and_update();
        watched.push(Watched { uri: uri.clone(), workspace, follow, seen });
    }
    Ok(watched)
}

/// Tells each change, until that makes no sense any more.
async fn tell(store: &dyn Store, context: &SubscriptionContext, mut watched: Vec<Watched>) {
    if watched.is_empty() {
        std::future::pending::<()>().await;
    }
    loop {
        let changes: Vec<BoxFuture<'_, Option<String>>> =
            watched.iter_mut().map(|watched| watched.changed(store).boxed()).collect();
        let (Some(uri), _, _) = select_all(changes).await else { return };
        let hint = ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri));
        if context.sink().send(ServerNotification::ResourceUpdatedNotification(hint)).await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

impl Watched {
    /// The URI, once something came. None when nothing will be told any more. Nothing is lost when it is dropped and asked
    /// again.
    async fn changed(&mut self, store: &dyn Store) -> Option<String> {
        loop {
            let last = *self.follow.borrow_and_update();
            if last <= self.seen {
                self.follow.changed().await.ok()?;
                continue;
            }
            let changes = store.changes(&self.workspace, self.seen, CHANGES_MAX).await.ok()?;
            self.seen = changes.changes.last().map_or(changes.last, |change| change.number);
            // A gap is a notice, which has been created, too.
            let is_new = |change: &crate::inbox::change::Change| matches!(change.what, Changed::Created { .. });
            if changes.is_cut || changes.changes.iter().any(is_new) {
                return Some(self.uri.clone());
            }
        }
    }
}
