//! What is shown of lanes to people who want to know why something does not go.

use jiff::Timestamp;

use super::Queues;
use super::lane::Owner;
use super::state::State;
use crate::inbox::book::QueueKey;

/// A lane as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// The plugin's key, with secrets replaced; none for the lane that a target has to itself.
    pub key: Option<String>,
    /// At most so many effects, 0 for no limit, …
    pub count: u32,
    /// … in so many seconds.
    pub per_seconds: u32,
    /// Attempts at once; 0 for no limit.
    pub in_flight_max: u32,
    /// Whether deliveries are made one after the other.
    pub is_ordered: bool,
    /// Attempts under way in it.
    pub in_flight: u32,
    /// Until when the destination asked to be left alone.
    pub asked_until: Option<Timestamp>,
    /// Until when it is left alone because it seems dead.
    pub dead_until: Option<Timestamp>,
    /// When its pace or a pause lets another attempt start; none if one can start now, or only the end of another
    /// makes room.
    pub opens_at: Option<Timestamp>,
}

impl Queues {
    /// The lanes of a queue, in the order of their keys; none of a queue that is not known.
    pub fn lanes(&self, queue: &QueueKey) -> Vec<LaneView> {
        self.with(|state, now| state.lane_views(queue, now))
    }
}

impl State {
    fn lane_views(&mut self, queue: &QueueKey, now: Timestamp) -> Vec<LaneView> {
        let found = self.by_key.get(queue).and_then(|id| self.queues.get(id));
        let Some(queue) = found else { return Vec::new() };
        let rules = queue.rule.as_ref().map(|rule| rule.lanes.clone()).unwrap_or_default();
        let lanes = queue.lanes.clone();
        let view = |id| {
            let lane = self.lanes.get_mut(id)?;
            let key = match &lane.owner {
                Owner::Plugin(lane) => Some(lane.key.to_string()),
                Owner::Queue(_) => None,
            };
            let rule = rules.iter().find(|rule| Some(&*rule.lane.key) == key.as_deref());
            Some(LaneView {
                count: rule.map_or(0, |rule| rule.count),
                per_seconds: rule.map_or(0, |rule| rule.per_seconds),
                key,
                ..lane.view(now)
            })
        };
        lanes.iter().filter_map(view).collect()
    }
}
