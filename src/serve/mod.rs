//! What others read over HTTP, and what commands on this machine ask of a running server.

pub mod control;
pub mod inquiry;
pub mod shapes;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::inbox::Inbox;
use crate::telemetry::metrics::{MEDIA_TYPE, Metrics};

/// What is served from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The store.
    pub inbox: Arc<dyn Inbox>,
    /// The counters.
    pub metrics: Arc<Metrics>,
}

/// Serves until told to stop.
pub async fn serve(listener: TcpListener, sources: Sources, stop: CancellationToken) {
    let served = axum::serve(listener, routes(sources)).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving HTTP ended");
    }
}

/// `/healthz`: the process answers. `/readyz`: its store answers too, by the writer's own way. `/metrics`: counters.
fn routes(sources: Sources) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .route("/metrics", get(counted))
        .with_state(sources)
}

async fn counted(State(Sources { metrics, .. }): State<Sources>) -> Response {
    match metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn ready(State(Sources { inbox, .. }): State<Sources>) -> (StatusCode, String) {
    // Claiming nothing waits for the writer and changes nothing.
    match inbox.claim(Timestamp::UNIX_EPOCH, Vec::new()).await {
        Ok(_) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
