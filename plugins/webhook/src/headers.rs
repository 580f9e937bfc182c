//! Headers that the settings add.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use switchbell_kit::fields::Field;
use switchbell_kit::secret::is_placeholder;
use switchbell_kit::settings::{Checks, pointer};

/// The most headers that settings add; a request has at most 64.
const HEADERS_MAX: usize = 16;
/// The longest name, in characters.
const NAME_MAX: usize = 100;
/// The longest value, in characters: all headers together have at most 16 KiB.
const VALUE_MAX: usize = 1_000;

/// Headers that are the host's: identity and framing.
const HOSTS: [&str; 15] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "host",
    "keep-alive",
    "origin",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Reads the headers that are there and good, with their names in lower case.
pub(crate) fn read(checks: &mut Checks) -> Vec<(String, String)> {
    let fields = match checks.fields.get("headers").cloned() {
        None => return Vec::new(),
        Some(Field::Object(fields)) => fields,
        Some(other) => {
            checks.refuse("/headers", format!("write headers by name, not {}", other.kind()));
            return Vec::new();
        }
    };
    if fields.iter().count() > HEADERS_MAX {
        checks.refuse("/headers", format!("more than {HEADERS_MAX} headers"));
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for (name, value) in fields.iter() {
        let lower = name.to_ascii_lowercase();
        let is_twice = found.iter().any(|(known, _)| *known == lower);
        let checked = if is_twice { Err("named twice, in different case".to_owned()) } else { check(&lower, value) };
        match checked {
            Ok(value) => found.push((lower, value)),
            Err(message) => checks.refuse(&pointer(&["headers", name]), message),
        }
    }
    found
}

fn check(name: &str, value: &Field) -> Result<String, String> {
    if name.is_empty() || name.len() > NAME_MAX || !name.bytes().all(is_token) {
        return Err("not the name of a header".to_owned());
    }
    if HOSTS.contains(&name) || name.starts_with("proxy-") {
        return Err("this header is the host's: leave it out".to_owned());
    }
    if name == "content-type" || name.starts_with("webhook-") || name.starts_with("ce-") {
        return Err("this header is written by the plugin: leave it out".to_owned());
    }
    let Field::Text(value) = value else { return Err(format!("write text, not {}", value.kind())) };
    if is_placeholder(value) {
        return Ok(value.to_string());
    }
    if value.len() > VALUE_MAX {
        return Err(format!("longer than {VALUE_MAX} characters"));
    }
    let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if value.is_empty() || !is_plain || value.trim() != value {
        return Err("write visible ASCII, without spaces at its ends, or a secret".to_owned());
    }
    Ok(value.to_string())
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
