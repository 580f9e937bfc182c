//! How long things are kept.

use std::path::PathBuf;
use std::time::Duration;

/// A day.
const DAY: Duration = Duration::from_secs(86_400);

/// `retention:` of the operator's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// What is kept of an inbox.
    pub kept: Kept,
    /// How long an event's id is known after its source used it last; never shorter than the age.
    pub dedupe: Duration,
    /// The folder that notifications are written to before they go; none where they are not.
    pub export: Option<PathBuf>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { kept: Kept::default(), dedupe: 400 * DAY, export: None }
    }
}

/// What is kept of an inbox: what is younger than the age, and no more than so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// What was received longer ago goes.
    pub age: Duration,
    /// All but the newest so many go.
    pub count: u32,
}

impl Default for Kept {
    fn default() -> Self {
        Self { age: 90 * DAY, count: 1_000_000 }
    }
}
