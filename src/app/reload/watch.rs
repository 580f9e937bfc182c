//! When files that change are read: once they have stood still for one look, since editors write in pieces.

use std::time::Duration;

use crate::config::Files;

/// How often the files are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The files as they were read and as they were looked at last.
#[derive(Debug, Default)]
pub(super) struct Watch {
    read: Files,
    seen: Files,
}

impl Watch {
    /// They were read as they stood so.
    pub(super) fn read(&mut self, files: Files) {
        self.seen = files.clone();
        self.read = files;
    }

    /// What is to be looked at.
    pub(super) fn files(&self) -> &Files {
        &self.read
    }

    /// Whether they stand otherwise than when they were read, and have not changed since the last look.
    pub(super) fn has_settled(&mut self, now: Files) -> bool {
        let has_settled = now != self.read && now == self.seen;
        self.seen = now;
        has_settled
    }
}
