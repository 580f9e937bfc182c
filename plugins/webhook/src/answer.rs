//! What the endpoint's answer means for the delivery.
//!
//! Only 2xx is success. What a person has to mend (a credential, an address that is gone) blocks the delivery, so that it
//! goes on when that is done; what the endpoint has against this one delivery ends it; the rest is repeated, which is
//! harmless: a receiver knows the delivery by its id.

use alloc::format;
use alloc::string::String;

use switchbell_kit::types::{Action, Answer, Effect, FailureKind, Fault, Response};
use switchbell_kit::{http, outcome, text};

use crate::settings::Target;

/// How much of an answer is quoted, in characters.
const QUOTE_MAX: usize = 200;

/// Ends the attempt by what came of its request.
pub(crate) fn outcome(target: &Target, effect: &Effect) -> Action {
    match &effect.answer {
        Answer::Http(Ok(Response { status: 200..=299, .. })) => outcome::done(None),
        Answer::Http(Ok(response)) => refused(target, response, &effect.at),
        Answer::Http(Err(fault)) => {
            let message = without_credentials(target, &fault.message);
            outcome::fault(&Fault { message, code: fault.code.clone(), ..*fault })
        }
        _ => outcome::failed(FailureKind::Reject, "the host answered an HTTP request with something else", None),
    }
}

fn refused(target: &Target, response: &Response, at: &str) -> Action {
    let (kind, remedy) = by_status(response.status);
    let quote = quote(target, response);
    let reason = if remedy.is_empty() { quote } else { format!("{quote}: {remedy}") };
    let after = if kind == FailureKind::Retry { http::retry_after(response, at) } else { None };
    outcome::failed(kind, &reason, after)
}

fn by_status(status: u16) -> (FailureKind, &'static str) {
    match status {
        300..=399 => (FailureKind::Reject, "no redirect is followed: put the final URL into the settings"),
        401 | 407 => (FailureKind::Reconnect, "it does not accept the credential or the signature: mend its secret"),
        403 => (FailureKind::Reconnect, "it does not allow this: mend the credential, or ask who runs the endpoint"),
        404 | 405 => (FailureKind::Reconnect, "nothing takes deliveries there: mend the URL"),
        410 => (FailureKind::Reconnect, "the endpoint was taken away: remove the target, or give it another URL"),
        408 | 425 | 429 => (FailureKind::Retry, ""),
        400..=499 => (FailureKind::Reject, ""),
        500..=599 => (FailureKind::Retry, ""),
        _ => (FailureKind::Unknown, "not an answer of HTTP's"),
    }
}

/// The endpoint's own words.
fn quote(target: &Target, response: &Response) -> String {
    let body = without_credentials(target, &String::from_utf8_lossy(&response.body));
    let words = text::cut(&text::one_line(&body), QUOTE_MAX);
    if words.is_empty() { format!("HTTP {}", response.status) } else { format!("HTTP {}: {words}", response.status) }
}

/// Credentials written out in the settings must not reach the delivery's history by an echo. They are taken out before
/// anything is cut: a part of one is still a part of it.
fn without_credentials(target: &Target, text: &str) -> String {
    target.credentials().into_iter().fold(text.into(), |text: String, credential| text.replace(credential, "[hidden]"))
}
