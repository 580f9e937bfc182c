//! How long things are kept.

use jiff::Timestamp;

/// What of a workspace may go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// What was received before this moment.
    pub before: Option<Timestamp>,
    /// All but the newest so many.
    pub keep: Option<u64>,
    /// Only what has a greater number.
    pub after: u64,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Notifications.
    pub notifications: u64,
    /// Deliveries.
    pub deliveries: u64,
}
