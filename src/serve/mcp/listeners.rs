//! Who waits for hints: bounded for all together and for each token, so that one cannot take the place of the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those who listen at once; each costs a connection.
const LISTENERS_MAX: usize = 1_000;

/// Those of one token.
const LISTENERS_OF_TOKEN_MAX: usize = 32;

/// Counts listeners. Its clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Listeners(Arc<Mutex<HashMap<Option<i64>, usize>>>);

/// The place of a listener, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    listeners: Listeners,
    token: Option<i64>,
}

impl Listeners {
    /// A place for one more of this token.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub(super) fn enter(&self, token: Option<i64>) -> Result<Place, String> {
        let mut counts = self.counts();
        let (all, own) = (counts.values().sum::<usize>(), counts.entry(token).or_default());
        if *own >= LISTENERS_OF_TOKEN_MAX {
            return Err(format!("{LISTENERS_OF_TOKEN_MAX} listen with this token already: end one first"));
        }
        if all >= LISTENERS_MAX {
            return Err(format!("{LISTENERS_MAX} listen already: read by time, and try again later"));
        }
        *own += 1;
        Ok(Place { listeners: self.clone(), token })
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Option<i64>, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.listeners.counts();
        if let Some(count) = counts.get_mut(&self.token) {
            *count -= 1;
        }
        counts.retain(|_, count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_leaves_places_for_others_and_a_place_that_is_left_is_free() {
        let listeners = Listeners::default();
        let enter = |token| listeners.enter(Some(token));
        let mut places: Vec<_> = (0..LISTENERS_OF_TOKEN_MAX).map(|_| enter(1).unwrap()).collect();
        assert!(enter(1).unwrap_err().contains("with this token"));
        places.push(enter(2).unwrap());
        places.remove(0);
        places.push(enter(1).unwrap());
        assert!(enter(1).is_err());
        let more =
            (0..).flat_map(|token| std::iter::repeat_n(token, LISTENERS_OF_TOKEN_MAX)).skip(3 * LISTENERS_OF_TOKEN_MAX);
        places.extend(more.take(LISTENERS_MAX - places.len()).map(|token| enter(token).unwrap()));
        assert!(enter(i64::MAX).unwrap_err().contains("try again later"));
        drop(places);
        assert!(listeners.counts().is_empty());
    }
}
