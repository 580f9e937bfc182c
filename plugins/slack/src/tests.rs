//! What every test of the plugin starts from.

mod answers;
mod attempt;
mod digests;
mod escaping;
mod messages;
mod settings;
mod threads;

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, Effect, Failure, Level, Notification, Request, Response};

use crate::{Slack, escape, message};

const WEBHOOK: &str = "switchbell-secret.slack-ops.0123456789abcdef";

fn by_webhook() -> Value {
    json!({ "webhook": WEBHOOK })
}

fn by_token() -> Value {
    json!({ "token": "switchbell-secret.slack-bot.fedcba9876543210", "channel": "#ops" })
}

fn notification(title: &str) -> Notification {
    Notification {
        seq: 7,
        source: "registrar".to_owned(),
        event_id: "event-7".to_owned(),
        name: "domain.active".to_owned(),
        timestamp: "2026-03-01T12:00:00Z".to_owned(),
        received_at: "2026-03-01T12:00:05Z".to_owned(),
        level: Level::Attention,
        subject: None,
        title: title.to_owned(),
        body: None,
        link: None,
        data: None,
        extras: "{}".to_owned(),
    }
}

fn delivery(settings: &Value, notifications: Vec<Notification>) -> Delivery {
    Delivery {
        id: "delivery-1".to_owned(),
        attempt: 1,
        due_at: "2026-03-01T12:00:05Z".to_owned(),
        now: "2026-03-01T12:00:06Z".to_owned(),
        workspace: "acme".to_owned(),
        route: "domain-news".to_owned(),
        on_behalf_of: "admin@example.com".to_owned(),
        cause: "first".to_owned(),
        settings: settings.to_string(),
        notifications,
        omitted: 0,
        inbox_url: None,
        memory: None,
        resume: None,
        extras: "{}".to_owned(),
    }
}

fn effect(answer: Answer) -> Effect {
    Effect { at: "2026-03-01T12:00:07Z".to_owned(), answer }
}

fn response(status: u16, body: &str) -> Response {
    Response { status, headers: vec![], body: body.into(), truncated: false, extras: "{}".to_owned() }
}

/// The request an attempt begins with.
fn request(delivery: Delivery) -> Request {
    match Slack::step(delivery, vec![]) {
        Action::Http(request) => request,
        other => panic!("not a request: {other:?}"),
    }
}

/// The message an attempt sends, checked against every limit of Slack's.
fn sent(delivery: Delivery) -> Value {
    let message: Value = serde_json::from_slice(&request(delivery).body).unwrap();
    assert_within_limits(&message);
    message
}

/// What an attempt ends with after the answer.
fn ended(settings: &Value, answer: Answer) -> Action {
    Slack::step(delivery(settings, vec![notification("title")]), vec![effect(answer)])
}

fn failure(action: Action) -> Failure {
    match action {
        Action::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

/// Every text of the message's blocks: what a person sees, and the URLs of links.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(name, value)| match (name.as_str(), value) {
                ("text" | "url", Value::String(text)) => vec![text.clone()],
                _ => texts(value),
            })
            .collect(),
        _ => vec![],
    }
}

/// The URLs of all links.
fn links(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(links).collect(),
        Value::Object(fields) => match fields.get("url") {
            Some(url) => vec![url.as_str().unwrap().to_owned()],
            None => fields.values().flat_map(links).collect(),
        },
        _ => vec![],
    }
}

/// Whether Slack finds nothing to read in it: no angle bracket, and each ampersand begins an entity.
fn is_harmless(text: &str) -> bool {
    let entities = ["&amp;", "&lt;", "&gt;"];
    let complete = |(at, _)| entities.iter().any(|entity| text[at..].starts_with(entity));
    !text.contains(['<', '>']) && text.match_indices('&').all(complete)
}

fn blocks(message: &Value) -> &Vec<Value> {
    message["blocks"].as_array().unwrap()
}

fn assert_within_limits(message: &Value) {
    let text = message["text"].as_str().unwrap();
    assert!(!text.is_empty() && escape::length(text) <= message::TEXT_MAX);
    assert!(blocks(message).len() <= message::BLOCKS_MAX);
    let all: usize = texts(&message["blocks"]).iter().map(|text| escape::length(text)).sum();
    assert!(all < message::MESSAGE_MAX, "{all} characters");
    for block in blocks(message) {
        let most = match block["type"].as_str().unwrap() {
            "header" => message::HEADER_MAX,
            "section" | "rich_text" => message::SECTION_MAX,
            "context" => {
                assert!(block["elements"].as_array().unwrap().len() <= 10);
                2_000
            }
            other => panic!("unexpected block {other}"),
        };
        let found = texts(block);
        assert!(!found.is_empty());
        for text in found {
            assert!(!text.is_empty() && escape::length(&text) <= most, "{} in {block}", escape::length(&text));
        }
    }
}
