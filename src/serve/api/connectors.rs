//! Connectors: how they are read, and read now.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::{AName, ChangeWork, InWorkspace, ReadWork, Segments, Within};
use crate::serve::Served;
use crate::serve::problem::Problem;
use crate::serve::seat::{Seat, not_polled};
use crate::serve::shapes::{ConnectorJson, ListJson, PolledJson};

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show)).routes(routes!(poll))
}

/// Lists the connectors of a workspace.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/connectors",
    operation_id = "listConnectors",
    tag = "connectors",
    params(InWorkspace),
    responses((status = 200, body = ListJson<ConnectorJson>, description = "All of them."))
)]
async fn list(State(served): State<Arc<Served>>, within: Within<ReadWork>) -> Json<ListJson<ConnectorJson>> {
    let seats = served.seats.borrow().clone();
    let own = seats.iter().filter(|seat| seat.workspace.as_str() == within.name());
    Json(ListJson::whole(own.map(ConnectorJson::from).collect()))
}

/// Shows one connector.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/connectors/{name}",
    operation_id = "getConnector",
    tag = "connectors",
    params(InWorkspace, AName),
    responses((status = 200, body = ConnectorJson, description = "The connector."))
)]
async fn show(
    State(served): State<Arc<Served>>,
    within: Within<ReadWork>,
    Segments(AName { name }): Segments<AName>,
) -> Result<Json<ConnectorJson>, Problem> {
    let seats = served.seats.borrow().clone();
    find(&seats, within.name(), &name).map(|seat| Json(ConnectorJson::from(seat)))
}

/// Reads the outbox of a connector now, and says what that brought.
#[utoipa::path(
    post,
    path = "/workspaces/{ws}/connectors/{name}/poll",
    operation_id = "pollConnector",
    tag = "connectors",
    params(InWorkspace, AName),
    responses(
        (status = 200, body = PolledJson, description = "What came of the read, also where it failed."),
        (status = 409, description = "It is not polled.")
    )
)]
async fn poll(
    State(served): State<Arc<Served>>,
    within: Within<ChangeWork>,
    Segments(AName { name }): Segments<AName>,
) -> Result<Json<PolledJson>, Problem> {
    let seats = served.seats.borrow().clone();
    let seat = find(&seats, within.name(), &name)?;
    let conflict = |reason: &Option<String>| Problem::Conflict(not_polled(&seat.connector.name, reason.as_deref()));
    let polled = seat.polled.as_ref().map_err(conflict)?.poll().await;
    let stopping = || Problem::Unavailable("the server is stopping".to_owned());
    polled.map(|polled| Json(PolledJson::from(polled))).ok_or_else(stopping)
}

fn find<'a>(seats: &'a [Seat], workspace: &str, name: &str) -> Result<&'a Seat, Problem> {
    let is_it = |seat: &&Seat| seat.workspace.as_str() == workspace && seat.connector.name.as_str() == name;
    let unknown = || Problem::Unknown(format!("there is no connector {name:?} in the workspace {workspace:?}"));
    seats.iter().find(is_it).ok_or_else(unknown)
}
