//! What others read over HTTP, and what commands on this machine ask of a running server.

pub mod control;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::inbox::Inbox;

/// Serves until told to stop.
pub async fn serve(listener: TcpListener, inbox: Arc<dyn Inbox>, stop: CancellationToken) {
    let served = axum::serve(listener, routes(inbox)).with_graceful_shutdown(stop.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "serving HTTP ended");
    }
}

/// `/healthz`: the process answers. `/readyz`: its store answers too, by the writer's own way.
fn routes(inbox: Arc<dyn Inbox>) -> Router {
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready)).with_state(inbox)
}

async fn ready(State(inbox): State<Arc<dyn Inbox>>) -> (StatusCode, String) {
    // Claiming nothing waits for the writer and changes nothing.
    match inbox.claim(Timestamp::UNIX_EPOCH, 0).await {
        Ok(_) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
