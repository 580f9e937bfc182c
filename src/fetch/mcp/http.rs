//! A server behind streamable HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;

use super::MESSAGE_BYTES_MAX;
use super::again::Waits;
use super::client::Client;
use super::clients::Clients;
use super::credential::Credential;
use super::fault::Faults;
use super::heard::Heard;
use super::streams::AtOnce;
use super::tap::Tap;
use crate::config::Secret;
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// Bytes read of an answer that is an error and not MCP.
const ERROR_BYTES_MAX: usize = 4 << 10;

/// Who asks: the workspace's name in both (product contract, "The poll, exactly").
const IDENTITY: [&str; 2] = ["x-tenant-id", "x-workspace-id"];

/// Headers that are the protocol's, HTTP's or the host's to set.
const RESERVED: [&str; 14] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

/// An endpoint, and who we are to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    url: Url,
    workspace: Name,
    is_private: bool,
    /// Whether its address is the operator's, and kept from the workspace.
    is_of_catalog: bool,
    credential: Credential,
    headers: Arc<[(HeaderName, HeaderValue)]>,
    clients: Clients,
    waits: Waits,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Endpoint").field("host", &self.host()).finish_non_exhaustive()
    }
}

/// What every request to an endpoint carries.
#[derive(Debug)]
pub(super) struct Signature {
    pub credential: Credential,
    /// By name, with the secret that each holds.
    pub headers: BTreeMap<String, Name>,
}

impl Endpoint {
    /// # Errors
    /// When a header cannot be sent: its secret is not there, its value is none for a header, or it is not the
    /// connector's to set.
    pub(super) fn new(
        workspace: &Name,
        url: &Url,
        is_private: bool,
        signature: Signature,
        secrets: &BTreeMap<Name, Secret>,
        clients: &Clients,
        waits: Waits,
    ) -> Result<Self, ReadError> {
        let Signature { credential, headers } = signature;
        let is_signed = !matches!(credential, Credential::None);
        let custom = headers.iter().map(|(name, secret)| header(name, secret, secrets, is_signed));
        let mut headers = custom.collect::<Result<Vec<_>, ReadError>>()?;
        if let Ok(value) = HeaderValue::from_str(workspace.as_str()) {
            headers.extend(IDENTITY.map(|name| (HeaderName::from_static(name), value.clone())));
        }
        let (workspace, clients) = (workspace.clone(), clients.clone());
        let headers = headers.into();
        Ok(Self { url: url.clone(), workspace, is_private, is_of_catalog: false, credential, headers, clients, waits })
    }

    /// The same, of the operator's catalog or not.
    pub(super) fn of_catalog(self, is_of_catalog: bool) -> Self {
        Self { is_of_catalog, ..self }
    }

    /// Host and port: all of a URL that is sure to hold no credential.
    fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// A connection to be made, and what will be heard on it.
    pub(super) fn transport(
        &self,
        faults: &Faults,
        tap: Option<Arc<Tap>>,
    ) -> Result<(StreamableHttpClientTransport<Client>, Arc<Heard>), ReadError> {
        let client = self.clients.of(&self.workspace, self.is_private)?;
        let (credential, headers) = (self.credential.clone(), Arc::clone(&self.headers));
        let client = Client::new(client, credential, headers, faults.clone(), self.waits).tapped(tap);
        let mut config = StreamableHttpClientTransportConfig::with_uri(self.url.as_str())
            .max_json_response_size(MESSAGE_BYTES_MAX)
            .max_sse_event_size(MESSAGE_BYTES_MAX)
            .max_error_response_size(ERROR_BYTES_MAX)
            .reinit_on_expired_session(true);
        config.retry_config = Arc::new(AtOnce);
        let heard = client.heard();
        Ok((StreamableHttpClientTransport::with_client(client, config), heard))
    }

    /// Names the host where an error of the connection does not; where the address is the operator's, nothing of it.
    pub(super) fn explain(&self, error: ReadError) -> ReadError {
        let (host, whose) = match self.is_of_catalog {
            true => ("the catalog's server".to_owned(), "the operator checks the entry of the catalog, and the server"),
            false => (self.host(), "check the connector's url, and the server"),
        };
        match error {
            ReadError::NotConnected(why) => {
                let why = self.without_address(why);
                ReadError::NotConnected(format!("{host} cannot be reached: {why}; {whose}"))
            }
            ReadError::Disconnected(why) => {
                let why = self.without_address(why);
                ReadError::Disconnected(format!("{host} broke the connection: {why}"))
            }
            error => error,
        }
    }

    fn without_address(&self, why: String) -> String {
        match self.url.host_str() {
            Some(host) if self.is_of_catalog => why.replace(host, "…"),
            _ => why,
        }
    }
}

/// A header of the connector's own.
fn header(
    name: &str,
    secret: &Name,
    secrets: &BTreeMap<Name, Secret>,
    is_signed: bool,
) -> Result<(HeaderName, HeaderValue), ReadError> {
    let cannot = |why: String| ReadError::NotConnected(format!("the header `{name}` cannot be sent: {why}"));
    let parsed: HeaderName = name.parse().map_err(|_| cannot("this is no name of a header".to_owned()))?;
    if RESERVED.contains(&parsed.as_str()) || IDENTITY.contains(&parsed.as_str()) {
        return Err(cannot("Switchbell sets it itself; take it out of `headers`".to_owned()));
    }
    if is_signed && parsed.as_str() == "authorization" {
        return Err(cannot("`auth` sets it already; take one of the two out".to_owned()));
    }
    let mut value = HeaderValue::from_str(&super::way::value_of(secret, secrets)?).map_err(|_| {
        cannot(format!(
            "the secret \"{secret}\" holds a line break, or what else no header can hold; correct its value"
        ))
    })?;
    value.set_sensitive(true);
    Ok((parsed, value))
}
