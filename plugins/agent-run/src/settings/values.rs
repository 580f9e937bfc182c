//! What single settings may be.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

use switchbell_kit::secret::is_placeholder;

/// The longest prompt, in characters: some pages. What is longer belongs to the agent itself.
pub(super) const PROMPT_MAX: usize = 16_000;

/// The longest URL, in characters.
const URL_MAX: usize = 2_048;

/// The longest name of a model or a tool, in characters.
const NAME_MAX: usize = 200;

/// The longest key, in characters: those of vendors have up to 200, tokens of others more.
const KEY_MAX: usize = 4_000;

/// The longest name of a header, in characters.
const HEADER_MAX: usize = 64;

/// The longest name of a connector, in characters.
const CONNECTOR_MAX: usize = 63;

/// The longest duration of settings, in seconds: a week.
const DURATION_MAX: u32 = 7 * 86_400;

pub(super) fn prompt(value: &str) -> Result<(), String> {
    if value.trim().is_empty() {
        return Err("empty: write what the agent is to do".to_owned());
    }
    not_secret(value)?;
    limited(value, PROMPT_MAX)
}

/// The whole URL of an endpoint; a secret may stand for it.
pub(super) fn endpoint(value: &str) -> Result<(), String> {
    if is_placeholder(value) { Ok(()) } else { url(value) }
}

/// A URL that paths are appended to.
pub(super) fn base(value: &str) -> Result<(), String> {
    if is_placeholder(value) {
        return Err("a path is appended to it, so it cannot be a secret: write https://…".to_owned());
    }
    if value.contains('?') {
        return Err("a path is appended to it: leave out the query".to_owned());
    }
    url(value)
}

/// The value is not repeated in messages: it may hold a credential.
fn url(value: &str) -> Result<(), String> {
    limited(value, URL_MAX)?;
    let wrong = |letter: char| letter.is_whitespace() || letter.is_control() || letter == '\\';
    if host(value).is_empty() || value.contains(wrong) {
        return Err("not a URL: write https://…".to_owned());
    }
    if value.contains(['#', '@']) {
        return Err("leave out user names, passwords and fragments".to_owned());
    }
    Ok(())
}

/// The host and port of a URL; empty when it has none.
pub(super) fn host(url: &str) -> &str {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

pub(super) fn model(value: &str) -> Result<(), String> {
    not_secret(value)?;
    visible(value, NAME_MAX, "a model has a name without spaces, as its vendor writes it")
}

pub(super) fn tool(value: &str) -> Result<(), String> {
    not_secret(value)?;
    visible(value, NAME_MAX, "a tool has a name without spaces, as its connector lists it")
}

pub(super) fn api_key(value: &str) -> Result<(), String> {
    visible(value, KEY_MAX, "a key has no spaces and is not preceded by Bearer: write a secret")
}

pub(super) fn connector(value: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let inner = !value.starts_with('-') && !value.ends_with('-');
    if !value.is_empty() && value.len() <= CONNECTOR_MAX && inner && value.bytes().all(plain) {
        return Ok(());
    }
    Err("not a connector: write its name under `connectors`".to_owned())
}

pub(super) fn header(value: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !value.is_empty() && value.len() <= HEADER_MAX && value.bytes().all(plain) {
        return Ok(());
    }
    Err("not the name of a header: write for example x-api-key".to_owned())
}

/// A duration such as `2s`, `5m`, `1h30m` or `2d`, in seconds.
pub(super) fn seconds(value: &str) -> Result<u32, String> {
    let wrong = || "not a duration of whole seconds: write for example 2s, 5m, 1h30m or 2d".to_owned();
    let (mut total, mut number, mut largest) = (0_u64, None::<u64>, u64::MAX);
    for letter in value.chars() {
        if let Some(digit) = letter.to_digit(10) {
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit.into()));
            continue;
        }
        let unit = match letter {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(wrong()),
        };
        // Units come once each, the largest first.
        if unit >= largest {
            return Err(wrong());
        }
        largest = unit;
        total = total.saturating_add(number.take().ok_or_else(wrong)?.saturating_mul(unit));
    }
    if number.is_some() || value.is_empty() {
        return Err(wrong());
    }
    let total = u32::try_from(total).ok().filter(|total| *total <= DURATION_MAX);
    match total {
        Some(0) => Err("at least 1s".to_owned()),
        Some(total) => Ok(total),
        None => Err("at most 7d".to_owned()),
    }
}

/// Where the host would refuse a placeholder, it is said before a delivery depends on it.
fn not_secret(value: &str) -> Result<(), String> {
    if is_placeholder(value) { Err("cannot be a secret: write it out".to_owned()) } else { Ok(()) }
}

fn visible(value: &str, characters_max: usize, otherwise: &str) -> Result<(), String> {
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(otherwise.to_owned());
    }
    limited(value, characters_max)
}

fn limited(value: &str, characters_max: usize) -> Result<(), String> {
    if value.chars().nth(characters_max).is_some() {
        return Err(format!("longer than {characters_max} characters"));
    }
    Ok(())
}
