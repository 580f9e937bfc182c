//! What attempts follow at a moment. It changes while they are made, and only as a whole.

use std::sync::{Arc, PoisonError, RwLock};

use crate::config::Config;
use crate::inbox::book::Book;
use crate::wasm::Catalog;

/// The configuration, the plugins, and the targets as both of them have it. Immutable: a change makes another.
#[derive(Clone, Debug)]
pub struct Current {
    /// The routes, the grants, the secrets.
    pub config: Arc<Config>,
    /// The plugins.
    pub catalog: Catalog,
    /// Every target.
    pub book: Arc<Book>,
}

/// The one that holds now.
#[derive(Debug)]
pub struct Live(RwLock<Arc<Current>>);

impl Live {
    /// Begins with this one.
    pub fn new(current: Current) -> Self {
        Self(RwLock::new(Arc::new(current)))
    }

    /// What holds now. Whoever works with it goes on with it, whatever comes.
    pub fn get(&self) -> Arc<Current> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Holds from now on.
    pub(super) fn set(&self, current: Current) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }
}
