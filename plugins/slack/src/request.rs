//! The request of an attempt.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use switchbell_kit::http::{self, header};
use switchbell_kit::outcome;
use switchbell_kit::secret::is_placeholder;
use switchbell_kit::types::{Action, Delivery, FailureKind};

use crate::message;
use crate::settings::Target;

/// How long to wait for Slack, in milliseconds. It answers well within a second; an answer given up on is a message
/// that may be posted twice.
const TIMEOUT_MS: u32 = 30_000;

/// Posts the delivery's message; with `thread_ts` as a reply in that thread.
#[inline(never)]
pub(crate) fn post(target: &Target, delivery: &Delivery, thread_ts: Option<&str>) -> Action {
    if delivery.notifications.is_empty() {
        return outcome::failed(FailureKind::Reject, "the delivery holds no notification", None);
    }
    let mut headers = vec![header("content-type", "application/json; charset=utf-8")];
    let (url, channel) = match target {
        Target::Webhook { url } => (url.clone(), None),
        Target::Channel { token, channel, api, .. } => {
            headers.push(header("authorization", &authorization(token)));
            (format!("{api}/chat.postMessage"), Some(channel.as_str()))
        }
    };
    match message::render(channel, thread_ts, delivery) {
        Ok(body) => Action::Http(http::post(url, headers, body, TIMEOUT_MS)),
        Err(error) => outcome::failed(FailureKind::Reject, &format!("the message cannot be written: {error}"), None),
    }
}

/// The header's value. For a placeholder the host composes it, `Bearer` and all, by the secret's rule.
fn authorization(token: &str) -> String {
    if is_placeholder(token) { token.to_owned() } else { format!("Bearer {token}") }
}
