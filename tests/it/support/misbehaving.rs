//! An MCP server over streamable HTTP with a small outbox, in this process, which misbehaves as it is told.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Which revision it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 2025-11-25, with sessions.
    Sessions,
    /// 2026-07-28, without.
    Stateless,
}

/// A request as the server got it.
#[derive(Clone, Debug)]
pub struct Got {
    pub method: Method,
    pub headers: HeaderMap,
    pub message: Value,
}

impl Got {
    /// The method of MCP.
    pub fn call(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub fn is_read(&self) -> bool {
        self.call() == "resources/read"
    }

    /// The resource that is read.
    pub fn uri(&self) -> &str {
        self.message["params"]["uri"].as_str().unwrap_or_default()
    }

    /// The query of it.
    pub fn query(&self) -> Option<&str> {
        self.uri().split_once('?').map(|(_, query)| query)
    }

    /// One parameter of the query, as it came.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query()?.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    pub fn session(&self) -> Option<&str> {
        self.headers.get("mcp-session-id")?.to_str().ok()
    }
}

/// How it misbehaves: what it answers to a request; nothing where it behaves.
pub type Bad = fn(&Got, &Outbox) -> Option<Response>;

/// What the server knows.
#[derive(Debug)]
pub struct Outbox {
    era: Era,
    titles: Mutex<Vec<String>>,
    requests: Mutex<Vec<Got>>,
    bad: Mutex<Option<Bad>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

impl Outbox {
    /// What was asked before, the oldest first.
    pub fn requests(&self) -> Vec<Got> {
        lock(&self.requests).clone()
    }

    /// How often this method of MCP was called before.
    pub fn calls(&self, call: &str) -> usize {
        lock(&self.requests).iter().filter(|got| got.call() == call).count()
    }

    /// Everything that happened.
    pub fn events(&self) -> Vec<Value> {
        lock(&self.titles).iter().enumerate().map(|(at, title)| event(at + 1, title)).collect()
    }

    /// The answer to a read when it behaves: what comes after the cursor `c-N` are the events after the Nth.
    pub fn poll(&self, got: &Got) -> Value {
        let events = self.events();
        let Some(at) = got.parameter("cursor").and_then(|cursor| cursor.strip_prefix("c-")?.parse::<usize>().ok())
        else {
            return json!({"events": [], "cursor": format!("c-{}", events.len())});
        };
        let most = got.parameter("maxEvents").and_then(|most| most.parse().ok()).unwrap_or(100);
        let page: Vec<_> = events.iter().skip(at).take(most).collect();
        let end = at + page.len();
        json!({"events": page, "cursor": format!("c-{end}"), "hasMore": end < events.len()})
    }

    /// The answer of MCP to any request when it behaves.
    pub fn good(&self, got: &Got) -> Response {
        match (got.call(), self.era) {
            ("server/discover", Era::Stateless) => result(
                got,
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"resources": {}},
                       "ttlMs": 0, "cacheScope": "private"}),
            ),
            ("initialize", Era::Sessions) => {
                let session = format!("s-{}", self.calls("initialize"));
                let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {}},
                                   "serverInfo": {"name": "misbehaving", "version": "1"}});
                with(result(got, hello), "mcp-session-id", &session)
            }
            ("resources/read", _) => text(got, &self.poll(got).to_string()),
            ("", _) if got.method == Method::GET => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            _ if got.message["id"].is_null() => StatusCode::ACCEPTED.into_response(),
            _ => error(got, -32601, "Method not found"),
        }
    }
}

/// An event of level urgent; its own cursor is the one after it.
pub fn event(number: usize, title: &str) -> Value {
    json!({
        "eventId": format!("e-{number}"), "name": "domain.active", "timestamp": "2026-09-01T18:42:10Z", "data": {},
        "_meta": {"ai.nimblebrain/notification": {"level": "urgent", "title": title}},
    })
}

pub fn with(mut response: Response, name: &'static str, value: &str) -> Response {
    response.headers_mut().insert(name, value.parse().unwrap());
    response
}

pub fn json_of(body: &Value) -> Response {
    ([("content-type", "application/json")], body.to_string()).into_response()
}

pub fn result(got: &Got, result: Value) -> Response {
    json_of(&json!({"jsonrpc": "2.0", "id": got.message["id"], "result": result}))
}

pub fn error(got: &Got, code: i32, message: &str) -> Response {
    json_of(&json!({"jsonrpc": "2.0", "id": got.message["id"], "error": {"code": code, "message": message}}))
}

/// The result of a read with this text.
pub fn contents(text: &str) -> Value {
    json!({"resultType": "complete", "contents": [{"uri": "acme://notifications", "text": text}],
           "ttlMs": 60_000, "cacheScope": "private"})
}

/// A read is answered with this text.
pub fn text(got: &Got, text: &str) -> Response {
    result(got, contents(text))
}

pub fn status(status: u16) -> Response {
    StatusCode::from_u16(status).unwrap().into_response()
}

/// An answer that comes in pieces; one that fails breaks the connection.
pub fn pieces(
    content_type: &'static str,
    pieces: impl Stream<Item = Result<String, std::io::Error>> + Send + 'static,
) -> Response {
    ([("content-type", content_type)], Body::from_stream(pieces)).into_response()
}

/// Events of a stream, which ends after them.
pub fn events(messages: &[Value]) -> Response {
    let body: String = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
    ([("content-type", "text/event-stream")], body).into_response()
}

/// An answer that begins so and never ends.
pub fn endless(content_type: &'static str, beginning: &str) -> Response {
    let beginning = futures_util::stream::iter([Ok(beginning.to_owned())]);
    pieces(content_type, beginning.chain(futures_util::stream::pending()))
}

/// A server on a loopback port, gone when this is dropped.
pub struct Site {
    pub url: String,
    pub outbox: Arc<Outbox>,
    _tasks: JoinSet<()>,
}

impl Site {
    pub async fn start(era: Era) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), era)
    }

    /// Serves who connected to this listener already, too.
    pub fn on(listener: TcpListener, era: Era) -> Self {
        let outbox = Outbox { era, titles: Mutex::default(), requests: Mutex::default(), bad: Mutex::default() };
        let outbox = Arc::new(outbox);
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let shared = Arc::clone(&outbox);
        let handler = move |request: Request| answer(Arc::clone(&shared), request);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { url, outbox, _tasks: tasks }
    }

    /// From now on it misbehaves so.
    pub fn misbehave(&self, bad: Bad) {
        *lock(&self.outbox.bad) = Some(bad);
    }
}

async fn answer(outbox: Arc<Outbox>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let got = Got { method: parts.method, headers: parts.headers, message };
    let bad = *lock(&outbox.bad);
    let response = bad.and_then(|bad| bad(&got, &outbox)).unwrap_or_else(|| outbox.good(&got));
    lock(&outbox.requests).push(got);
    response
}

/// A server that can be told to behave again.
pub trait Wayward {
    fn behave(&self);
    /// Something happens: its outbox holds one event more.
    fn happen(&self, title: &str);
    /// The requests it got, as the methods of MCP.
    fn calls(&self) -> Vec<String>;
    /// How many they are.
    fn asked(&self) -> usize {
        self.calls().len()
    }
}

impl Wayward for Site {
    fn behave(&self) {
        *lock(&self.outbox.bad) = None;
    }

    fn happen(&self, title: &str) {
        lock(&self.outbox.titles).push(title.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        let call = |got: &Got| if got.call().is_empty() { got.method.to_string() } else { got.call().to_owned() };
        lock(&self.outbox.requests).iter().map(call).collect()
    }
}
