//! Connections to small servers that behave, and misbehave, over streamable HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::*;
use crate::config::{Auth, Poll, SecretPlace, Transport};
use crate::notification::Level;

pub(super) const TOKEN: &str = "s3cret-token";

/// A request as the server got it.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) message: Value,
}

pub(super) type Log = Arc<Mutex<Vec<Got>>>;

/// A server on a loopback port, gone when this is dropped.
pub(super) struct Site {
    pub(super) url: String,
    pub(super) log: Log,
    _tasks: JoinSet<()>,
}

impl Site {
    /// Serves what `answer` makes of each request; it gets the requests before that, too.
    pub(super) async fn start(answer: impl Fn(&Got, &[Got]) -> Response + Clone + Send + Sync + 'static) -> Self {
        let log = Log::default();
        let seen = log.clone();
        let handler = move |request: Request| async move {
            let (parts, body) = request.into_parts();
            let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
            let message = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            let got = Got { method: parts.method, headers: parts.headers, message };
            let mut log = seen.lock().unwrap();
            let response = answer(&got, &log);
            log.push(got);
            response
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp?key=hidden", listener.local_addr().unwrap());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { url, log, _tasks: tasks }
    }

    pub(super) fn outbox(&self) -> McpOutbox {
        outbox_at(&self.url, patient())
    }

    pub(super) fn methods(&self) -> Vec<String> {
        let log = self.log.lock().unwrap();
        log.iter().filter_map(|got| got.message["method"].as_str().map(str::to_owned)).collect()
    }
}

pub(super) fn patient() -> Times {
    Times::default()
}

pub(super) fn common(secrets: &BTreeMap<Name, Secret>, times: Times) -> Common<'_> {
    let clock = Clock::manual("2026-09-01T18:42:10Z".parse().unwrap());
    Common { secrets, times, clock, clients: Clients::new(), credentials: Path::new("credentials") }
}

pub(super) fn secret(value: &str) -> Secret {
    let place = SecretPlace::Connector;
    Secret::new(value.to_owned(), place)
}

pub(super) fn outbox_at(url: &str, times: Times) -> McpOutbox {
    outbox_of(url, times, false)
}

fn outbox_of(url: &str, times: Times, is_of_catalog: bool) -> McpOutbox {
    let connector = Connector {
        is_of_catalog,
        name: "registrar".parse().unwrap(),
        transport: Transport::Http {
            url: url.parse().unwrap(),
            auth: Auth::Bearer("token".parse().unwrap()),
            headers: BTreeMap::new(),
            private: false,
        },
        outbox: Some("acme://n".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = BTreeMap::from([("token".parse().unwrap(), secret(TOKEN))]);
    McpOutbox::new(&"acme".parse().unwrap(), &connector, &common(&secrets, times)).unwrap()
}

pub(super) fn json_answer(status: u16, body: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap(), [("content-type", "application/json")], body.to_string()).into_response()
}

pub(super) fn result(got: &Got, result: Value) -> Response {
    json_answer(200, &json!({"jsonrpc": "2.0", "id": got.message["id"], "result": result}))
}

pub(super) fn text(got: &Got, text: &str) -> Response {
    result(
        got,
        json!({"resultType": "complete", "contents": [{"uri": "acme://n", "text": text}], "ttlMs": 60_000, "cacheScope": "private"}),
    )
}

/// Answers the handshake of the newest revision, and reads with `read`.
pub(super) fn modern(got: &Got, read: impl Fn(&Got) -> Response) -> Response {
    modern_with(got, json!({"resources": {}}), read)
}

pub(super) fn modern_with(got: &Got, capabilities: Value, read: impl Fn(&Got) -> Response) -> Response {
    match got.message["method"].as_str() {
        Some("server/discover") => result(
            got,
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}),
        ),
        Some("resources/read" | "tools/call") => read(got),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Answers the handshake of the revision before, and reads with `read`.
pub(super) fn legacy(got: &Got, session: &'static str, read: impl Fn(&Got) -> Response) -> Response {
    legacy_with(got, session, json!({"resources": {}}), read)
}

pub(super) fn legacy_with(
    got: &Got,
    session: &'static str,
    capabilities: Value,
    read: impl Fn(&Got) -> Response,
) -> Response {
    let error =
        json!({"jsonrpc": "2.0", "id": got.message["id"], "error": {"code": -32601, "message": "Method not found"}});
    match got.message["method"].as_str() {
        Some("server/discover") => json_answer(200, &error),
        Some("initialize") => {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "acme", "version": "1"}});
            let mut response = result(got, hello);
            response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
            response
        }
        Some("resources/read" | "tools/call") => read(got),
        _ if got.method == Method::GET => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Reads once and closes.
pub(super) async fn check(mut outbox: McpOutbox, expected: Result<&str, &str>) {
    let read = outbox.read("acme://n").await;
    outbox.close().await;
    match (read, expected) {
        (Ok(text), Ok(expected)) => assert_eq!(text, expected),
        (Err(error), Err(expected)) => {
            let error = error.to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains(TOKEN) && !error.contains("hidden"), "{error}");
        }
        (read, expected) => panic!("{read:?} is not {expected:?}"),
    }
}

#[tokio::test]
async fn a_server_of_the_newest_revision_is_read_and_nothing_is_cached() {
    let site = Site::start(|got, before| modern(got, |got| text(got, &before.len().to_string()))).await;
    let mut outbox = site.outbox();
    let first = outbox.read("acme://n?cursor=a+b").await.unwrap();
    let second = outbox.read("acme://n?cursor=a+b").await.unwrap();
    assert_ne!(first, second, "the second answer came from a cache");
    outbox.close().await;
    assert_eq!(site.methods(), ["server/discover", "resources/read", "resources/read"]);
    let uri = site.log.lock().unwrap()[1].message["params"]["uri"].clone();
    assert_eq!(uri, "acme://n?cursor=a+b");
}

#[tokio::test]
async fn every_request_says_who_asks_and_carries_the_token() {
    let site = Site::start(|got, _| legacy(got, "s-1", |got| text(got, "fine"))).await;
    check(site.outbox(), Ok("fine")).await;
    let log = site.log.lock().unwrap().clone();
    assert!(log.iter().any(|got| got.method == Method::DELETE), "the session was left open");
    for got in log {
        let header = |name: &str| got.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(header("x-tenant-id").as_deref(), Some("acme"), "{got:?}");
        assert_eq!(header("x-workspace-id").as_deref(), Some("acme"), "{got:?}");
        assert_eq!(header("authorization"), Some(format!("Bearer {TOKEN}")), "{got:?}");
        assert_eq!(header("cookie"), None);
    }
}

#[tokio::test]
async fn errors_of_http_are_told_with_what_to_do() {
    for (status, header, expected) in [
        (401, None, "HTTP 401: the credential was refused"),
        (401, Some(("www-authenticate", "Bearer realm=\"s3cret-token\"")), "HTTP 401: the credential was refused"),
        (403, None, "HTTP 403: the credential was refused"),
        (404, None, "HTTP 404: nothing is served there"),
        (302, Some(("location", "https://other.example/mcp")), "HTTP 302: redirects are not followed"),
        (307, Some(("location", "/elsewhere")), "HTTP 307: redirects are not followed"),
        (500, None, "HTTP 500: the server could not answer"),
    ] {
        let site = Site::start(move |_, _| {
            let mut response = (StatusCode::from_u16(status).unwrap(), "the body says s3cret-token").into_response();
            if let Some((name, value)) = header {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        })
        .await;
        check(site.outbox(), Err(expected)).await;
    }
}

#[tokio::test]
async fn the_wait_a_server_asks_for_is_handed_on() {
    for (status, asked, seconds) in [(429, "900", 900), (503, "Tue, 01 Sep 2026 19:42:10 GMT", 3_600)] {
        let answer = move |_: &Got| (StatusCode::from_u16(status).unwrap(), [("retry-after", asked)]).into_response();
        let site = Site::start(move |got, _| modern(got, answer)).await;
        let mut outbox = site.outbox();
        let error = outbox.read("acme://n").await.unwrap_err();
        outbox.close().await;
        assert_eq!(error, ReadError::Http { status, retry_after: Some(Duration::from_secs(seconds)) });
    }
}

#[tokio::test]
async fn a_resource_that_is_not_there_is_known_whatever_the_status() {
    for status in [200, 400, 404] {
        let answer = move |got: &Got| {
            json_answer(
                status,
                &json!({"jsonrpc": "2.0", "id": got.message["id"], "error": {"code": -32602, "message": "Resource not found"}}),
            )
        };
        let site = Site::start(move |got, _| modern(got, answer)).await;
        let mut outbox = site.outbox();
        assert_eq!(
            outbox.read("acme://n").await,
            Err(ReadError::NotFound("Resource not found".to_owned())),
            "{status}"
        );
        outbox.close().await;
    }
}

#[tokio::test]
async fn what_is_not_mcp_is_said_to_be_none() {
    let page = || ([("content-type", "text/html")], "<html>s3cret-token</html>").into_response();
    let site = Site::start(move |_, _| page()).await;
    check(site.outbox(), Err("the server answered something that is not MCP (text/html); check the connector's url"))
        .await;
    let site = Site::start(|_, _| json_answer(200, &json!({"token": TOKEN}))).await;
    check(site.outbox(), Err("the server answered something that is not MCP; check the connector's url")).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_refused_in_every_form() {
    let site = Site::start(|got, _| modern(got, |got| text(got, &"x".repeat(TEXT_BYTES_MAX + 1)))).await;
    check(site.outbox(), Err("more than 8388608 bytes")).await;
    let site = Site::start(|got, _| modern(got, |got| text(got, &"x".repeat(MESSAGE_BYTES_MAX)))).await;
    check(site.outbox(), Err("more than 16777216 bytes")).await;
    let stream = |_: &Got| {
        let endless = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(1 << 16)));
        let first = futures_util::stream::iter([Ok("data: {".to_owned())]);
        let body = Body::from_stream(futures_util::StreamExt::chain(first, endless));
        ([("content-type", "text/event-stream")], body).into_response()
    };
    let site = Site::start(move |got, _| modern(got, stream)).await;
    check(site.outbox(), Err("more than 16777216 bytes")).await;
}

#[tokio::test]
async fn an_answer_by_event_stream_is_an_answer() {
    let site = Site::start(|got, _| {
        modern(got, |got| {
            let message = json!({"jsonrpc": "2.0", "id": got.message["id"], "result": {"contents": [{"uri": "acme://n", "text": "streamed"}]}});
            ([("content-type", "text/event-stream")], format!(": hello\n\nevent: message\ndata: {message}\n\n")).into_response()
        })
    })
    .await;
    check(site.outbox(), Ok("streamed")).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_not_waited_for_for_ever() {
    let hang = || Body::from_stream(futures_util::stream::pending::<Result<String, std::io::Error>>());
    let short = Duration::from_millis(300);
    let site = Site::start(move |_, _| ([("content-type", "application/json")], hang()).into_response()).await;
    check(outbox_at(&site.url, Times { connect: short, ..patient() }), Err("did not answer within 0.3 s")).await;
    let read = move |_: &Got| ([("content-type", "text/event-stream")], hang()).into_response();
    let site = Site::start(move |got, _| modern(got, read)).await;
    check(outbox_at(&site.url, Times { read: short, ..patient() }), Err("did not answer within 0.3 s")).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_by_its_host() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = outbox_at(&format!("http://user:s3cret-token@{free}/mcp?key=hidden"), patient());
    check(refused, Err(&format!("{free} cannot be reached: Connection refused"))).await;
    check(outbox_at("http://no-such-host.invalid/mcp", patient()), Err("no-such-host.invalid cannot be reached: "))
        .await;
}

#[tokio::test]
async fn a_server_of_the_catalog_is_told_of_without_its_address() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (address, host) in [(free.to_string(), "127.0.0.1"), ("no-such-host.invalid".to_owned(), "no-such-host")] {
        let mut outbox = outbox_of(&format!("http://{address}/mcp"), patient(), true);
        let told = outbox.read("acme://n").await.unwrap_err().to_string();
        assert!(told.contains("the catalog's server cannot be reached: "), "{told}");
        assert!(!told.contains(host) && !told.contains(&free.port().to_string()), "{told}");
    }
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_named() {
    let url = "http://127.0.0.1:9/mcp".parse().unwrap();
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Http {
            url,
            auth: Auth::Bearer("token".parse().unwrap()),
            headers: BTreeMap::new(),
            private: false,
        },
        outbox: None,
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = BTreeMap::new();
    let outbox = McpOutbox::new(&"acme".parse().unwrap(), &connector, &common(&secrets, patient()));
    assert_eq!(outbox.unwrap_err().to_string(), "the secret \"token\" is not there: add it to `secrets`");
}

#[tokio::test]
async fn an_answer_with_another_id_is_told_at_once_and_an_error_is_an_answer_whatever_its_id() {
    let with_id = |id: Value, key: &'static str, what: Value| {
        move |got: &Got, _: &[Got]| modern(got, |_| json_answer(200, &json!({"jsonrpc": "2.0", "id": id, key: what})))
    };
    let contents = json!({"contents": [{"uri": "acme://n", "text": "fine"}]});
    let site = Site::start(with_id(json!(4711), "result", contents.clone())).await;
    check(site.outbox(), Err("the server answered with the id of another request")).await;
    let site = Site::start(|got, _| {
        let (id, contents) =
            (got.message["id"].to_string(), json!({"contents": [{"uri": "acme://n", "text": "fine"}]}));
        modern(got, |_| json_answer(200, &json!({"jsonrpc": "2.0", "id": id, "result": contents})))
    })
    .await;
    check(site.outbox(), Ok("fine")).await;
    for id in [json!(null), json!("server-error"), json!(4711)] {
        let site = Site::start(with_id(id, "error", json!({"code": -32603, "message": "out of cheese"}))).await;
        check(site.outbox(), Err("the server answered with the error -32603: out of cheese")).await;
    }
}

#[tokio::test]
async fn json_that_is_none_is_told_with_its_mistake() {
    let body = r#"{"jsonrpc":"2.0","id":1,"result":{"s3cret-token":"\ud83d"}}"#;
    let site =
        Site::start(move |got, _| modern(got, |_| ([("content-type", "application/json")], body).into_response()));
    check(site.await.outbox(), Err("the server answered JSON that is none: ")).await;
}
