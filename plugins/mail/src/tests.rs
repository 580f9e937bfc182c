//! What every test of the plugin starts from.

mod answers;
mod attempt;
mod bodies;
mod settings;
mod subjects;

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, Effect, Failure, Fault, Level, Mailed, Message};
use switchbell_kit::types::{Notification, Reach, Recipient};

use crate::Mail;

fn to_ops() -> Value {
    json!({ "to": ["ops@example.com"] })
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

/// The mail that an attempt begins with.
fn message(delivery: Delivery) -> Message {
    match Mail::step(delivery, vec![]) {
        Action::Mail(message) => message,
        other => panic!("not a mail: {other:?}"),
    }
}

fn effect(answer: Answer) -> Effect {
    Effect { at: "2026-03-01T12:00:07Z".to_owned(), answer }
}

fn fault(reach: Reach, status: Option<u16>, message: &str) -> Fault {
    Fault { reach, code: "code".to_owned(), message: message.to_owned(), status, after_seconds: None }
}

/// A mail of which this came, for each recipient.
fn mailed(outcomes: &[(&str, Result<(), Fault>)]) -> Answer {
    let recipient =
        |(to, outcome): &(&str, Result<(), Fault>)| Recipient { address: (*to).to_owned(), outcome: outcome.clone() };
    let recipients = outcomes.iter().map(recipient).collect();
    Answer::Mail(Ok(Mailed { message_id: "<1@bell.example.com>".to_owned(), recipients }))
}

fn failure(action: Action) -> Failure {
    match action {
        Action::Failed(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

/// Lines of a text.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
