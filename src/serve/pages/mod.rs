//! The web inbox and the pages beside it: HTML made by the server. Reading works without script; what changes something is
//! sent by our script, since a form cannot send the header that a change needs.
//!
//! Whatever a connector, a plugin or a destination wrote is shown as plain text (`parts::said`); `data` is never shown.

mod acts;
mod assets;
mod configuration;
mod connectors;
mod consumers;
mod deliveries;
mod delivery;
mod errors;
mod frame;
mod gaps;
mod inbox;
mod notification;
mod parts;
mod plugins;
mod routes;
mod versions;
mod visitor;
mod why;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use super::Served;
use super::auth::Right;
use super::problem::Problem;
use crate::notification::Name;
use visitor::{Refused, Visitor, workspaces_of};

/// The routes.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new()
        .route("/", get(first))
        .route("/assets/{name}", get(assets::serve))
        .route("/favicon.ico", get(assets::favicon))
        .route("/w/{workspace}", get(of_workspace))
        .route("/w/{workspace}/inbox", get(inbox::page))
        .route("/w/{workspace}/inbox/mark", post(acts::mark))
        .route("/w/{workspace}/inbox/{seq}", get(notification::page))
        .route("/w/{workspace}/deliveries", get(deliveries::page))
        .route("/w/{workspace}/deliveries/change", post(acts::change))
        .route("/w/{workspace}/deliveries/{id}", get(delivery::page))
        .route("/w/{workspace}/routes", get(routes::page))
        .route("/w/{workspace}/connectors", get(connectors::page))
        .route("/w/{workspace}/connectors/{name}/poll", post(acts::poll))
        .route("/w/{workspace}/consumers", get(consumers::page))
        .route("/w/{workspace}/plugins", get(plugins::page))
        .route("/w/{workspace}/gaps", get(gaps::page))
        .route("/plugins", get(versions::page))
        .route("/plugins/load", post(versions::load))
        .route("/plugins/{name}/rollback", post(versions::roll_back))
        .route("/plugins/{name}/approve", post(versions::approve))
        .route("/configuration", get(configuration::page))
        .route("/configuration/reload", post(configuration::reload))
        .fallback(nothing)
        .layer(from_fn(errors::for_people))
}

/// The first page that this visitor may see.
async fn first(State(served): State<Arc<Served>>, Visitor(caller): Visitor) -> Result<Redirect, Refused> {
    let config = served.config.borrow().clone();
    match workspaces_of(&config, &caller).first() {
        Some(name) => Ok(Redirect::to(&format!("/w/{name}/inbox"))),
        None if caller.may(Right::Operate) => Ok(Redirect::to("/configuration")),
        None => Err(Problem::Unknown("this token sees no workspace".to_owned()).into()),
    }
}

async fn of_workspace(Path(workspace): Path<String>) -> Response {
    match workspace.parse::<Name>() {
        Ok(name) => Redirect::to(&format!("/w/{name}/inbox")).into_response(),
        Err(_) => nothing().await.into_response(),
    }
}

async fn nothing() -> Refused {
    Problem::Unknown("there is no such page".to_owned()).into()
}
