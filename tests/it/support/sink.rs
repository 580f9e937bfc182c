//! A destination: an HTTP server that keeps what it receives and answers as told.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderName, StatusCode};
use axum::response::IntoResponse;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::PATIENCE;

/// How the sink answers one request.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: &'static str,
}

impl Reply {
    pub fn ok() -> Self {
        Self { status: 200, headers: Vec::new(), body: "ok" }
    }
}

#[derive(Clone)]
struct Shared {
    received: mpsc::UnboundedSender<Value>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

pub struct Sink {
    address: SocketAddr,
    received: mpsc::UnboundedReceiver<Value>,
    shared: Shared,
    task: JoinHandle<()>,
}

impl Sink {
    /// Listens on a free port and answers `ok`.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, received) = mpsc::unbounded_channel();
        let shared = Shared { received: sender, replies: Arc::default() };
        let task = tokio::spawn(serve(listener, shared.clone()));
        Self { address, received, shared, task }
    }

    /// Refuses connections from now on.
    pub async fn close(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }

    /// Listens again, at the same address.
    pub async fn open_again(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.task = tokio::spawn(serve(listener, self.shared.clone()));
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The secret URL of the webhook.
    pub fn webhook(&self) -> String {
        format!("http://{}/services/T00000000/B00000000/secret-part", self.address)
    }

    /// Answers the next requests so, then `ok` again.
    pub fn answer_next(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.replies.lock().unwrap().extend(replies);
    }

    /// Whether nothing has arrived that was not looked at.
    pub fn is_untouched(&mut self) -> bool {
        self.received.try_recv().is_err()
    }

    /// The next message that arrives.
    pub async fn next(&mut self) -> Value {
        let next = tokio::time::timeout(PATIENCE, self.received.recv()).await;
        next.expect("nothing arrived at the sink").unwrap()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, shared: Shared) {
    axum::serve(listener, Router::new().fallback(receive).with_state(shared)).await.unwrap();
}

async fn receive(State(shared): State<Shared>, body: Bytes) -> impl IntoResponse {
    let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let reply = shared.replies.lock().unwrap().pop_front().unwrap_or_else(Reply::ok);
    let _ = shared.received.send(message);
    let headers = reply.headers.into_iter().map(|(name, value)| (HeaderName::from_static(name), value));
    (
        StatusCode::from_u16(reply.status).unwrap(),
        axum::response::AppendHeaders(headers.collect::<Vec<_>>()),
        reply.body,
    )
}
