//! What every test of the plugin starts from.

mod a2a;
mod completions;
mod failures;
mod input;
mod json;
mod mcp;
mod reports;
mod responses;
mod resuming;
mod settings;

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{
    Action, Answer, Delivery, Effect, Failure, Fault, Level, Notification, Pause, Reach, Receipt, Request, Response,
};

use crate::AgentRun;

/// A placeholder as the host makes them.
const KEY: &str = "switchbell-secret.agent.0123456789abcdef";

fn by_a2a() -> Value {
    json!({ "protocol": "a2a", "url": "https://agents.example/rpc", "prompt": "Look into it.", "api_key": KEY })
}

fn by_responses() -> Value {
    json!({ "protocol": "openai", "model": "gpt-5", "prompt": "Look into it.", "api_key": KEY })
}

fn by_chat() -> Value {
    json!({ "protocol": "openai-chat", "model": "gpt-5", "prompt": "Look into it.", "api_key": KEY })
}

fn by_messages() -> Value {
    json!({ "protocol": "anthropic", "model": "claude-5", "prompt": "Look into it.", "api_key": KEY })
}

fn by_tool() -> Value {
    json!({
        "protocol": "mcp", "connector": "desk", "tool": "start_agent", "prompt": "Look into it.",
        "arguments": { "task": "{prompt}", "context": "{notification}" },
    })
}

/// The settings with these fields more, or others.
fn with(mut settings: Value, fields: Value) -> Value {
    for (name, value) in fields.as_object().unwrap() {
        settings[name] = value.clone();
    }
    settings
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
        data: Some(r#"{"b":1,"a":1.50}"#.to_owned()),
        extras: "{}".to_owned(),
    }
}

fn delivery(settings: &Value, notifications: Vec<Notification>) -> Delivery {
    Delivery {
        id: "5f3a9c01-17".to_owned(),
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

/// The usual delivery, with what an earlier step or attempt left.
fn usual(settings: &Value, resume: Option<&str>) -> Delivery {
    Delivery { resume: resume.map(str::to_owned), ..delivery(settings, vec![notification("title")]) }
}

fn effect(answer: Answer) -> Effect {
    Effect { at: "2026-03-01T12:00:07Z".to_owned(), answer }
}

fn response(status: u16, body: &str) -> Response {
    Response { status, headers: vec![], body: body.into(), truncated: false, extras: "{}".to_owned() }
}

fn answered(status: u16, body: &Value) -> Answer {
    Answer::Http(Ok(response(status, &body.to_string())))
}

fn fault(reach: Reach) -> Fault {
    Fault { reach, code: "code".to_owned(), message: "what happened".to_owned(), status: None, after_seconds: None }
}

/// What the plugin does after these answers.
fn after(settings: &Value, resume: Option<&str>, answers: Vec<Answer>) -> Action {
    AgentRun::step(usual(settings, resume), answers.into_iter().map(effect).collect())
}

fn request(action: Action) -> Request {
    match action {
        Action::Http(request) => request,
        other => panic!("not a request: {other:?}"),
    }
}

fn pause(action: Action) -> Pause {
    match action {
        Action::Wait(pause) => pause,
        other => panic!("not a wait: {other:?}"),
    }
}

fn receipt(action: Action) -> Receipt {
    match action {
        Action::Done(receipt) => receipt,
        other => panic!("not done: {other:?}"),
    }
}

fn failure(action: Action) -> Failure {
    match action {
        Action::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn header<'a>(request: &'a Request, name: &str) -> Option<&'a str> {
    let (_, value) = request.headers.iter().find(|(found, _)| found == name)?;
    Some(value)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}")).to_owned()
}
