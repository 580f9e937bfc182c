//! A push queue that the test plays, for our client: it writes down what it is asked, and does what the test says.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::post;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::conformance_stage::{EXTENSION, SUBSCRIPTION};
use crate::support::PATIENCE;

/// What the queue holds, and what it was asked.
#[derive(Debug, Default)]
pub struct Script {
    pub pending: Vec<Value>,
    /// Every request, whole.
    pub asked: Vec<Value>,
    /// Every id that was acknowledged, as often as it was.
    pub acknowledged: Vec<String>,
    /// Events in a page at most, where not 0.
    pub page_max: usize,
    /// So many acknowledgements fail, and change nothing.
    pub acks_to_fail: usize,
    /// So many acknowledgements are carried out, and their answers lost.
    pub acks_to_lose: usize,
    /// So many requests are refused with this code.
    pub to_refuse: (usize, i64),
    /// Streams begin in silence.
    pub is_silent: bool,
    pub streams: Vec<(Value, UnboundedSender<Value>)>,
}

/// A running queue. It is gone when this is dropped.
pub struct Scripted {
    pub url: String,
    script: watch::Sender<Script>,
    serving: JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Scripted {
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let script = watch::Sender::new(script);
        let router = Router::new().route("/mcp", post(answer)).with_state(Arc::new(script.clone()));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, script, serving }
    }

    /// Waits until something is so; what was read of it then.
    pub async fn until<T>(&self, is_so: impl Fn(&Script) -> Option<T>) -> T {
        let mut script = self.script.subscribe();
        let waited = tokio::time::timeout(PATIENCE, script.wait_for(|script| is_so(script).is_some())).await;
        let Ok(script) = waited else { panic!("it never was so: {:#?}", self.script.borrow()) };
        is_so(&script.unwrap()).unwrap()
    }

    /// Waits until these are acknowledged.
    pub async fn until_acknowledged(&self, ids: &[&str]) {
        let is_so = |script: &Script| ids.iter().all(|id| script.acknowledged.iter().any(|other| other == id));
        self.until(|script| is_so(script).then_some(())).await;
    }

    /// Reads of it.
    pub fn look<T>(&self, of: impl FnOnce(&Script) -> T) -> T {
        of(&self.script.borrow())
    }

    /// Changes it.
    pub fn change(&self, change: impl FnOnce(&mut Script)) {
        self.script.send_modify(change);
    }

    /// Sends an event to whoever listens. With `is_pending` it waits in the queue, too.
    pub fn push(&self, event: &Value, is_pending: bool) {
        self.change(|script| {
            if is_pending {
                script.pending.push(event.clone());
            }
            for (id, stream) in &script.streams {
                let params = json!({ "event": event, "_meta": { SUBSCRIPTION: id } });
                let _ =
                    stream.send(json!({ "jsonrpc": "2.0", "method": format!("{EXTENSION}/event"), "params": params }));
            }
        });
    }

    /// Cuts off every stream.
    pub fn cut(&self) {
        self.change(|script| script.streams.clear());
    }

    /// Acknowledges the streams that began in silence.
    pub fn speak(&self) {
        self.change(|script| {
            script.is_silent = false;
            script.streams.iter().for_each(|(id, stream)| drop(stream.send(acknowledgement(id))));
        });
    }
}

fn acknowledgement(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": { "notifications": { EXTENSION: {} }, "_meta": { SUBSCRIPTION: id } } })
}

impl Script {
    /// The methods that were asked for, in order, as their last words.
    pub fn methods(&self) -> Vec<&str> {
        let methods = self.asked.iter().map(|asked| asked["method"].as_str().unwrap());
        methods.map(|method| method.rsplit('/').next().unwrap()).collect()
    }

    fn refused(&mut self) -> Option<i64> {
        let (left, code) = self.to_refuse;
        self.to_refuse.0 = left.saturating_sub(1);
        (left > 0).then_some(code)
    }

    fn page(&self, params: &Value) -> Value {
        let limit = params["limit"].as_u64().map_or(100, |limit| usize::try_from(limit).unwrap());
        let most = if self.page_max > 0 { limit.min(self.page_max) } else { limit };
        let events: Vec<_> = self.pending.iter().take(most).collect();
        json!({ "resultType": "complete", "events": events, "hasMore": self.pending.len() > most })
    }

    fn acknowledge(&mut self, params: &Value) {
        let ids = params["eventIds"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned());
        let ids: Vec<String> = ids.collect();
        self.pending.retain(|event| !ids.iter().any(|id| event["eventId"] == *id));
        self.acknowledged.extend(ids);
    }

    fn listen(&mut self, id: &Value) -> Response<Body> {
        let (sender, received) = unbounded_channel();
        if !self.is_silent {
            let _ = sender.send(acknowledgement(id));
        }
        self.streams.clear();
        self.streams.push((id.clone(), sender));
        let frames = stream::unfold(received, |mut received| async move {
            let message: Value = received.recv().await?;
            Some((Ok::<_, Infallible>(Bytes::from(format!("data: {message}\n\n"))), received))
        });
        Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(frames)).unwrap()
    }
}

async fn answer(State(script): State<Arc<watch::Sender<Script>>>, body: Bytes) -> Response<Body> {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let mut answer = None;
    script.send_modify(|script| answer = Some(answered(script, &request)));
    answer.unwrap()
}

fn answered(script: &mut Script, request: &Value) -> Response<Body> {
    let (method, params, id) = (request["method"].as_str().unwrap(), &request["params"], &request["id"]);
    script.asked.push(request.clone());
    let json = |status: StatusCode, message: Value| {
        let response = Response::builder().status(status).header("content-type", "application/json");
        response.body(Body::from(message.to_string())).unwrap()
    };
    let result = |result: Value| json(StatusCode::OK, json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let error = |code: i64| {
        let error = json!({ "code": code, "message": "refused" });
        json(StatusCode::BAD_REQUEST, json!({ "jsonrpc": "2.0", "id": id, "error": error }))
    };
    match method.strip_prefix(EXTENSION).unwrap_or(method) {
        "server/discover" => result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "extensions": { EXTENSION: {} } },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "scripted", "version": "1" } },
        })),
        "subscriptions/listen" | "/get" | "/ack" if script.to_refuse.0 > 0 => {
            error(script.refused().unwrap_or_default())
        }
        "subscriptions/listen" => script.listen(id),
        "/get" => result(script.page(params)),
        "/ack" if script.acks_to_fail > 0 => {
            script.acks_to_fail -= 1;
            json(StatusCode::INTERNAL_SERVER_ERROR, json!({}))
        }
        "/ack" => {
            script.acknowledge(params);
            if script.acks_to_lose > 0 {
                script.acks_to_lose -= 1;
                return json(StatusCode::BAD_GATEWAY, json!({}));
            }
            result(json!({ "resultType": "complete" }))
        }
        _ => error(-32_601),
    }
}
