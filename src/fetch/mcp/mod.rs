//! The only place that names MCP types: a connection to one server, over stdio or streamable HTTP, that reads
//! resources.
//!
//! A connection is made by the first read and kept. When it is lost the next read makes another. Everything here ends
//! in bounded time: servers hang, exit, and write what is not MCP.

mod again;
mod client;
mod clients;
mod connection;
mod credential;
#[cfg(test)]
mod credential_tests;
mod era;
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
#[cfg(test)]
mod session_tests;
mod stderr;
mod stdio;
#[cfg(test)]
mod stdio_tests;
mod streams;
#[cfg(test)]
mod streams_tests;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode};

use super::outbox::{Outbox, ReadError};
use crate::clock::Clock;
use crate::config::{Auth, Connector, Secret, Transport};
use crate::notification::Name;
use again::Waits;
pub use clients::Clients;
use connection::{Carrier, Connection};
use credential::Credential;
use era::Era;
use fault::Faults;
use hints::{Handler, Hints};
use http::{Endpoint, Signature};
use oauth::{Account, Tokens};
use stdio::Program;

/// Largest text of a resource, in bytes: 5,000 events of a kilobyte and a half, or a hundred of the largest.
pub const TEXT_BYTES_MAX: usize = 8 << 20;

/// Largest message on the wire, in bytes: a text of [`TEXT_BYTES_MAX`] once JSON has escaped it, in any likely case.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Reads that may be refused in a row over one connection. One refusal is usual: that of a first read by a server which
/// knows only some of its forms.
const REFUSALS_MAX: u32 = 4;

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

/// Longest revision that is kept, in characters: they are dates.
const REVISION_CHARS_MAX: usize = 32;

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
    era: Era,
    /// Reads in a row that were refused over this connection.
    refusals: u32,
}

#[derive(Debug)]
enum Server {
    Stdio(Program),
    Http(Endpoint),
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
            era: Era::default(),
            refusals: 0,
        })
    }

    /// The same, knowing the revision that was spoken in an earlier run; see [`Outbox::remember`].
    #[must_use]
    pub fn remembering(mut self, revision: Option<String>) -> Self {
        self.remember(revision);
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
        let read = self.connection.insert(connection).read(uri, self.times.read, &self.faults).await;
        if read.as_ref().is_err_and(connection::is_in_doubt_after) {
            self.disconnect().await;
        }
        self.count_refusal(read.as_ref().err()).await;
        read.and_then(connection::text_of).map_err(|error| self.server.explain(error))
    }

    async fn connect(&mut self) -> Result<Connection, ReadError> {
        let begins_with_initialize = self.era.begins_with_initialize();
        // Unless it succeeds.
        self.era.failed();
        match self.connect_by(connection::lifecycle(begins_with_initialize)).await {
            // It is there, and knows only the newer way.
            Err(error) if begins_with_initialize && era::is_refusal(&error) => {
                self.connect_by(connection::lifecycle(false)).await.map_err(|_| error)
            }
            connected => connected,
        }
    }

    async fn connect_by(&mut self, lifecycle: ClientLifecycleMode) -> Result<Connection, ReadError> {
        let handler = Handler::new(&self.resource);
        let (service, carrier) = match &self.server {
            Server::Stdio(program) => {
                let (mut process, transport) = program.start(&self.faults)?;
                let service = connection::serve(handler.clone(), transport, lifecycle, self.times.connect);
                let served = process.while_it_runs(service, &self.faults).await;
                match served.and_then(|served| served.map_err(|error| self.refused(error))) {
                    Ok(service) => (service, Carrier::Child(process)),
                    Err(error) => return Err(process.explain_start(error, &self.faults, self.times).await),
                }
            }
            Server::Http(endpoint) => {
                let (transport, heard) = endpoint.transport(&self.faults)?;
                let served = connection::serve(handler.clone(), transport, lifecycle, self.times.connect).await;
                let service = served.map_err(|error| endpoint.explain(heard.explain(self.refused(error))))?;
                (service, Carrier::Http(heard))
            }
        };
        // A cached answer would be an outbox that stands still.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        if let Some(server) = service.peer().peer_info() {
            let spoken = server.protocol_version.to_string();
            self.era = Era::of(Some(&spoken));
            self.spoken = Some(self.faults.fit(&spoken).chars().take(REVISION_CHARS_MAX).collect());
        }
        let heard = match &carrier {
            Carrier::Child(_) => None,
            Carrier::Http(heard) => Some(Arc::clone(heard)),
        };
        let hints = Hints::new(service.peer(), &handler, heard, self.times.waits());
        Ok(Connection { service, hints, carrier })
    }

    /// A server behind HTTP may have been replaced by one that speaks another revision and refuses ours: after a few
    /// refusals it is asked anew what it speaks. A child is itself as long as it lives.
    async fn count_refusal(&mut self, error: Option<&ReadError>) {
        let is_refusal = match error {
            Some(ReadError::NotFound(_) | ReadError::Refused { .. }) => true,
            Some(ReadError::Http { status, .. }) => (400..500).contains(status) && *status != 429,
            _ => false,
        };
        self.refusals = if is_refusal { self.refusals.saturating_add(1) } else { 0 };
        if self.refusals >= REFUSALS_MAX && matches!(self.server, Server::Http(_)) {
            self.refusals = 0;
            self.era = Era::default();
            self.disconnect().await;
        }
    }

    fn refused(&self, error: Option<ClientInitializeError>) -> ReadError {
        match error {
            Some(error) => self.faults.of_connecting(&error),
            None => ReadError::Timeout { waited: self.times.connect },
        }
    }

    async fn disconnect(&mut self) {
        if let Some(connection) = self.connection.take() {
            connection.close(self.times.stop).await;
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

    fn without_secrets(&self, said: &str) -> String {
        self.faults.excerpt(said)
    }

    fn revision(&self) -> Option<String> {
        self.spoken.clone()
    }

    /// Should the way of that revision fail, the next attempt tries the other.
    fn remember(&mut self, revision: Option<String>) {
        self.era = Era::of(revision.as_deref());
        self.spoken = revision;
    }

    fn stray(&self) -> Option<String> {
        match &self.connection.as_ref()?.carrier {
            Carrier::Child(process) => process.stray(&self.faults),
            Carrier::Http(_) => None,
        }
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.disconnect().boxed()
    }
}

fn value_of(name: &Name, secrets: &BTreeMap<Name, Secret>) -> Result<String, ReadError> {
    let missing = || ReadError::NotConnected(format!("the secret \"{name}\" is not there: add it to `secrets`"));
    secrets.get(name).and_then(Secret::fixed).map(str::to_owned).ok_or_else(missing)
}

impl Times {
    fn waits(&self) -> Waits {
        Waits { first: self.again, most: self.again_max }
    }
}
