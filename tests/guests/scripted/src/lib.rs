//! A plugin whose settings say, step by step, what it asks for: one JSON string of words between bars, the first for the
//! first step. The last word stands for all steps after it, too.

mod bindings;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::{
    Answer, Extension, Failure, FailureKind, Message, Pause, Receipt, Request, ToolCall,
};

struct Scripted;

impl Guest for Scripted {
    fn describe() -> String {
        r#"{"name":"scripted","version":"1.0.0"}"#.into()
    }

    fn check(_settings: String) -> Result<Destination, Vec<Problem>> {
        Ok(Destination { label: "the script".into(), lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let script = delivery.settings.trim_matches('"');
        let words: Vec<&str> = script.split('|').collect();
        let word = words.get(past.len()).or(words.last()).copied().unwrap_or_default();
        act(word, &delivery, &past)
    }
}

fn act(word: &str, delivery: &Delivery, past: &[Effect]) -> Action {
    match word.split_once(' ').unwrap_or((word, "")) {
        ("post", url) => Action::Http(request(url)),
        ("mail", _) => Action::Mail(Message {
            to: vec!["ops@example.com".into()],
            subject: "s".into(),
            text: "t".into(),
            thread: None,
            extras: "{}".into(),
        }),
        ("tool", _) => Action::Tool(ToolCall {
            connector: "registrar".into(),
            tool: "restart".into(),
            arguments: "{}".into(),
            timeout_ms: None,
            extras: "{}".into(),
        }),
        ("other", kind) => Action::Other(Extension { kind: kind.into(), payload: "{}".into() }),
        ("wait", _) => Action::Wait(Pause { seconds: 1, resume: None }),
        ("trap", _) => std::process::abort(),
        ("report", _) => failed(FailureKind::Reject, &past.last().map_or_else(String::new, told)),
        ("retry", reason) => failed(FailureKind::Retry, reason),
        ("reject", reason) => failed(FailureKind::Reject, reason),
        ("reconnect", reason) => failed(FailureKind::Reconnect, reason),
        ("unknown", reason) => failed(FailureKind::Unknown, reason),
        ("cause", _) => done(&format!("{} {} {}", delivery.cause, delivery.attempt, delivery.id)),
        _ => done(word),
    }
}

fn request(url: &str) -> Request {
    Request {
        method: "POST".into(),
        url: url.into(),
        headers: vec![],
        body: b"{}".to_vec(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}

fn done(note: &str) -> Action {
    Action::Done(Receipt { reference: None, note: Some(note.into()), remember: None, extras: "{}".into() })
}

fn failed(kind: FailureKind, reason: &str) -> Action {
    Action::Failed(Failure { kind, reason: reason.into(), after_seconds: Some(7), resume: None, extras: "{}".into() })
}

fn told(effect: &Effect) -> String {
    match &effect.answer {
        Answer::Http(Ok(response)) => {
            format!("{} {:?} {}", response.status, response.headers, String::from_utf8_lossy(&response.body))
        }
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Tool(Err(fault)) | Answer::Other(Err(fault)) => {
            format!("{:?} {}: {}", fault.reach, fault.code, fault.message)
        }
        other => format!("{other:?}"),
    }
}
