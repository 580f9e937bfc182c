//! How the server does, for those who watch over it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;

use super::Served;
use crate::telemetry::metrics::MEDIA_TYPE;

/// `/healthz`: the process answers. `/readyz`: its store answers too, by the writer's own way. `/metrics`: counters.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready)).route("/metrics", get(counted))
}

async fn counted(State(served): State<Arc<Served>>) -> Response {
    served.metrics.reading(served.hub.readers());
    match served.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn ready(State(served): State<Arc<Served>>) -> (StatusCode, String) {
    // Claiming nothing waits for the writer and changes nothing.
    match served.store.claim(Timestamp::UNIX_EPOCH, Vec::new()).await {
        Ok(_) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
