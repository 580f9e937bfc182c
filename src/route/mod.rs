//! Who is owed what: pure decisions, shared by delivery, explanation and tests.

mod glob;
mod select;

pub use glob::{PatternError, check_name_pattern, check_text_pattern};
pub use select::{Condition, Decision, Facts, Field, Matcher, Router};
