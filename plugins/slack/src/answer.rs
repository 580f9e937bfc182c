//! What Slack's answer means for the delivery.
//!
//! An incoming webhook answers a word in plain text, the Web API a JSON object with HTTP 200 even when it refuses. The
//! same words come with different status codes over the years, so a known word decides first, and the status only
//! where there is none.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use switchbell_kit::fields::{Field, Fields};
use switchbell_kit::types::{Action, Answer, Effect, FailureKind, Fault, Receipt, Response};
use switchbell_kit::{http, outcome, text};

use crate::settings::Target;
use crate::thread::Thread;

/// How much of an answer nobody knows is quoted, in characters.
const QUOTE_MAX: usize = 200;

/// The longest word of Slack's, in characters; anything longer is a text of somebody else's.
const WORD_MAX: usize = 80;

/// Words that mean: later.
const LATER: &[&str] = &[
    "ratelimited",
    "rate_limited",
    "message_limit_exceeded",
    "rollup_error",
    "team_added_to_org",
    "org_login_required",
];

/// Words that mean: it may have happened. The API's documentation says of the first two that some aspect of the
/// operation may have succeeded.
const AMBIGUOUS: &[&str] = &["internal_error", "fatal_error", "service_unavailable", "request_timeout"];

/// Words that mean: never, not this message.
const NEVER: &[&str] = &[
    "invalid_payload",
    "no_text",
    "too_many_attachments",
    "invalid_blocks",
    "invalid_blocks_format",
    "msg_too_long",
    "msg_blocks_too_long",
];

/// Words that mean that a person must mend something, by what that is.
const RECONNECT: &[(&[&str], &str)] = &[
    (
        &["no_service", "no_service_id", "no_active_hooks", "invalid_token"],
        "the webhook is gone or disabled: make a new one and put its URL into the secret",
    ),
    (
        &[
            "not_authed",
            "invalid_auth",
            "account_inactive",
            "token_revoked",
            "token_expired",
            "not_allowed_token_type",
            "two_factor_setup_required",
        ],
        "the token no longer works: install the app again and put its token into the secret",
    ),
    (
        &["missing_scope", "no_permission", "access_denied", "accesslimited", "team_access_not_granted"],
        "the app lacks a permission: add the scope chat:write and install it again",
    ),
    (
        &["channel_not_found", "not_in_channel", "user_not_found", "messages_tab_disabled"],
        "the channel is not there or the app is not in it: invite the app, or name another channel",
    ),
    (&["channel_is_archived", "is_archived"], "the channel is archived: choose another"),
    (
        &["no_team", "team_not_found", "team_disabled", "ekm_access_denied", "enterprise_is_restricted"],
        "the Slack workspace does not take messages: ask its admins",
    ),
    (
        &["posting_to_general_channel_denied", "action_prohibited"],
        "the Slack workspace's admins do not allow posting there",
    ),
];

/// How words begin that mean that admins of the Slack workspace restricted posting.
const RESTRICTED: &str = "restricted_action";

/// Ends the attempt by what came of its request.
#[inline(never)]
pub(crate) fn outcome(target: &Target, effect: &Effect, thread: &Thread<'_>) -> Action {
    match &effect.answer {
        Answer::Http(Ok(response)) => read(target, response, &effect.at, thread),
        Answer::Http(Err(fault)) => {
            let message = without_credential(target, &fault.message);
            outcome::fault(&Fault { message, code: fault.code.clone(), ..*fault })
        }
        _ => outcome::failed(FailureKind::Reject, "the host answered an HTTP request with something else", None),
    }
}

/// A credential written out in the settings must not reach the delivery's history by an echo. It is taken out before
/// anything is cut: a part of it is still a part of a credential.
fn without_credential(target: &Target, text: &str) -> String {
    target.credential().map_or_else(|| text.to_owned(), |credential| text.replace(credential, "[hidden]"))
}

/// The fields of an answer: its own, and those of the message that it echoes.
#[inline(never)]
pub(crate) fn fields(response: &Response) -> Fields {
    Fields::read(&response.body, 2).unwrap_or_default()
}

fn read(target: &Target, response: &Response, at: &str, thread: &Thread<'_>) -> Action {
    let fields = fields(response);
    let ok = match fields.get("ok") {
        Some(Field::Bool(ok)) => Some(*ok),
        _ => said_ok_before_the_cut(response),
    };
    match target {
        Target::Webhook { .. } if response.status == 200 && response.body.trim_ascii() == b"ok" => outcome::done(None),
        Target::Channel { .. } if response.status == 200 && ok == Some(true) => {
            let remember = thread.to_remember(&fields);
            Action::Done(Receipt { remember, ..outcome::receipt(reference(&fields)) })
        }
        _ => failed(&Reply::new(target, response, at, &fields, ok)),
    }
}

/// Where a message was posted: its channel and timestamp.
fn reference(fields: &Fields) -> Option<String> {
    let (channel, timestamp) = fields.text("channel").zip(fields.text("ts"))?;
    Some(format!("{channel}:{timestamp}"))
}

/// What a refusal says.
struct Reply {
    status: u16,
    /// The body's beginning as text, on one line.
    body: String,
    /// The API's `ok`.
    ok: Option<bool>,
    /// Slack's word for what went wrong.
    word: Option<String>,
    /// How long Slack asked to wait, in seconds.
    after_seconds: Option<u32>,
}

impl Reply {
    fn new(target: &Target, response: &Response, at: &str, fields: &Fields, ok: Option<bool>) -> Self {
        let body = without_credential(target, &String::from_utf8_lossy(&response.body));
        let body = text::cut(&text::one_line(&body), QUOTE_MAX);
        let word = fields.text("error").unwrap_or(&body);
        Self {
            status: response.status,
            ok,
            word: is_word(word).then(|| word.to_owned()),
            after_seconds: http::retry_after(response, at).or_else(|| seconds(fields.get("retry_after")?)),
            body,
        }
    }

    /// Slack's own words, or the start of whoever's.
    fn quote(&self) -> String {
        match &self.word {
            Some(word) => format!("{word} (HTTP {})", self.status),
            None if self.body.is_empty() => format!("HTTP {} without a body", self.status),
            None => format!("HTTP {}: {}", self.status, self.body),
        }
    }
}

/// The API echoes the whole message after `ok`, so a long answer may be cut before it is complete.
fn said_ok_before_the_cut(response: &Response) -> Option<bool> {
    (response.truncated && response.body.starts_with(br#"{"ok":true,"#)).then_some(true)
}

fn is_word(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !text.is_empty() && text.len() <= WORD_MAX && text.bytes().all(plain)
}

fn failed(reply: &Reply) -> Action {
    let quote = reply.quote();
    let (kind, reason) = match reply.word.as_deref().and_then(by_word) {
        Some((kind, "")) => (kind, format!("Slack said {quote}")),
        Some((kind, remedy)) => (kind, format!("Slack said {quote}: {remedy}")),
        None => by_status(reply, &quote),
    };
    let kind = if reply.status == 429 { FailureKind::Retry } else { kind };
    outcome::failed(kind, &reason, reply.after_seconds)
}

/// What a known word means, and what to do about it.
fn by_word(word: &str) -> Option<(FailureKind, &'static str)> {
    if LATER.contains(&word) {
        return Some((FailureKind::Retry, ""));
    }
    if NEVER.contains(&word) {
        return Some((FailureKind::Reject, ""));
    }
    if AMBIGUOUS.contains(&word) {
        return Some((FailureKind::Unknown, ""));
    }
    if word.starts_with(RESTRICTED) {
        return Some((FailureKind::Reconnect, "the Slack workspace's admins do not allow posting there"));
    }
    let (_, remedy) = RECONNECT.iter().find(|(words, _)| words.contains(&word))?;
    Some((FailureKind::Reconnect, remedy))
}

/// What an answer without a known word means.
fn by_status(reply: &Reply, quote: &str) -> (FailureKind, String) {
    match reply.status {
        // The API refuses with HTTP 200; a new word of its is still a refusal.
        200..=299 if reply.ok == Some(false) => (FailureKind::Reject, format!("Slack said {quote}")),
        // Something between here and Slack may have answered in its place, or Slack differently than it documents.
        200..=299 => (FailureKind::Unknown, format!("not an answer of Slack's: {quote}")),
        300..=399 => {
            let remedy = "no redirect is followed: put the final URL into the settings";
            (FailureKind::Reject, format!("the URL redirects (HTTP {}); {remedy}", reply.status))
        }
        408 | 429 => (FailureKind::Retry, format!("Slack asks to wait: {quote}")),
        400..=499 => (FailureKind::Reject, format!("Slack said {quote}")),
        // A gateway that got no good answer cannot say whether Slack took the message.
        502 | 504 => (FailureKind::Unknown, format!("a gateway lost Slack's answer: {quote}")),
        500..=599 => (FailureKind::Retry, format!("Slack failed: {quote}")),
        _ => (FailureKind::Unknown, format!("not an answer of Slack's: {quote}")),
    }
}

/// A number of seconds in JSON, rounded up.
fn seconds(field: &Field) -> Option<u32> {
    let Field::Number(seconds) = *field else { return None };
    if seconds <= 0.0 {
        return None;
    }
    // A float becomes the nearest value there is, so that nothing overflows.
    let whole = seconds as u32;
    Some(if f64::from(whole) < seconds { whole.saturating_add(1) } else { whole })
}
