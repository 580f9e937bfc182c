//! Live readers: what changes in an inbox, as it changes, by server-sent events.
//!
//! A reader stands at the number of a change and is sent what follows: from the frames that one task for each workspace renders
//! for all its readers, or, where these do not reach back, from the store. So there is no hole and no repeat between what it
//! missed and what comes, whatever was interrupted.

mod frames;
mod hub;
mod places;
mod reader;
mod ring;
pub mod shapes;
mod topic;

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Served;
use super::auth::{Caller, Right};
use super::problem::{Problem, wrong_query};
use crate::config::Config;
use crate::notification::Name;
pub use hub::Hub;
pub use places::{READERS_MAX, READERS_PER_TOKEN_MAX};
use reader::{Live, Start};

/// The header that a browser names its last event in when it comes back.
const LAST_EVENT_ID: &str = "last-event-id";

/// The routes, below the root of the API.
pub(super) fn routes() -> OpenApiRouter<Arc<Served>> {
    OpenApiRouter::new().routes(routes!(stream))
}

/// Where to begin.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Asked {
    /// The number of the change before the first that is wanted; what changes from now on when left out.
    after: Option<u64>,
}

/// Follows a workspace by server-sent events, without an end.
///
/// Each event has the number of its change as its id: `notification.created` with the notification, `notification.read` and
/// `notification.acknowledged`, `delivery.changed` (not for agents), `gap` where a source skipped events, `ready` where it
/// begins, and `reset` where what was missed is no longer known and the inbox must be read anew. Whoever comes back with the
/// last id that it got, in `Last-Event-ID` or as `after`, gets exactly what it missed, in order.
#[utoipa::path(
    get,
    path = "/workspaces/{ws}/stream",
    operation_id = "followWorkspace",
    tag = "notifications",
    params(
        ("ws" = String, Path, description = "The workspace.", pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"),
        Asked,
        ("last-event-id" = Option<String>, Header, description = "The number of the last change that was got.")
    ),
    responses((status = 200, body = String, content_type = "text/event-stream", description = "The changes."))
)]
async fn stream(
    State(served): State<Arc<Served>>,
    caller: Caller,
    Path(workspace): Path<String>,
    asked: Result<Query<Asked>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let admitted = served.gate.workspace(&caller, &workspace, Right::ReadInbox)?;
    let Query(asked) = asked.map_err(|error| {
        Problem::Wrong(format!("{}: `after` is the number of a change, such as ?after=17", wrong_query(&error)))
    })?;
    let place = served.hub.place(caller.token)?;
    let name = admitted.name().clone();
    let live = Live::new(&served.hub, place, &name, start(&headers, asked.after), caller.may(Right::ReadWork));
    let pieces = live.pieces().take_until(Box::pin(once_woken(over(served, caller, name))));
    let body = Body::from_stream(pieces.map(Ok::<_, Infallible>));
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-store"),
        // A proxy that collects what it hands on would hold back what is told now.
        ("x-accel-buffering", "no"),
    ];
    Ok((headers, body).into_response())
}

/// Where a reader begins: its last event counts more than the address, which a browser asks again as it was.
fn start(headers: &HeaderMap, after: Option<u64>) -> Start {
    let named = headers.get(LAST_EVENT_ID).filter(|value| !value.is_empty());
    match (named, after) {
        (Some(value), _) => {
            let number = value.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            // A browser cannot mend it, and would ask for ever.
            number.and_then(|text| text.parse().ok()).map_or(Start::Anew, Start::After)
        }
        (None, Some(number)) => Start::After(number),
        (None, None) => Start::Now,
    }
}

/// The same, looked at only when it is woken itself. A reader asks with every piece whether it is over, and a thousand that are
/// told at once would stand in line for the locks of what they all wait for.
async fn once_woken(future: impl Future<Output = ()>) {
    FuturesUnordered::from_iter([future]).next().await;
}

/// Ready when a reader may read no longer: the server stops, its token is no good any more, or the workspace is gone.
async fn over(served: Arc<Served>, caller: Caller, workspace: Name) {
    let mut config = served.config.clone();
    let is_shut = |_: &Arc<Config>| served.gate.workspace(&caller, workspace.as_str(), Right::ReadInbox).is_err();
    tokio::select! {
        () = served.stop.cancelled() => {}
        () = served.gate.ended(&caller) => {}
        // It fails when the server stops.
        _ = config.wait_for(is_shut) => {}
    }
}
