//! What a server says by itself: that the outbox changed. It is asked to say so where it advertises that it can, in the
//! way of its revision, and what it says is only ever a hint: polling stays the truth, and nothing here is an error.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, JsonObject, ResourceUpdatedNotificationParam,
    SubscribeRequestParams, SubscriptionFilter, SubscriptionsAcknowledgedNotificationParams,
    SubscriptionsListenRequest, SubscriptionsListenRequestParams,
};
use rmcp::service::{NotificationContext, Peer, PeerRequestOptions, ServiceError};
use tokio::sync::Notify;

use super::again::{Again, Waits};
use super::heard::Heard;
use crate::fetch::queue::EXTENSION;

/// How long a server may take to accept a subscription.
const SUBSCRIBE_TIME_MAX: Duration = Duration::from_secs(10);

/// What was said and is not yet told; many are one.
#[derive(Debug, Default)]
struct Said {
    changed: Notify,
    acknowledged: Notify,
}

/// Our side of a connection: it takes hints, and nothing else.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    outbox: Arc<str>,
    /// Whether we speak the extension of push queues.
    is_pushed: bool,
    said: Arc<Said>,
}

impl Handler {
    pub(super) fn new(outbox: &Arc<str>, is_pushed: bool) -> Self {
        Self { outbox: Arc::clone(outbox), is_pushed, said: Arc::default() }
    }

    /// The server says that this resource changed.
    pub(super) fn hint(&self, uri: &str) {
        if is_of(&self.outbox, uri) {
            self.said.changed.notify_one();
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let ourselves = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        if self.is_pushed {
            capabilities.extensions = Some([(EXTENSION.to_owned(), JsonObject::new())].into());
        }
        ClientConfig::new(capabilities, ourselves)
    }

    async fn on_resource_updated(
        &self,
        said: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.hint(&said.uri);
    }

    async fn on_subscriptions_acknowledged(
        &self,
        _accepted: SubscriptionsAcknowledgedNotificationParams,
        _context: NotificationContext<RoleClient>,
    ) {
        self.said.acknowledged.notify_one();
    }
}

/// Whether a URI is that of the outbox: the bare one, or that of a read. Some servers write it with a slash at its end.
fn is_of(outbox: &str, uri: &str) -> bool {
    let Some(rest) = uri.strip_prefix(outbox) else { return false };
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    rest.is_empty() || rest.starts_with('?')
}

/// The hints of one connection.
pub(super) struct Hints {
    said: Arc<Said>,
    /// Keeps the subscription; none when there is none to keep. It goes on where it was left.
    keeping: Option<BoxFuture<'static, ()>>,
}

impl fmt::Debug for Hints {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Hints").field("is_subscribed", &self.keeping.is_some()).finish_non_exhaustive()
    }
}

impl Hints {
    /// Asks for hints, once they are waited for, if the server advertises that it gives them. `heard` tells when a
    /// session began, over HTTP; a child has one.
    pub(super) fn new(peer: &Peer<RoleClient>, handler: &Handler, heard: Option<Arc<Heard>>, waits: Waits) -> Self {
        let said = Arc::clone(&handler.said);
        let keeper = Keeper {
            peer: peer.clone(),
            outbox: Arc::clone(&handler.outbox),
            said: Arc::clone(&said),
            again: Again::new(waits),
            is_served: false,
        };
        let server = peer.peer_info();
        let gives_hints = server.as_ref().and_then(|server| server.capabilities.resources.as_ref()?.subscribe);
        let keeping: Option<BoxFuture<'static, ()>> = match &server {
            Some(server) if gives_hints == Some(true) && server.protocol_version.has_initialize() => {
                Some(Box::pin(keeper.subscribe(heard)))
            }
            Some(_) if gives_hints == Some(true) => Some(Box::pin(keeper.listen())),
            _ => None,
        };
        Self { said, keeping }
    }

    /// Ready when a hint came since the last time. Dropping the future loses nothing.
    pub(super) async fn changed(&mut self) {
        if let Some(keeping) = &mut self.keeping {
            tokio::select! {
                biased;
                () = self.said.changed.notified() => return,
                () = keeping => {}
            }
            self.keeping = None;
        }
        self.said.changed.notified().await;
    }
}

/// Whether a subscription ended in a way that lets it be taken up again.
enum Ended {
    Gone,
    Refused,
}

struct Keeper {
    peer: Peer<RoleClient>,
    outbox: Arc<str>,
    said: Arc<Said>,
    again: Again,
    /// The server has accepted a subscription before: what fails from then on may work again later.
    is_served: bool,
}

impl Keeper {
    async fn turn(&mut self) {
        tokio::time::sleep(self.again.wait(Instant::now(), fastrand::f64())).await;
        self.again.begins(Instant::now());
    }

    /// Subscribes in each session, as servers from before 2026-07-28 have it. Returns when the first refuses.
    async fn subscribe(mut self, heard: Option<Arc<Heard>>) {
        loop {
            if let Some(heard) = &heard {
                heard.session().await;
            }
            self.turn().await;
            #[expect(deprecated, reason = "the revisions that have an `initialize` have no other way")]
            let subscribed = self.peer.subscribe(SubscribeRequestParams::new(self.outbox.as_ref()));
            let is_subscribed =
                tokio::time::timeout(SUBSCRIBE_TIME_MAX, subscribed).await.is_ok_and(|done| done.is_ok());
            self.is_served |= is_subscribed;
            if !self.is_served || heard.is_none() {
                return;
            }
        }
    }

    /// Listens, and listens again when that ended. Returns when the server refuses, or the connection is gone.
    async fn listen(mut self) {
        while !self.peer.is_transport_closed() {
            self.turn().await;
            if let Ended::Refused = self.listen_once().await {
                return;
            }
        }
    }

    async fn listen_once(&mut self) -> Ended {
        let filter = SubscriptionFilter::builder().resource_subscriptions([self.outbox.as_ref()]).build();
        let request = SubscriptionsListenRequest::new(SubscriptionsListenRequestParams::new(filter));
        // Not by the library's own subscription: that one ends at a hint whose URI has a query.
        let request = ClientRequest::SubscriptionsListenRequest(request);
        let Ok(mut listening) = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await
        else {
            return Ended::Gone;
        };
        let accepted = tokio::time::timeout(SUBSCRIBE_TIME_MAX, async {
            tokio::select! {
                biased;
                () = self.said.acknowledged.notified() => None,
                ended = &mut listening.rx => Some(ended),
            }
        });
        match accepted.await {
            Ok(None) => self.is_served = true,
            // It is being restarted.
            Ok(Some(Ok(Err(ServiceError::TransportSend(_))))) if self.is_served => return Ended::Gone,
            Ok(Some(Ok(Err(ServiceError::TransportClosed)) | Ok(Ok(_)) | Err(_))) => return Ended::Gone,
            Ok(Some(Ok(Err(_)))) => return Ended::Refused,
            Err(_) => {
                let _ = listening.cancel(None).await;
                return Ended::Refused;
            }
        }
        // However it ends.
        let _ = listening.rx.await;
        Ended::Gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_the_outbox_bare_or_with_a_query() {
        let check = |uri: &str, expected: bool| assert_eq!(is_of("acme://notifications", uri), expected, "{uri}");
        check("acme://notifications", true);
        check("acme://notifications/", true);
        check("acme://notifications?cursor=c-7&maxEvents=100", true);
        check("acme://notifications/?cursor=c-7", true);
        check("acme://notifications-of-others", false);
        check("acme://notifications/7", false);
        check("acme://", false);
    }
}
