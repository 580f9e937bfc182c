//! How the queues of consumers stand.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Metrics;
use crate::inbox::QueueView;
use crate::notification::Name;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Consumer {
    workspace: String,
    consumer: String,
}

/// Of each queue, what the store has counted, which goes on after a restart; and who is told live.
#[derive(Debug)]
pub(super) struct Queues {
    pending: Family<Consumer, Gauge>,
    joined: Family<Consumer, Counter>,
    acknowledged: Family<Consumer, Counter>,
    lost: Family<Consumer, Counter>,
    live: Gauge,
}

impl Queues {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let pending = Family::default();
        registry.register("queue_pending", "Events that wait for a consumer", pending.clone());
        let joined = Family::default();
        registry.register("queue_joined", "Events that joined the queue of a consumer", joined.clone());
        let acknowledged = Family::default();
        registry.register("queue_acknowledged", "Events that a consumer acknowledged", acknowledged.clone());
        let lost = Family::default();
        let help = "Events that left the queue of a consumer unacknowledged: it was full, or they were too old";
        registry.register("queue_lost", help, lost.clone());
        let live = Gauge::default();
        registry.register("push_streams", "Live streams of consumers", live.clone());
        Self { pending, joined, acknowledged, lost, live }
    }
}

impl Metrics {
    /// So many consumers are told live.
    pub fn pushing(&self, streams: usize) {
        self.queues.live.set(i64::try_from(streams).unwrap_or(i64::MAX));
    }

    /// How every queue stands right now. Those that are not among them are not told of any more.
    pub fn queues<'a>(&self, queues: impl IntoIterator<Item = (&'a Name, QueueView)>) {
        let Queues { pending, joined, acknowledged, lost, live: _ } = &self.queues;
        pending.clear();
        for family in [joined, acknowledged, lost] {
            family.clear();
        }
        for (workspace, of) in queues {
            let labels = Consumer { workspace: workspace.to_string(), consumer: of.consumer.to_string() };
            pending.get_or_create(&labels).set(i64::try_from(of.pending).unwrap_or(i64::MAX));
            for (family, count) in [(joined, of.joined), (acknowledged, of.acknowledged), (lost, of.lost)] {
                family.get_or_create(&labels).inner().store(count, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_counted_as_the_store_says_and_those_that_went_are_not() {
        let metrics = Metrics::default();
        let acme: Name = "acme".parse().unwrap();
        let queue = |consumer: &str| QueueView {
            consumer: consumer.parse().unwrap(),
            pending: 7,
            oldest: None,
            joined: 12,
            acknowledged: 4,
            acknowledged_at: None,
            lost: 1,
            too_old: 0,
            lost_at: None,
            losses: 1,
            is_losing: true,
        };
        metrics.queues([(&acme, queue("audit")), (&acme, queue("triage"))]);
        let text = metrics.text().unwrap();
        for line in [
            "switchbell_queue_pending{workspace=\"acme\",consumer=\"triage\"} 7",
            "switchbell_queue_joined_total{workspace=\"acme\",consumer=\"triage\"} 12",
            "switchbell_queue_acknowledged_total{workspace=\"acme\",consumer=\"triage\"} 4",
            "switchbell_queue_lost_total{workspace=\"acme\",consumer=\"triage\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
        metrics.queues([(&acme, queue("triage"))]);
        let text = metrics.text().unwrap();
        assert!(text.contains("consumer=\"triage\"") && !text.contains("consumer=\"audit\""), "{text}");
    }
}
