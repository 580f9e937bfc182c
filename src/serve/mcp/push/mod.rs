//! The push-notifications extension of MCP, as its server (push-notifications seed): what waits for a consumer, page by page
//! and live, until the consumer acknowledges it.
//!
//! The types that the rest of the server is made of know neither the filter nor the notifications of an extension. So requests
//! of this one are answered here, before those see them, and everything else goes on untouched.

mod asked;
mod event;
mod feed;
mod live;
mod lives;
mod refusal;
mod says;
mod who;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use rmcp::model::{ExtensionCapabilities, JsonObject};
use serde_json::value::RawValue;

use super::BODY_BYTES_MAX;
use crate::serve::Served;
use crate::serve::auth::Caller;
use asked::{Asked, What};
use live::Live;
pub use lives::{LIVE_MAX, Lives};
use refusal::Refusal;
use who::Queue;

/// The key of the extension, in capabilities and filters.
pub const EXTENSION: &str = "io.stagewise/push-notifications";

const GET: &str = "io.stagewise/push-notifications/get";
const ACK: &str = "io.stagewise/push-notifications/ack";
const EVENT: &str = "io.stagewise/push-notifications/event";
const LISTEN: &str = "subscriptions/listen";

/// Longest id of an event of ours, in bytes; what is longer is the id of none.
const ID_BYTES_MAX: usize = 200 * char::MAX_LEN_UTF8;

/// What the server says of itself: it has the extension, which has no settings.
pub(super) fn capability() -> ExtensionCapabilities {
    ExtensionCapabilities::from([(EXTENSION.to_owned(), JsonObject::new())])
}

/// Answers what is asked of the extension, and hands on the rest.
pub(super) async fn answer(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    if !is_message(&request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // The door has read it whole already.
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let Some(Asked { id, what }) = asked::judge(&body, &parts.headers) else {
        return next.run(Request::from_parts(parts, body.into())).await;
    };
    let Some(caller) = parts.extensions.get::<Caller>() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let answered = match what {
        Ok(what) => serve(&served, caller, &id, what).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| refusal.answer(&id))
}

/// Whether it is a message as MCP sends them (MCP, "Streamable HTTP"); what is none, the rest of the server refuses.
fn is_message(request: &Request) -> bool {
    let values = |name| request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
    let is =
        |value: &str, kind: &str| value.split(';').next().is_some_and(|value| value.trim().eq_ignore_ascii_case(kind));
    let accepts = |kind| values(header::ACCEPT).flat_map(|value| value.split(',')).any(|value| is(value, kind));
    request.method() == Method::POST
        && values(header::CONTENT_TYPE).any(|value| is(value, "application/json"))
        && accepts("application/json")
        && accepts("text/event-stream")
}

async fn serve(served: &Arc<Served>, caller: &Caller, id: &RawValue, what: What) -> Result<Response, Refusal> {
    let queue = Queue::of(served, caller)?;
    let Queue { workspace, consumer } = &queue;
    match what {
        What::Get(limit) => says::page(id, &served.store.pending(workspace, consumer, 0, limit).await?),
        What::Acknowledge(mut ids) => {
            // Whether it is an id of this consumer, of another or of nothing: nobody is told.
            ids.retain(|id| id.len() <= ID_BYTES_MAX);
            let consumed = served.store.consume(workspace, consumer, ids, served.clock.now()).await?;
            if consumed.taken > 0 {
                served.lives.acknowledged(&queue);
            }
            says::done(id)
        }
        What::Listen(progress_token) => {
            let live = Live::begin(served, (caller, queue), id.to_owned(), progress_token).await?;
            Ok(streamed(live))
        }
    }
}

fn streamed(live: Live) -> Response {
    let body = Body::from_stream(live.pieces().map(Ok::<_, Infallible>));
    let headers = [
        (header::CONTENT_TYPE.as_str(), "text/event-stream"),
        (header::CACHE_CONTROL.as_str(), "no-store"),
        // A proxy that collects what it hands on would hold back what is told now.
        ("x-accel-buffering", "no"),
    ];
    (headers, body).into_response()
}
