//! The errors of the protocol's library, told in our words.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::seen::Stray;
use super::{MESSAGE_BYTES_MAX, words};
use crate::clock::{Clock, until};
use crate::fetch::outbox::ReadError;

/// Tells errors, without what the server was trusted with.
#[derive(Clone)]
pub(super) struct Faults {
    hidden: Arc<Vec<String>>,
    /// Tokens that were fetched; the last few.
    tokens: Arc<Mutex<VecDeque<String>>>,
    clock: Clock,
}

/// Shortest secret that is masked in what a tool answers: shorter ones are marked as weak in the configuration.
const MASKED_BYTES_MIN: usize = 16;

/// Tokens kept to be hidden: a server may still speak of the one before.
const TOKENS_MAX: usize = 4;

impl std::fmt::Debug for Faults {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl Faults {
    pub(super) fn new(hidden: Vec<String>, clock: Clock) -> Self {
        Self { hidden: Arc::new(words::telling(hidden)), tokens: Arc::default(), clock }
    }

    /// This token is hidden too, from now on.
    pub(super) fn hide(&self, token: &str) {
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.iter().any(|known| known == token) {
            return;
        }
        if tokens.len() >= TOKENS_MAX {
            tokens.pop_front();
        }
        tokens.push_back(token.to_owned());
    }

    fn hidden(&self) -> Vec<String> {
        let tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        words::telling(self.hidden.iter().chain(tokens.iter()).cloned().collect())
    }

    /// Words that quote the server, cut where they end in `…`, without what it was trusted with.
    pub(super) fn excerpt(&self, said: &str) -> String {
        words::excerpt(said, &self.hidden())
    }

    /// Words of the server, fit to be told.
    pub(super) fn fit(&self, said: &str) -> String {
        words::fit(said, &self.hidden())
    }

    /// The same for a line that is no message.
    pub(super) fn fit_stray(&self, stray: &Stray) -> String {
        if stray.is_cut {
            words::fit(&self.beginning(&stray.bytes), &[])
        } else {
            self.fit(&String::from_utf8_lossy(&stray.bytes))
        }
    }

    /// A whole line of the server, without secrets.
    pub(super) fn masked(&self, said: &str) -> String {
        words::masked(said, &self.hidden())
    }

    /// A text that goes to somebody who is not trusted with the secrets and may have a hand in what the server says: short
    /// ones stay, since masking would tell who guessed them.
    pub(super) fn masked_echo(&self, said: &str) -> String {
        let hidden: Vec<String> = self.hidden().into_iter().filter(|value| value.len() >= MASKED_BYTES_MIN).collect();
        words::masked(said, &hidden)
    }

    /// The beginning of a line that was longer, without secrets.
    pub(super) fn beginning(&self, said: &[u8]) -> String {
        words::beginning(said, &self.hidden())
    }

    /// Why the handshake failed.
    pub(super) fn of_connecting(&self, error: &ClientInitializeError) -> ReadError {
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => self.of_connecting(fallback),
            ClientInitializeError::JsonRpcError(ErrorData { code: ErrorCode(code), message, .. }) => {
                ReadError::Refused { code: *code, message: self.fit(message) }
            }
            ClientInitializeError::TransportError { error, .. } => self.of_transport(error.error.as_ref()),
            ClientInitializeError::ConflictInitResponseId(..)
            | ClientInitializeError::UncorrelatedErrorResponse { .. } => ReadError::NotMcp(
                "the server answered the handshake with the id of another request; an answer carries the id of its request"
                    .to_owned(),
            ),
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::Cancelled => {
                ReadError::Disconnected("it ended during the handshake".to_owned())
            }
            ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
                ReadError::NotMcp("the server speaks no revision of MCP that Switchbell speaks; update it".to_owned())
            }
            _ => ReadError::NotMcp("the server answered the handshake with something that is not MCP".to_owned()),
        }
    }

    /// Why a request failed.
    pub(super) fn of_reading(&self, error: &ServiceError) -> ReadError {
        match error {
            ServiceError::McpError(error) => self.of_answer(error),
            ServiceError::TransportSend(error) => self.of_transport(error.error.as_ref()),
            ServiceError::Timeout { timeout } => ReadError::Timeout { waited: *timeout },
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
                ReadError::Disconnected("it ended before the answer came".to_owned())
            }
            _ => ReadError::NotMcp("the server answered the read with something that is no resource".to_owned()),
        }
    }

    /// Why a call of a tool failed.
    pub(super) fn of_calling(&self, error: &ServiceError) -> ReadError {
        match error {
            ServiceError::McpError(ErrorData { code: ErrorCode(code), message, .. }) => {
                ReadError::Refused { code: *code, message: self.fit(message) }
            }
            ServiceError::UnexpectedResponse => {
                ReadError::NotMcp("the server answered the call with something that is no result of a tool".to_owned())
            }
            error => self.of_reading(error),
        }
    }

    /// Of the codes for "not found" one is of the newest revision and shared with other mistakes, one is of those
    /// before.
    fn of_answer(&self, error: &ErrorData) -> ReadError {
        let message = self.fit(&error.message);
        match error.code {
            ErrorCode::INVALID_PARAMS | ErrorCode::RESOURCE_NOT_FOUND => ReadError::NotFound(message),
            ErrorCode(code) => ReadError::Refused { code, message },
        }
    }

    fn of_transport(&self, error: &(dyn Error + 'static)) -> ReadError {
        match causes(error).filter_map(|error| error.downcast_ref::<StreamableHttpError<reqwest::Error>>()).next() {
            Some(error) => self.of_http(error),
            // A pipe to a child that is gone.
            None => ReadError::Disconnected(self.fit(&root(error))),
        }
    }

    /// Why a request over HTTP failed.
    pub(super) fn of_http(&self, error: &StreamableHttpError<reqwest::Error>) -> ReadError {
        let plain = |status| ReadError::Http { status, retry_after: None };
        match error {
            StreamableHttpError::HttpStatus(error) => {
                let retry_after = error.retry_after.as_deref().and_then(|text| self.retry_after(text));
                ReadError::Http { status: error.status, retry_after }
            }
            StreamableHttpError::AuthRequired(_) => plain(401),
            StreamableHttpError::InsufficientScope(_) => plain(403),
            StreamableHttpError::ResponseBodyTooLarge { .. } => ReadError::TooLarge { bytes_max: MESSAGE_BYTES_MAX },
            StreamableHttpError::UnexpectedServerResponse(text) => match (status_in(text), mistake_in(text)) {
                (Some(status), _) => plain(status),
                (None, Some(mistake)) => ReadError::NotMcp(format!("the server answered JSON that is none: {mistake}")),
                (None, None) => ReadError::NotMcp(
                    "the server answered something that is not MCP; check the connector's url".to_owned(),
                ),
            },
            StreamableHttpError::UnexpectedContentType(found) => ReadError::NotMcp(format!(
                "the server answered something that is not MCP ({}); check the connector's url",
                self.fit(found.as_deref().unwrap_or("no content type"))
            )),
            // Whatever its code, it says nothing of the resource.
            StreamableHttpError::ReinitializationFailed(ErrorData { code: ErrorCode(code), message, .. }) => {
                ReadError::Refused { code: *code, message: self.fit(message) }
            }
            // What we said ourselves on the way.
            StreamableHttpError::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<ReadError>()) => {
                let ours = error.get_ref().and_then(|inner| inner.downcast_ref::<ReadError>());
                ours.cloned().unwrap_or_else(|| ReadError::Disconnected(self.fit(&root(error))))
            }
            // The URL in its own text may hold a credential; its cause does not.
            StreamableHttpError::Client(error) if error.is_connect() => ReadError::NotConnected(self.fit(&root(error))),
            StreamableHttpError::Client(error) => ReadError::Disconnected(self.fit(&root(error))),
            error => ReadError::Disconnected(self.fit(&root(error))),
        }
    }

    /// `Retry-After` (RFC 9110 §10.2.3): seconds or a date.
    fn retry_after(&self, text: &str) -> Option<Duration> {
        let text = text.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        let moment = DateTimeParser::new().parse_timestamp(text).ok()?;
        Some(until(self.clock.now(), moment))
    }
}

/// The status in the text the library makes of an answer that is an error: `HTTP 404 Not Found: …`.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

/// What the library for JSON says of a text that is none. What it says of JSON in another shape may quote it.
const MISTAKES: [&str; 11] = [
    "EOF while",
    "control character",
    "expected",
    "invalid escape",
    "invalid number",
    "invalid unicode",
    "key must be",
    "lone leading surrogate",
    "number out of range",
    "trailing",
    "unexpected end of hex escape",
];

/// What is wrong with the JSON, in the text the library makes of a body it cannot read: `…Message: lone leading
/// surrogate in hex escape at line 1 column 9: {…`. The body itself is not told.
fn mistake_in(text: &str) -> Option<&str> {
    let (_, mistake) = text.split_once("as ServerJsonRpcMessage: ")?;
    let column = mistake.find(" column ")? + " column ".len();
    let digits = mistake.get(column..)?.find(|next: char| !next.is_ascii_digit())?;
    mistake.get(..column + digits).filter(|mistake| MISTAKES.iter().any(|known| mistake.starts_with(known)))
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// The innermost cause.
fn root(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_in_json_is_told_without_the_json() {
        let check = |said: &str, expected: Option<&str>| {
            let text = format!("could not parse JSON response as ServerJsonRpcMessage: {said}");
            assert_eq!(mistake_in(&text), expected);
        };
        check(
            "lone leading surrogate in hex escape at line 1 column 99: {\"s3cret",
            Some("lone leading surrogate in hex escape at line 1 column 99"),
        );
        check(
            "EOF while parsing a string at line 2 column 7: {",
            Some("EOF while parsing a string at line 2 column 7"),
        );
        check("invalid type: string \"s3cret at line 1 column 2\", expected a map at line 1 column 9: {", None);
        check("unrecognized JSON-RPC message: {}", None);
        assert_eq!(mistake_in("HTTP 404 Not Found: expected value at line 1 column 1: "), None);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let clock = Clock::manual("2026-09-01T18:42:10Z".parse().unwrap());
        let faults = Faults::new(Vec::new(), clock);
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(faults.retry_after(text), seconds.map(Duration::from_secs), "{text}");
        };
        check("120", Some(120));
        check(" 0 ", Some(0));
        check("Tue, 01 Sep 2026 18:43:10 GMT", Some(60));
        check("Tue, 01 Sep 2026 18:41:10 GMT", Some(0));
        check("18446744073709551616", None);
        check("-1", None);
        check("soon", None);
    }
}
