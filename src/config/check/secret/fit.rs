//! Whether a value can be used in its place.

use url::Url;

use super::super::super::{HostPattern, SecretPlace};
use super::source::{VALUE_BYTES_MAX, too_long, without_line_end};
use super::{host_of, key};

/// Shortest value, in bytes, unless the secret says `weak: true`: what is shorter can be guessed, and masking it in
/// texts would mask half of them.
const VALUE_BYTES_MIN: usize = 16;

/// The value without its line end, if it can be used in its place.
pub(super) fn fitting(
    value: String,
    is_weak: bool,
    place: Option<&SecretPlace>,
    hosts: &[HostPattern],
) -> Result<String, String> {
    let value = without_line_end(&value);
    if value.is_empty() {
        return Err("the value is empty".to_owned());
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(too_long());
    }
    if value.len() < VALUE_BYTES_MIN && !is_weak {
        return Err(format!(
            "the value is shorter than {VALUE_BYTES_MIN} bytes, so it can be guessed: take a longer one, or add `weak: true`"
        ));
    }
    if let Some(place) = place {
        check_for(place, value, hosts)?;
    }
    Ok(value.to_owned())
}

fn check_for(place: &SecretPlace, value: &str, hosts: &[HostPattern]) -> Result<(), String> {
    let has_control = value.contains(char::is_control);
    let objection = match place {
        SecretPlace::Url => return check_url(value, hosts),
        SecretPlace::Sign => return key::check_for_signatures(value),
        SecretPlace::Header { .. } | SecretPlace::Connector => (!value.bytes().all(|byte| byte.is_ascii_graphic()))
            .then_some("the value holds a space, a line end or another character that a header cannot carry"),
        SecretPlace::Basic if has_control => {
            Some("the value holds a line end or another control character, which HTTP Basic cannot carry (RFC 7617)")
        }
        SecretPlace::Basic => (!value.contains(':')).then_some(
            "the value is no `USER:PASSWORD`, which `in: basic` needs; a token alone is written `TOKEN:` or `:TOKEN`, as the \
             API wants it",
        ),
        SecretPlace::Path if value.bytes().all(|byte| byte == b'.') => {
            Some("the value is made of dots, which have a meaning of their own in a path")
        }
        SecretPlace::Query(_) | SecretPlace::Path | SecretPlace::Mail => {
            has_control.then_some("the value holds a line end or another control character, which does not belong there")
        }
        SecretPlace::Body(_) => None,
    };
    objection.map_or(Ok(()), |objection| Err(objection.to_owned()))
}

fn check_url(value: &str, hosts: &[HostPattern]) -> Result<(), String> {
    let url = Url::parse(value).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    if let Some(url) = &url
        && (!url.username().is_empty() || url.password().is_some())
    {
        return Err(
            "the value is a URL with a user or a password, which no request carries: take a URL without, or put \
                    the credential in a header (`in: header:NAME`)"
                .to_owned(),
        );
    }
    let is_clean = !value.contains(|c: char| c.is_whitespace() || c.is_control());
    let Some(url) = url.filter(|_| is_clean) else {
        return Err("the value is no http or https URL, which `in: url` needs".to_owned());
    };
    let host = host_of(&url);
    if !hosts.is_empty() && !hosts.iter().any(|pattern| pattern.covers(&host)) {
        return Err("the value is a URL whose host is not among `hosts`".to_owned());
    }
    Ok(())
}
