//! Who comes in: known by a bearer token and by nothing else, whichever way the request came.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::BODY_BYTES_MAX;
use crate::serve::Served;
use crate::serve::auth::Caller;
use crate::serve::body::{TIME_MAX, read};
use crate::serve::problem::Problem;

/// Lets a request in with its [`Caller`]. A cookie says nothing here: a browser sends it along
/// whoever makes it ask. Which host was asked, the listener has looked at.
pub(super) async fn admit(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut origins = parts.headers.get_all(header::ORIGIN).iter();
    if !origins.all(|origin| origin.to_str().is_ok_and(|origin| served.gate.is_our_origin(origin))) {
        let why = "the header `Origin` names a page that is none of this server's: only its own pages, and programs, which send \
                   no `Origin`, are answered";
        return Problem::Forbidden(why.to_owned()).into_response();
    }
    let from = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0);
    match come(&served, &parts, body, from).await {
        Ok((caller, body)) => {
            parts.extensions.insert(caller);
            next.run(Request::from_parts(parts, body.into())).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Whose request it is, judged before the body is read and after it.
async fn come(
    served: &Served,
    parts: &Parts,
    body: Body,
    from: Option<SocketAddr>,
) -> Result<(Caller, Vec<u8>), Problem> {
    let caller = served.gate.caller(parts, from, false).await?;
    let body = read(body, BODY_BYTES_MAX, TIME_MAX, &served.clock).await?;
    served.gate.still(&caller).await?;
    Ok((caller, body))
}
