//! What a version can do. `plain` and what begins as it does ask for one request, and tell its answer as a common webhook
//! would.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

use serde_json::Value;

use crate::bindings::switchbell::delivery::types::{
    Action, Answer, Delivery, Effect, Failure, FailureKind, Pause, Reach, Receipt, Request, Response,
};
use crate::version;

/// One step.
pub(crate) fn act(behaviour: &str, delivery: &Delivery, past: &[Effect]) -> Action {
    let titles = titles(delivery);
    match (behaviour, past) {
        ("plain", []) => post(delivery, "", &titles),
        ("content", []) => post(delivery, "", &format!("{titles}\n{}", version())),
        ("target", []) => post(delivery, "/elsewhere", &titles),
        ("steps", []) => post(delivery, "", &titles),
        ("steps", [first]) if is_accepted(first) => post(delivery, "/second", &titles),
        ("rejects", _) => failed(FailureKind::Reject, "this version rejects"),
        ("retries", _) => failed(FailureKind::Retry, "this version retries"),
        ("traps", _) => std::process::abort(),
        ("traps-after", []) => post(delivery, "", &titles),
        ("traps-after", _) => std::process::abort(),
        ("loops", _) => spin(),
        ("hogs", _) => hog(),
        ("endless", _) => post(delivery, "", &titles),
        ("invalid", _) => Action::Done(Receipt { extras: "nothing".into(), ..receipt() }),
        ("waits", [] | [_]) => wait(delivery, past.first(), &titles),
        ("remembers", []) => {
            let memory = delivery.memory.as_deref().unwrap_or("nothing");
            post(delivery, "", &format!("{titles}\n{} remembers {memory}", version()))
        }
        ("fickle", []) => post(delivery, "", &format!("{titles}\n{}", RandomState::new().hash_one(1))),
        (_, past) => judge(behaviour, past.last()),
    }
}

/// Never returns.
pub(crate) fn spin() -> ! {
    loop {
        black_box(());
    }
}

/// Where settings lead.
pub(crate) fn url(settings: &str) -> Option<String> {
    Some(setting(settings, "url")?.as_str()?.to_owned())
}

fn setting(settings: &str, key: &str) -> Option<Value> {
    serde_json::from_str::<Value>(settings).ok()?.get_mut(key).map(Value::take)
}

fn titles(delivery: &Delivery) -> String {
    let titles = delivery.notifications.iter().map(|notification| notification.title.as_str());
    titles.collect::<Vec<_>>().join("\n")
}

/// Asks once, waits, and asks again with what the version before the wait left.
fn wait(delivery: &Delivery, first: Option<&Effect>, titles: &str) -> Action {
    let seconds = setting(&delivery.settings, "wait").and_then(|wait| wait.as_u64()?.try_into().ok());
    let resume = format!(r#"{{"version":"{}"}}"#, version());
    match first.map(|effect| &effect.answer) {
        None => post(delivery, "", titles),
        Some(Answer::Resumed(resume)) => {
            let resume = resume.as_deref().unwrap_or("nothing");
            post(delivery, "/after", &format!("{titles}\n{} resumes {resume}", version()))
        }
        Some(_) => Action::Wait(Pause { seconds: seconds.unwrap_or(1), resume: Some(resume) }),
    }
}

fn hog() -> ! {
    let mut blocks = Vec::new();
    loop {
        blocks.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn post(delivery: &Delivery, path: &str, body: &str) -> Action {
    Action::Http(Request {
        method: "POST".into(),
        url: url(&delivery.settings).unwrap_or_default() + path,
        headers: vec![("idempotency-key".into(), delivery.id.clone())],
        body: body.into(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    })
}

fn is_accepted(effect: &Effect) -> bool {
    matches!(&effect.answer, Answer::Http(Ok(Response { status: 200..300, .. })))
}

/// What the last answer means.
fn judge(behaviour: &str, last: Option<&Effect>) -> Action {
    let remember = (behaviour == "remembers").then(|| format!(r#"{{"version":"{}"}}"#, version()));
    match last.map(|effect| &effect.answer) {
        None => failed(FailureKind::Reject, &format!("no such behaviour: {behaviour}")),
        Some(Answer::Http(Ok(Response { status: 200..300, .. }))) => Action::Done(Receipt { remember, ..receipt() }),
        Some(Answer::Http(Ok(Response { status: status @ (429 | 500..), .. }))) => {
            failed(FailureKind::Retry, &format!("HTTP {status}"))
        }
        Some(Answer::Http(Ok(Response { status, .. }))) => failed(FailureKind::Reject, &format!("HTTP {status}")),
        Some(Answer::Http(Err(fault))) if fault.reach == Reach::Unsent => failed(FailureKind::Retry, &fault.message),
        Some(Answer::Http(Err(fault))) if fault.reach == Reach::Denied => failed(FailureKind::Reject, &fault.message),
        Some(_) => failed(FailureKind::Unknown, "no answer"),
    }
}

fn receipt() -> Receipt {
    Receipt { reference: None, note: None, remember: None, extras: "{}".into() }
}

fn failed(kind: FailureKind, reason: &str) -> Action {
    Action::Failed(Failure { kind, reason: reason.into(), after_seconds: None, resume: None, extras: "{}".into() })
}
