//! One connection: how it begins, what is read over it, and how it ends.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ReadResourceRequestParams, ReadResourceResult, ResourceContents};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RunningService};
use rmcp::transport::IntoTransport;

use super::TEXT_BYTES_MAX;
use super::fault::Faults;
use super::heard::Heard;
use super::hints::{Handler, Hints};
use super::stdio::Process;
use crate::fetch::outbox::ReadError;

#[derive(Debug)]
pub(super) struct Connection {
    pub service: RunningService<RoleClient, Handler>,
    pub hints: Hints,
    pub carrier: Carrier,
}

/// What a connection runs over.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A child; its end is the connection's.
    Child(Process),
    /// HTTP, and what was heard of it.
    Http(Arc<Heard>),
}

impl Connection {
    pub(super) fn is_lost(&self) -> bool {
        let ended = matches!(&self.carrier, Carrier::Child(process) if process.has_ended());
        ended || self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Reads the resource `uri`.
    pub(super) async fn read(
        &mut self,
        uri: &str,
        most: Duration,
        faults: &Faults,
    ) -> Result<ReadResourceResult, ReadError> {
        let peer = self.service.peer();
        // Giving the future up tells the server that the answer is not wanted any more.
        let answer = in_time(most, peer.read_resource(ReadResourceRequestParams::new(uri)));
        match &mut self.carrier {
            Carrier::Http(heard) => {
                heard.begin();
                let answer = answer.await.and_then(|answer| answer.map_err(|error| faults.of_reading(&error)));
                let answer = answer.map_err(|error| heard.explain(error));
                heard.begin();
                answer
            }
            Carrier::Child(process) => {
                let answer = process.while_it_runs(answer, faults).await.and_then(|answer| answer);
                match answer.and_then(|answer| answer.map_err(|error| faults.of_reading(&error))) {
                    Err(error) => Err(process.explain(error, faults).await),
                    answer => answer,
                }
            }
        }
    }

    /// Ends it, each step of that in `step`.
    pub(super) async fn close(self, step: Duration) {
        let Self { mut service, hints, carrier } = self;
        drop(hints);
        // Closing ends the child's standard input too, which tells a good server to go.
        let _ = service.close_with_timeout(step).await;
        drop(service);
        if let Carrier::Child(process) = carrier {
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
