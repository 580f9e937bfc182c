//! What would happen, and why. Nothing is changed, stored or sent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{
    Asked, ChangeWork, InWorkspace, Operating, PREVIEW_BYTES_MAX, QUESTION_BYTES_MAX, ReadWork, Within,
};
use crate::serve::Served;
use crate::serve::inquiry::{CheckedJson, ExplainAskedJson, ExplainedJson, PreviewAskedJson, PreviewedJson};
use crate::serve::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(explain)).routes(routes!(preview)).routes(routes!(check))
}

/// Explains who is told of a notification, when, and why not.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/explain",
    operation_id = "explain",
    tag = "routes",
    params(InWorkspace),
    request_body = ExplainAskedJson,
    responses(
        (status = 200, body = ExplainedJson, description = "Route by route."),
        (status = 422, description = "The event would be dropped.")
    )
)]
async fn explain(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork>,
    Asked(asked): Asked<ExplainAskedJson, QUESTION_BYTES_MAX>,
) -> Result<Json<ExplainedJson>, Problem> {
    Ok(Json(served.inquiry.explain(within.name(), &asked).await?))
}

/// Shows the very requests and mails that would be sent, and sends nothing.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/preview",
    operation_id = "preview",
    tag = "routes",
    params(InWorkspace),
    request_body = PreviewAskedJson,
    responses(
        (status = 200, body = PreviewedJson, description = "Target by target."),
        (status = 422, description = "The event would be dropped.")
    )
)]
async fn preview(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Asked(asked): Asked<PreviewAskedJson, PREVIEW_BYTES_MAX>,
) -> Result<Json<PreviewedJson>, Problem> {
    Ok(Json(served.inquiry.preview(within.name(), &asked).await?))
}

/// Says what the plugins, the machine and the inbox find wrong with the configuration that is used.
#[utoipa::path(
    get,
    path = "/check",
    operation_id = "check",
    tag = "configuration",
    responses((status = 200, body = CheckedJson, description = "What was found."))
)]
async fn check(State(served): State<Arc<Served>>, _operating: Operating) -> Json<CheckedJson> {
    Json(served.inquiry.check().await)
}
