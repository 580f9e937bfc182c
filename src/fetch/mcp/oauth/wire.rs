//! The HTTP client of everything OAuth: guarded as a connector's requests are, bounded in time and size, following no
//! redirect, and remembering what went wrong. The library's errors hold URLs, or say only that something failed.

use std::error::Error;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Request, Response};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};
use serde::Deserialize;
use url::{Host, Url};

use super::super::words;
use super::account::Account;
use crate::address::is_public;
use crate::fetch::outbox::ReadError;

/// One request with its whole answer.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(15);
/// Largest answer, in bytes: metadata and tokens have a few thousand.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// What a form of the token endpoint holds that may not be repeated.
const SECRET_FIELDS: [&str; 4] = ["refresh_token", "code", "code_verifier", "client_secret"];

/// Why the last request brought nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It was not sent: the address is not one that this connector's server may lead to.
    Forbidden {
        /// Host and port.
        host: String,
    },
    /// No answer came.
    Unreachable {
        /// Host and port.
        host: String,
        /// The innermost cause.
        why: String,
    },
    /// The answer was an error.
    Refused {
        /// Host and port.
        host: String,
        /// The HTTP status.
        status: u16,
        /// The error's code (RFC 6749 §5.2), where there is one.
        code: Option<String>,
        /// The server's words, fit to be told.
        description: Option<String>,
    },
}

/// Sends the requests of one connector's sign-in.
pub(super) struct Wire {
    client: reqwest::Client,
    connector: Url,
    is_private: bool,
    identity: HeaderMap,
    hidden: Vec<String>,
    trouble: Mutex<Option<Trouble>>,
}

impl Wire {
    /// For the sign-in of this account, by the client of its workspace: names lead where a connector's may, and no
    /// redirect is followed.
    ///
    /// # Errors
    /// When the system has no certificates.
    pub(super) fn new(account: &Account) -> Result<Self, ReadError> {
        let Account { workspace, url, is_private, clients, .. } = account;
        let (client, is_private) = (clients.of(workspace, *is_private)?.answers, *is_private);
        let mut identity = HeaderMap::new();
        if let Ok(workspace) = HeaderValue::from_str(workspace.as_str()) {
            identity.insert("x-tenant-id", workspace.clone());
            identity.insert("x-workspace-id", workspace);
        }
        Ok(Self {
            client,
            connector: url.clone(),
            is_private,
            identity,
            hidden: account.hidden(),
            trouble: Mutex::default(),
        })
    }

    /// What went wrong with the last request, if something did.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, trouble: Option<Trouble>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    async fn send(&self, mut request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        self.note(None);
        let url = Url::parse(&request.uri().to_string())?;
        let host = host_of(&url);
        if !may_ask(&self.connector, self.is_private, &url) {
            self.note(Some(Trouble::Forbidden { host }));
            return Err("the address may not be asked".into());
        }
        if url.origin() == self.connector.origin() {
            request.headers_mut().extend(self.identity.clone());
        }
        let mut hidden = self.hidden.clone();
        hidden.extend(secrets_of(request.body()));
        let answered = self.answer(request).await;
        match &answered {
            Ok(answer) => self.note(refusal(host, answer, &hidden)),
            Err(error) => {
                let why = words::fit(&root(error.as_ref()), &hidden);
                self.note(Some(Trouble::Unreachable { host, why }));
            }
        }
        answered
    }

    async fn answer(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let mut request = reqwest::Request::try_from(request)?;
        *request.timeout_mut() = Some(REQUEST_TIME_MAX);
        let mut answer = self.client.execute(request).await?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(format!("the answer has more than {ANSWER_BYTES_MAX} bytes").into());
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::new(body);
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        Ok(response)
    }
}

impl OAuthHttpClient for Wire {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request.request))
    }
}

/// Host and port: all of a URL that is sure to hold no credential.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether what a connector's server names may be asked. Encryption is not given up on the way. An address in a URL is
/// public, or the connector's own, or loopback as the connector's is; where names lead is for the resolver to say.
fn may_ask(connector: &Url, is_private: bool, asked: &Url) -> bool {
    let has_fitting_scheme = asked.scheme() == "https" || (asked.scheme() == "http" && connector.scheme() == "http");
    let allows = |address: IpAddr| match literal(connector) {
        _ if is_public(address) => true,
        Some(own) => own == address || (own.is_loopback() && address.is_loopback()),
        None => is_private && !is_link_local(address) && !address.is_loopback(),
    };
    has_fitting_scheme && asked.host().is_some() && literal(asked).is_none_or(allows)
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.to_canonical()),
        Host::Domain(_) => None,
    }
}

/// Where machines in clouds find their own credentials.
fn is_link_local(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
    }
}

/// An error of OAuth (RFC 6749 §5.2, RFC 7591 §3.2.2).
#[derive(Deserialize)]
struct OAuthError {
    error: String,
    error_description: Option<String>,
}

/// Some servers answer a refused grant with the status 200.
fn refusal(host: String, answer: &Response<Vec<u8>>, hidden: &[String]) -> Option<Trouble> {
    let told: Option<OAuthError> = serde_json::from_slice(answer.body()).ok();
    if answer.status().is_success() && told.is_none() {
        return None;
    }
    let fit = |text: &str| words::fit(text, hidden);
    Some(Trouble::Refused {
        host,
        status: answer.status().as_u16(),
        code: told.as_ref().map(|told| fit(&told.error)),
        description: told.and_then(|told| told.error_description).map(|text| fit(&text)),
    })
}

fn secrets_of(body: &[u8]) -> Vec<String> {
    let fields = url::form_urlencoded::parse(body);
    fields.filter(|(key, _)| SECRET_FIELDS.contains(&key.as_ref())).map(|(_, value)| value.into_owned()).collect()
}

fn root(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;

    use super::*;

    fn check(connector: &str, is_private: bool, asked: &str, expected: bool) {
        let url = |text: &str| Url::parse(text).unwrap();
        assert_eq!(may_ask(&url(connector), is_private, &url(asked)), expected, "{connector} -> {asked}");
    }

    #[test]
    fn a_server_leads_to_public_addresses_and_to_its_own_kind() {
        let public = "https://mcp.example.com/mcp";
        check(public, false, "https://login.example.com/token", true);
        check(public, false, "https://8.8.8.8/token", true);
        check(public, false, "http://login.example.com/token", false);
        check(public, false, "https://127.0.0.1/token", false);
        check(public, false, "https://[::1]/token", false);
        check(public, false, "https://[::ffff:127.0.0.1]/token", false);
        check(public, false, "https://10.0.0.1/token", false);
        check(public, false, "https://169.254.169.254/latest", false);
        check(public, false, "file:///etc/passwd", false);
        let loopback = "http://127.0.0.1:8000/mcp";
        check(loopback, false, "http://127.0.0.1:9000/token", true);
        check(loopback, false, "http://[::1]:9000/token", true);
        check(loopback, false, "http://10.0.0.1/token", false);
        check("https://mcp.corp.example/mcp", true, "https://10.0.0.1/token", true);
        check("https://mcp.corp.example/mcp", true, "https://127.0.0.1/token", false);
        check("https://mcp.corp.example/mcp", true, "https://169.254.169.254/latest", false);
        check("https://10.0.0.1/mcp", true, "https://10.0.0.1/token", true);
        check("https://10.0.0.1/mcp", true, "https://10.0.0.2/token", false);
    }

    #[test]
    fn a_refusal_is_told_without_what_was_sent() {
        let body = br#"{"error": "invalid_grant", "error_description": "the token s3cret-token is\nknown no more"}"#;
        let mut answer = Response::new(body.to_vec());
        *answer.status_mut() = StatusCode::BAD_REQUEST;
        let hidden = secrets_of(b"grant_type=refresh_token&refresh_token=s3cret%2Dtoken");
        assert_eq!(
            refusal("login.example.com".to_owned(), &answer, &hidden),
            Some(Trouble::Refused {
                host: "login.example.com".to_owned(),
                status: 400,
                code: Some("invalid_grant".to_owned()),
                description: Some("the token *** is known no more".to_owned()),
            })
        );
        assert_eq!(refusal(String::new(), &Response::new(b"{}".to_vec()), &[]), None);
    }
}
