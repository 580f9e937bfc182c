//! What an answer means that is no good one.
//!
//! A run is harmful to repeat, so the one question is whether one may have begun. What is refused before anything
//! happens may be tried again or mended; where that is not certain, the outcome is unknown and a person decides.

use alloc::format;
use alloc::string::String;

use switchbell_kit::text;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{FailureKind, Fault, Reach, Response};

use crate::json::Value;

/// How much of an answer nobody knows is quoted, in characters.
const QUOTE_MAX: usize = 200;

/// Codes of an account that has no more money, which some APIs answer as if it were a limit of pace.
const UNPAID: [&str; 3] = ["insufficient_quota", "billing_error", "billing_hard_limit_reached"];

/// A complete answer, and its body as text without the key.
pub(crate) struct Reply<'a> {
    pub(crate) response: &'a Response,
    pub(crate) body: String,
}

impl Reply<'_> {
    pub(crate) fn value(&self) -> Value<'_> {
        Value::new(&self.body)
    }

    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.response.status)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.response.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }

    /// How long the API asks to wait, in whole seconds. A date is left to the host's own back-off.
    pub(crate) fn after_seconds(&self) -> Option<u32> {
        let milliseconds = self.header("retry-after-ms").and_then(|value| value.parse::<u64>().ok());
        let seconds = self.header("retry-after").and_then(|value| value.parse::<u64>().ok());
        let seconds = milliseconds.map(|milliseconds| milliseconds.div_ceil(1_000)).or(seconds)?;
        u32::try_from(seconds).ok().or(Some(u32::MAX)).filter(|seconds| *seconds > 0)
    }

    /// Whether the API itself says that asking again is safe.
    fn says_again(&self) -> bool {
        self.header("x-should-retry") == Some("true")
    }

    /// The API's own words for what is wrong, if it has any.
    fn error(&self) -> Option<String> {
        let value = self.value();
        let error = value.get("error").unwrap_or(value);
        let message = ["message", "detail", "error_description"].iter().find_map(|name| error.text_at(&[name]));
        let message = message.or_else(|| error.text())?;
        let code = ["code", "type"].iter().find_map(|name| error.text_at(&[name])).filter(|code| code != "error");
        Some(code.map_or_else(|| message.clone(), |code| format!("{code}: {message}")))
    }

    /// Its words, or the start of whoever's.
    pub(crate) fn quote(&self) -> String {
        let status = self.response.status;
        let body = text::cut(&text::one_line(&self.body), QUOTE_MAX);
        match self.error() {
            Some(error) => format!("{} (HTTP {status})", text::one_line(&error)),
            None if body.is_empty() => format!("HTTP {status} without a body"),
            None => format!("HTTP {status}: {body}"),
        }
    }

    fn is_unpaid(&self) -> bool {
        let error = self.value().get("error");
        let is =
            |name: &str| error.and_then(|error| error.text_at(&[name])).is_some_and(|word| UNPAID.contains(&&*word));
        self.response.status == 402 || is("code") || is("type")
    }
}

/// Why there is no run, or none that is known of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: FailureKind,
    pub(crate) reason: String,
    pub(crate) after_seconds: Option<u32>,
    /// Whether the agent no longer knows a run that had begun.
    pub(crate) is_gone: bool,
}

impl Refusal {
    pub(crate) fn new(kind: FailureKind, reason: String) -> Self {
        Self { kind, reason, after_seconds: None, is_gone: false }
    }

    /// What was to begin a run was answered so.
    pub(crate) fn of_start(reply: &Reply<'_>) -> Self {
        let quote = reply.quote();
        let (kind, reason) = match reply.response.status {
            _ if by_account(reply).is_some() => (Reconnect, by_account(reply).unwrap_or_default()),
            408 | 425 | 429 | 529 => (Retry, format!("the agent asks to wait: {quote}")),
            409 | 500..=599 if reply.says_again() => (Retry, format!("the agent failed: {quote}")),
            // The API itself says that it took nothing; a gateway may say the same of an answer that it lost.
            503 if reply.after_seconds().is_some() || reply.error().is_some() => {
                (Retry, format!("the agent is not available: {quote}"))
            }
            300..=399 => (Reject, format!("the URL redirects, and no redirect is followed: {quote}")),
            409 | 500..=599 => (Unknown, format!("a run may have begun: {quote}")),
            400..=499 => (Reject, format!("the agent refused: {quote}")),
            _ => (Unknown, format!("not an answer of an agent, so a run may have begun: {quote}")),
        };
        Self { after_seconds: reply.after_seconds(), ..Self::new(kind, reason) }
    }

    /// The question for a run was answered so. Asking again is harmless.
    pub(crate) fn of_poll(reply: &Reply<'_>, id: &str) -> Self {
        let quote = reply.quote();
        let status = reply.response.status;
        let (kind, reason) = match status {
            _ if by_account(reply).is_some() => (Reconnect, by_account(reply).unwrap_or_default()),
            404 | 410 => return Self::gone(id, &quote),
            408 | 409 | 425 | 429 | 500..=599 => (Retry, format!("run {id} cannot be asked for now: {quote}")),
            _ => (Unknown, format!("run {id} was begun but cannot be asked for: {quote}")),
        };
        Self { after_seconds: reply.after_seconds(), ..Self::new(kind, reason) }
    }

    /// The agent no longer knows a run that had begun.
    pub(crate) fn gone(id: &str, quote: &str) -> Self {
        let reason = format!("run {id} was begun, and the agent no longer knows it: {quote}");
        Self { is_gone: true, ..Self::new(Unknown, reason) }
    }

    /// What was to begin a run brought no complete answer.
    pub(crate) fn of_start_fault(fault: &Fault) -> Self {
        let kind = match fault.reach {
            Reach::Denied if fault.code == "token-refused" => Reconnect,
            Reach::Denied => Reject,
            Reach::Unsent | Reach::Refused => Retry,
            Reach::Unanswered => Unknown,
        };
        Self { after_seconds: fault.after_seconds, ..Self::new(kind, said(fault)) }
    }

    /// The question for a run brought no complete answer. What the guard denies, a person can allow again; the run is
    /// there still.
    pub(crate) fn of_poll_fault(fault: &Fault) -> Self {
        let kind = if fault.reach == Reach::Denied { Reconnect } else { Retry };
        Self { after_seconds: fault.after_seconds, ..Self::new(kind, said(fault)) }
    }
}

/// What a person must mend, whatever was asked.
fn by_account(reply: &Reply<'_>) -> Option<String> {
    let remedy = match reply.response.status {
        _ if reply.is_unpaid() => "the account has no more money: see to its billing",
        401 => "the key is not accepted: put a good one into the secret",
        403 => "the key may not do this: give it the permission, or use another",
        _ => return None,
    };
    Some(format!("{remedy}: {}", reply.quote()))
}

/// The host's words.
pub(crate) fn said(fault: &Fault) -> String {
    if fault.message.is_empty() { fault.code.clone() } else { fault.message.clone() }
}
