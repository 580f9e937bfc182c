wit_bindgen::generate!({ world: "delivery-plugin" });
use exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use switchbell::delivery::types::{Answer, Failure, FailureKind, Reach, Receipt, Request};

struct Smallest;
export!(Smallest);

impl Guest for Smallest {
    fn describe() -> String {
        r#"{"name": "smallest", "version": "0.1.0", "summary": "Posts titles to a URL"}"#.into()
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        let wrong = || vec![Problem { path: String::new(), message: "write `url: { secret: NAME }`".into() }];
        url(&settings).ok_or_else(wrong)?;
        Ok(Destination { label: "a URL".into(), lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let (kind, reason) = match past.last().map(|effect| &effect.answer) {
            None => return Action::Http(request(&delivery)),
            Some(Answer::Http(Ok(response))) => match response.status {
                200..300 => {
                    return Action::Done(Receipt { reference: None, note: None, remember: None, extras: "{}".into() });
                }
                status @ (429 | 500..) => (FailureKind::Retry, format!("HTTP {status}")),
                status => (FailureKind::Reject, format!("HTTP {status}")),
            },
            Some(Answer::Http(Err(fault))) => match fault.reach {
                Reach::Denied | Reach::Refused => (FailureKind::Reject, fault.message.clone()),
                Reach::Unsent => (FailureKind::Retry, fault.message.clone()),
                Reach::Unanswered => (FailureKind::Unknown, fault.message.clone()),
            },
            Some(_) => (FailureKind::Reject, "an answer to something else".into()),
        };
        Action::Failed(Failure { kind, reason, after_seconds: None, resume: None, extras: "{}".into() })
    }
}

fn url(settings: &str) -> Option<String> {
    Some(serde_json::from_str::<serde_json::Value>(settings).ok()?.get("url")?.as_str()?.into())
}

fn request(delivery: &Delivery) -> Request {
    let titles: Vec<&str> = delivery.notifications.iter().map(|one| one.title.as_str()).collect();
    Request {
        method: "POST".into(),
        url: url(&delivery.settings).unwrap_or_default(),
        headers: vec![("idempotency-key".into(), delivery.id.clone())],
        body: titles.join("\n").into_bytes(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}
