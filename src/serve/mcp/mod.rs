//! The MCP server at `/mcp`, over streamable HTTP: what agents read of an inbox and mark in it, and the inbox as an outbox
//! that other hosts poll. MCP types stand here, as those of our own reads stand in `fetch/mcp`.
//!
//! Every request is served by itself, in every revision: no session is kept, so there is none to bound, to take over or to
//! lose in a restart. A request comes through the `door`, which knows whose it is, and then to the `server`; `push` stands
//! between the two and answers what is asked of the extension.

mod cursor;
mod door;
mod frame;
mod hints;
mod list;
mod listeners;
mod mark;
mod outbox;
mod page;
mod push;
mod server;
mod tools;
mod verbatim;

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Served;
pub use outbox::{OUTBOX, SCHEME};
pub use push::{EXTENSION, LIVE_MAX, Lives};
use server::Server;

/// Where it is served.
pub const PATH: &str = "/mcp";

/// Largest body of a request: the longest list of numbers and texts that a tool takes has a tenth of that.
const BODY_BYTES_MAX: usize = 256 << 10;

/// The routes, for both listeners: by either, a caller is who its token says.
pub(super) fn routes(served: &Arc<Served>) -> Router<Arc<Served>> {
    let server = Server::new(served);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_BYTES_MAX)
        .with_cancellation_token(served.stop.child_token())
        // The door has looked at both.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new()
        .route_service(PATH, service)
        .route_layer(from_fn(verbatim::fill))
        .route_layer(from_fn_with_state(Arc::clone(served), push::answer))
        .route_layer(from_fn_with_state(Arc::clone(served), door::admit))
}
