//! Who is told live: one stream for each consumer, and so many in all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::who::Queue;
use crate::notification::Name;

/// Live streams of one server, beside the places of other readers; each is a connection.
pub const LIVE_MAX: usize = 4_096;

/// Streams of one consumer that are not closed yet: the last one, and those that it took the place of.
const CLOSING_MAX: usize = 16;

/// The live streams there are. Its clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Lives(Arc<Mutex<Streams>>);

#[derive(Debug, Default)]
struct Streams {
    open: usize,
    of: HashMap<Queue, Own>,
}

/// The streams of a consumer.
#[derive(Debug, Default)]
struct Own {
    open: usize,
    /// Ends the one that is told.
    last: CancellationToken,
    acknowledgements: Arc<AtomicU64>,
}

/// The place of a stream, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    lives: Lives,
    /// Whose it is.
    pub(super) queue: Queue,
    /// Cancelled once another stream of the consumer has begun.
    pub(super) replaced: CancellationToken,
    acknowledgements: Arc<AtomicU64>,
}

impl Lives {
    /// A place for a stream of this consumer, which is the one that is told from now on.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(super) fn begin(&self, queue: &Queue) -> Result<Place, String> {
        let mut streams = self.streams();
        let own = streams.of.get(queue).map_or(0, |own| own.open);
        if own >= CLOSING_MAX {
            return Err(format!(
                "Subscription limit reached: {own} streams of this consumer are not closed yet; read what comes or close \
                 them, and try again later"
            ));
        }
        if streams.open >= LIVE_MAX {
            return Err(format!(
                "Subscription limit reached: {LIVE_MAX} consumers are told live, which is the most; get what is pending by \
                 time, and try again later"
            ));
        }
        streams.open += 1;
        let own = streams.of.entry(queue.clone()).or_default();
        own.open += 1;
        own.last.cancel();
        own.last = CancellationToken::new();
        Ok(Place {
            lives: self.clone(),
            queue: queue.clone(),
            replaced: own.last.clone(),
            acknowledgements: Arc::clone(&own.acknowledgements),
        })
    }

    /// Has the stream of a consumer look again at what it was about to tell: events left its queue.
    pub(super) fn acknowledged(&self, queue: &Queue) {
        if let Some(own) = self.streams().of.get(queue) {
            own.acknowledgements.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Whether a consumer is told live.
    pub fn is_live(&self, workspace: &Name, consumer: &Name) -> bool {
        let queue = Queue { workspace: workspace.clone(), consumer: consumer.clone() };
        self.streams().of.contains_key(&queue)
    }

    /// How many streams are open.
    pub fn open(&self) -> usize {
        self.streams().open
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// How often events left the queue since the consumer's first stream that is still open began.
    pub(super) fn acknowledgements(&self) -> u64 {
        self.acknowledgements.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut streams = self.lives.streams();
        streams.open = streams.open.saturating_sub(1);
        if let Some(own) = streams.of.get_mut(&self.queue) {
            own.open = own.open.saturating_sub(1);
            if own.open == 0 {
                streams.of.remove(&self.queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(consumer: &str) -> Queue {
        Queue { workspace: "acme".parse().unwrap(), consumer: consumer.parse().unwrap() }
    }

    #[test]
    fn a_new_stream_takes_the_place_of_the_one_before_and_of_no_other() {
        let lives = Lives::default();
        let first = lives.begin(&queue("a")).unwrap();
        let other = lives.begin(&queue("b")).unwrap();
        let second = lives.begin(&queue("a")).unwrap();
        assert!(first.replaced.is_cancelled() && !second.replaced.is_cancelled() && !other.replaced.is_cancelled());
        drop(first);
        lives.acknowledged(&queue("a"));
        lives.acknowledged(&queue("nobody"));
        assert_eq!((second.acknowledgements(), other.acknowledgements()), (1, 0));
        assert!(!second.replaced.is_cancelled());
        assert_eq!(lives.open(), 2);
        let is_live = |consumer: &str| lives.is_live(&"acme".parse().unwrap(), &consumer.parse().unwrap());
        assert!(is_live("a") && is_live("b") && !is_live("c"));
        drop((second, other));
        assert_eq!((lives.open(), lives.streams().of.len()), (0, 0));
    }

    #[test]
    fn there_are_so_many_at_most_and_a_consumer_leaves_places_for_others() {
        let lives = Lives::default();
        let mut own: Vec<Place> = (0..CLOSING_MAX).map(|_| lives.begin(&queue("a")).unwrap()).collect();
        assert!(lives.begin(&queue("a")).unwrap_err().contains("of this consumer are not closed yet"));
        own.extend((CLOSING_MAX..LIVE_MAX).map(|number| lives.begin(&queue(&format!("c-{number}"))).unwrap()));
        let why = lives.begin(&queue("b")).unwrap_err();
        assert!(why.starts_with("Subscription limit reached: 4096 consumers"), "{why}");
        own.truncate(1);
        assert!(lives.begin(&queue("b")).is_ok());
    }
}
