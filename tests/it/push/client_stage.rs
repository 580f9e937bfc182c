//! A server with a push queue, in this process, so that the program under test can be met at each step.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::server_stage::{ACK, EXTENSION, GET, LISTEN, SUBSCRIPTION};
use crate::support::PATIENCE;

/// Logged where the server stands.
const STANDS: &str = "stands";

/// Where the server stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A page is asked for and not answered.
    Get,
    /// A page was just answered: what becomes of it is not known.
    Answered,
    /// An acknowledgement came and is not kept.
    AckBefore,
    /// It was kept and is not answered.
    AckAfter,
}

#[derive(Debug, Default)]
struct Queue {
    /// Ids and texts, oldest first.
    pending: Vec<(String, String)>,
    acked: Vec<String>,
    live: Vec<mpsc::UnboundedSender<String>>,
    /// Streams that were opened so far.
    opened: usize,
    stands_at: Option<Step>,
    /// Requests of the extension without its capability.
    undeclared: usize,
    log: Vec<String>,
}

/// The server. What happens in it is told by its `changed`.
#[derive(Clone, Debug)]
pub struct Peer {
    queue: Arc<Mutex<Queue>>,
    changed: watch::Sender<()>,
    port: u16,
}

impl Peer {
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let peer = Self { queue: Arc::default(), changed: watch::Sender::default(), port };
        let routes = Router::new().route("/mcp", post(serve)).with_state(peer.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        peer
    }

    /// The connector that leads here.
    pub fn connector(&self) -> String {
        format!("{{ shell: {{ url: \"http://127.0.0.1:{}/mcp\", notifications: {{ push: true }} }} }}", self.port)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap()
    }

    fn change<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        let changed = change(&mut self.queue());
        self.changed.send_replace(());
        changed
    }

    /// Adds an event, and tells it live.
    pub fn emit(&self, id: &str, rest: &str) {
        let event = event(id, rest);
        let message = format!(r#"{{"jsonrpc":"2.0","method":"{EXTENSION}/event","params":{{"event":{event}}}}}"#);
        self.change(|queue| {
            queue.pending.push((id.to_owned(), event));
            queue.live.retain(|live| live.send(message.clone()).is_ok());
        });
    }

    /// Cuts every live stream off.
    pub fn cut(&self) {
        self.change(|queue| queue.live.clear());
    }

    pub fn stand_at(&self, step: Option<Step>) {
        self.change(|queue| {
            queue.stands_at = step;
            queue.log.retain(|method| method != STANDS);
        });
    }

    /// What was asked of it so far, without the extension's name.
    pub fn log(&self) -> Vec<String> {
        self.queue().log.clone()
    }

    pub fn acked(&self) -> Vec<String> {
        self.queue().acked.clone()
    }

    pub fn undeclared(&self) -> usize {
        self.queue().undeclared
    }

    /// Waits until everything was acknowledged.
    pub async fn drained(&self) {
        self.until("everything is acknowledged", |queue| queue.pending.is_empty() && !queue.acked.is_empty()).await;
    }

    /// Waits until so many streams were opened.
    pub async fn listened(&self, times: usize) {
        self.until("it listens", |queue| queue.opened >= times).await;
    }

    /// Waits until the program stands at the step.
    pub async fn stood(&self) {
        self.until("it stands", |queue| queue.log.iter().any(|method| method == STANDS)).await;
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Queue) -> bool) {
        let mut changed = self.changed.subscribe();
        let wait = changed.wait_for(|()| is_so(&self.queue()));
        let came = tokio::time::timeout(PATIENCE, wait).await;
        assert!(came.is_ok(), "never: {what}; {:?}", self.queue());
    }
}

/// An event with further fields.
pub fn event(id: &str, rest: &str) -> String {
    format!(
        r#"{{"eventId":"{id}","sourceId":"s","type":"process.exited","createdAt":"2026-07-20T10:30:00.000Z"{rest}}}"#
    )
}

async fn serve(State(peer): State<Peer>, _headers: HeaderMap, body: String) -> Response {
    let message: Value = serde_json::from_str(&body).unwrap();
    let (id, params) = (message["id"].clone(), &message["params"]);
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION];
    let is_ours = method.starts_with(EXTENSION) || method == LISTEN;
    peer.change(|queue| {
        queue.undeclared += usize::from(is_ours && !declared.is_object());
        queue.log.push(method.replace(EXTENSION, ""));
    });
    let step = peer.queue().stands_at;
    match method.as_str() {
        "server/discover" => result(
            &id,
            &json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "extensions": { EXTENSION: {} } }, "ttlMs": 0, "cacheScope": "private" }).to_string(),
        ),
        LISTEN => listen(&peer, &id),
        GET => {
            if step == Some(Step::Get) {
                stand(&peer).await;
            }
            let page = peer.change(|queue| {
                let events: Vec<&str> = queue.pending.iter().take(2).map(|(_, text)| text.as_str()).collect();
                format!(r#"{{ "resultType":"complete", "events":[{}],"hasMore":{}}}"#, events.join(","), queue.pending.len() > 2)
            });
            if step == Some(Step::Answered) {
                peer.change(|queue| queue.log.push(STANDS.to_owned()));
            }
            result(&id, &page)
        }
        ACK => {
            if step == Some(Step::AckBefore) {
                stand(&peer).await;
            }
            let ids: Vec<String> = serde_json::from_value(params["eventIds"].clone()).unwrap();
            peer.change(|queue| {
                queue.pending.retain(|(id, _)| !ids.contains(id));
                queue.acked.extend(ids);
            });
            if step == Some(Step::AckAfter) {
                stand(&peer).await;
            }
            result(&id, r#"{"resultType":"complete"}"#)
        }
        _ => {
            let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } });
            (StatusCode::NOT_FOUND, [("content-type", "application/json")], error.to_string()).into_response()
        }
    }
}

/// Never answers.
async fn stand(peer: &Peer) {
    peer.change(|queue| queue.log.push(STANDS.to_owned()));
    std::future::pending().await
}

fn result(id: &Value, result: &str) -> Response {
    let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    ([("content-type", "application/json")], answer).into_response()
}

fn listen(peer: &Peer, id: &Value) -> Response {
    let (sender, receiver) = mpsc::unbounded_channel();
    let params = json!({ "notifications": { EXTENSION: {} }, "_meta": { SUBSCRIPTION: id } });
    let first = json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params });
    sender.send(first.to_string()).unwrap();
    peer.change(|queue| {
        queue.live.push(sender);
        queue.opened += 1;
    });
    let messages = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|message| (message, receiver))
    });
    let frames =
        messages.map(|message| Ok::<_, std::io::Error>(Bytes::from(format!("event: message\ndata: {message}\n\n"))));
    // Cut off without an end of the body, as a connection that is gone.
    let cut = futures_util::stream::once(async { Err(std::io::Error::other("cut off")) });
    ([("content-type", "text/event-stream")], Body::from_stream(frames.chain(cut))).into_response()
}
