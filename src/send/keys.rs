//! What is computed from the store's key: the same after a restart, and nothing that a plugin could guess.
//!
//! Each use has a key of its own, so that what one use shows tells nothing about another.

use std::fmt;

use ring::hmac;

use crate::text::hex;

/// The keys of one store.
#[derive(Clone)]
pub struct Keys {
    placeholders: hmac::Key,
    lanes: hmac::Key,
    sandbox: [u8; 32],
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Keys {
    /// The keys of the store whose own key this is ([`crate::inbox::Inbox::key`]).
    pub fn new(store: &[u8; 32]) -> Self {
        let store = hmac::Key::new(hmac::HMAC_SHA256, store);
        let derived = |purpose: &str| {
            let mut key = [0; 32];
            let tag = hmac::sign(&store, purpose.as_bytes());
            key.iter_mut().zip(tag.as_ref()).for_each(|(byte, tagged)| *byte = *tagged);
            key
        };
        let key = |purpose| hmac::Key::new(hmac::HMAC_SHA256, &derived(purpose));
        Self { placeholders: key("placeholders"), lanes: key("lanes"), sandbox: derived("sandbox") }
    }

    /// Keys of no store, for attempts that do nothing.
    pub fn of_nothing() -> Self {
        Self::new(&std::array::from_fn(|_| fastrand::u8(..)))
    }

    /// What the randomness of plugins is computed from.
    pub fn sandbox(&self) -> [u8; 32] {
        self.sandbox
    }

    /// 64 bits in hex that stand for a secret in one attempt: nobody who writes an event can guess them.
    pub fn placeholder(&self, delivery: &str, attempt: u32, secret: &str) -> String {
        // None of the three holds a line feed.
        shortened(&hmac::sign(&self.placeholders, format!("{delivery}\n{attempt}\n{secret}").as_bytes()), 8)
    }

    /// 128 bits in hex that stand for a secret's value in the key of a lane: equal for equal values, and not to be
    /// computed back.
    pub fn lane(&self, value: &str) -> String {
        shortened(&hmac::sign(&self.lanes, value.as_bytes()), 16)
    }
}

/// The first bytes of a tag.
fn shortened(tag: &hmac::Tag, bytes: usize) -> String {
    hex(tag.as_ref().get(..bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_is_the_same_for_the_same_attempt_only() {
        let (one, other) = (Keys::new(&[1; 32]), Keys::new(&[2; 32]));
        let drawn = one.placeholder("0badcafe-1", 1, "hook");
        assert_eq!((drawn.len(), &drawn), (16, &one.placeholder("0badcafe-1", 1, "hook")));
        for different in [
            one.placeholder("0badcafe-2", 1, "hook"),
            one.placeholder("0badcafe-1", 2, "hook"),
            one.placeholder("0badcafe-1", 1, "bot"),
            other.placeholder("0badcafe-1", 1, "hook"),
        ] {
            assert_ne!(drawn, different);
        }
    }

    #[test]
    fn every_use_has_a_key_of_its_own() {
        let keys = Keys::new(&[1; 32]);
        assert_ne!(keys.lane("\n1\nhook").get(..16), Some(keys.placeholder("", 1, "hook").as_str()));
        assert_ne!(keys.sandbox(), [1; 32]);
        assert_ne!(keys.sandbox(), Keys::new(&[2; 32]).sandbox());
        assert_eq!(keys.lane("a").len(), 32);
        assert_ne!(keys.lane("a"), keys.lane("b"));
    }
}
