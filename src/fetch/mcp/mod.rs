//! The only place that names MCP types: a connection to one server, over stdio or streamable HTTP, that reads
//! resources.
//!
//! A connection is made by the first read and kept. When it is lost the next read makes another. Everything here ends
//! in bounded time: servers hang, exit, and write what is not MCP.

mod client;
mod fault;
mod http;
#[cfg(test)]
mod http_tests;
pub mod oauth;
mod stdio;
#[cfg(test)]
mod stdio_tests;
mod stdout;
mod words;

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProtocolVersion, ReadResourceRequestParams, ReadResourceResult,
    ResourceContents,
};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RunningService};
use rmcp::transport::IntoTransport;

use super::outbox::{Outbox, ReadError};
use crate::clock::Clock;
use crate::config::{Auth, Connector, Secret, Transport};
use crate::notification::Name;
use fault::Faults;
use http::Endpoint;
use stdio::{Process, Program};

/// Largest text of a resource, in bytes: 5,000 events of a kilobyte and a half, or a hundred of the largest.
pub const TEXT_BYTES_MAX: usize = 8 << 20;

/// Largest message on the wire, in bytes: a text of [`TEXT_BYTES_MAX`] once JSON has escaped it, in any likely case.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From the start of a connection to the end of the handshake. A server from before discovery may spend ten
    /// seconds of it in silence.
    pub connect: Duration,
    /// One read.
    pub read: Duration,
    /// Each step of a stop: for the server to end by itself once its input is closed, then once it was told to.
    pub stop: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { connect: Duration::from_secs(20), read: Duration::from_secs(30), stop: Duration::from_millis(500) }
    }
}

/// The outbox of one connector, over MCP.
#[derive(Debug)]
pub struct McpOutbox {
    server: Server,
    times: Times,
    faults: Faults,
    connection: Option<Connection>,
    /// Whether the server spoke a revision without discovery: it is not asked for it again.
    is_legacy: bool,
}

#[derive(Debug)]
enum Server {
    Stdio(Program),
    Http(Endpoint),
}

#[derive(Debug)]
struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    carrier: Carrier,
}

/// What a connection runs over.
#[derive(Debug)]
enum Carrier {
    /// A child; its end is the connection's.
    Child(Process),
    /// HTTP; set once an answer was too large.
    Http(Arc<AtomicBool>),
}

impl McpOutbox {
    /// The outbox of `connector` in `workspace`; it connects when it is first read.
    ///
    /// # Errors
    /// When the connector names a secret that is not there, or its program is empty.
    pub fn new(
        workspace: &Name,
        connector: &Connector,
        secrets: &BTreeMap<Name, Secret>,
        times: Times,
        clock: Clock,
    ) -> Result<Self, ReadError> {
        let (server, hidden) = match &connector.transport {
            Transport::Stdio { run, env, directory } => {
                let program = Program::new(workspace, &connector.name, run, env, directory)
                    .ok_or_else(|| ReadError::NotConnected("the connector's command names no program".to_owned()))?;
                (Server::Stdio(program), words::hidden_in(env))
            }
            Transport::Http { url, auth, .. } => {
                let token = match auth {
                    Auth::Bearer(name) => Some(token_of(name, secrets)?),
                    Auth::None | Auth::OAuth(_) => None,
                };
                (Server::Http(Endpoint::new(workspace, url, token.clone())), token.into_iter().collect())
            }
        };
        Ok(Self { server, times, faults: Faults::new(hidden, clock), connection: None, is_legacy: false })
    }

    async fn read_text(&mut self, uri: &str) -> Result<String, ReadError> {
        if self.connection.as_ref().is_some_and(Connection::is_lost) {
            self.disconnect().await;
        }
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let read = read(self.connection.insert(connection), uri, self.times.read, &self.faults).await;
        match read {
            Ok(result) => text_of(result),
            Err(error) => {
                if leaves_the_connection_in_doubt(&error) {
                    self.disconnect().await;
                }
                Err(self.server.explain(error))
            }
        }
    }

    async fn connect(&mut self) -> Result<Connection, ReadError> {
        let lifecycle = lifecycle(self.is_legacy);
        // Unless this one succeeds, the next attempt asks anew.
        self.is_legacy = false;
        let connection = match &self.server {
            Server::Stdio(program) => {
                let (mut process, transport) = program.start(&self.faults)?;
                let service = serve(transport, lifecycle, self.times.connect);
                match process
                    .while_it_runs(service)
                    .await
                    .and_then(|served| served.map_err(|error| self.refused(error)))
                {
                    Ok(service) => Connection { service, carrier: Carrier::Child(process) },
                    Err(error) => return Err(process.explain(error, &self.faults, self.times).await),
                }
            }
            Server::Http(endpoint) => {
                let (transport, too_large) = endpoint.transport()?;
                let served = serve(transport, lifecycle, self.times.connect).await;
                let service = served.map_err(|error| self.server.explain(self.refused(error)))?;
                Connection { service, carrier: Carrier::Http(too_large) }
            }
        };
        // A cached answer would be an outbox that stands still.
        connection.service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        let spoken = connection.service.peer().peer_info();
        self.is_legacy = spoken.is_some_and(|server| server.protocol_version.has_initialize());
        Ok(connection)
    }

    fn refused(&self, error: Option<ClientInitializeError>) -> ReadError {
        match error {
            Some(error) => self.faults.of_connecting(&error),
            None => ReadError::Timeout { waited: self.times.connect },
        }
    }

    async fn disconnect(&mut self) {
        if let Some(Connection { mut service, carrier }) = self.connection.take() {
            // Closing ends the child's standard input too, which tells a good server to go.
            let _ = service.close_with_timeout(self.times.stop).await;
            drop(service);
            if let Carrier::Child(process) = carrier {
                process.stop(self.times.stop).await;
            }
        }
    }
}

impl Server {
    fn explain(&self, error: ReadError) -> ReadError {
        match self {
            Self::Http(endpoint) => endpoint.explain(error),
            Self::Stdio(_) => error,
        }
    }
}

impl Outbox for McpOutbox {
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Result<String, ReadError>> {
        self.read_text(uri).boxed()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    fn revision(&self) -> Option<String> {
        let peer = self.connection.as_ref()?.service.peer();
        Some(peer.peer_info()?.protocol_version.to_string())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.disconnect().boxed()
    }
}

impl Connection {
    fn is_lost(&self) -> bool {
        let ended = matches!(&self.carrier, Carrier::Child(process) if process.has_ended());
        ended || self.service.is_closed() || self.service.peer().is_transport_closed()
    }
}

fn token_of(name: &Name, secrets: &BTreeMap<Name, Secret>) -> Result<String, ReadError> {
    let missing = || ReadError::NotConnected(format!("the secret \"{name}\" is not there: add it to `secrets`"));
    secrets.get(name).map(|secret| secret.value.clone()).ok_or_else(missing)
}

fn lifecycle(is_legacy: bool) -> ClientLifecycleMode {
    if is_legacy {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// Makes the handshake; an error without a value is that of time.
async fn serve<T, E, A>(
    transport: T,
    lifecycle: ClientLifecycleMode,
    most: Duration,
) -> Result<RunningService<RoleClient, ClientConfig>, Option<ClientInitializeError>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let ourselves = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), ourselves);
    let served = tokio::time::timeout(most, rmcp::service::serve_client_with_lifecycle(client, transport, lifecycle));
    served.await.map_err(|_| None)?.map_err(Some)
}

async fn read(
    connection: &mut Connection,
    uri: &str,
    most: Duration,
    faults: &Faults,
) -> Result<ReadResourceResult, ReadError> {
    let peer = connection.service.peer();
    // Giving the future up tells the server that the answer is not wanted any more.
    let answer = in_time(most, peer.read_resource(ReadResourceRequestParams::new(uri)));
    match &mut connection.carrier {
        Carrier::Http(too_large) => answer.await?.map_err(|error| match faults.of_reading(&error) {
            ReadError::Disconnected(_) if too_large.load(Ordering::Acquire) => {
                ReadError::TooLarge { bytes_max: MESSAGE_BYTES_MAX }
            }
            error => error,
        }),
        Carrier::Child(process) => {
            let answer = process.while_it_runs(answer).await.and_then(|answer| answer);
            let answer = answer.and_then(|answer| answer.map_err(|error| faults.of_reading(&error)));
            match answer {
                Err(ReadError::Disconnected(_)) => Err(process.farewell(faults).await),
                answer => answer,
            }
        }
    }
}

async fn in_time<T>(most: Duration, future: impl Future<Output = T>) -> Result<T, ReadError> {
    tokio::time::timeout(most, future).await.map_err(|_| ReadError::Timeout { waited: most })
}

fn text_of(result: ReadResourceResult) -> Result<String, ReadError> {
    match result.contents.into_iter().next() {
        Some(ResourceContents::TextResourceContents { text, .. }) if text.len() <= TEXT_BYTES_MAX => Ok(text),
        Some(ResourceContents::TextResourceContents { .. }) => Err(ReadError::TooLarge { bytes_max: TEXT_BYTES_MAX }),
        _ => Err(ReadError::NoText),
    }
}

/// Whether a new connection is more likely to work than this one.
fn leaves_the_connection_in_doubt(error: &ReadError) -> bool {
    match error {
        ReadError::NotFound(_) | ReadError::Refused { .. } | ReadError::Http { .. } | ReadError::NoText => false,
        ReadError::TooLarge { .. }
        | ReadError::Timeout { .. }
        | ReadError::NotConnected(_)
        | ReadError::Disconnected(_)
        | ReadError::NotMcp(_)
        | ReadError::Reauthorize(_) => true,
    }
}
