//! Who is owed what: pure decisions, shared by delivery, explanation and tests.

mod glob;
mod plan;
mod select;

pub use glob::{PatternError, check_name_pattern, check_text_pattern};
pub use plan::owed;
pub use select::{Condition, Decision, Facts, Field, Matcher, Router};
