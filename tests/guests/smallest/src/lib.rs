wit_bindgen::generate!({ world: "delivery-plugin" });
use exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use switchbell::delivery::types::{Answer, Failure, FailureKind, FailureKind::*, Reach, Receipt, Request, Response};

struct Smallest;
export!(Smallest);
impl Guest for Smallest {
    fn describe() -> String {
        r#"{"name": "smallest", "version": "0.1.0", "summary": "Posts titles to a URL"}"#.into()
    }
    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        url(&settings).ok_or(vec![Problem { path: "".into(), message: "write `url: { secret: NAME }`".into() }])?;
        Ok(Destination { label: "a URL".into(), lanes: vec![], extras: "{}".into() })
    }
    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        match past.last().map(|effect| &effect.answer) {
            None => Action::Http(request(&delivery)),
            Some(Answer::Http(Ok(Response { status: 200..300, .. }))) => done(),
            Some(Answer::Http(Ok(Response { status: status @ (429 | 500..), .. }))) => failed(Retry, status),
            Some(Answer::Http(Ok(Response { status, .. }))) => failed(Reject, status),
            Some(Answer::Http(Err(fault))) if fault.reach == Reach::Unsent => failed(Retry, &fault.message),
            Some(Answer::Http(Err(fault))) if fault.reach == Reach::Denied => failed(Reject, &fault.message),
            _ => failed(Unknown, "no answer"),
        }
    }
}
fn url(settings: &str) -> Option<String> {
    Some(serde_json::from_str::<serde_json::Value>(settings).ok()?.get("url")?.as_str()?.into())
}
fn request(delivery: &Delivery) -> Request {
    Request {
        method: "POST".into(),
        url: url(&delivery.settings).unwrap_or_default(),
        headers: vec![("idempotency-key".into(), delivery.id.clone())],
        body: delivery.notifications[0].title.clone().into_bytes(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}
fn done() -> Action {
    Action::Done(Receipt { reference: None, note: None, remember: None, extras: "{}".into() })
}
fn failed(kind: FailureKind, why: impl ToString) -> Action {
    let reason = why.to_string();
    Action::Failed(Failure { kind, reason, after_seconds: None, resume: None, extras: "{}".into() })
}
