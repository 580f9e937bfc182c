//! The only place that names MCP types: a connection to one server, over stdio or streamable HTTP, that reads
//! resources.
//!
//! A connection is made by the first read and kept. When it is lost the next read makes another. Everything here ends
//! in bounded time: servers hang, exit, and write what is not MCP.

mod again;
mod client;
mod clients;
mod credential;
mod fault;
mod heard;
mod hints;
#[cfg(test)]
mod hints_tests;
mod http;
#[cfg(test)]
mod http_tests;
mod lines;
pub mod oauth;
mod seen;
mod stderr;
mod stdio;
#[cfg(test)]
mod stdio_tests;
mod streams;
#[cfg(test)]
mod streams_tests;
mod words;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use rmcp::RoleClient;
use rmcp::model::{ProtocolVersion, ReadResourceRequestParams, ReadResourceResult, ResourceContents};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RunningService};
use rmcp::transport::IntoTransport;

use super::outbox::{Outbox, ReadError};
use crate::clock::Clock;
use crate::config::{Auth, Connector, Secret, Transport};
use crate::notification::Name;
use again::Waits;
pub use clients::Clients;
use credential::Credential;
use fault::Faults;
use heard::Heard;
use hints::{Handler, Hints};
use http::{Endpoint, Signature};
use oauth::{Account, Tokens};
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
    /// What a server ends by itself, such as a stream for hints, is taken up again after this, and then later and later.
    pub again: Duration,
    /// It is taken up again no later than after this.
    pub again_max: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            read: Duration::from_secs(30),
            stop: Duration::from_millis(500),
            again: Duration::from_secs(1),
            again_max: Duration::from_secs(300),
        }
    }
}

/// What all connections have in common.
#[derive(Clone, Debug)]
pub struct Common<'a> {
    /// The secrets that connectors name.
    pub secrets: &'a BTreeMap<Name, Secret>,
    /// How long things may take.
    pub times: Times,
    /// Tells what a date in a Retry-After means.
    pub clock: Clock,
    /// Shared by all connections of the process.
    pub clients: Clients,
    /// Where sign-ins are kept ([`oauth::Credentials::folder_of`]).
    pub credentials: &'a Path,
}

/// The outbox of one connector, over MCP.
#[derive(Debug)]
pub struct McpOutbox {
    server: Server,
    times: Times,
    faults: Faults,
    /// The bare URI of the outbox.
    resource: Arc<str>,
    connection: Option<Connection>,
    /// The revision that was spoken last.
    spoken: Option<String>,
    /// Whether it is one without discovery: the server is not asked for it again.
    is_legacy: bool,
}

#[derive(Debug)]
enum Server {
    Stdio(Program),
    Http(Endpoint),
}

#[derive(Debug)]
struct Connection {
    service: RunningService<RoleClient, Handler>,
    hints: Hints,
    carrier: Carrier,
}

/// What a connection runs over.
#[derive(Debug)]
enum Carrier {
    /// A child; its end is the connection's.
    Child(Process),
    /// HTTP, and what was heard of it.
    Http(Arc<Heard>),
}

impl McpOutbox {
    /// The outbox of `connector` in `workspace`; it connects when it is first read.
    ///
    /// # Errors
    /// When the connector names a secret that is not there or cannot be sent, or its program is empty.
    pub fn new(workspace: &Name, connector: &Connector, common: &Common<'_>) -> Result<Self, ReadError> {
        let Common { secrets, times, clock, clients, .. } = common;
        let (server, hidden) = match &connector.transport {
            Transport::Stdio { run, env, directory } => {
                let program = Program::new(workspace, &connector.name, run, env, directory)
                    .ok_or_else(|| ReadError::NotConnected("the connector's command names no program".to_owned()))?;
                (Server::Stdio(program), words::hidden_in(env))
            }
            Transport::Http { url, auth, headers, private } => {
                let (credential, token) = match auth {
                    Auth::Bearer(name) => {
                        let token = value_of(name, secrets)?;
                        (Credential::Bearer(token.as_str().into()), Some(token))
                    }
                    Auth::OAuth(_) => {
                        let account = Account::of(workspace, connector, common)?;
                        let tokens = account.map(|account| Arc::new(Tokens::new(account)) as _);
                        (tokens.map_or(Credential::None, Credential::Tokens), None)
                    }
                    Auth::None => (Credential::None, None),
                };
                let values = headers.values().map(|name| value_of(name, secrets)).collect::<Result<Vec<_>, _>>()?;
                let signature = Signature { credential, headers: headers.clone() };
                let waits = times.waits();
                let endpoint = Endpoint::new(workspace, url, *private, signature, secrets, clients, waits)?;
                (Server::Http(endpoint), values.into_iter().chain(token).collect())
            }
        };
        Ok(Self {
            server,
            times: *times,
            faults: Faults::new(hidden, clock.clone()),
            resource: connector.outbox.as_deref().unwrap_or_default().into(),
            connection: None,
            spoken: None,
            is_legacy: false,
        })
    }

    /// The same, knowing the revision that was spoken in an earlier run, as [`Outbox::revision`] told it. A server that
    /// had no discovery then is not asked for it first; should that fail it is asked anew.
    #[must_use]
    pub fn remembering(mut self, revision: Option<String>) -> Self {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| revision.as_deref() == Some(known.as_str()));
        self.is_legacy = known.is_some_and(ProtocolVersion::has_initialize);
        self.spoken = revision;
        self
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
        let handler = Handler::new(&self.resource);
        let (service, carrier) = match &self.server {
            Server::Stdio(program) => {
                let (mut process, transport) = program.start(&self.faults)?;
                let service = serve(handler.clone(), transport, lifecycle, self.times.connect);
                let served = process.while_it_runs(service, &self.faults).await;
                match served.and_then(|served| served.map_err(|error| self.refused(error))) {
                    Ok(service) => (service, Carrier::Child(process)),
                    Err(error) => return Err(process.explain_start(error, &self.faults, self.times).await),
                }
            }
            Server::Http(endpoint) => {
                let (transport, heard) = endpoint.transport(&self.faults)?;
                let served = serve(handler.clone(), transport, lifecycle, self.times.connect).await;
                let service = served.map_err(|error| endpoint.explain(heard.explain(self.refused(error))))?;
                (service, Carrier::Http(heard))
            }
        };
        // A cached answer would be an outbox that stands still.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        if let Some(server) = service.peer().peer_info() {
            self.is_legacy = server.protocol_version.has_initialize();
            self.spoken = Some(server.protocol_version.to_string());
        }
        let heard = match &carrier {
            Carrier::Child(_) => None,
            Carrier::Http(heard) => Some(Arc::clone(heard)),
        };
        let hints = Hints::new(service.peer(), &handler, heard, self.times.waits());
        Ok(Connection { service, hints, carrier })
    }

    fn refused(&self, error: Option<ClientInitializeError>) -> ReadError {
        match error {
            Some(error) => self.faults.of_connecting(&error),
            None => ReadError::Timeout { waited: self.times.connect },
        }
    }

    async fn disconnect(&mut self) {
        if let Some(Connection { mut service, hints, carrier }) = self.connection.take() {
            drop(hints);
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
        match &mut self.connection {
            Some(connection) => connection.hints.changed().boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn revision(&self) -> Option<String> {
        self.spoken.clone()
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

fn value_of(name: &Name, secrets: &BTreeMap<Name, Secret>) -> Result<String, ReadError> {
    let missing = || ReadError::NotConnected(format!("the secret \"{name}\" is not there: add it to `secrets`"));
    secrets.get(name).map(|secret| secret.value.clone()).ok_or_else(missing)
}

impl Times {
    fn waits(&self) -> Waits {
        Waits { first: self.again, most: self.again_max }
    }
}

fn lifecycle(is_legacy: bool) -> ClientLifecycleMode {
    if is_legacy {
        return ClientLifecycleMode::Initialize;
    }
    ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::LATEST], legacy_version: None }
}

/// Makes the handshake; an error without a value is that of time.
async fn serve<T, E, A>(
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
        | ReadError::NoToken(_)
        | ReadError::Reauthorize(_) => true,
    }
}
