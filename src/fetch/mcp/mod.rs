//! The only place that names MCP types: connections to servers, over stdio or streamable HTTP, that read resources and
//! call tools.
//!
//! A connection is made by the first request and kept. When it is lost the next request makes another. Everything here ends
//! in bounded time: servers hang, exit, and write what is not MCP.

mod again;
mod called;
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
mod link;
pub mod oauth;
mod queue;
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
mod tap;
mod tools;
#[cfg(test)]
mod tools_tests;
mod verbatim;
mod way;
mod words;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};

use super::outbox::{Outbox, ReadError};
use crate::clock::Clock;
use crate::config::{Connector, Secret};
use crate::notification::Name;
use again::Waits;
pub use clients::Clients;
use connection::{Carrier, Connection};
use era::Era;
use hints::Hints;
use link::Link;
pub use queue::McpQueue;
pub use tools::{Connectors, Known, Server};
use way::Way;

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

/// The outbox of one connector, over MCP.
#[derive(Debug)]
pub struct McpOutbox {
    link: Arc<Link>,
    /// The connection of the last read, while it is good.
    connection: Option<Arc<Connection>>,
    /// What the server says by itself over it.
    hints: Option<Hints>,
    /// The revision that was spoken last.
    spoken: Option<String>,
    /// Reads in a row that were refused over this connection.
    refusals: u32,
}

impl McpOutbox {
    /// The outbox of `connector` in `workspace`; it connects when it is first read.
    ///
    /// # Errors
    /// When the connector names a secret that is not there or cannot be sent, or its program is empty.
    pub fn new(workspace: &Name, connector: &Connector, common: &Common<'_>) -> Result<Self, ReadError> {
        let way = Way::new(workspace, connector, common)?;
        Ok(Self::over(Arc::new(Link::new(way, Era::default()))))
    }

    /// The outbox of the server that this leads to.
    fn over(link: Arc<Link>) -> Self {
        Self { link, connection: None, hints: None, spoken: None, refusals: 0 }
    }

    /// The same, knowing the revision that was spoken in an earlier run; see [`Outbox::remember`].
    #[must_use]
    pub fn remembering(mut self, revision: Option<String>) -> Self {
        self.remember(revision);
        self
    }

    async fn read_text(&mut self, uri: &str) -> Result<String, ReadError> {
        self.let_go_of_lost();
        let connection = self.link.connection().await?;
        self.hold(&connection);
        let Way { times, faults, .. } = self.link.way();
        let read = connection.read(uri, times.read, faults).await;
        if self.link.read(&connection, &read).await {
            self.let_go();
        }
        self.count_refusal(read.as_ref().err()).await;
        read.and_then(connection::text_of).map_err(|error| self.link.way().explain(error))
    }

    fn hold(&mut self, connection: &Arc<Connection>) {
        if self.connection.as_ref().is_some_and(|held| Arc::ptr_eq(held, connection)) {
            return;
        }
        self.hints = Some(connection.hints(self.link.way().times.waits()));
        self.spoken = connection.spoken.clone().or(self.spoken.take());
        self.connection = Some(Arc::clone(connection));
    }

    fn let_go(&mut self) {
        self.connection = None;
        self.hints = None;
    }

    fn let_go_of_lost(&mut self) {
        if self.connection.as_ref().is_some_and(|connection| connection.is_lost()) {
            self.let_go();
        }
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
        if self.refusals >= REFUSALS_MAX && !self.link.way().is_program() {
            self.refusals = 0;
            self.link.remember(Era::default());
            self.disconnect().await;
        }
    }

    async fn disconnect(&mut self) {
        self.let_go();
        self.link.close().await;
    }
}

impl Outbox for McpOutbox {
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Result<String, ReadError>> {
        self.read_text(uri).boxed()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        match &mut self.hints {
            Some(hints) => hints.changed().boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn without_secrets(&self, said: &str) -> String {
        self.link.way().faults.excerpt(said)
    }

    fn revision(&self) -> Option<String> {
        self.spoken.clone()
    }

    /// Should the way of that revision fail, the next attempt tries the other.
    fn remember(&mut self, revision: Option<String>) {
        self.link.remember(Era::of(revision.as_deref()));
        self.spoken = revision;
    }

    fn stray(&self) -> Option<String> {
        match &self.connection.as_ref()?.carrier {
            Carrier::Child(process) => process.stray(&self.link.way().faults),
            Carrier::Http(_) => None,
        }
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.disconnect().boxed()
    }
}

impl Times {
    fn waits(&self) -> Waits {
        Waits { first: self.again, most: self.again_max }
    }
}
