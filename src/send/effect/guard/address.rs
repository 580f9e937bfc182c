//! The URL of a request: read, judged, and then filled. What was read is what is sent.

use url::{Url, form_urlencoded};

use super::super::denied;
use super::filling::Filling;
use super::{URL_BYTES_MAX, bare_host};
use crate::config::SecretPlace;
use crate::wasm::Fault;

/// Reads the URL. The value of a `url` secret replaces the whole; any other placeholder is still in it.
pub(super) fn read(asked: &str, filling: &mut Filling<'_>) -> Result<Url, Fault> {
    let whole = filling.value(asked, "the URL", |place| *place == SecretPlace::Url)?;
    let text = whole.map_or(asked, |(value, _)| value);
    fits(text)?;
    // The parser's own message never quotes the URL, which may be a secret.
    let url = Url::parse(text).map_err(|error| denied("url", format!("the URL cannot be read: {error}")))?;
    if !url.has_host() || !matches!(url.scheme(), "http" | "https") {
        return Err(denied("url", "the URL needs a host and the scheme https or http".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(denied("url", "a URL must not hold a user name or password".to_owned()));
    }
    filling.none_in(bare_host(&url).as_bytes(), "the host of a URL")?;
    filling.none_in(url.fragment().unwrap_or_default().as_bytes(), "the fragment of a URL")?;
    Ok(url)
}

/// Puts values into segments of the path and into parameters of the query. Everything before the path stays what was
/// judged.
pub(super) fn filled(judged: Url, filling: &mut Filling<'_>) -> Result<Url, Fault> {
    if filling.seals.found_in(judged.as_str().as_bytes()).is_none() {
        return Ok(judged);
    }
    let path = path(judged.path(), filling)?;
    let query = judged.query().map(|query| self::query(query, filling)).transpose()?;
    let mut sent = judged.clone();
    sent.set_path(&path);
    sent.set_query(query.as_deref());
    fits(sent.as_str())?;
    let again = Url::parse(sent.as_str()).ok();
    let unchanged = again.is_some_and(|again| again == sent && again.origin() == judged.origin());
    if !unchanged || sent.path() != path || sent.query() != query.as_deref() {
        return Err(denied("url", "with its secrets in, the URL would mean something else".to_owned()));
    }
    Ok(sent)
}

fn fits(url: &str) -> Result<(), Fault> {
    if url.len() <= URL_BYTES_MAX {
        return Ok(());
    }
    Err(denied("url", format!("a URL has at most {URL_BYTES_MAX} bytes")))
}

fn path(path: &str, filling: &mut Filling<'_>) -> Result<String, Fault> {
    let mut segment = |segment: &str| {
        let in_path = |place: &SecretPlace| *place == SecretPlace::Path;
        filling.replaced(segment, "a part of the URL's path", in_path, encoded)
    };
    Ok(path.split('/').map(&mut segment).collect::<Result<Vec<_>, _>>()?.join("/"))
}

fn query(query: &str, filling: &mut Filling<'_>) -> Result<String, Fault> {
    let mut parameter = |parameter: &str| {
        let Some(name) = filling.seals.found_in(parameter.as_bytes()) else { return Ok(parameter.to_owned()) };
        let here = "a part of the URL's query";
        let (key, placeholder) = parameter.split_once('=').ok_or_else(|| filling.misplaced(name, here))?;
        let is_own = |place: &SecretPlace| matches!(place, SecretPlace::Query(own) if *own == decoded(key));
        let value = filling.value(placeholder, here, is_own)?;
        value.map(|(value, _)| format!("{key}={}", encoded(value))).ok_or_else(|| filling.misplaced(name, here))
    };
    Ok(query.split('&').map(&mut parameter).collect::<Result<Vec<_>, _>>()?.join("&"))
}

fn decoded(key: &str) -> String {
    form_urlencoded::parse(key.as_bytes()).next().map(|(key, _)| key.into_owned()).unwrap_or_default()
}

/// Percent-encoded but for the characters that are never special (RFC 3986 §2.3).
pub(in crate::send::effect) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let digit = |of: u8| char::from_digit(u32::from(of), 16).unwrap_or_default().to_ascii_uppercase();
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}
