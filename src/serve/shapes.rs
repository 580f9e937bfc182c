//! What is read and changed, as every surface spells it in JSON. Moments are RFC 3339.

mod access;
mod configuration;
mod connector;
mod consumer;
pub(in crate::serve) mod number;
mod plugin;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::inbox::{Attempt, DeliveryView, Mark, Marks};
use crate::notification::Notification;

pub use access::{MeJson, WorkspaceJson};
pub use configuration::{
    AsideJson, CancelledJson, ChangeJson, MistakeJson, NotReloadedJson, ReloadedJson, StatusJson, TakenJson,
    UnloadedJson,
};
pub use connector::{BudgetJson, ConnectorJson, LastErrorJson, PolledJson};
pub use consumer::{ConsumerJson, WhenJson};
pub use plugin::{
    ChangedJson, FROM_HEADER, PluginJson, ProbationJson, SIGNATURE_HEADER, VersionDoneJson, VersionJson,
    VersionRefusedJson, WhichVersionJson,
};

/// A part of a list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ListJson<T> {
    /// In the order of the list.
    pub items: Vec<T>,
    /// Where to go on: as `before` with the newest first, as `after` with the oldest first. Null when there is no more.
    pub next: Option<u64>,
}

impl<T> ListJson<T> {
    /// A list that fits into one answer.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// A notification (product words of the notifications seed).
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationJson {
    /// Its number; 0 for one that is in no inbox.
    pub seq: u64,
    /// The workspace.
    pub workspace_id: String,
    /// The connector it came from.
    pub source: String,
    /// The source's own id.
    pub event_id: String,
    /// The dotted name.
    pub name: String,
    /// When the fact happened.
    pub timestamp: String,
    /// When the host accepted it.
    pub received_at: String,
    /// The level that the source gave.
    pub level: String,
    /// That level, capped by the ceiling that the source had then.
    pub effective_level: String,
    /// What it is about.
    pub subject: Option<String>,
    /// One line.
    pub title: String,
    /// More.
    pub body: Option<String>,
    /// Where it leads.
    pub link: Option<LinkJson>,
    /// The payload, byte for byte.
    #[schema(value_type = Option<Object>)]
    pub data: Option<Box<RawValue>>,
    /// MCP content blocks, as they came; only of what came from a push queue.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    pub content: Option<Box<RawValue>>,
    /// When somebody read it first.
    pub read_at: Option<String>,
    /// Who.
    pub read_by: Option<String>,
    /// Whether that was an agent.
    #[serde(default)]
    pub read_by_agent: Option<bool>,
    /// When it was acknowledged.
    pub acknowledged_at: Option<String>,
    /// By whom.
    pub acknowledged_by: Option<String>,
    /// Whether that was an agent.
    #[serde(default)]
    pub acknowledged_by_agent: Option<bool>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkJson {
    /// A URI.
    pub resource: String,
}

impl From<&(Notification, Marks)> for NotificationJson {
    fn from((of, marks): &(Notification, Marks)) -> Self {
        let event = &of.event;
        let at = |mark: &Option<Mark>| mark.as_ref().map(|mark| mark.at.to_string());
        let by = |mark: &Option<Mark>| mark.as_ref().map(|mark| mark.by.name.clone());
        let is_agent = |mark: &Option<Mark>| mark.as_ref().map(|mark| mark.by.is_agent);
        Self {
            seq: of.seq,
            workspace_id: of.workspace.to_string(),
            source: of.source.to_string(),
            event_id: event.event_id.clone(),
            name: event.name.clone(),
            timestamp: event.timestamp.to_string(),
            received_at: of.received_at.to_string(),
            level: event.level.to_string(),
            effective_level: of.effective_level.to_string(),
            subject: event.subject.clone(),
            title: event.title.clone(),
            body: event.body.clone(),
            link: event.link.clone().map(|resource| LinkJson { resource }),
            data: RawValue::from_string(event.data.clone()).ok(),
            content: event.content.clone().and_then(|content| RawValue::from_string(content).ok()),
            read_at: at(&marks.read),
            read_by: by(&marks.read),
            read_by_agent: is_agent(&marks.read),
            acknowledged_at: at(&marks.acknowledged),
            acknowledged_by: by(&marks.acknowledged),
            acknowledged_by_agent: is_agent(&marks.acknowledged),
        }
    }
}

/// A delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryJson {
    /// Its id.
    pub id: String,
    /// The workspace.
    pub workspace_id: String,
    /// The route that matched.
    pub route: String,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: String,
    /// The version that made the last attempt.
    pub plugin_version: Option<String>,
    /// Where it stands.
    pub state: String,
    /// Why, where neither state nor attempts say.
    pub why: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it first came due, or will.
    pub due_at: String,
    /// When it is moved next, if time does that.
    pub next_at: Option<String>,
    /// The attempts so far, oldest first.
    pub attempts: Vec<AttemptJson>,
    /// The numbers of the notifications that it stands for, oldest first.
    pub notifications: Vec<u64>,
    /// How many more it counts.
    pub omitted: u32,
    /// The delivery that a person had repeated by this one.
    pub retry_of: Option<String>,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptJson {
    /// From 1.
    pub number: u32,
    /// When it began.
    pub started_at: String,
    /// When it ended.
    pub ended_at: String,
    /// How it ended.
    pub outcome: String,
    /// Why, or the destination's reference.
    pub reason: Option<String>,
    /// How many times the plugin was asked.
    pub steps: u32,
    /// The version that ran.
    pub plugin_version: Option<String>,
    /// The SHA-256 of its file, in hex.
    pub plugin_digest: Option<String>,
}

impl From<&DeliveryView> for DeliveryJson {
    fn from(of: &DeliveryView) -> Self {
        Self {
            id: of.id.to_string(),
            workspace_id: of.workspace.to_string(),
            route: of.route.to_string(),
            target: of.target.clone(),
            plugin: of.plugin.to_string(),
            plugin_version: of.attempts.last().and_then(|attempt| attempt.plugin_version.clone()),
            state: of.state.to_string(),
            why: of.why.clone(),
            created_at: of.created_at.to_string(),
            due_at: of.due_at.to_string(),
            next_at: of.next_at.map(|at| at.to_string()),
            attempts: of.attempts.iter().map(AttemptJson::from).collect(),
            notifications: of.seqs.clone(),
            omitted: of.omitted,
            retry_of: of.retry_of.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Attempt> for AttemptJson {
    fn from(of: &Attempt) -> Self {
        Self {
            number: of.number.get(),
            started_at: of.started_at.to_string(),
            ended_at: of.ended_at.to_string(),
            outcome: of.outcome.to_string(),
            reason: of.reason.clone(),
            steps: of.steps,
            plugin_version: of.plugin_version.clone(),
            plugin_digest: of.plugin_digest.clone(),
        }
    }
}
