//! What Slack's answer means for the delivery.
//!
//! An incoming webhook answers a word in plain text, the Web API a JSON object with HTTP 200 even when it refuses. The
//! same words come with different status codes over the years, so a known word decides first, and the status only
//! where there is none.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use serde_json::Value;
use switchbell_kit::types::{Action, Answer, FailureKind, Response};
use switchbell_kit::{outcome, text};

use crate::settings::Target;

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
pub(crate) fn outcome(target: &Target, answer: &Answer) -> Action {
    let mut action = match answer {
        Answer::Http(Ok(response)) => read(target, response),
        Answer::Http(Err(fault)) => outcome::fault(fault),
        _ => outcome::failed(FailureKind::Reject, "the host answered an HTTP request with something else", None),
    };
    if let Action::Failed(failure) = &mut action {
        hide_credential(target, &mut failure.reason);
    }
    action
}

/// A credential written out in the settings must not reach the delivery's history by an echo.
fn hide_credential(target: &Target, reason: &mut String) {
    if let Some(credential) = target.credential() {
        *reason = reason.replace(credential, "[hidden]");
    }
}

fn read(target: &Target, response: &Response) -> Action {
    let reply = Reply::of(response);
    match target {
        Target::Webhook { .. } if response.status == 200 && reply.body == "ok" => outcome::done(None),
        Target::Channel { .. } if response.status == 200 && reply.ok == Some(true) => outcome::done(reply.reference),
        _ => failed(&reply),
    }
}

/// What a response says.
struct Reply {
    status: u16,
    /// The body as text, on one line.
    body: String,
    /// The API's `ok`.
    ok: Option<bool>,
    /// Slack's word for what went wrong.
    word: Option<String>,
    /// Where a message was posted: its channel and timestamp.
    reference: Option<String>,
    /// How long Slack asked to wait, in seconds.
    after_seconds: Option<u32>,
}

impl Reply {
    fn of(response: &Response) -> Self {
        let body = text::one_line(&String::from_utf8_lossy(&response.body));
        let fields: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let field = |name: &str| fields.get(name).and_then(Value::as_str);
        let word = field("error").unwrap_or(&body);
        Self {
            status: response.status,
            ok: fields.get("ok").and_then(Value::as_bool).or_else(|| said_ok_before_the_cut(response)),
            word: is_word(word).then(|| word.to_owned()),
            reference: field("channel").zip(field("ts")).map(|(channel, ts)| format!("{channel}:{ts}")),
            after_seconds: retry_after(response).or_else(|| seconds(fields.get("retry_after")?)),
            body,
        }
    }

    /// Slack's own words, or the start of whoever's.
    fn quote(&self) -> String {
        match &self.word {
            Some(word) => format!("{word} (HTTP {})", self.status),
            None if self.body.is_empty() => format!("HTTP {} without a body", self.status),
            None => format!("HTTP {}: {}", self.status, text::cut(&self.body, QUOTE_MAX)),
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

/// The `Retry-After` header. Slack writes whole seconds; a date is left to the host's own back-off.
fn retry_after(response: &Response) -> Option<u32> {
    let (_, value) = response.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("retry-after"))?;
    value.trim().parse().ok().filter(|seconds| *seconds > 0)
}

/// A number of seconds in JSON, rounded up.
fn seconds(value: &Value) -> Option<u32> {
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0)?;
    // A float becomes the nearest value there is, so that nothing overflows.
    let whole = seconds as u32;
    Some(if f64::from(whole) < seconds { whole.saturating_add(1) } else { whole })
}
