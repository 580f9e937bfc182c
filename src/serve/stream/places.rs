//! How many may read at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::serve::problem::Problem;

/// Readers of one server: each is a connection, and costs some tens of kilobytes.
pub const READERS_MAX: usize = 4_096;

/// Readers by one token or session: more are a program that does not close what it opens.
pub const READERS_PER_TOKEN_MAX: usize = 64;

/// Seconds after which a reader that found no place may ask again.
const AGAIN_SECONDS: u64 = 10;

/// The places there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Places(Arc<Mutex<Taken>>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// By the token's id; none is the operator of this machine.
    by_token: HashMap<Option<i64>, usize>,
}

/// A place, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    token: Option<i64>,
}

impl Places {
    /// Takes a place.
    ///
    /// # Errors
    /// When there is none, or none for this token.
    pub(super) fn take(&self, token: Option<i64>) -> Result<Place, Problem> {
        let mut taken = self.lock();
        if taken.all >= READERS_MAX {
            let why = format!(
                "{READERS_MAX} readers follow this server already, which is the most it serves: try again later"
            );
            return Err(Problem::Unavailable(why));
        }
        let by_token = taken.by_token.entry(token).or_default();
        if *by_token >= READERS_PER_TOKEN_MAX {
            let why = format!(
                "{READERS_PER_TOKEN_MAX} streams are open by this token already, which is the most: close some, or use another token"
            );
            return Err(Problem::TooMany(why, AGAIN_SECONDS));
        }
        *by_token += 1;
        taken.all += 1;
        Ok(Place { places: self.clone(), token })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().all
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.all = taken.all.saturating_sub(1);
        if let Some(count) = taken.by_token.get_mut(&self.token) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                taken.by_token.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_its_share_and_gives_it_back() {
        let places = Places::default();
        let mut held: Vec<Place> = (0..READERS_PER_TOKEN_MAX).map(|_| places.take(Some(1)).unwrap()).collect();
        assert!(matches!(places.take(Some(1)), Err(Problem::TooMany(_, AGAIN_SECONDS))));
        held.push(places.take(Some(2)).unwrap());
        held.push(places.take(None).unwrap());
        held.swap_remove(0);
        held.push(places.take(Some(1)).unwrap());
        drop(held);
        let taken = places.lock();
        assert_eq!((taken.all, taken.by_token.len()), (0, 0));
    }

    #[test]
    fn a_server_has_its_most() {
        let places = Places::default();
        let held: Vec<Place> =
            (0..READERS_MAX).map(|number| places.take(i64::try_from(number).ok()).unwrap()).collect();
        assert!(matches!(places.take(Some(-1)), Err(Problem::Unavailable(_))));
        drop(held);
        assert!(places.take(Some(-1)).is_ok());
    }
}
