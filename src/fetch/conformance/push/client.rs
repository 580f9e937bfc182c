//! Requests as they stand on the wire, so that wrong ones can be made, too: one POST for each, answered by JSON or by a
//! stream of events. All that is read has a bound, in bytes and in time.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Response, StatusCode};
use serde_json::{Map, Value, json};
use url::Url;

use super::stream::Stream;
use crate::clock::{Clock, until};
use crate::text;

/// The extension, as capability, as filter, and as the beginning of its methods.
pub(super) const EXTENSION: &str = "io.stagewise/push-notifications";

/// The revision of MCP that the extension needs.
pub(super) const REVISION: &str = "2026-07-28";

/// Longest answer, in bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Longest piece of a server's words that a report repeats, in characters.
const SAID_CHARS_MAX: usize = 120;

/// A token that nobody was given.
const STRANGER: &str = "Bearer switchbell-push-check-nobody";

/// A request to make.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: String,
    params: Map<String, Value>,
    declares: bool,
    is_stranger: bool,
}

impl Request {
    /// Of a method, with these parameters; `_meta` comes by itself.
    pub(super) fn new(method: &str, params: Value) -> Self {
        let params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        Self { method: method.to_owned(), params, declares: true, is_stranger: false }
    }

    pub(super) fn get(params: Value) -> Self {
        Self::new(&format!("{EXTENSION}/get"), params)
    }

    pub(super) fn ack(ids: &Value) -> Self {
        Self::new(&format!("{EXTENSION}/ack"), json!({ "eventIds": ids }))
    }

    pub(super) fn listen(filter: &Value) -> Self {
        Self::new("subscriptions/listen", json!({ "notifications": { EXTENSION: filter } }))
    }

    /// From a client that does not declare the extension.
    pub(super) fn undeclared(self) -> Self {
        Self { declares: false, ..self }
    }

    /// From somebody whom the server does not know.
    pub(super) fn by_stranger(self) -> Self {
        Self { is_stranger: true, ..self }
    }

    fn body(&self, id: u64) -> String {
        let extensions = if self.declares { json!({ EXTENSION: {} }) } else { json!({}) };
        let mut params = self.params.clone();
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": { "name": "switchbell-push-check", "version": env!("CARGO_PKG_VERSION") },
            "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
        });
        params.insert("_meta".to_owned(), meta);
        json!({ "jsonrpc": "2.0", "id": id, "method": self.method, "params": params }).to_string()
    }
}

/// What a request was answered with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Result(Map<String, Value>),
    Error { code: i64, message: String },
}

/// What came of a request for a stream.
#[derive(Debug)]
pub(super) enum Opened {
    Stream(Box<Stream>),
    Answer(Answer),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    NotReached(String),
    Http(StatusCode),
    /// It came and is no JSON-RPC answer.
    NotAnAnswer(String),
    TooLarge,
    Slow(Duration),
    /// The connection broke off.
    BrokeOff,
    /// The check may make no more requests.
    Cut,
}

impl fmt::Display for Missed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReached(why) => write!(out, "the server is not reached: {why}"),
            Self::Http(status) => write!(out, "HTTP {}", status.as_u16()),
            Self::NotAnAnswer(why) => write!(out, "no JSON-RPC answer: {why}"),
            Self::TooLarge => write!(out, "the answer is larger than {} MiB", ANSWER_BYTES_MAX >> 20),
            Self::Slow(time) => write!(out, "no answer within {} ms", time.as_millis()),
            Self::BrokeOff => write!(out, "the connection broke off"),
            Self::Cut => write!(out, "the check ran out of requests or time"),
        }
    }
}

/// Makes the requests of one check.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) http: reqwest::Client,
    pub(super) streams: reqwest::Client,
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
    pub(super) timeout: Duration,
    pub(super) clock: &'a Clock,
    pub(super) deadline: Timestamp,
    pub(super) requests: u32,
    pub(super) requests_max: u32,
    pub(super) is_cut: bool,
}

impl Client<'_> {
    /// Makes a request that is answered once.
    pub(super) async fn call(&mut self, request: &Request) -> Result<Answer, Missed> {
        let (id, within) = self.begin()?;
        let answered = async {
            let response = self.post(&self.http, request, id).await?;
            answer(response, id).await
        };
        tokio::time::timeout(within, answered).await.unwrap_or(Err(Missed::Slow(within)))
    }

    /// Makes a request that is answered by a stream, if it is let in.
    pub(super) async fn open(&mut self, request: &Request) -> Result<Opened, Missed> {
        let (id, within) = self.begin()?;
        let opened = async {
            let response = self.post(&self.streams, request, id).await?;
            match is_stream(&response) {
                true => Ok(Opened::Stream(Box::new(Stream::new(response, id)))),
                false => Ok(Opened::Answer(answer(response, id).await?)),
            }
        };
        tokio::time::timeout(within, opened).await.unwrap_or(Err(Missed::Slow(within)))
    }

    /// How long may still be waited for something, `most` at most.
    pub(super) fn left(&self, most: Duration) -> Duration {
        most.min(until(self.clock.now(), self.deadline))
    }

    /// The id of the next request and how long it may take.
    fn begin(&mut self) -> Result<(u64, Duration), Missed> {
        let within = self.left(self.timeout);
        if within.is_zero() || self.requests >= self.requests_max {
            self.is_cut = true;
            return Err(Missed::Cut);
        }
        self.requests += 1;
        Ok((u64::from(self.requests), within))
    }

    async fn post(&self, http: &reqwest::Client, request: &Request, id: u64) -> Result<Response, Missed> {
        let mut headers = self.headers.clone();
        if request.is_stranger {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(STRANGER));
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert("mcp-protocol-version", HeaderValue::from_static(REVISION));
        if let Ok(method) = HeaderValue::from_str(&request.method) {
            headers.insert("mcp-method", method);
        }
        let asked = http.post(self.url.clone()).headers(headers).body(request.body(id));
        let response = asked.send().await.map_err(|error| Missed::NotReached(cause(&error)))?;
        match response.status() {
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(Missed::Http(status)),
            _ => Ok(response),
        }
    }
}

/// The innermost cause: what is around it repeats the URL.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    said(&cause.to_string())
}

fn is_stream(response: &Response) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    response.status().is_success() && kind.to_ascii_lowercase().starts_with("text/event-stream")
}

/// The answer to the request `id`, in a body or as an event of a stream.
async fn answer(response: Response, id: u64) -> Result<Answer, Missed> {
    if is_stream(&response) {
        let mut stream = Stream::new(response, id);
        loop {
            let message = stream.message().await?;
            let message = message.ok_or_else(|| Missed::NotAnAnswer("the stream ended without one".to_owned()))?;
            if message.get("method").is_none() {
                return Answer::of(&message, id);
            }
        }
    }
    let status = response.status();
    let bytes = body(response).await?;
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(message) if message.get("jsonrpc").is_some() => Answer::of(&message, id),
        _ if !status.is_success() => Err(Missed::Http(status)),
        Ok(_) => Err(Missed::NotAnAnswer(format!("\"jsonrpc\" is missing in {}", said_of(&bytes)))),
        Err(_) => Err(Missed::NotAnAnswer(format!("not JSON: {}", said_of(&bytes)))),
    }
}

async fn body(mut response: Response) -> Result<Vec<u8>, Missed> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|_| Missed::BrokeOff)? {
        if bytes.len() + piece.len() > ANSWER_BYTES_MAX {
            return Err(Missed::TooLarge);
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

impl Answer {
    /// What a message answers the request `id` with.
    pub(super) fn of(message: &Value, id: u64) -> Result<Self, Missed> {
        let wrong = |why: String| Err(Missed::NotAnAnswer(why));
        if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return wrong("\"jsonrpc\" is not \"2.0\"".to_owned());
        }
        let told = message.get("id").unwrap_or(&Value::Null);
        let is_ours = *told == json!(id);
        match (message.get("result"), message.get("error")) {
            (Some(_), _) if !is_ours => {
                wrong(format!("the id {} is not that of the request, {id}", said(&told.to_string())))
            }
            (Some(Value::Object(result)), None) => Ok(Self::Result(result.clone())),
            (None, Some(error)) => {
                let code = error.get("code").and_then(Value::as_i64);
                let message = error.get("message").and_then(Value::as_str);
                match (code, message) {
                    (Some(code), Some(message)) if is_ours || told.is_null() => {
                        Ok(Self::Error { code, message: said(message) })
                    }
                    (Some(_), Some(_)) => {
                        wrong(format!("the id {} is not that of the request, {id}", said(&told.to_string())))
                    }
                    _ => wrong("an error wants an integer `code` and a text `message`".to_owned()),
                }
            }
            (Some(Value::Object(_)), Some(_)) => wrong("it has both a result and an error".to_owned()),
            (Some(_), _) => wrong("the result is not an object".to_owned()),
            (None, None) => wrong("it has neither a result nor an error".to_owned()),
        }
    }
}

/// The beginning of what a server said, in one line.
pub(super) fn said(words: &str) -> String {
    text::line(words, SAID_CHARS_MAX)
}

fn said_of(bytes: &[u8]) -> String {
    let beginning = bytes.get(..SAID_CHARS_MAX.saturating_mul(4)).unwrap_or(bytes);
    said(&String::from_utf8_lossy(beginning))
}
