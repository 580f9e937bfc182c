//! Consumers: what joins their queues, and how these stand.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{InWorkspace, ReadWork, Within};
use crate::serve::Served;
use crate::serve::problem::Problem;
use crate::serve::shapes::{ConsumerJson, ListJson};

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(list))
}

/// Lists the consumers of a workspace that have a queue, also those that are not in its file any more.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/consumers",
    operation_id = "listConsumers",
    tag = "consumers",
    params(InWorkspace),
    responses((status = 200, body = ListJson<ConsumerJson>, description = "All of them."))
)]
async fn list(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork>,
) -> Result<Json<ListJson<ConsumerJson>>, Problem> {
    let name = within.admitted.name();
    let queues = served.store.queues(name).await?;
    Ok(Json(ListJson::whole(ConsumerJson::served(name, within.admitted.workspace(), &queues, &served.lives))))
}
