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
pub struct Live {
    now: RwLock<Arc<Current>>,
    /// The configuration before: what was handed out while it held may begin after it.
    before: RwLock<Option<Arc<Config>>>,
}

impl Live {
    /// Begins with this one.
    pub fn new(current: Current) -> Self {
        Self { now: RwLock::new(Arc::new(current)), before: RwLock::default() }
    }

    /// What holds now. Whoever works with it goes on with it, whatever comes.
    pub fn get(&self) -> Arc<Current> {
        Arc::clone(&self.now.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What holds for something that was handed out a moment ago: what holds now, unless that does not have it any more.
    pub(super) fn with(&self, has: impl Fn(&Config) -> bool) -> Arc<Current> {
        let now = self.get();
        let before = self.before.read().unwrap_or_else(PoisonError::into_inner);
        match before.as_ref().filter(|before| !has(&now.config) && has(before)) {
            Some(before) => Arc::new(Current { config: Arc::clone(before), ..Current::clone(&now) }),
            None => now,
        }
    }

    /// Holds from now on.
    pub(super) fn set(&self, current: Current) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }

    /// Holds from now on, with another configuration.
    pub(super) fn configure(&self, current: Current) {
        let before = Arc::clone(&self.get().config);
        *self.before.write().unwrap_or_else(PoisonError::into_inner) = Some(before);
        self.set(current);
    }
}
