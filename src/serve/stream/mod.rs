//! Live readers: what changes in an inbox, as it changes.

use std::sync::Arc;

use axum::Router;

use super::Served;
use crate::inbox::Store;

/// Tells live readers what changes.
#[derive(Clone, Debug)]
pub struct Hub {
    _store: Arc<dyn Store>,
}

impl Hub {
    /// A hub without readers.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { _store: store }
    }
}

/// The routes.
pub(super) fn routes() -> Router<Arc<Served>> {
    Router::new()
}
