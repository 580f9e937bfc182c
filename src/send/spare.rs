//! To whom the host's own notices owe nothing, though a route matches: one rule, for those that are written and for those
//! who ask why.

use serde_json::Value;

use super::notice::meets;
use super::report;
use crate::inbox::Owed;
use crate::inbox::book::{Book, QueueKey};
use crate::notification::{Event, HOST_SOURCE, Name};

/// What a notice is about, as far as that decides whom it owes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// A delivery to this target.
    Delivery(QueueKey),
    /// What an agent that this target started has found.
    Report(QueueKey),
    /// This plugin.
    Plugin(Name),
}

impl About {
    /// What a notice that is stored is about; none where it owes every target that its routes match, as do all events that
    /// are not the host's own. Only the host writes notices, so it may read what it wrote.
    pub(super) fn of(workspace: &Name, source: &Name, event: &Event) -> Option<Self> {
        if source.as_str() != HOST_SOURCE {
            return None;
        }
        let data: Value = serde_json::from_str(&event.data).ok()?;
        let member = |name: &str| data.get(name).and_then(Value::as_str);
        let queue = || {
            let (route, target) = (member("route")?.parse().ok()?, member("target")?.into());
            Some(QueueKey { workspace: workspace.clone(), route, target })
        };
        match event.name.as_str() {
            "delivery.dead" | "delivery.blocked" | "delivery.unknown" => queue().map(Self::Delivery),
            report::NAME => queue().map(Self::Report),
            "plugin.rolled-back" | "plugin.not-loaded" => member("plugin")?.parse().ok().map(Self::Plugin),
            _ => None,
        }
    }

    /// Why a target is owed nothing; none when it is. `starts_agents` says of a plugin whether what it starts can write events
    /// back, as one may that is not there to be asked.
    pub(super) fn spares(
        &self,
        owed: &Owed,
        book: &Book,
        starts_agents: impl Fn(&Name) -> bool,
    ) -> Option<&'static str> {
        match self {
            Self::Report(_) if starts_agents(&owed.plugin) => {
                Some("no report starts an agent, and this target's plugin may start one")
            }
            Self::Delivery(about) | Self::Report(about) => meets(owed, about, book).then_some(
                "a notice about a delivery owes nothing to its target, nor to any that shares a lane with it",
            ),
            Self::Plugin(plugin) => {
                (owed.plugin == *plugin).then_some("a notice about a plugin owes nothing to that plugin's own targets")
            }
        }
    }
}
