//! What commands ask of a running server without changing anything: explanations, previews, checks.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path as Segments, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};

use super::{asked, json, text};
use crate::serve::Served;
use crate::serve::inquiry::NoAnswer;

/// Largest question, in bytes: an event, settings and a file of answers.
const ASKED_BYTES_MAX: usize = 8 << 20;

/// An answer, or why there is nothing to answer about: one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerJson<T> {
    /// The answer.
    pub found: Option<T>,
    /// There is no such notification, or an event would be dropped.
    pub nothing: Option<String>,
}

/// The routes of questions.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new()
        .route("/check", get(check))
        .route("/workspaces/{workspace}/explain", post(explain))
        .route("/workspaces/{workspace}/preview", post(preview))
        .layer(DefaultBodyLimit::max(ASKED_BYTES_MAX))
}

async fn check(State(served): State<Arc<Served>>) -> Response {
    json(StatusCode::OK, &served.inquiry.check().await)
}

async fn explain(State(served): State<Arc<Served>>, Segments(workspace): Segments<String>, body: Bytes) -> Response {
    match asked(&body) {
        Ok(asked) => answered(served.inquiry.explain(&workspace, &asked).await),
        Err(refusal) => text(StatusCode::BAD_REQUEST, refusal.to_string()),
    }
}

async fn preview(State(served): State<Arc<Served>>, Segments(workspace): Segments<String>, body: Bytes) -> Response {
    match asked(&body) {
        Ok(asked) => answered(served.inquiry.preview(&workspace, &asked).await),
        Err(refusal) => text(StatusCode::BAD_REQUEST, refusal.to_string()),
    }
}

fn answered<T: Serialize>(answer: Result<T, NoAnswer>) -> Response {
    let status = match answer {
        Ok(found) => return json(StatusCode::OK, &AnswerJson { found: Some(found), nothing: None }),
        Err(NoAnswer::Nothing(why)) => {
            return json(StatusCode::OK, &AnswerJson::<T> { found: None, nothing: Some(why) });
        }
        Err(NoAnswer::Unknown(_)) => StatusCode::NOT_FOUND,
        Err(NoAnswer::Wrong(_)) => StatusCode::BAD_REQUEST,
        Err(NoAnswer::Store(_)) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let why = answer.err().map(|why| why.to_string()).unwrap_or_default();
    text(status, why)
}
