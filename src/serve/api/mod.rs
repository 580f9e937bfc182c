//! The HTTP API under `/v1`. Its routes and the OpenAPI document at `/v1/openapi.json` are made from the same
//! declarations, so that neither says what the other does not.
//!
//! Whatever is asked goes the same way: who asks is let in (`entry`), then the query is read, then the body; every error
//! is a problem (RFC 9457).

mod configuration;
mod connectors;
mod consumers;
mod deliveries;
mod document;
mod entry;
mod inquiries;
mod me;
mod notifications;
mod plugins;
mod query;
mod routes;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri, header};
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;

use super::problem::Problem;
use super::{Served, stream};

/// Where the API is.
const ROOT: &str = "/v1";

/// The routes.
pub(super) fn routes() -> Router<Arc<Served>> {
    let (routes, declared) = declared().split_for_parts();
    let document: Arc<str> = document::text(declared).into();
    let served = async move || ([(header::CONTENT_TYPE, "application/json")], document.to_string());
    let routes = routes.route("/openapi.json", get(served)).method_not_allowed_fallback(not_allowed);
    Router::new().nest(ROOT, routes.fallback(unknown))
}

/// Every operation with its path below [`ROOT`].
fn declared() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new()
        .merge(me::routes())
        .merge(tokens::routes())
        .merge(notifications::routes())
        .merge(stream::routes())
        .merge(deliveries::routes())
        .merge(routes::routes())
        .merge(inquiries::routes())
        .merge(connectors::routes())
        .merge(consumers::routes())
        .merge(plugins::routes())
        .merge(configuration::routes())
}

async fn unknown(method: Method, uri: Uri) -> Problem {
    let path = uri.path();
    Problem::Unknown(format!("there is no {method} {ROOT}{path}: {ROOT}/openapi.json describes what there is"))
}

/// The header `Allow` says which there are.
async fn not_allowed(method: Method, uri: Uri) -> Problem {
    let path = uri.path();
    Problem::Method(format!("{method} cannot be asked of {ROOT}{path}: the header `Allow` says what can"))
}

#[cfg(test)]
mod tests;
