//! What a token endpoint answers (RFC 6749 §5), and the form in which refresh tokens are kept.

use std::fmt;
use std::time::Duration;

use ring::digest::SHA256;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::hex;

/// Longest token, bytes: what a header can carry.
const TOKEN_BYTES_MAX: usize = 8 << 10;
/// Characters shown of what a server says.
const SAID_CHARS_MAX: usize = 200;

/// A token that was given.
pub(super) struct Granted {
    pub(super) access_token: String,
    pub(super) refresh_token: Option<String>,
    pub(super) life: Option<Duration>,
}

/// Why none was given (RFC 6749 §5.2).
#[derive(Debug)]
pub(super) struct Refused {
    error: String,
    description: Option<String>,
}

impl Refused {
    /// Whether the client itself was not recognised, perhaps for where its secret stood.
    pub(super) fn is_about_the_client(&self) -> bool {
        self.error == "invalid_client"
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.error)?;
        self.description.iter().try_for_each(|description| write!(out, " ({description})"))
    }
}

/// Reads an answer.
///
/// # Errors
/// When it is neither a token nor a refusal; asking again later may help.
pub(super) fn read(status: u16, body: &[u8]) -> Result<Result<Granted, Refused>, String> {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let text = |key: &str| json.as_ref()?.get(key)?.as_str();
    match (status, text("access_token"), text("error")) {
        (200..300, Some(token), _) => granted(token, text("token_type"), json.as_ref()).map(Ok),
        (400..500, _, Some(error)) if !matches!(status, 408 | 429) => {
            Ok(Err(Refused { error: shown(error), description: text("error_description").map(shown) }))
        }
        (200..300, ..) => Err("the authorization server's answer holds no access token".to_owned()),
        (401 | 403, ..) => Ok(Err(Refused { error: format!("status {status}"), description: None })),
        _ => Err(format!("the authorization server answers with status {status}")),
    }
}

fn granted(token: &str, kind: Option<&str>, json: Option<&Value>) -> Result<Granted, String> {
    if let Some(kind) = kind
        && !kind.eq_ignore_ascii_case("bearer")
    {
        // What it says instead is not repeated: it may be anything that it was asked with.
        return Err("the authorization server gives a token of another type, and no bearer token".to_owned());
    }
    let usable =
        |token: &str| (1..=TOKEN_BYTES_MAX).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !usable(token) {
        return Err("the authorization server gives a token that a header cannot carry".to_owned());
    }
    // Some servers write the number as a text.
    let life = json.and_then(|json| json.get("expires_in"));
    let seconds = life.and_then(|life| life.as_u64().or_else(|| life.as_str()?.parse().ok()));
    let refresh_token = json.and_then(|json| json.get("refresh_token")?.as_str()).map(str::to_owned);
    Ok(Granted { access_token: token.to_owned(), refresh_token, life: seconds.map(Duration::from_secs) })
}

/// What a server says, fit to show.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SAID_CHARS_MAX).collect()
}

/// A refresh token as it is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct Kept {
    /// The digest of the configured one that it stands for.
    pub(super) first: String,
    pub(super) current: String,
}

pub(super) fn kept(text: &str) -> Option<Kept> {
    serde_json::from_str(text).ok()
}

pub(super) fn to_keep(first: &str, current: &str) -> String {
    let kept = Kept { first: digest(first), current: current.to_owned() };
    serde_json::to_string_pretty(&kept).unwrap_or_default()
}

/// SHA-256 in hex.
pub(super) fn digest(text: &str) -> String {
    hex(ring::digest::digest(&SHA256, text.as_bytes()).as_ref())
}
