//! Who is owed what: pure decisions, shared by delivery, explanation and tests.

mod cover;
pub mod diff;
mod entry;
pub mod fold;
pub mod forecast;
mod glob;
mod hold;
mod plan;
pub mod rehearsal;
mod select;
pub mod timing;
pub mod trial;

pub use cover::name_covers;
pub use entry::entry;
pub use glob::{PATTERN_CHARS_MAX, PatternError, check_name_pattern, check_text_pattern};
pub use plan::{Acknowledged, SURPLUS, Stage, Standing, Step, Subject, Why, owed, plan};
pub use select::{Condition, Decision, Facts, Field, Matcher, PreparedMatcher, Router};
