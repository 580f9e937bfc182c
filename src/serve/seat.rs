//! The connectors of the running server.

use crate::config::Connector;
use crate::fetch::poller::Handle;
use crate::notification::Name;

/// A connector of the running server.
#[derive(Debug)]
pub struct Seat {
    /// The workspace.
    pub workspace: Name,
    /// The connector as configured.
    pub connector: Connector,
    /// The way to its poller; or why it is not polled, none when it declares no outbox.
    pub polled: Result<Handle, Option<String>>,
}

/// Says that a connector is not polled, and why.
pub fn not_polled(name: &Name, reason: Option<&str>) -> String {
    format!("the connector {name} is not polled: {}", why_not(reason))
}

pub(super) fn why_not(reason: Option<&str>) -> &str {
    reason.unwrap_or("it declares no outbox under `notifications`")
}
