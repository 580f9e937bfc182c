//! A push queue over MCP (push-notifications seed). The library knows neither the extension's requests nor its key in
//! `subscriptions/listen`, so they are requests of our own; what comes is taken out by a [`Tap`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, CustomRequest, ProtocolVersion, RequestId, RequestMetaObject};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Value, json};

use super::connection::Connection;
use super::era::Era;
use super::fault::Faults;
use super::link::Link;
use super::tap::{ACK, GET, LISTEN, Tap};
use crate::fetch::outbox::ReadError;
use crate::fetch::queue::{EXTENSION, Live, PushQueue};

/// Where a request says what its sender can do (MCP 2026-07-28).
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How long it may take to tell a server that a stream is not wanted any more.
const CANCEL_TIME_MAX: Duration = Duration::from_secs(1);

/// The push queue of one connector, over MCP.
#[derive(Debug)]
pub struct McpQueue {
    link: Arc<Link>,
    stream: Option<Stream>,
    /// The revision that was spoken last.
    spoken: Option<String>,
}

/// A live stream.
struct Stream {
    tap: Arc<Tap>,
    /// None once it has ended.
    handle: Option<RequestHandle<RoleClient>>,
    ended: Option<Live>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Stream").field("is_open", &self.handle.is_some()).finish_non_exhaustive()
    }
}

impl McpQueue {
    /// The queue of the server that this leads to.
    pub(super) fn over(link: Arc<Link>) -> Self {
        Self { link, stream: None, spoken: None }
    }

    /// The same, knowing the revision that was spoken in an earlier run.
    #[must_use]
    pub fn remembering(mut self, revision: Option<String>) -> Self {
        self.link.remember(Era::of(revision.as_deref()));
        self.spoken = revision;
        self
    }

    /// The connection, with what takes our part of it out.
    async fn connection(&mut self) -> Result<(Arc<Connection>, Arc<Tap>), ReadError> {
        let connection = self.link.connection().await?;
        self.spoken = connection.spoken.clone().or(self.spoken.take());
        let no_tap = || ReadError::NotConnected("the connection is not one of a push queue".to_owned());
        let tap = connection.tap.clone().ok_or_else(no_tap)?;
        Ok((connection, tap))
    }

    async fn open(&mut self) -> Result<(), ReadError> {
        self.leave().await;
        let (connection, tap) = self.connection().await?;
        tap.begin();
        let params = json!({ "notifications": { EXTENSION: {} } });
        let mut opened = None;
        let opening = async {
            let (request, options) = (request(LISTEN, params), options(&connection));
            let handle = opened.insert(connection.peer().send_request_with_option(request, options).await?);
            tokio::select! {
                biased;
                () = tap.acknowledged() => Ok(true),
                ended = &mut handle.rx => ended.unwrap_or(Err(ServiceError::TransportClosed)).map(|_| false),
            }
        };
        let way = self.link.way();
        let opening = connection.exchange(opening, way.times.read, &way.faults, Faults::of_calling).await;
        let opening = match opening {
            Ok(false) => Err(ReadError::NotMcp(format!(
                "the server answered {LISTEN} without an acknowledgement that names {EXTENSION}; it must be the first \
                 message of the stream"
            ))),
            opening => opening,
        };
        self.link.read(&connection, &opening).await;
        match opening {
            Ok(_) => {
                self.stream = Some(Stream { tap, handle: opened, ended: None });
                Ok(())
            }
            Err(error) => {
                cancel(opened).await;
                Err(self.link.way().explain(error))
            }
        }
    }

    /// Asks, and says what became of it: the id that it was asked with.
    async fn ask(&mut self, method: &str, params: Value) -> Result<(RequestId, Arc<Tap>), ReadError> {
        let (connection, tap) = self.connection().await?;
        let asking = async {
            let (request, options) = (request(method, params), options(&connection));
            let handle = connection.peer().send_request_with_option(request, options).await?;
            let id = handle.id.clone();
            // Whatever a result looks like to the library, it is one.
            handle.await_response().await.map(|_| id)
        };
        let way = self.link.way();
        let asked = connection.exchange(asking, way.times.read, &way.faults, Faults::of_calling).await;
        self.link.read(&connection, &asked).await;
        Ok((asked.map_err(|error| self.link.way().explain(error))?, tap))
    }

    /// Lets go of the stream.
    async fn leave(&mut self) {
        if let Some(stream) = self.stream.take() {
            cancel(stream.handle).await;
        }
    }
}

impl Stream {
    async fn next(&mut self, faults: &Faults) -> Live {
        loop {
            if let Some(live) = self.tap.next() {
                return live;
            }
            if let Some(ended) = self.ended.take() {
                return ended;
            }
            let Some(handle) = &mut self.handle else { return std::future::pending().await };
            tokio::select! {
                biased;
                () = self.tap.live() => {}
                ended = &mut handle.rx => {
                    self.handle = None;
                    self.ended = Some(match ended {
                        Ok(Ok(_)) => Live::Closed,
                        Ok(Err(ServiceError::TransportClosed)) | Err(_) => {
                            Live::Lost(ReadError::Disconnected("the live stream was cut off".to_owned()))
                        }
                        Ok(Err(error)) => Live::Lost(faults.of_calling(&error)),
                    });
                }
            }
        }
    }
}

fn request(method: &str, params: Value) -> ClientRequest {
    ClientRequest::CustomRequest(CustomRequest::new(method, Some(params)))
}

/// The library says what we can do with each request where the revision has no handshake; elsewhere we do.
fn options(connection: &Connection) -> PeerRequestOptions {
    let spoken =
        ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| connection.spoken.as_deref() == Some(known.as_str()));
    if spoken.is_some_and(|spoken| !spoken.has_initialize()) {
        return PeerRequestOptions::no_options();
    }
    let mut meta = RequestMetaObject::new();
    meta.insert(CAPABILITIES.to_owned(), json!({ "extensions": { EXTENSION: {} } }));
    PeerRequestOptions::no_options().with_meta(meta)
}

async fn cancel(handle: Option<RequestHandle<RoleClient>>) {
    if let Some(handle) = handle {
        let _ = tokio::time::timeout(CANCEL_TIME_MAX, handle.cancel(None)).await;
    }
}

impl PushQueue for McpQueue {
    fn listen(&mut self) -> BoxFuture<'_, Result<(), ReadError>> {
        self.open().boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Live> {
        match &mut self.stream {
            Some(stream) => stream.next(&self.link.way().faults).boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn next_at_once(&mut self) -> Option<Live> {
        self.stream.as_ref()?.tap.next()
    }

    fn get(&mut self, limit: u32) -> BoxFuture<'_, Result<String, ReadError>> {
        async move {
            let (id, tap) = self.ask(GET, json!({ "limit": limit })).await?;
            let none = || ReadError::NotMcp("the server answered without a page of pending events".to_owned());
            tap.page(&id).ok_or_else(none)
        }
        .boxed()
    }

    fn ack<'a>(&'a mut self, ids: &'a [String]) -> BoxFuture<'a, Result<(), ReadError>> {
        self.ask(ACK, json!({ "eventIds": ids })).map(|asked| asked.map(drop)).boxed()
    }

    fn without_secrets(&self, said: &str) -> String {
        self.link.way().faults.excerpt(said)
    }

    fn revision(&self) -> Option<String> {
        self.spoken.clone()
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        async move {
            self.leave().await;
            self.link.close().await;
        }
        .boxed()
    }
}
