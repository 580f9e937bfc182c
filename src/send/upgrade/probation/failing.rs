//! Targets that nothing gets through to: what fails there says nothing of a version that came later.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::inbox::book::QueueKey;
use crate::inbox::delivery::Outcome;

/// Targets that are remembered: more than that fail only where the whole network does, and then nothing can be told apart.
const FAILING_MAX: usize = 10_000;

/// The targets whose last attempt was not delivered.
#[derive(Debug, Default)]
pub(super) struct Failing {
    targets: Mutex<HashSet<QueueKey>>,
    /// How many: looked at for each attempt.
    count: AtomicUsize,
}

impl Failing {
    /// Hears how an attempt ended.
    pub(super) fn hear(&self, target: &QueueKey, outcome: Outcome) {
        match outcome {
            Outcome::Interrupted => {}
            Outcome::Delivered if self.count.load(Ordering::Relaxed) == 0 => {}
            Outcome::Delivered => self.change(|targets| _ = targets.remove(target)),
            Outcome::Retry | Outcome::Reject | Outcome::Reconnect | Outcome::Unknown => self.change(|targets| {
                if targets.len() < FAILING_MAX {
                    targets.insert(target.clone());
                }
            }),
        }
    }

    /// Those that fail now.
    pub(super) fn now(&self) -> HashSet<QueueKey> {
        self.lock().clone()
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<QueueKey>)) {
        let mut targets = self.lock();
        change(&mut targets);
        self.count.store(targets.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<QueueKey>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
