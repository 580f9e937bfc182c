//! What the events of the stream carry besides whole notifications. Moments are RFC 3339.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `notification.read` and `notification.acknowledged`: somebody marked a notification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct MarkChangeJson {
    /// Which.
    pub seq: u64,
    /// The workspace.
    pub workspace_id: String,
    /// When.
    pub at: String,
    /// Who.
    pub by: String,
    /// Whether it was an agent.
    pub is_agent: bool,
}

/// `delivery.changed`: a delivery was made, or stands elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryChangeJson {
    /// Which.
    pub id: String,
    /// The workspace.
    pub workspace_id: String,
    /// The route.
    pub route: String,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: String,
    /// Where it stood then.
    pub state: String,
    /// The first notification it stands for.
    pub notifications: Vec<u64>,
    /// When.
    pub at: String,
}

/// `delivery.joined`: a delivery that waited became part of another, and there is none of this id any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryJoinedJson {
    /// Which.
    pub id: String,
    /// The workspace.
    pub workspace_id: String,
    /// The id of the delivery that it is part of now.
    pub into: String,
    /// The first notification it stood for.
    pub notifications: Vec<u64>,
    /// When.
    pub at: String,
}

/// `gap`: a source skipped events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GapJson {
    /// The notice that says so.
    pub seq: u64,
    /// The workspace.
    pub workspace_id: String,
    /// The connector.
    pub source: String,
    /// When.
    pub at: String,
    /// The notice's title; null when it is no longer in the inbox.
    pub title: Option<String>,
}

/// `ready` and `reset`: where the reader stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaceJson {
    /// The number of the last change before what follows.
    pub number: u64,
}
