//! The actions that all behaviours are made of.

use crate::bindings::switchbell::delivery::types::{
    Action, Answer, Effect, Failure, FailureKind, Fault, Reach, Receipt, Request,
};

pub(crate) fn request(url: &str) -> Request {
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

pub(crate) fn receipt(note: &str) -> Receipt {
    Receipt { reference: None, note: Some(note.into()), remember: None, extras: "{}".into() }
}

pub(crate) fn done(note: &str) -> Action {
    Action::Done(receipt(note))
}

pub(crate) fn failure(reason: &str) -> Failure {
    let kind = FailureKind::Reject;
    Failure { kind, reason: reason.into(), after_seconds: None, resume: None, extras: "{}".into() }
}

pub(crate) fn rejected(reason: &str) -> Action {
    Action::Failed(failure(reason))
}

/// The reason that says what the last effect brought.
pub(crate) fn reported(past: &[Effect]) -> Action {
    rejected(&past.last().map_or_else(|| "nothing came".to_owned(), |effect| told(&effect.answer)))
}

fn told(answer: &Answer) -> String {
    match answer {
        Answer::Http(Ok(response)) => format!("{} {}", response.status, String::from_utf8_lossy(&response.body)),
        Answer::Http(Err(fault)) | Answer::Mail(Err(fault)) | Answer::Tool(Err(fault)) | Answer::Other(Err(fault)) => {
            told_of(fault)
        }
        other => format!("{other:?}"),
    }
}

fn told_of(fault: &Fault) -> String {
    let reach = match fault.reach {
        Reach::Denied => "denied",
        Reach::Unsent => "unsent",
        Reach::Refused => "refused",
        Reach::Unanswered => "unanswered",
    };
    format!("{reach} {}: {}", fault.code, fault.message)
}
