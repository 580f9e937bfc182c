//! Who asks, and what that one may see.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::entry::Anybody;
use crate::serve::Served;
use crate::serve::auth::{Caller, Right, Role};
use crate::serve::problem::Problem;
use crate::serve::shapes::{ListJson, MeJson, WorkspaceJson};

pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(me)).routes(routes!(workspaces))
}

/// Says who asks, and what that one may do.
#[utoipa::path(
    get,
    path = "/me",
    operation_id = "getMe",
    tag = "access",
    responses((status = 200, body = MeJson, description = "Whoever sent the request."))
)]
async fn me(State(served): State<Arc<Served>>, Anybody(caller): Anybody) -> Json<MeJson> {
    let role = match caller.role {
        Role::Operator => "operator",
        Role::Admin => "admin",
        Role::Member => "member",
        Role::Agent { .. } => "agent",
    };
    let rights = if caller.may(Right::Operate) { vec!["operate".to_owned()] } else { Vec::new() };
    let workspaces = visible(&served, &caller);
    Json(MeJson { name: caller.actor.name, role: role.to_owned(), rights, workspaces })
}

/// Lists the workspaces that may be seen.
#[utoipa::path(
    get,
    path = "/workspaces",
    operation_id = "listWorkspaces",
    tag = "access",
    responses((status = 200, body = ListJson<WorkspaceJson>, description = "All of them."))
)]
async fn workspaces(
    State(served): State<Arc<Served>>,
    Anybody(caller): Anybody,
) -> Result<Json<ListJson<WorkspaceJson>>, Problem> {
    Ok(Json(ListJson::whole(visible(&served, &caller))))
}

fn visible(served: &Served, caller: &Caller) -> Vec<WorkspaceJson> {
    const RIGHTS: [(Right, &str); 4] = [
        (Right::ReadInbox, "read_inbox"),
        (Right::Mark, "mark"),
        (Right::ReadWork, "read_work"),
        (Right::ChangeWork, "change_work"),
    ];
    let config = served.config.borrow().clone();
    let names = config.workspaces.keys().chain(&config.aside);
    let mut found: Vec<WorkspaceJson> = names
        .map(|name| {
            let may = |right: Right| served.gate.workspace(caller, name.as_str(), right).is_ok();
            let rights = RIGHTS.into_iter().filter(|(right, _)| may(*right)).map(|(_, word)| word.to_owned()).collect();
            WorkspaceJson { workspace_id: name.to_string(), is_aside: config.aside.contains(name), rights }
        })
        .filter(|workspace| !workspace.rights.is_empty())
        .collect();
    found.sort_by(|one, other| one.workspace_id.cmp(&other.workspace_id));
    found
}
