//! Who comes in: known by a bearer token and by nothing else, whichever way the request came.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::serve::Served;
use crate::serve::problem::Problem;

/// The way that a request came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// By the address of `listen:`, which browsers can be made to reach.
    Network,
    /// By the control socket, which only programs of its owner reach.
    Socket,
}

/// Lets a request in with its [`Caller`](crate::serve::auth::Caller). A cookie says nothing here: a browser sends it along
/// whoever makes it ask.
pub(super) async fn admit(
    State((served, door)): State<(Arc<Served>, Door)>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    if door == Door::Network
        && let Err(problem) = is_for_us(&parts)
    {
        return problem.into_response();
    }
    let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    match served.gate.caller(&parts, from, false).await {
        Ok(caller) => parts.extensions.insert(caller),
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(Request::from_parts(parts, body)).await;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whether it names us as its host, and comes from no page of somebody else.
fn is_for_us(request: &Parts) -> Result<(), Problem> {
    let host = request.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']));
    let is_local = |name: &str| name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if !name.is_some_and(is_local) {
        return Err(Problem::Forbidden("this server is not asked under this Host".to_owned()));
    }
    match request.headers.contains_key(header::ORIGIN) {
        true => Err(Problem::Forbidden("requests of pages of this Origin are not answered".to_owned())),
        false => Ok(()),
    }
}
