//! Which handshake to begin with: discovery (revision 2026-07-28, "Discovery"), which falls back by itself where a server
//! refuses it or stays silent, or `initialize` at once. Some servers from before discovery do worse than refuse: they die
//! of the question, or fail in ways that look like any other failure. So attempts that fail take turns.

use rmcp::model::ProtocolVersion;

use crate::fetch::outbox::ReadError;

/// A server that spoke a revision with discovery is only asked the old way each time so many attempts have failed: it is
/// far more likely to be down than to have become an older one.
const MODERN_FAILURES: u32 = 4;

/// What is known of a server's revision, and the attempts since.
#[derive(Clone, Debug, Default)]
pub(super) struct Era {
    /// Whether the revision that it spoke last begins with `initialize`.
    is_legacy: Option<bool>,
    /// Attempts in a row that failed.
    failures: u32,
}

impl Era {
    /// Of a server that spoke this revision last.
    pub(super) fn of(revision: Option<&str>) -> Self {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter().find(|known| revision == Some(known.as_str()));
        Self { is_legacy: known.map(ProtocolVersion::has_initialize), failures: 0 }
    }

    /// Whether the next attempt begins with `initialize`.
    pub(super) fn begins_with_initialize(&self) -> bool {
        match self.is_legacy {
            Some(true) => self.failures.is_multiple_of(2),
            None => !self.failures.is_multiple_of(2),
            Some(false) => self.failures % MODERN_FAILURES == MODERN_FAILURES - 1,
        }
    }

    /// An attempt failed.
    pub(super) fn failed(&mut self) {
        self.failures = self.failures.wrapping_add(1);
    }
}

/// Whether the server heard the question and will not answer it, as one of another revision does.
pub(super) fn is_refusal(error: &ReadError) -> bool {
    matches!(error, ReadError::Refused { .. } | ReadError::Http { status: 400 | 404 | 405 | 406 | 415 | 422, .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(revision: Option<&str>, expected: [bool; 8]) {
        let mut era = Era::of(revision);
        let attempts = [(); 8].map(|()| {
            let begins = era.begins_with_initialize();
            era.failed();
            begins
        });
        assert_eq!(attempts, expected, "{revision:?}");
    }

    #[test]
    fn attempts_that_fail_take_turns() {
        let (yes, no) = (true, false);
        check(None, [no, yes, no, yes, no, yes, no, yes]);
        check(Some("a revision of the future"), [no, yes, no, yes, no, yes, no, yes]);
        check(Some("2025-11-25"), [yes, no, yes, no, yes, no, yes, no]);
        check(Some("2026-07-28"), [no, no, no, yes, no, no, no, yes]);
    }
}
