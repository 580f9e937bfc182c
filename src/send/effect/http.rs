//! HTTP on reqwest: no redirect, proxy, cookie, referer or decompression; addresses checked where it connects.

use std::error::Error as _;
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};

use super::guard::{Allowed, Fetched, judge};
use super::mask::Mask;
use super::{EffectsError, Permission, fault};
use crate::address::{NOT_PUBLIC, PublicOnly};
use crate::wasm::{Fault, Reach, Request, Response};

/// The longest an answer may take, connecting included: a destination that needs longer is polled.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// The longest a connection may take to open, TLS included.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes kept of an answer's body: error texts and receipts are far smaller.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Headers kept of an answer.
const ANSWER_HEADERS_MAX: usize = 100;

const USER_AGENT: &str = concat!("switchbell/", env!("CARGO_PKG_VERSION"));

/// Two pooled clients: one that connects to public addresses only, one for what the operator granted as private.
#[derive(Clone, Debug)]
pub struct HttpClient {
    public: Client,
    private: Client,
}

impl HttpClient {
    /// Sets up the clients.
    ///
    /// # Errors
    /// When the system's certificates cannot be used.
    pub fn new() -> Result<Self, EffectsError> {
        let build = |builder: ClientBuilder| builder.build().map_err(|error| EffectsError(causes(&error)));
        Ok(Self { public: build(plain().dns_resolver(PublicOnly))?, private: build(plain())? })
    }

    /// Judges a request, makes it, and reads the answer.
    pub(super) async fn perform(&self, request: Request, permission: &Permission<'_>) -> Result<Response, Fault> {
        let wait = request.timeout_ms.map_or(ANSWER_TIME_MAX, |asked| Duration::from_millis(asked.into()));
        let kept = request.response_max.map_or(ANSWER_BYTES_MAX, |asked| asked.try_into().unwrap_or(usize::MAX));
        let fetched = Fetched::new();
        let allowed = judge(request, permission, &fetched)?;
        let mask = Mask::of(&allowed.carried, &fetched);
        match tokio::time::timeout(wait.min(ANSWER_TIME_MAX), self.send(allowed, kept.min(ANSWER_BYTES_MAX))).await {
            Ok(answer) => answer.map(|answer| masked(answer, &mask)),
            Err(_) => Err(fault(Reach::Unanswered, "timeout", format!("no whole answer within {wait:?}"))),
        }
    }

    async fn send(&self, allowed: Allowed<'_>, kept_bytes: usize) -> Result<Response, Fault> {
        let client = if allowed.private { &self.private } else { &self.public };
        let request = client.request(allowed.method, allowed.url).headers(allowed.headers).body(allowed.body);
        let answer = request.send().await.map_err(failed)?;
        let status = answer.status().as_u16();
        let header = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let headers = answer.headers().iter().take(ANSWER_HEADERS_MAX).map(header).collect();
        let mut body = Vec::new();
        let mut truncated = false;
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(failed)?;
            let room = kept_bytes.saturating_sub(body.len());
            body.extend(chunk.iter().take(room));
            if chunk.len() > room {
                truncated = true;
                break;
            }
        }
        Ok(Response { status, headers, body, truncated, extras: "{}".to_owned() })
    }
}

/// An answer without the secrets that its request carried.
fn masked(mut answer: Response, mask: &Mask) -> Response {
    if mask.is_empty() {
        return answer;
    }
    for (_, value) in &mut answer.headers {
        let mut bytes = std::mem::take(value).into_bytes();
        mask.apply(&mut bytes);
        *value = String::from_utf8_lossy(&bytes).into_owned();
    }
    mask.apply(&mut answer.body);
    answer
}

fn plain() -> ClientBuilder {
    Client::builder()
        .user_agent(USER_AGENT)
        .http1_only()
        .no_proxy()
        .referer(false)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIME_MAX)
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
}

/// The clients' errors hold the URL, which may be a secret; only their causes are told.
fn failed(error: reqwest::Error) -> Fault {
    let error = error.without_url();
    let text = causes(&error);
    if text.contains(NOT_PUBLIC) {
        let message = format!("{NOT_PUBLIC}: the operator may say `private: true` in the grant if that is intended");
        fault(Reach::Denied, "private-address", message)
    } else if error.is_connect() {
        fault(Reach::Unsent, "connect", format!("no connection: {text}"))
    } else if error.is_builder() {
        fault(Reach::Denied, "request", format!("the request cannot be made: {text}"))
    } else {
        fault(Reach::Unanswered, "no-answer", format!("it was sent, but no whole answer came: {text}"))
    }
}

/// The innermost causes of an error, which say more than its outermost layer.
fn causes(error: &reqwest::Error) -> String {
    let mut layers = Vec::new();
    let mut layer = error.source();
    while let Some(cause) = layer {
        layers.push(cause.to_string());
        layer = cause.source();
    }
    layers.pop().unwrap_or_else(|| error.to_string())
}
