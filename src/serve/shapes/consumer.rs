//! Consumers, and how their queues stand.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::config::Workspace;
use crate::inbox::QueueView;
use crate::notification::Name;
use crate::route::Matcher;
use crate::serve::mcp::Lives;

/// A consumer as every surface spells it. Moments are RFC 3339.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerJson {
    /// The workspace.
    pub workspace_id: String,
    /// Its name.
    pub name: String,
    /// What joins its queue; null when it is not configured any more.
    pub when: Option<WhenJson>,
    /// Events that wait in its queue.
    pub pending: u64,
    /// The number of the oldest of them.
    pub oldest_seq: Option<u64>,
    /// When that one was received.
    pub oldest_received_at: Option<String>,
    /// Events that ever joined.
    pub joined: u64,
    /// Events that it acknowledged.
    pub acknowledged: u64,
    /// When that was last.
    pub acknowledged_at: Option<String>,
    /// Events that left the queue unacknowledged, since it was full or they were too old to be kept.
    pub lost: u64,
    /// Those of them that were too old.
    pub lost_too_old: u64,
    /// When one was lost last.
    pub lost_at: Option<String>,
    /// Whether it has lost events and its queue was not empty since.
    pub is_losing: bool,
    /// Whether it is in the workspace's file.
    pub is_configured: bool,
    /// Whether it is told live right now; null when no server runs.
    pub is_live: Option<bool>,
}

/// What is asked of a notification. A list that is empty asks nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhenJson {
    /// Patterns over the name, one of which must match.
    pub name: Vec<String>,
    /// Patterns over the name, none of which may match.
    pub not: Vec<String>,
    /// The least effective level.
    pub level: Option<String>,
    /// Patterns over the source, one of which must match.
    pub source: Vec<String>,
    /// Patterns over the subject, one of which must match.
    pub subject: Vec<String>,
}

impl From<&Matcher> for WhenJson {
    fn from(of: &Matcher) -> Self {
        Self {
            name: of.name.clone(),
            not: of.not.clone(),
            level: of.level.map(|level| level.to_string()),
            source: of.source.clone(),
            subject: of.subject.clone(),
        }
    }
}

impl ConsumerJson {
    /// The same, with who is told live.
    pub fn served(name: &Name, workspace: Option<&Workspace>, queues: &[QueueView], lives: &Lives) -> Vec<Self> {
        let mut all = Self::all(name, workspace, queues);
        for one in &mut all {
            one.is_live = one.name.parse().ok().map(|consumer| lives.is_live(name, &consumer));
        }
        all
    }

    /// Those that are configured, as they are, and those that the store holds a queue of, by name.
    pub fn all(name: &Name, workspace: Option<&Workspace>, queues: &[QueueView]) -> Vec<Self> {
        let mut all: Vec<Self> = queues.iter().map(|queue| Self::of(name, queue)).collect();
        for (consumer, when) in workspace.map(|workspace| workspace.consumers.whens()).into_iter().flatten() {
            let when = Some(WhenJson::from(when));
            match all.iter_mut().find(|one| one.name == consumer.as_str()) {
                Some(one) => (one.when, one.is_configured) = (when, true),
                None => all.push(Self {
                    workspace_id: name.to_string(),
                    name: consumer.to_string(),
                    when,
                    is_configured: true,
                    ..Self::default()
                }),
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn of(workspace: &Name, queue: &QueueView) -> Self {
        let moment = |at: jiff::Timestamp| at.to_string();
        Self {
            workspace_id: workspace.to_string(),
            name: queue.consumer.to_string(),
            when: None,
            pending: queue.pending,
            oldest_seq: queue.oldest.map(|(seq, _)| seq),
            oldest_received_at: queue.oldest.map(|(_, at)| moment(at)),
            joined: queue.joined,
            acknowledged: queue.acknowledged,
            acknowledged_at: queue.acknowledged_at.map(moment),
            lost: queue.lost,
            lost_too_old: queue.too_old,
            lost_at: queue.lost_at.map(moment),
            is_losing: queue.is_losing,
            is_configured: false,
            is_live: None,
        }
    }
}
