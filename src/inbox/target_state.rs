//! What a target's timing depends on, for those who want to know what would happen.

use jiff::Timestamp;

use crate::route::forecast::Waiting;

/// Deliveries that [`TargetState`] lists of one target: those that move first. Few targets have as many that wait, and one
/// that does is foreseen from these.
pub const WAITING_MAX: u32 = 1_000;

/// A target as it stands in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetState {
    /// Why a person must mend something first.
    pub blocked: Option<String>,
    /// When attempts reached the destination, oldest first, as far as `at_most` looks back.
    pub reached: Vec<Timestamp>,
    /// Deliveries that were let go and have neither reached the destination nor ended, as far as `at_most` counts them.
    pub going: u32,
    /// What waits and is not claimed, in the order in which it moves, at most [`WAITING_MAX`].
    pub waiting: Vec<Waiting>,
    /// Whether more waits.
    pub has_more: bool,
}
