//! An endpoint of webhooks: an HTTP server that keeps whole requests.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use tokio::sync::mpsc;

use super::PATIENCE;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub method: String,
    /// The path and the query.
    pub target: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

impl Arrived {
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }
}

/// It takes everything, unless it was told otherwise.
pub struct Endpoint {
    pub address: SocketAddr,
    arrived: mpsc::UnboundedReceiver<Arrived>,
    refusals: Arc<Mutex<VecDeque<u16>>>,
}

#[derive(Clone)]
struct Shared {
    arrived: mpsc::UnboundedSender<Arrived>,
    refusals: Arc<Mutex<VecDeque<u16>>>,
    echoes: bool,
}

impl Endpoint {
    /// One that answers every request with 202.
    pub async fn open() -> Self {
        Self::listen(false).await
    }

    /// One that refuses every request, and quotes all of it.
    pub async fn echoing() -> Self {
        Self::listen(true).await
    }

    async fn listen(echoes: bool) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, arrived) = mpsc::unbounded_channel();
        let refusals = Arc::<Mutex<VecDeque<u16>>>::default();
        let shared = Shared { arrived: sender, refusals: Arc::clone(&refusals), echoes };
        let service = Router::new().fallback(take).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, arrived, refusals }
    }

    /// Answers the next requests with these statuses.
    pub fn refuse_next(&self, statuses: impl IntoIterator<Item = u16>) {
        self.refusals.lock().unwrap().extend(statuses);
    }

    /// The next request.
    pub async fn next(&mut self) -> Arrived {
        let next = tokio::time::timeout(PATIENCE, self.arrived.recv()).await;
        next.expect("too few requests came").unwrap()
    }

    /// The next so many requests, by their paths.
    pub async fn next_by_path(&mut self, count: usize) -> BTreeMap<String, Arrived> {
        let mut found = BTreeMap::new();
        for _ in 0..count {
            let arrived = self.next().await;
            found.insert(arrived.path().to_owned(), arrived);
        }
        found
    }

    /// How many requests came that nobody waited for.
    pub fn left(&self) -> usize {
        self.arrived.len()
    }
}

async fn take(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let text = |(name, value): (&HeaderName, &HeaderValue)| (name.to_string(), value.to_str().unwrap().to_owned());
    let headers = headers.iter().map(text).collect();
    let arrived = Arrived { method: method.to_string(), target: uri.to_string(), headers, body };
    let echo = if shared.echoes { format!("{arrived:?} {}", arrived.body) } else { String::new() };
    shared.arrived.send(arrived).unwrap();
    let refusal = shared.refusals.lock().unwrap().pop_front().map(|status| StatusCode::from_u16(status).unwrap());
    (refusal.unwrap_or(if shared.echoes { StatusCode::BAD_REQUEST } else { StatusCode::ACCEPTED }), echo)
}
