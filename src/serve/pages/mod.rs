//! The web pages.

use std::sync::Arc;

use axum::Router;

use super::Served;

/// The routes.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new()
}
