//! The cookie of a browser's session.

use axum::http::{HeaderMap, HeaderValue, header};

use super::SESSION;
use super::text::TokenText;

/// The name of the cookie. With this prefix browsers take it only from its own host, over TLS or loopback, for every path.
pub const COOKIE: &str = "__Host-switchbell";

/// What the cookie may be used for: never by scripts, never by requests that other sites start.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";

/// The session in a request's cookies.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut cookies = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// The header that has a browser keep the session.
pub(super) fn set(session: &TokenText) -> Option<HeaderValue> {
    let text = format!("{COOKIE}={}; {ATTRIBUTES}; Max-Age={}", session.as_str(), SESSION.as_secs());
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The header that has a browser forget it.
pub(super) fn forget() -> Option<HeaderValue> {
    HeaderValue::try_from(format!("{COOKIE}=; {ATTRIBUTES}; Max-Age=0")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_is_found_among_other_cookies() {
        for (lines, expected) in [
            (vec!["__Host-switchbell=abc"], Some("abc")),
            (vec!["a=b; __Host-switchbell=abc; c=d"], Some("abc")),
            (vec!["a=b", "__Host-switchbell=abc"], Some("abc")),
            (vec!["switchbell=abc; x__Host-switchbell=abc"], None),
            (vec!["__Host-switchbell"], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(header::COOKIE, line.parse().unwrap());
            }
            assert_eq!(session(&headers), expected, "{lines:?}");
        }
    }
}
