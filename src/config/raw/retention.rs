//! How long things are kept.

use super::super::read::{Text, Whole};
use super::super::section::Need::{Default, Optional};
use super::super::section::section;
use super::super::values::Span;

/// Most notifications of an inbox: a larger number would be a mistake of writing.
const COUNT_MAX: u32 = 1_000_000_000;

/// Said in a workspace's file of what only the operator says.
const OPERATORS: &str = "this is the operator's to say, under `retention` in switchbell.yaml: remove it here";

section! {
    /// How long things are kept. What a delivery is still owed for stays until that is over.
    struct RawRetention {
        /// Notifications that were received longer ago go, with their deliveries. `1h` to `3650d`.
        "age" => age: Span, Default("90d");
        /// Of each workspace, all notifications but the newest so many go.
        "count" => count: Whole<1, COUNT_MAX>, Default("1000000");
        /// How long an event's id is known after its outbox showed it last, so that it does not come as a new one. No shorter
        /// than `age` and than `poll.max_age`. `1h` to `3650d`.
        "dedupe" => dedupe: Span, Default("400d");
        /// A folder that notifications are written to before they go, with their deliveries, as JSON Lines: a file for each
        /// workspace and day. While it cannot be written nothing goes.
        "export" => export: Text, Optional;
    }
    not yet: []
    examples: [
        "{ age: 90d, count: 1000000, dedupe: 400d }",
        "{ age: 30d, export: archive/ }",
    ]
}

section! {
    /// How long notifications of a workspace are kept.
    struct RawKept {
        /// Notifications that were received longer ago go, with their deliveries. `1h` to what the operator says, which it is
        /// when left out.
        "age" => age: Span, Optional;
        /// All notifications but the newest so many go; no more than the operator says, which it is when left out.
        "count" => count: Whole<1, COUNT_MAX>, Optional;
    }
    not yet: []
    elsewhere: {
        "dedupe": OPERATORS,
        "export": OPERATORS,
    }
    examples: [
        "{ age: 30d }",
        "{ age: 7d, count: 10000 }",
    ]
}
