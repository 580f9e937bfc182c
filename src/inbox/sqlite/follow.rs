//! Who follows which workspace.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Name;

/// A channel for each workspace that is followed.
#[derive(Debug, Default)]
pub(super) struct Followers {
    channels: Mutex<HashMap<Name, watch::Sender<u64>>>,
}

impl Followers {
    fn channels(&self) -> MutexGuard<'_, HashMap<Name, watch::Sender<u64>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who follow a workspace. Channels that nobody listens to any more are forgotten on the way.
    pub(super) fn join(&self, workspace: &Name) -> watch::Receiver<u64> {
        let mut channels = self.channels();
        channels.retain(|name, channel| name == workspace || channel.receiver_count() > 0);
        channels.entry(workspace.clone()).or_insert_with(|| watch::Sender::new(0)).subscribe()
    }

    /// Tells those who follow a workspace the number of its last change.
    pub(super) fn tell(&self, workspace: &Name, last: u64) {
        if let Some(channel) = self.channels().get(workspace) {
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
