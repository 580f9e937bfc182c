//! The sandbox with real components, good and bad.

mod bounds;
mod component;
mod frozen;
mod limits;
mod loading;
mod steps;
mod versions;
mod wasi;

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use tokio::sync::OnceCell;

use super::bindings::switchbell::delivery::types::{Answer, Delivery, Effect, Level, Notification, Response};
use super::guests::guest;
use super::{Action, Attempt, Plugin, Receipt, Sandbox, Settings, StepFault};
use crate::config::Limits;

/// One sandbox of two threads for all tests.
fn sandbox() -> &'static Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new(settings()).unwrap())
}

fn settings() -> Settings {
    Settings { threads: NonZeroUsize::new(2), key: Some([7; 32]), ..Settings::new(Limits::default()) }
}

/// The plugin that does what its settings tell it to.
async fn puppet() -> Plugin {
    static PUPPET: OnceCell<Plugin> = OnceCell::const_new();
    PUPPET.get_or_init(async || sandbox().load(guest("puppet")).await.unwrap()).await.clone()
}

/// An attempt in which the puppet shows this behaviour.
async fn attempt(behaviour: &str) -> Attempt {
    puppet().await.attempt(delivery(behaviour))
}

/// The first step of such an attempt.
async fn first_step(behaviour: &str) -> Result<Action, StepFault> {
    attempt(behaviour).await.step().await
}

/// The note with which an attempt is done in its first step.
async fn note(behaviour: &str) -> String {
    noted(first_step(behaviour).await)
}

fn noted(answer: Result<Action, StepFault>) -> String {
    match answer {
        Ok(Action::Done(Receipt { note: Some(note), .. })) => note,
        other => panic!("not done with a note: {other:?}"),
    }
}

fn delivery(behaviour: &str) -> Delivery {
    Delivery {
        id: "0badcafe-1".into(),
        attempt: 1,
        due_at: "2026-01-02T03:04:05Z".into(),
        now: "2026-01-02T03:04:06.789Z".into(),
        workspace: "acme".into(),
        route: "news".into(),
        on_behalf_of: "admin@example.com".into(),
        cause: "first".into(),
        settings: format!("{behaviour:?}"),
        notifications: vec![notification()],
        omitted: 0,
        inbox_url: None,
        memory: None,
        resume: None,
        extras: "{}".into(),
    }
}

fn notification() -> Notification {
    Notification {
        seq: 1,
        source: "registrar".into(),
        event_id: "e1".into(),
        name: "domain.active".into(),
        timestamp: "2026-01-02T03:04:05Z".into(),
        received_at: "2026-01-02T03:04:05Z".into(),
        level: Level::Info,
        subject: None,
        title: "a.example is active".into(),
        body: None,
        link: None,
        data: None,
        extras: "{}".into(),
    }
}

/// A complete HTTP answer.
fn http(status: u16, body: &str) -> Effect {
    let response = Response { status, headers: vec![], body: body.into(), truncated: false, extras: "{}".into() };
    Effect { at: "2026-01-02T03:04:07Z".into(), answer: Answer::Http(Ok(response)) }
}
