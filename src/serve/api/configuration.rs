//! How the configuration stands, and reloads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::Operating;
use crate::reload::Refused;
use crate::serve::Served;
use crate::serve::problem::{DetailedJson, Problem};
use crate::serve::shapes::{NotReloadedJson, StatusJson, TakenJson};

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(status)).routes(routes!(reload))
}

/// Says how the configuration stands.
#[utoipa::path(
    get,
    path = "/configuration",
    operation_id = "getConfiguration",
    tag = "configuration",
    responses((status = 200, body = StatusJson, description = "Whether it was taken when it was read last."))
)]
async fn status(State(served): State<Arc<Served>>, _operating: Operating) -> Json<StatusJson> {
    Json(StatusJson::from(served.reload.status()))
}

/// Reads the configuration again, and takes it if it is good.
#[utoipa::path(
    post,
    path = "/reload",
    operation_id = "reload",
    tag = "configuration",
    responses(
        (status = 200, body = TakenJson, description = "It was taken."),
        (status = 422, body = DetailedJson<NotReloadedJson>, content_type = "application/problem+json",
            description = "The files have mistakes; what ran goes on."),
        (status = 503, body = DetailedJson<NotReloadedJson>, content_type = "application/problem+json",
            description = "It cannot be taken now; what ran goes on.")
    )
)]
async fn reload(State(served): State<Arc<Served>>, _operating: Operating) -> Response {
    let refused = match served.reload.reload().await {
        Ok(taken) => return Json(TakenJson::from(taken)).into_response(),
        Err(refused) => refused,
    };
    let why = refused.to_string();
    let problem = match refused {
        Refused::Mistakes(_) => Problem::Refused(why),
        Refused::Because(_) => Problem::Unavailable(why),
    };
    DetailedJson { problem: problem.json(), refused: NotReloadedJson::from(&refused) }.into_response()
}
