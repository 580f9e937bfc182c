//! The MCP server at `/mcp`.

use std::sync::Arc;

use axum::Router;

use super::Served;

/// The routes.
pub(super) fn routes(_served: &Arc<Served>) -> Router<Arc<Served>> {
    Router::new()
}
