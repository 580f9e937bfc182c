//! Actions and answers as JSON: how effects are kept, recorded and compared.
//!
//! The form is stable. Both are objects with one member that names the kind, and the names are those of
//! `wit/delivery.wit` in camelCase:
//!
//! ```json
//! {"http": {"method": "POST", "url": "https://…", "headers": [["accept", "*/*"]], "body": "…"}}
//! {"http": {"ok": {"status": 429, "headers": [["retry-after", "30"]], "body": "slow down"}}}
//! {"http": {"fault": {"reach": "unanswered", "code": "timeout", "message": "…"}}}
//! {"mail": {"ok": {"messageId": "…", "recipients": [{"address": "ops@example.com"}]}}}
//! {"tool": {"ok": {"content": {"content": []}}}}
//! {"resumed": {"resume": {"job": 7}}}
//! ```
//!
//! - Bytes are text (`body`) where they are UTF-8, else base64 (`bodyBase64`: RFC 4648, padded).
//! - What is JSON text in the contract (`extras`, `arguments`, `content`, `payload`, `resume`, `remember`) stands as that
//!   JSON, byte for byte, without white space around it.
//! - What is absent, empty, `false` or `{}` is left out, and read so when it is left out.
//! - Secrets are placeholders here; no value ever comes this far.

mod action;
mod answer;
mod recorded;
#[cfg(test)]
mod tests;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::wasm::{Action, Answer};

pub use recorded::{Recorded, RecordedEffect};

/// Why a text is no record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARecord(String);

impl NotARecord {
    pub(super) fn new(why: &str) -> Self {
        Self(why.to_owned())
    }
}

impl fmt::Display for NotARecord {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no record: {}", self.0)
    }
}

impl std::error::Error for NotARecord {}

/// An answer as JSON.
pub fn answer_to_json(answer: &Answer) -> String {
    text_of(&answer::Wire::from(answer))
}

/// The answer that a JSON text records.
///
/// # Errors
/// Where the text leaves the form, and how.
pub fn answer_from_json(text: &str) -> Result<Answer, NotARecord> {
    let wire: answer::Wire = serde_json::from_str(text).map_err(|error| NotARecord(error.to_string()))?;
    wire.try_into().map_err(NotARecord)
}

/// An action as JSON: the same bytes for the same action, always.
pub fn action_to_json(action: &Action) -> String {
    text_of(&action::Wire::from(action))
}

/// The SHA-256 of an action's JSON, 64 hexadecimal digits in lower case.
pub fn digest(action: &Action) -> String {
    let halves = |byte: u8| [byte >> 4, byte & 0xf].map(|half| char::from_digit(half.into(), 16).unwrap_or_default());
    Sha256::digest(action_to_json(action)).iter().flat_map(|byte| halves(*byte)).collect()
}

/// Members are written in the order of their declaration, which makes the text the same for the same value. Only maps with
/// keys that are no texts cannot be written, and there are none.
fn text_of(wire: &impl serde::Serialize) -> String {
    serde_json::to_string(wire).unwrap_or_default()
}

/// JSON text as it stands; what is none, which no checked value holds, as a string.
fn json(text: &str) -> Box<RawValue> {
    let raw = RawValue::from_string(text.to_owned()).or_else(|_| serde_json::value::to_raw_value(text));
    raw.unwrap_or_default()
}

fn extras(text: &str) -> Option<Box<RawValue>> {
    Some(json(text)).filter(|extras| extras.get() != "{}")
}

/// Bytes as text, or as base64.
fn body(bytes: &[u8]) -> (Option<String>, Option<String>) {
    match std::str::from_utf8(bytes) {
        Ok("") => (None, None),
        Ok(text) => (Some(text.to_owned()), None),
        Err(_) => (None, Some(base64(bytes))),
    }
}

fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn from_body(text: Option<String>, encoded: Option<String>) -> Result<Vec<u8>, String> {
    match (text, encoded) {
        (Some(_), Some(_)) => Err("body and bodyBase64 exclude each other".to_owned()),
        (None, Some(encoded)) => STANDARD.decode(encoded).map_err(|error| format!("bodyBase64: {error}")),
        (text, None) => Ok(text.unwrap_or_default().into_bytes()),
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}
