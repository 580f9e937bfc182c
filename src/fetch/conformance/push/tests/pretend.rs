//! A push queue that is good but for one fault.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use url::Url;

use super::super::client::EXTENSION;

/// The token that names the consumer.
pub(super) const TOKEN: &str = "Bearer the-one";

/// Between two signs of life.
const ALIVE: Duration = Duration::from_millis(20);

/// What the server does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    /// None: every answer is a stream of one event.
    AnswersByStreams,
    /// None: it is of the days of another code.
    RefusesWithAnOlderCode,
    RefusesWithItsOwnCode,
    HidesTheExtension,
    FillsTheCapability,
    LetsAnyoneGet,
    LetsAnyoneAck,
    LetsAnyoneListen,
    AnswersOtherIds,
    AnswersWords,
    AnswersHugePages,
    KnowsNoGet,
    AnswersAMap,
    HasCursors,
    RefusesUnknownKeys,
    TakesAnyLimit,
    WantsALimit,
    IgnoresTheLimit,
    NeverSaysMore,
    AlwaysSaysMore,
    Shuffles,
    NewestFirst,
    ForgetsWhatWasRead,
    MintsIds,
    UsesOneId,
    LacksSources,
    LacksTypes,
    WritesDatesOnly,
    WritesOffsets,
    InventsBlocks,
    AddsToBlocks,
    SendsContentAsText,
    BreaksBase64,
    SendsDataAsList,
    SendsPayload,
    InlinesLargeMedia,
    TakesTheConsumerFromParameters,
    TakesAnyToken,
    GivesStrangersAQueue,
    AnswersAcks,
    RefusesUnknownIds,
    TakesAnyIds,
    KeepsWhatIsAcknowledged,
    RefusesTheSecondAck,
    SendsEventsFirst,
    AcksAnotherFilter,
    ForgetsTheSubscriptionId,
    TakesAnyFilter,
    KeepsOldStreams,
    CutsOldStreams,
    IsQuiet,
    PushesWithoutQueueing,
    PushesOtherwise,
    PushesNothing,
}
use Fault::*;

/// A running server. It is gone when this is dropped.
#[derive(Debug)]
pub(super) struct Pretend {
    pub(super) url: Url,
    queue: Arc<Mutex<Queue>>,
    serving: JoinHandle<()>,
}

impl Drop for Pretend {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[derive(Debug)]
struct Queue {
    fault: Fault,
    pending: Vec<Value>,
    acknowledged: BTreeSet<String>,
    number: usize,
    gets: usize,
    live: Vec<(Value, UnboundedSender<Option<Value>>)>,
}

/// A server with this fault, and nothing pending.
pub(super) async fn pretend(fault: Fault) -> Pretend {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap()).parse().unwrap();
    let (pending, acknowledged, live) = (Vec::new(), BTreeSet::new(), Vec::new());
    let queue = Arc::new(Mutex::new(Queue { fault, pending, acknowledged, number: 0, gets: 0, live }));
    let router = Router::new().route("/mcp", post(asked)).with_state(Arc::clone(&queue));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    Pretend { url, queue, serving }
}

impl Pretend {
    /// Makes so many events happen.
    pub(super) fn happen(&self) -> impl FnOnce(usize) + Send + use<> {
        let queue = Arc::clone(&self.queue);
        move |count| {
            let mut queue = queue.lock().unwrap();
            (0..count).for_each(|_| queue.add());
        }
    }
}

impl Queue {
    fn add(&mut self) {
        self.number += 1;
        let event = self.event();
        if self.fault != PushesWithoutQueueing {
            self.pending.push(event.clone());
        }
        let mut live = event;
        match self.fault {
            PushesNothing => return,
            PushesOtherwise => live["data"] = json!({ "live": true }),
            _ => {}
        }
        for (id, sender) in &self.live {
            let message = json!({ "jsonrpc": "2.0", "method": format!("{EXTENSION}/event"),
                "params": { "event": live, "_meta": self.subscription(id) } });
            let _ = sender.send(Some(message));
        }
    }

    fn subscription(&self, id: &Value) -> Value {
        match self.fault {
            ForgetsTheSubscriptionId => json!({}),
            _ => json!({ "io.modelcontextprotocol/subscriptionId": id }),
        }
    }

    fn event(&self) -> Value {
        let number = self.number;
        let mut event = json!({
            "eventId": if self.fault == UsesOneId { "one".to_owned() } else { format!("event:{number}") },
            "sourceId": "pretend",
            "type": "thing.happened",
            "createdAt": format!("2026-07-20T10:30:{number:02}.000Z"),
            "content": [
                { "type": "text", "text": "hi" },
                { "type": "image", "data": "aGk=", "mimeType": "image/png" },
                { "type": "audio", "data": "aGk=", "mimeType": "audio/ogg" },
                { "type": "resource_link", "uri": "acme://thing", "name": "thing", "size": 3 },
                { "type": "resource", "resource": { "uri": "acme://thing", "text": "thing" } },
            ],
            "data": { "number": number },
        });
        match self.fault {
            LacksSources => event["sourceId"] = Value::Null,
            LacksTypes => event["type"] = json!(""),
            WritesDatesOnly => event["createdAt"] = json!("2026-07-20"),
            WritesOffsets => event["createdAt"] = json!(format!("2026-07-20T10:30:{number:02}+02:00")),
            InventsBlocks => event["content"] = json!([{ "type": "html", "html": "<b>" }]),
            AddsToBlocks => event["content"] = json!([{ "type": "text", "text": "hi", "html": "<b>" }]),
            SendsContentAsText => event["content"] = json!("hi"),
            BreaksBase64 => event["content"][1]["data"] = json!("a b"),
            SendsDataAsList => event["data"] = json!([number]),
            SendsPayload => event["payload"] = json!({}),
            InlinesLargeMedia => event["content"][1]["data"] = json!("AAAA".repeat(400_000)),
            _ => {}
        }
        event
    }

    fn page(&mut self, params: &Value) -> Result<Value, (i64, &'static str)> {
        let fault = self.fault;
        self.gets += 1;
        if fault == KnowsNoGet {
            return Err((-32_601, "Method not found"));
        }
        if fault == RefusesUnknownKeys && params.as_object().unwrap().keys().any(|key| key != "limit" && key != "_meta")
        {
            return Err((-32_602, "unknown key"));
        }
        let limit = match params.get("limit") {
            None if fault == WantsALimit => return Err((-32_602, "limit is missing")),
            None => 100,
            Some(limit) => match limit.as_u64().filter(|limit| *limit > 0) {
                Some(limit) => usize::try_from(limit.min(100)).unwrap(),
                None if fault == TakesAnyLimit => 100,
                None => return Err((-32_602, "limit must be a positive integer")),
            },
        };
        let limit = if fault == IgnoresTheLimit { 100 } else { limit };
        let is_other = fault == TakesTheConsumerFromParameters && params.get("consumer").is_some();
        let mut events: Vec<Value> = if is_other { Vec::new() } else { self.pending.clone() };
        if fault == NewestFirst || (fault == Shuffles && self.gets % 2 == 1) {
            events.reverse();
        }
        let has_more = events.len() > limit;
        events.truncate(limit);
        match fault {
            MintsIds => {
                let gets = self.gets;
                events.iter_mut().zip(0..).for_each(|(event, at)| event["eventId"] = json!(format!("{gets}:{at}")));
            }
            ForgetsWhatWasRead => self.pending.clear(),
            _ => {}
        }
        let has_more = match fault {
            NeverSaysMore => false,
            AlwaysSaysMore => true,
            _ => has_more,
        };
        Ok(match fault {
            AnswersAMap => json!({ "events": {}, "hasMore": false }),
            HasCursors => json!({ "events": events, "hasMore": has_more, "nextCursor": "1" }),
            AnswersHugePages => json!({ "events": events, "hasMore": false, "_meta": { "x": "x".repeat(9 << 20) } }),
            _ => json!({ "resultType": "complete", "events": events, "hasMore": has_more }),
        })
    }

    fn acknowledge(&mut self, params: &Value) -> Result<Value, (i64, &'static str)> {
        let ids: Option<Vec<&str>> =
            params["eventIds"].as_array().and_then(|ids| ids.iter().map(Value::as_str).collect());
        let Some(ids) = ids.filter(|ids| !ids.is_empty()) else {
            return if self.fault == TakesAnyIds { Ok(json!({})) } else { Err((-32_602, "eventIds must be texts")) };
        };
        let is_known = |id: &&str| self.pending.iter().any(|event| event["eventId"] == **id);
        if self.fault == RefusesUnknownIds && !ids.iter().any(is_known) {
            return Err((-32_602, "no such event"));
        }
        let ids: BTreeSet<String> = ids.into_iter().map(str::to_owned).collect();
        if self.fault == RefusesTheSecondAck && !self.acknowledged.is_disjoint(&ids) {
            return Err((-32_602, "acknowledged already"));
        }
        if self.fault != KeepsWhatIsAcknowledged {
            self.pending.retain(|event| !ids.contains(event["eventId"].as_str().unwrap()));
        }
        self.acknowledged.extend(ids);
        Ok(if self.fault == AnswersAcks { json!({ "acknowledged": 1 }) } else { json!({ "resultType": "complete" }) })
    }

    /// Opens a stream; what comes on it.
    fn listen(&mut self, id: &Value) -> Response<Body> {
        let (sender, received) = unbounded_channel();
        if self.fault == SendsEventsFirst {
            let _ = sender.send(Some(json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": {} })));
        }
        let filter = if self.fault == AcksAnotherFilter { json!({}) } else { json!({ EXTENSION: {} }) };
        let first = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": { "notifications": filter, "_meta": self.subscription(id) } });
        let _ = sender.send(Some(first));
        if self.fault != KeepsOldStreams {
            for (id, older) in self.live.drain(..) {
                if self.fault != CutsOldStreams {
                    let _ =
                        older.send(Some(json!({ "jsonrpc": "2.0", "id": id, "result": { "resultType": "complete" } })));
                }
                let _ = older.send(None);
            }
        }
        self.live.push((id.clone(), sender));
        let is_quiet = self.fault == IsQuiet;
        let frames = stream::unfold(received, move |mut received| async move {
            let next = match is_quiet {
                true => received.recv().await,
                false => match tokio::time::timeout(ALIVE, received.recv()).await {
                    Ok(next) => next,
                    Err(_) => return Some((Ok(Bytes::from_static(b": here\n\n")), received)),
                },
            };
            let frame = frame(&next.flatten()?);
            Some((Ok::<_, Infallible>(frame), received))
        });
        let response = Response::builder().header("content-type", "text/event-stream");
        response.body(Body::from_stream(frames)).unwrap()
    }
}

fn frame(message: &Value) -> Bytes {
    format!("event: message\ndata: {message}\n\n").into()
}

async fn asked(State(queue): State<Arc<Mutex<Queue>>>, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let mut queue = queue.lock().unwrap();
    let fault = queue.fault;
    let request: Value = serde_json::from_slice(&body).unwrap();
    let (method, params, id) = (request["method"].as_str().unwrap(), &request["params"], &request["id"]);
    assert_eq!(
        (&headers["mcp-protocol-version"], &headers["mcp-method"]),
        (&"2026-07-28".parse().unwrap(), &method.parse().unwrap())
    );
    let is_stranger = headers["authorization"] != TOKEN && fault != TakesAnyToken;
    if is_stranger && fault != GivesStrangersAQueue {
        return Response::builder().status(StatusCode::UNAUTHORIZED).body(Body::empty()).unwrap();
    }
    let meta = &params["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    let is_declared = meta["io.modelcontextprotocol/clientCapabilities"]["extensions"].get(EXTENSION).is_some();
    let what = method.strip_prefix(EXTENSION).unwrap_or(method);
    let is_open = matches!(
        (what, fault),
        ("/get", LetsAnyoneGet) | ("/ack", LetsAnyoneAck) | ("subscriptions/listen", LetsAnyoneListen)
    );
    let code = match fault {
        RefusesWithAnOlderCode => -32_003,
        RefusesWithItsOwnCode => -32_000,
        _ => -32_021,
    };
    let answer = match what {
        "server/discover" => {
            Ok(json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "extensions": match fault {
            HidesTheExtension => json!({}),
            FillsTheCapability => json!({ EXTENSION: { "version": 1 } }),
            _ => json!({ EXTENSION: {} }),
        } } }))
        }
        _ if !is_declared && !is_open => Err((code, "Missing required client capability")),
        "/get" if is_stranger => Ok(json!({ "events": [], "hasMore": false })),
        "/get" => queue.page(params),
        "/ack" if is_stranger => Ok(json!({})),
        "/ack" => queue.acknowledge(params),
        "subscriptions/listen" if params["notifications"][EXTENSION] != json!({}) && fault != TakesAnyFilter => {
            Err((-32_602, "the filter must be empty"))
        }
        "subscriptions/listen" => return queue.listen(id),
        _ => Err((-32_601, "Method not found")),
    };
    let is_get = what == "/get";
    let id = if fault == AnswersOtherIds && is_get { &json!(4_711) } else { id };
    let (status, message) = match answer {
        Ok(result) => (StatusCode::OK, json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        Err((code, message)) => (
            StatusCode::BAD_REQUEST,
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }),
        ),
    };
    let response = Response::builder().status(status);
    match fault {
        AnswersWords if is_get && is_declared => {
            response.status(StatusCode::OK).body(Body::from("<h1>hello</h1>")).unwrap()
        }
        AnswersByStreams if status == StatusCode::OK => {
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} });
            let body = [&b": hello\n\n"[..], &frame(&progress), &frame(&message)].concat();
            response.header("content-type", "text/event-stream").body(Body::from(body)).unwrap()
        }
        _ => response.header("content-type", "application/json").body(Body::from(message.to_string())).unwrap(),
    }
}
