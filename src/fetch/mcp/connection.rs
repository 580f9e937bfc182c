//! One connection: how it begins, what is read over it, and how it ends.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ProtocolVersion, ReadResourceRequestParams, ReadResourceResult,
    ResourceContents,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, Peer, RunningService, ServiceError};
use rmcp::transport::IntoTransport;

use super::TEXT_BYTES_MAX;
use super::again::Waits;
use super::fault::Faults;
use super::heard::Heard;
use super::hints::{Handler, Hints};
use super::stdio::Process;
use super::tap::Tap;
use crate::fetch::outbox::ReadError;

/// Requests run over it side by side.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    /// None once it was closed.
    service: Mutex<Option<RunningService<RoleClient, Handler>>>,
    /// Takes what the server says by itself.
    pub handler: Handler,
    pub carrier: Carrier,
    /// The revision that the server speaks, where it says.
    pub spoken: Option<String>,
    /// What came of a push queue, where it leads to one.
    pub tap: Option<Arc<Tap>>,
}

/// What a connection runs over.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A child; its end is the connection's.
    Child(Process),
    /// HTTP, and what was heard of it. Only one request at a time can be told apart in that.
    Http(Arc<Heard>),
}

impl Connection {
    pub(super) fn new(
        service: RunningService<RoleClient, Handler>,
        handler: Handler,
        carrier: Carrier,
        spoken: Option<String>,
        tap: Option<Arc<Tap>>,
    ) -> Self {
        Self { peer: service.peer().clone(), service: Mutex::new(Some(service)), handler, carrier, spoken, tap }
    }

    pub(super) fn is_lost(&self) -> bool {
        let ended = matches!(&self.carrier, Carrier::Child(process) if process.has_ended());
        let is_closed = || self.service().as_ref().is_none_or(RunningService::is_closed);
        ended || is_closed() || self.peer.is_transport_closed()
    }

    fn service(&self) -> MutexGuard<'_, Option<RunningService<RoleClient, Handler>>> {
        self.service.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server says by itself from now on.
    pub(super) fn hints(&self, waits: Waits) -> Hints {
        let heard = match &self.carrier {
            Carrier::Child(_) => None,
            Carrier::Http(heard) => Some(Arc::clone(heard)),
        };
        Hints::new(&self.peer, &self.handler, heard, waits)
    }

    /// Reads the resource `uri`.
    pub(super) async fn read(
        &self,
        uri: &str,
        most: Duration,
        faults: &Faults,
    ) -> Result<ReadResourceResult, ReadError> {
        let read = self.peer.read_resource(ReadResourceRequestParams::new(uri));
        self.exchange(read, most, faults, Faults::of_reading).await
    }

    /// Calls a tool.
    pub(super) async fn call(
        &self,
        call: CallToolRequestParams,
        most: Duration,
        faults: &Faults,
    ) -> Result<CallToolResponse, ReadError> {
        self.exchange(self.peer.call_tool_once(call), most, faults, Faults::of_calling).await
    }

    /// The way to ask for anything else.
    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    /// What a request comes to. Giving it up tells the server that the answer is not wanted any more.
    pub(super) async fn exchange<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
        most: Duration,
        faults: &Faults,
        told: fn(&Faults, &ServiceError) -> ReadError,
    ) -> Result<T, ReadError> {
        let answer = in_time(most, request);
        match &self.carrier {
            Carrier::Http(heard) => {
                heard.begin();
                let answer = answer.await.and_then(|answer| answer.map_err(|error| told(faults, &error)));
                let answer = answer.map_err(|error| heard.explain(error));
                heard.begin();
                answer
            }
            Carrier::Child(process) => {
                let answer = process.while_it_runs(answer, faults).await.and_then(|answer| answer);
                match answer.and_then(|answer| answer.map_err(|error| told(faults, &error))) {
                    Err(error) => Err(process.explain(error, faults).await),
                    answer => answer,
                }
            }
        }
    }

    /// Ends it, each step of that in `step`. Requests that are under way fail. What was interrupted in this is done again.
    pub(super) async fn close(&self, step: Duration) {
        let service = self.service().take();
        if let Some(mut service) = service {
            // Closing ends the child's standard input too, which tells a good server to go.
            let _ = service.close_with_timeout(step).await;
        }
        if let Carrier::Child(process) = &self.carrier {
            process.stop(step).await;
        }
    }
}

/// How to begin.
pub(super) fn lifecycle(begins_with_initialize: bool) -> ClientLifecycleMode {
    if begins_with_initialize {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// Makes the handshake; an error without a value is that of time.
pub(super) async fn serve<T, E, A>(
    handler: Handler,
    transport: T,
    lifecycle: ClientLifecycleMode,
    most: Duration,
) -> Result<RunningService<RoleClient, Handler>, Option<ClientInitializeError>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let served = tokio::time::timeout(most, rmcp::service::serve_client_with_lifecycle(handler, transport, lifecycle));
    served.await.map_err(|_| None)?.map_err(Some)
}

async fn in_time<T>(most: Duration, future: impl Future<Output = T>) -> Result<T, ReadError> {
    tokio::time::timeout(most, future).await.map_err(|_| ReadError::Timeout { waited: most })
}

/// The text of the first content.
pub(super) fn text_of(result: ReadResourceResult) -> Result<String, ReadError> {
    match result.contents.into_iter().next() {
        Some(ResourceContents::TextResourceContents { text, .. }) if text.len() <= TEXT_BYTES_MAX => Ok(text),
        Some(ResourceContents::TextResourceContents { .. }) => Err(ReadError::TooLarge { bytes_max: TEXT_BYTES_MAX }),
        _ => Err(ReadError::NoText),
    }
}

/// Whether a new connection is more likely to work than this one, after such an error.
pub(super) fn is_in_doubt_after(error: &ReadError) -> bool {
    match error {
        ReadError::NotFound(_) | ReadError::Refused { .. } | ReadError::Http { .. } | ReadError::NoText => false,
        ReadError::TooLarge { .. }
        | ReadError::Timeout { .. }
        | ReadError::NotConnected(_)
        | ReadError::Disconnected(_)
        | ReadError::NotMcp(_)
        | ReadError::NoToken(_)
        | ReadError::Reauthorize(_) => true,
    }
}
