//! The one request of an attempt.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::outcome;
use switchbell_kit::secret::is_placeholder;
use switchbell_kit::types::{Action, Delivery, FailureKind, Request};

use crate::message;
use crate::settings::Target;

/// How long to wait for Slack, in milliseconds. It answers well within a second; an answer given up on is a message
/// that may be posted twice.
const TIMEOUT_MS: u32 = 30_000;

/// Posts the delivery's message.
pub(crate) fn first(target: &Target, delivery: &Delivery) -> Action {
    if delivery.notifications.is_empty() {
        return outcome::failed(FailureKind::Reject, "the delivery holds no notification", None);
    }
    let mut headers = vec![header("content-type", "application/json; charset=utf-8")];
    let (url, channel) = match target {
        Target::Webhook { url } => (url.clone(), None),
        Target::Channel { token, channel, api } => {
            headers.push(header("authorization", &authorization(token)));
            (format!("{api}/chat.postMessage"), Some(channel.as_str()))
        }
    };
    match message::render(channel, delivery) {
        Ok(body) => Action::Http(post(url, headers, body)),
        Err(error) => outcome::failed(FailureKind::Reject, &format!("the message cannot be written: {error}"), None),
    }
}

/// The header's value. For a placeholder the host composes it, `Bearer` and all, by the secret's rule.
fn authorization(token: &str) -> String {
    if is_placeholder(token) { token.to_owned() } else { format!("Bearer {token}") }
}

fn header(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn post(url: String, headers: Vec<(String, String)>, body: Vec<u8>) -> Request {
    Request {
        method: "POST".to_owned(),
        url,
        headers,
        body,
        sign: vec![],
        timeout_ms: Some(TIMEOUT_MS),
        response_max: None,
        extras: "{}".to_owned(),
    }
}
