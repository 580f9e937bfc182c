//! Counters of what happens, for Prometheus (the OpenMetrics text format, as its client library writes it).

mod queues;

use std::fmt;

use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Happening, Observer};
use crate::inbox::Expired;
use crate::notification::Name;
use queues::Queues;

/// The media type of [`Metrics::text`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters. Their labels are names of the configuration, so that there are no more series than it has connectors and
/// plugins.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reads: Family<Read, Counter>,
    deferred: Family<Connector, Counter>,
    gaps: Family<Connector, Counter>,
    events: Family<Event, Counter>,
    attempts: Family<Attempt, Counter>,
    waits: Family<Plugin, Counter>,
    moved: Family<Moved, Counter>,
    is_configured: Gauge,
    configured_at: Gauge,
    aside: Gauge,
    cut_off: Counter,
    turned_away: Counter,
    readers: Gauge,
    expired: Family<Workspace, Counter>,
    expired_deliveries: Family<Workspace, Counter>,
    forgotten: Counter,
    is_retaining: Gauge,
    queues: Queues,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Workspace {
    workspace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Connector {
    workspace: String,
    connector: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Read {
    workspace: String,
    connector: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Event {
    workspace: String,
    connector: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    workspace: String,
    plugin: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugin {
    workspace: String,
    plugin: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Moved {
    workspace: String,
    plugin: String,
    state: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("switchbell");
        let reads = Family::default();
        registry.register("reads", "Reads of outboxes: answered or failed", reads.clone());
        let deferred = Family::default();
        registry.register("reads_deferred", "Reads that waited for the budget of their workspace", deferred.clone());
        let gaps = Family::default();
        registry.register("gaps", "Times that events of an outbox were missed", gaps.clone());
        let events = Family::default();
        registry.register("events", "Events of outboxes: accepted (new ones only) or dropped", events.clone());
        let attempts = Family::default();
        registry.register("attempts", "Attempts of deliveries, by outcome", attempts.clone());
        let waits = Family::default();
        registry.register("waits", "Times that a plugin asked to wait", waits.clone());
        let moved = Family::default();
        registry.register("moved", "Due deliveries of which no attempt was made, by state", moved.clone());
        let is_configured = Gauge::default();
        let help = "Whether the configuration was taken when it was read last";
        registry.register("config_last_reload_successful", help, is_configured.clone());
        let configured_at = Gauge::default();
        let help = "When the configuration was taken last, in seconds since 1970";
        registry.register("config_last_reload_success_timestamp_seconds", help, configured_at.clone());
        let aside = Gauge::default();
        registry.register("config_workspaces_aside", "Workspaces left out: their files have mistakes", aside.clone());
        let cut_off = Counter::default();
        let help = "Connections of clients that were cut off because they took nothing of an answer";
        registry.register("connections_cut_off", help, cut_off.clone());
        let turned_away = Counter::default();
        let help = "Connections of clients that were closed at once because too many were open";
        registry.register("connections_turned_away", help, turned_away.clone());
        let readers = Gauge::default();
        registry.register("stream_readers", "Readers that follow an inbox live", readers.clone());
        let expired = Family::default();
        registry.register("expired_notifications", "Notifications removed because they were old", expired.clone());
        let expired_deliveries = Family::default();
        registry.register(
            "expired_deliveries",
            "Deliveries removed with their notifications",
            expired_deliveries.clone(),
        );
        let forgotten = Counter::default();
        registry.register("forgotten_event_ids", "Ids of events that were not used for long", forgotten.clone());
        let is_retaining = Gauge::default();
        let help = "Whether what was old was removed when it was looked for last";
        registry.register("retention_successful", help, is_retaining.clone());
        let queues = Queues::registered(&mut registry);
        Self {
            registry,
            reads,
            deferred,
            gaps,
            events,
            attempts,
            waits,
            moved,
            is_configured,
            configured_at,
            aside,
            cut_off,
            turned_away,
            readers,
            expired,
            expired_deliveries,
            forgotten,
            is_retaining,
            queues,
        }
    }
}

impl Metrics {
    /// All counters as text.
    ///
    /// # Errors
    /// When the text cannot be written, which only happens without memory.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// The configuration was taken; so many workspaces are left out of it.
    pub fn configured(&self, now: Timestamp, workspaces_aside: usize) {
        self.is_configured.set(1);
        self.configured_at.set(now.as_second());
        self.aside.set(i64::try_from(workspaces_aside).unwrap_or(i64::MAX));
    }

    /// It was not.
    pub fn not_configured(&self) {
        self.is_configured.set(0);
    }

    /// A client took nothing of an answer, and was cut off.
    pub fn cut_off(&self) {
        self.cut_off.inc();
    }

    /// A client found no room, and its connection was closed at once.
    pub fn turned_away(&self) {
        self.turned_away.inc();
    }

    /// So many follow an inbox live right now.
    pub fn reading(&self, readers: usize) {
        self.readers.set(i64::try_from(readers).unwrap_or(i64::MAX));
    }

    /// Something old of a workspace went.
    pub fn expired(&self, workspace: &Name, gone: Expired) {
        let labels = Workspace { workspace: workspace.to_string() };
        self.expired.get_or_create(&labels).inc_by(gone.notifications);
        self.expired_deliveries.get_or_create(&labels).inc_by(gone.deliveries);
    }

    /// So many event ids were forgotten.
    pub fn forgot(&self, event_ids: u64) {
        self.forgotten.inc_by(event_ids);
    }

    /// Whether what is old could be removed.
    pub fn retaining(&self, is_successful: bool) {
        self.is_retaining.set(is_successful.into());
    }

    fn read(&self, workspace: &Name, source: &Name, result: &'static str) {
        let labels = Read { workspace: workspace.to_string(), connector: source.to_string(), result };
        self.reads.get_or_create(&labels).inc();
    }

    fn event(&self, workspace: &Name, source: &Name, result: &'static str) {
        let labels = Event { workspace: workspace.to_string(), connector: source.to_string(), result };
        self.events.get_or_create(&labels).inc();
    }
}

fn connector(workspace: &Name, source: &Name) -> Connector {
    Connector { workspace: workspace.to_string(), connector: source.to_string() }
}

impl Observer for Metrics {
    fn happened(&self, what: &Happening) {
        match what {
            Happening::Read { workspace, source, .. } => self.read(workspace, source, "answered"),
            Happening::ReadFailed { workspace, source, .. } => self.read(workspace, source, "failed"),
            Happening::Deferred { workspace, source } => {
                self.deferred.get_or_create(&connector(workspace, source)).inc();
            }
            Happening::Gap { workspace, source } => {
                self.gaps.get_or_create(&connector(workspace, source)).inc();
            }
            Happening::Dropped { workspace, source, .. } => self.event(workspace, source, "dropped"),
            Happening::Accepted { workspace, source, .. } => self.event(workspace, source, "accepted"),
            Happening::Attempted { workspace, plugin, outcome, .. } => {
                let (workspace, plugin) = (workspace.to_string(), plugin.to_string());
                self.attempts.get_or_create(&Attempt { workspace, plugin, outcome: outcome.as_str() }).inc();
            }
            Happening::Paused { workspace, plugin, next_in, .. } => {
                if next_in.is_some() {
                    let (workspace, plugin) = (workspace.to_string(), plugin.to_string());
                    self.waits.get_or_create(&Plugin { workspace, plugin }).inc();
                }
            }
            Happening::Moved { workspace, plugin, state, .. } => {
                let (workspace, plugin) = (workspace.to_string(), plugin.to_string());
                self.moved.get_or_create(&Moved { workspace, plugin, state: state.as_str() }).inc();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_happens_is_counted_by_name() {
        let metrics = Metrics::default();
        let (workspace, source): (Name, Name) = ("acme".parse().unwrap(), "crm".parse().unwrap());
        let names = || (workspace.clone(), source.clone());
        for _ in 0..2 {
            let (workspace, source) = names();
            metrics.happened(&Happening::Gap { workspace, source });
        }
        let (workspace, source) = names();
        let next_in = Duration::ZERO;
        metrics.happened(&Happening::Read { workspace, source, events: 0, bootstrap: false, next_in });
        let (workspace, source) = names();
        metrics.happened(&Happening::Dropped { workspace, source, reason: "a secret of somebody".to_owned() });
        let text = metrics.text().unwrap();
        for line in [
            "switchbell_gaps_total{workspace=\"acme\",connector=\"crm\"} 2",
            "switchbell_reads_total{workspace=\"acme\",connector=\"crm\",result=\"answered\"} 1",
            "switchbell_events_total{workspace=\"acme\",connector=\"crm\",result=\"dropped\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        metrics.configured(Timestamp::from_second(1_788_288_130).unwrap(), 2);
        let counted = |name: &str| {
            let text = metrics.text().unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix(&format!("switchbell_config_{name} ")));
            line.map(str::to_owned)
        };
        assert_eq!(counted("last_reload_successful").as_deref(), Some("1"));
        metrics.not_configured();
        assert_eq!(counted("last_reload_successful").as_deref(), Some("0"));
        assert_eq!(counted("last_reload_success_timestamp_seconds").as_deref(), Some("1788288130"));
        assert_eq!(counted("workspaces_aside").as_deref(), Some("2"));
        assert!(text.ends_with("# EOF\n") && !text.contains("secret"));
    }
}
