//! How the server does, for those who watch over it.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;

use super::Served;
use super::auth::{Right, is_from_this_machine};
use super::problem::Problem;
use crate::telemetry::metrics::MEDIA_TYPE;

/// `/healthz`: the process answers. `/readyz`: its store answers too, by the writer's own way. `/metrics`: counters.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready)).route("/metrics", get(counted))
}

/// Counters, which name workspaces and connectors: for whoever asks on this machine, and for the operator.
async fn counted(State(served): State<Arc<Served>>, parts: Parts) -> Result<Response, Problem> {
    if !is_from_this_machine(&served.gate, &parts) {
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
        let caller = served.gate.caller(&parts, from, false).await?;
        served.gate.operate(&caller, Right::Operate)?;
    }
    served.metrics.reading(served.hub.readers());
    served.metrics.pushing(served.lives.open());
    count_queues(&served).await?;
    Ok(match served.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, MEDIA_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
}

/// The store counts what goes through queues.
async fn count_queues(served: &Served) -> Result<(), Problem> {
    let config = served.config.borrow().clone();
    let mut found = Vec::new();
    for workspace in config.workspaces.keys() {
        let queues = served.store.queues(workspace).await?;
        found.extend(queues.into_iter().map(|queue| (workspace, queue)));
    }
    served.metrics.queues(found);
    Ok(())
}

async fn ready(State(served): State<Arc<Served>>) -> (StatusCode, String) {
    // Claiming nothing waits for the writer and changes nothing.
    match served.store.claim(Timestamp::UNIX_EPOCH, Vec::new()).await {
        Ok(_) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {error}\n")),
    }
}
