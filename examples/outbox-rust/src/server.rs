//! The MCP server around the outbox, with rmcp: one resource, and a hint when it changes.

use std::sync::{Mutex, PoisonError};

use percent_encoding::percent_decode_str;
use rmcp::model::{
    ErrorData, Implementation, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
    ResourceUpdatedNotificationParam, ServerCapabilities, ServerConfig, SubscribeRequestParams, SubscriptionFilter,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::outbox::{Outbox, OutboxError, PollResult, Query};

pub const OUTBOX_URI: &str = "acme://notifications";
const OUTBOX_TEMPLATE: &str = "acme://notifications{?cursor,maxEvents,maxAgeMs}";
const OUTBOX_ABOUT: &str = "Domains, replies and bounces.";
const JSON: &str = "application/json";

/// The server of one connection.
pub struct AcmeServer {
    outbox: Outbox,
    /// Changes whenever the outbox has a new row.
    newest: watch::Receiver<i64>,
    /// When this server asks to be read next.
    next_poll_ms: Option<u64>,
    /// Sends the hints that a reader of a revision before 2026-07-28 subscribed to.
    hinting: Mutex<Option<AbortHandle>>,
}

impl AcmeServer {
    pub fn new(outbox: Outbox, newest: watch::Receiver<i64>, next_poll_ms: Option<u64>) -> Self {
        Self { outbox, newest, next_poll_ms, hinting: Mutex::new(None) }
    }

    /// Replaces the task that sends hints.
    fn hint_with(&self, next: Option<AbortHandle>) {
        let previous = std::mem::replace(&mut *self.hinting.lock().unwrap_or_else(PoisonError::into_inner), next);
        if let Some(previous) = previous {
            previous.abort();
        }
    }
}

impl Drop for AcmeServer {
    fn drop(&mut self) {
        self.hint_with(None);
    }
}

impl ServerHandler for AcmeServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources().enable_resources_subscribe().build();
        ServerConfig::new(capabilities).with_server_info(Implementation::new("acme", env!("CARGO_PKG_VERSION")))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let outbox = Resource::new(OUTBOX_URI, "notifications").with_description(OUTBOX_ABOUT).with_mime_type(JSON);
        Ok(ListResourcesResult::with_all_items(vec![outbox]))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let query = ResourceTemplate::new(OUTBOX_TEMPLATE, "notifications");
        let query = query.with_description(OUTBOX_ABOUT).with_mime_type(JSON);
        Ok(ListResourceTemplatesResult::with_all_items(vec![query]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let query = parse(&request.uri)?;
        let outbox = self.outbox.clone();
        // SQLite waits for the disk, which must not hold up the other requests of this thread.
        let read = tokio::task::spawn_blocking(move || outbox.read(&query)).await.map_err(internal)?;
        let answer = PollResult { next_poll_ms: self.next_poll_ms, ..read.map_err(protocol)? };
        let text = serde_json::to_string(&answer).map_err(internal)?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type(JSON);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    // Hints: a reader that subscribed is told when there is a new row, and reads at once. Both ways lead to the same
    // notification: `resources/subscribe` in the revisions before 2026-07-28, `subscriptions/listen` since. A row that
    // was added since this server began is news at first: better one hint too many than a row between the reader's last
    // read and its subscription that no hint tells of.

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        known(&request.uri)?;
        let mut newest = self.newest.clone();
        let hinting = tokio::spawn(async move {
            while newest.changed().await.is_ok() {
                let updated = ResourceUpdatedNotificationParam::new(OUTBOX_URI);
                if context.peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
            }
        });
        self.hint_with(Some(hinting.abort_handle()));
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        known(&request.uri)?;
        self.hint_with(None);
        Ok(())
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        // All there is to listen to; rmcp takes from it what was requested.
        Some(SubscriptionFilter::builder().resource_subscription(OUTBOX_URI).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut newest = self.newest.clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = newest.changed() => if changed.is_err() { return Ok(()) },
            }
            // Refused when the reader listens for something else, and failing when it is gone.
            if context.sink().notify_resource_updated(OUTBOX_URI).await.is_err() {
                context.cancelled().await;
                return Ok(());
            }
        }
    }
}

/// What a URI asks of the outbox. Other parameters than the three are ignored.
fn parse(uri: &str) -> Result<Query, ErrorData> {
    let (resource, parameters) = uri.split_once('?').unwrap_or((uri, ""));
    known(resource)?;
    let mut query = Query::default();
    for (name, value) in parameters.split('&').filter_map(|pair| pair.split_once('=')) {
        match name {
            // An empty one is an absent one.
            "cursor" => query.cursor = Some(decoded(name, value)?).filter(|cursor| !cursor.is_empty()),
            "maxEvents" => query.events_max = Some(number(name, value)?),
            "maxAgeMs" => query.age_ms_max = Some(number(name, value)?),
            _ => {}
        }
    }
    Ok(query)
}

fn known(uri: &str) -> Result<(), ErrorData> {
    if uri == OUTBOX_URI {
        return Ok(());
    }
    Err(ErrorData::resource_not_found(format!("no resource {uri:?}; there is {OUTBOX_TEMPLATE}"), None))
}

fn decoded(name: &str, value: &str) -> Result<String, ErrorData> {
    let text = percent_decode_str(value).decode_utf8();
    let wrong = |_| ErrorData::invalid_params(format!("{name} is not percent-encoded as UTF-8: {value:?}"), None);
    text.map(|text| text.into_owned()).map_err(wrong)
}

fn number(name: &str, value: &str) -> Result<u64, ErrorData> {
    let wrong = |_| ErrorData::invalid_params(format!("{name} is {value:?}; give a whole number, 0 or more"), None);
    decoded(name, value)?.parse().map_err(wrong)
}

fn protocol(error: OutboxError) -> ErrorData {
    match error {
        OutboxError::Refused(why) => ErrorData::invalid_params(why, None),
        OutboxError::Database(error) => internal(error),
    }
}

/// The reader learns no more than that it was not its fault; the details are for this server's log.
fn internal(error: impl std::fmt::Display) -> ErrorData {
    eprintln!("the outbox could not be read: {error}");
    ErrorData::internal_error("the outbox could not be read", None)
}
