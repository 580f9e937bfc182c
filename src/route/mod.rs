//! Who is owed what: pure decisions, shared by delivery, explanation and tests.

mod cover;
mod entry;
pub mod fold;
pub mod forecast;
mod glob;
mod hold;
mod plan;
mod select;
pub mod timing;

pub use cover::name_covers;
pub use entry::entry;
pub use glob::{PATTERN_CHARS_MAX, PatternError, check_name_pattern, check_text_pattern};
pub use plan::{Acknowledged, SURPLUS, Stage, Standing, Step, Subject, Why, owed, plan};
pub use select::{Condition, Decision, Facts, Field, Matcher, Router};
