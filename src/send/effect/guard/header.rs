//! The headers of a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::denied;
use super::filling::Filling;
use super::{HEADER_BYTES_MAX, HEADERS_MAX};
use crate::config::SecretPlace;
use crate::wasm::Fault;

/// A header as it is going to be sent.
pub(super) struct Header {
    pub(super) name: HeaderName,
    pub(super) value: String,
    /// Whether the value is or holds a secret.
    pub(super) is_secret: bool,
}

/// Reads the headers and puts values in.
pub(super) fn filled(asked: &[(String, String)], filling: &mut Filling<'_>) -> Result<Vec<Header>, Fault> {
    let bytes: usize = asked.iter().map(|(name, value)| name.len() + value.len()).sum();
    if asked.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message = format!("a request has at most {HEADERS_MAX} headers of {HEADER_BYTES_MAX} bytes together");
        return Err(denied("headers", message));
    }
    asked.iter().map(|(name, value)| header(name, value, filling)).collect()
}

/// The headers as the client takes them. Values are visible ASCII, spaces and tabs (RFC 9110 §5.5).
pub(super) fn sent(headers: Vec<Header>) -> Result<HeaderMap, Fault> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for Header { name, value, is_secret } in headers {
        let unusable =
            || denied("headers", format!("the value of header {name} has characters that headers cannot hold"));
        let ascii = Some(&value).filter(|value| value.is_ascii());
        let mut value = ascii.and_then(|value| HeaderValue::from_str(value).ok()).ok_or_else(unusable)?;
        value.set_sensitive(is_secret);
        map.append(name, value);
    }
    Ok(map)
}

fn header(asked: &str, text: &str, filling: &mut Filling<'_>) -> Result<Header, Fault> {
    let name = HeaderName::from_bytes(asked.as_bytes())
        .map_err(|_| denied("headers", format!("{asked:?} is no header name")))?;
    if is_the_hosts(name.as_str()) {
        return Err(denied("headers", format!("header {name} is set by the host and may not be set by a plugin")));
    }
    let fits = |place: &SecretPlace| match place {
        SecretPlace::Header { name: own, .. } => *own == name.as_str(),
        SecretPlace::Basic => name == "authorization",
        _ => false,
    };
    let found = filling.value(text, &format!("header {name}"), fits)?;
    let Some((value, secret)) = found else {
        if let Some(secret) = filling.seals.found_in(text.as_bytes()) {
            return Err(filling.misplaced(secret, &format!("a part of header {name}")));
        }
        return Ok(Header { name, value: text.to_owned(), is_secret: false });
    };
    let value = match &secret.place {
        SecretPlace::Header { prefix: Some(prefix), .. } => format!("{prefix} {value}"),
        SecretPlace::Basic => basic(value),
        _ => value.to_owned(),
    };
    Ok(Header { name, value, is_secret: true })
}

/// The header's value for `user:password` (RFC 7617).
pub(in crate::send::effect) fn basic(credentials: &str) -> String {
    format!("Basic {}", STANDARD.encode(credentials))
}

/// Headers that frame the message or claim an identity.
fn is_the_hosts(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "host",
        "cookie",
        "connection",
        "keep-alive",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "http2-settings",
    ];
    NAMES.contains(&name) || name.starts_with("proxy-")
}
