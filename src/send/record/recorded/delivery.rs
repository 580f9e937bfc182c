//! A delivery as plugins see it, as JSON and back. The names are those of `wit/delivery.wit` in camelCase.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::send::record::{extras, json};
use crate::wasm::{self, Delivery};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wire {
    id: String,
    attempt: u32,
    due_at: String,
    now: String,
    workspace: String,
    route: String,
    on_behalf_of: String,
    cause: String,
    settings: Box<RawValue>,
    notifications: Vec<Notification>,
    omitted: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    inbox_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resume: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Notification {
    seq: u64,
    source: String,
    event_id: String,
    name: String,
    timestamp: String,
    received_at: String,
    level: Level,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Level {
    Info,
    Attention,
    Urgent,
}

impl From<&Delivery> for Wire {
    fn from(delivery: &Delivery) -> Self {
        let kept = |text: &Option<String>| text.as_deref().map(json);
        Self {
            id: delivery.id.clone(),
            attempt: delivery.attempt,
            due_at: delivery.due_at.clone(),
            now: delivery.now.clone(),
            workspace: delivery.workspace.clone(),
            route: delivery.route.clone(),
            on_behalf_of: delivery.on_behalf_of.clone(),
            cause: delivery.cause.clone(),
            settings: json(&delivery.settings),
            notifications: delivery.notifications.iter().map(Notification::from).collect(),
            omitted: delivery.omitted,
            inbox_url: delivery.inbox_url.clone(),
            memory: kept(&delivery.memory),
            resume: kept(&delivery.resume),
            extras: extras(&delivery.extras),
        }
    }
}

impl From<&wasm::Notification> for Notification {
    fn from(notification: &wasm::Notification) -> Self {
        let of = notification.clone();
        let level = match of.level {
            wasm::Level::Info => Level::Info,
            wasm::Level::Attention => Level::Attention,
            wasm::Level::Urgent => Level::Urgent,
        };
        Self {
            seq: of.seq,
            source: of.source,
            event_id: of.event_id,
            name: of.name,
            timestamp: of.timestamp,
            received_at: of.received_at,
            level,
            subject: of.subject,
            title: of.title,
            body: of.body,
            link: of.link,
            data: of.data.as_deref().map(json),
            extras: extras(&of.extras),
        }
    }
}

impl From<Wire> for Delivery {
    fn from(wire: Wire) -> Self {
        Self {
            id: wire.id,
            attempt: wire.attempt,
            due_at: wire.due_at,
            now: wire.now,
            workspace: wire.workspace,
            route: wire.route,
            on_behalf_of: wire.on_behalf_of,
            cause: wire.cause,
            settings: text(wire.settings),
            notifications: wire.notifications.into_iter().map(wasm::Notification::from).collect(),
            omitted: wire.omitted,
            inbox_url: wire.inbox_url,
            memory: wire.memory.map(text),
            resume: wire.resume.map(text),
            extras: wire.extras.map_or_else(|| "{}".to_owned(), text),
        }
    }
}

impl From<Notification> for wasm::Notification {
    fn from(of: Notification) -> Self {
        let level = match of.level {
            Level::Info => wasm::Level::Info,
            Level::Attention => wasm::Level::Attention,
            Level::Urgent => wasm::Level::Urgent,
        };
        Self {
            seq: of.seq,
            source: of.source,
            event_id: of.event_id,
            name: of.name,
            timestamp: of.timestamp,
            received_at: of.received_at,
            level,
            subject: of.subject,
            title: of.title,
            body: of.body,
            link: of.link,
            data: of.data.map(text),
            extras: of.extras.map_or_else(|| "{}".to_owned(), text),
        }
    }
}

fn text(json: Box<RawValue>) -> String {
    Box::<str>::from(json).into_string()
}
