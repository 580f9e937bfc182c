//! Who follows what.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// A channel for each that is followed: a workspace, or a consumer's queue.
#[derive(Debug)]
pub(super) struct Followers<K> {
    channels: Mutex<HashMap<K, watch::Sender<u64>>>,
}

impl<K> Default for Followers<K> {
    fn default() -> Self {
        Self { channels: Mutex::default() }
    }
}

impl<K: Clone + Eq + Hash> Followers<K> {
    fn channels(&self) -> MutexGuard<'_, HashMap<K, watch::Sender<u64>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who follow it. Channels that nobody listens to any more are forgotten on the way.
    pub(super) fn join(&self, what: &K) -> watch::Receiver<u64> {
        let mut channels = self.channels();
        channels.retain(|key, channel| key == what || channel.receiver_count() > 0);
        channels.entry(what.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells those who follow it the number of what came last.
    pub(super) fn tell(&self, what: &K, last: u64) {
        if let Some(channel) = self.channels().get(what) {
            channel.send_if_modified(|known| {
                let is_news = *known < last;
                *known = last.max(*known);
                is_news
            });
        }
    }

    pub(super) fn is_nobody(&self) -> bool {
        self.channels().is_empty()
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.channels().len()
    }
}
