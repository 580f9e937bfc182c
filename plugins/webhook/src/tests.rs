//! What every test of the plugin starts from.

mod answers;
mod attempt;
mod cloudevents;
mod settings;
mod standard;

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, Effect, Failure, Level, Notification, Request, Response};

use crate::Webhook;

const URL: &str = "switchbell-secret.hook.0123456789abcdef";
const KEY: &str = "switchbell-secret.hook-key.0123456789abcdef";
const OLD_KEY: &str = "switchbell-secret.old-key.fedcba9876543210";

/// Data whose spelling no JSON library keeps.
const DATA: &str = r#"{"b": 1,"a":1.50, "big":12345678901234567890123, "text":"\u00fc\/"}"#;

fn settings(format: &str) -> Value {
    json!({ "url": URL, "format": format })
}

fn notification(title: &str) -> Notification {
    Notification {
        seq: 7,
        source: "registrar".to_owned(),
        event_id: "evt/7".to_owned(),
        name: "domain.active".to_owned(),
        timestamp: "2026-03-01T12:00:00Z".to_owned(),
        received_at: "2026-03-01T12:00:05Z".to_owned(),
        level: Level::Attention,
        subject: None,
        title: title.to_owned(),
        body: None,
        link: None,
        data: Some(DATA.to_owned()),
        extras: "{}".to_owned(),
    }
}

/// One with everything there is.
fn full() -> Notification {
    Notification {
        subject: Some("example.com".to_owned()),
        body: Some("It is \"active\".\nEnjoy.".to_owned()),
        link: Some("https://crm.example.com/d?id=1&x=2".to_owned()),
        ..notification("größe \u{1F514}")
    }
}

fn delivery(settings: &Value, notifications: Vec<Notification>) -> Delivery {
    Delivery {
        id: "0badcafe-1".to_owned(),
        attempt: 1,
        due_at: "2026-03-01T12:00:05Z".to_owned(),
        now: "2026-03-01T12:00:06.75Z".to_owned(),
        workspace: "acme".to_owned(),
        route: "domain-news".to_owned(),
        on_behalf_of: "admin@example.com".to_owned(),
        cause: "first".to_owned(),
        settings: settings.to_string(),
        notifications,
        omitted: 0,
        inbox_url: Some("https://bell.example.com/acme".to_owned()),
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

/// The request an attempt begins with, checked against every limit of the host's.
fn request(delivery: Delivery) -> Request {
    let request = match Webhook::step(delivery, vec![]) {
        Action::Http(request) => request,
        other => panic!("not a request: {other:?}"),
    };
    assert!(request.body.len() <= 1024 * 1024, "{}", request.body.len());
    assert!(request.headers.len() <= 64);
    let bytes: usize = request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    assert!(bytes <= 16 * 1024, "{bytes}");
    for (name, value) in &request.headers {
        let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        assert!(is_plain && value.trim() == value, "{name}: {value:?}");
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()));
    }
    request
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let mut found = request.headers.iter().filter(|(known, _)| known == name);
    let value = found.next().map(|(_, value)| value.as_str());
    assert_eq!(found.next(), None, "{name} stands twice");
    value
}

fn body(request: &Request) -> String {
    String::from_utf8(request.body.clone()).unwrap()
}

fn json_body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn failure(action: Action) -> Failure {
    match action {
        Action::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}
