//! A server behind streamable HTTP.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;

use super::MESSAGE_BYTES_MAX;
use super::client::Client;
use crate::address::PublicOnly;
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// Resolving, connecting and TLS together.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// An idle connection is closed after this: common servers close theirs after five seconds, and a request that meets
/// that moment is lost.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

/// Bytes read of an answer that is an error and not MCP.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// A stream of answers that breaks is taken up again so often, at most so far apart.
const STREAM_RETRIES_MAX: usize = 3;
const STREAM_RETRY_WAIT_MAX: Duration = Duration::from_secs(8);

/// An endpoint and who we are to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    url: Url,
    token: Option<String>,
    workspace: Name,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Endpoint").field("host", &self.host()).finish_non_exhaustive()
    }
}

impl Endpoint {
    pub(super) fn new(workspace: &Name, url: &Url, token: Option<String>) -> Self {
        Self { url: url.clone(), token, workspace: workspace.clone() }
    }

    /// Host and port: all of a URL that is sure to hold no credential.
    fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// A client of its own, which asks this server and no other; and what is set once an answer was too large.
    pub(super) fn transport(&self) -> Result<(StreamableHttpClientTransport<Client>, Arc<AtomicBool>), ReadError> {
        let client =
            self.client().map_err(|_| ReadError::NotConnected("the HTTP client cannot be set up".to_owned()))?;
        let mut again = ExponentialBackoff::default();
        again.max_times = Some(STREAM_RETRIES_MAX);
        again.max_delay = Some(STREAM_RETRY_WAIT_MAX);
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .max_json_response_size(MESSAGE_BYTES_MAX)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_error_response_size(ERROR_BYTES_MAX)
            .reinit_on_expired_session(true);
        config.retry_config = Arc::new(again);
        if let Some(token) = &self.token {
            config = config.auth_header(token);
        }
        let client = Client::new(client);
        let too_large = client.too_large();
        Ok((StreamableHttpClientTransport::with_client(client, config), too_large))
    }

    fn client(&self) -> reqwest::Result<reqwest::Client> {
        // One provider for the whole process; whoever comes first installs it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut identity = HeaderMap::new();
        if let Ok(workspace) = HeaderValue::from_str(self.workspace.as_str()) {
            identity.insert("x-tenant-id", workspace.clone());
            identity.insert("x-workspace-id", workspace);
        }
        reqwest::Client::builder()
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .default_headers(identity)
            .dns_resolver(PublicOnly)
            .no_proxy()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIME_MAX)
            .pool_idle_timeout(IDLE_TIME_MAX)
            .build()
    }

    /// Names the host where an error of the connection does not.
    pub(super) fn explain(&self, error: ReadError) -> ReadError {
        let host = self.host();
        match error {
            ReadError::NotConnected(why) => ReadError::NotConnected(format!(
                "{host} cannot be reached: {why}; check the connector's url, and the server"
            )),
            ReadError::Disconnected(why) => ReadError::Disconnected(format!("{host} broke the connection: {why}")),
            error => error,
        }
    }
}
