//! Levels in words.

use crate::types::{Level, Notification};

/// The level as JSON spells it.
pub fn name(level: Level) -> &'static str {
    match level {
        Level::Info => "info",
        Level::Attention => "attention",
        Level::Urgent => "urgent",
    }
}

/// The level as a person reads it.
pub fn word(level: Level) -> &'static str {
    match level {
        Level::Info => "Info",
        Level::Attention => "Attention",
        Level::Urgent => "Urgent",
    }
}

/// The loudest level of several notifications; info if there is none.
pub fn loudest(notifications: &[Notification]) -> Level {
    let rank = |level: &Level| match level {
        Level::Info => 0,
        Level::Attention => 1,
        Level::Urgent => 2,
    };
    notifications.iter().map(|notification| notification.level).max_by_key(rank).unwrap_or(Level::Info)
}
