//! `/v1/tokens`: tokens made, listed and revoked.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;

use super::{Caller, MadeTokenJson, NewTokenJson, TokenJson};
use crate::serve::Served;
use crate::serve::problem::Problem;

/// Bytes of what is asked.
const BODY_BYTES_MAX: usize = 16 << 10;

/// The routes, for both listeners.
pub(in crate::serve) fn routes() -> Router<Arc<Served>> {
    Router::new()
        .route("/v1/tokens", get(list).post(create).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)))
        .route("/v1/tokens/{id}/revoke", post(revoke))
}

/// A list of all there are.
#[derive(Debug, Serialize)]
struct TokensJson {
    items: Vec<TokenJson>,
    next: Option<String>,
}

async fn list(State(served): State<Arc<Served>>, caller: Caller) -> Result<Response, Problem> {
    let items = served.gate.list(&caller).await?.into_iter().map(TokenJson::from).collect();
    Ok(json(StatusCode::OK, &TokensJson { items, next: None }))
}

async fn create(State(served): State<Arc<Served>>, caller: Caller, body: Bytes) -> Result<Response, Problem> {
    let asked: NewTokenJson = serde_json::from_slice(&body)
        .map_err(|error| Problem::Wrong(format!("the body is no wish for a token: {error}")))?;
    let config = served.config.borrow().clone();
    // Who may not see a workspace learns nothing of its members.
    if let Some(workspace) = &asked.workspace_id {
        served.gate.workspace(&caller, workspace, super::Right::ChangeWork)?;
    }
    served.gate.operate(&caller, super::Right::ChangeWork)?;
    let made = served.gate.make(&caller, asked.wanted(&config)?).await?;
    Ok(json(StatusCode::CREATED, &MadeTokenJson::new(made, &served.gate)?))
}

async fn revoke(
    State(served): State<Arc<Served>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id = id.parse().map_err(|_| Problem::Wrong(format!("{id:?} is no number of a token")))?;
    Ok(json(StatusCode::OK, &TokenJson::from(served.gate.revoke(&caller, id).await?)))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => Problem::Unavailable(error.to_string()).into_response(),
    }
}
