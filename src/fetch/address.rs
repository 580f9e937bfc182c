//! The URIs of a read: `<resource>{?cursor,maxEvents,maxAgeMs}` (notifications seed, "Serve the outbox"), spelled so
//! that the most servers understand it.
//!
//! Some match the bare URI only when nothing follows, some match the template only when all three parameters are
//! there, in its order. Some decode a parameter, with `+` as a space, and some hand it on as it came. So only what
//! must be encoded is.

use std::fmt::Write as _;
use std::time::Duration;

/// What every read asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// At most so many events.
    pub events_max: u32,
    /// None older than this.
    pub age_max: Duration,
}

/// The first read, for servers that do not know the bare URI. The bare URI is the first choice: it is the resource
/// itself.
pub fn first_with_bounds(resource: &str, bounds: Bounds) -> String {
    format!("{resource}?maxEvents={}&maxAgeMs={}", bounds.events_max, bounds.age_max.as_millis())
}

/// A read of what comes after `cursor`.
pub fn after(resource: &str, cursor: &str, bounds: Bounds) -> String {
    let mut uri = format!("{resource}?cursor=");
    for next in cursor.chars() {
        if must_be_encoded(next) {
            for byte in next.encode_utf8(&mut [0; char::MAX_LEN_UTF8]).bytes() {
                // Writing into a string cannot fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        } else {
            uri.push(next);
        }
    }
    let _ = write!(uri, "&maxEvents={}&maxAgeMs={}", bounds.events_max, bounds.age_max.as_millis());
    uri
}

/// What would end the parameter or the query, be read as something else, or is not allowed in a URI. `= / : @ , ;` and
/// the rest stay, so that base64 comes back as it went where nobody decodes.
fn must_be_encoded(found: char) -> bool {
    matches!(found, '%' | '&' | '+' | '#' | ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}')
        || found.is_ascii_control()
        || !found.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { events_max: 100, age_max: Duration::from_secs(90 * 86_400) };

    fn check(cursor: &str, expected: &str) {
        assert_eq!(
            after("acme://notifications", cursor, BOUNDS),
            format!("acme://notifications?cursor={expected}&maxEvents=100&maxAgeMs=7776000000")
        );
    }

    #[test]
    fn the_second_choice_of_a_first_read_has_no_cursor() {
        assert_eq!(first_with_bounds("urn:acme:outbox", BOUNDS), "urn:acme:outbox?maxEvents=100&maxAgeMs=7776000000");
    }

    #[test]
    fn a_cursor_is_encoded_no_more_than_it_must_be() {
        check("cDo1", "cDo1");
        check("a/b==", "a/b==");
        check("2026-09-01T18:42:10.5Z,id@host;~_*!'()$?[]", "2026-09-01T18:42:10.5Z,id@host;~_*!'()$?[]");
        check("a+b c&d#e%f", "a%2Bb%20c%26d%23e%25f");
        check("\"<>\\^`{|}", "%22%3C%3E%5C%5E%60%7B%7C%7D");
        check("\n\u{7f}", "%0A%7F");
        check("ä😀", "%C3%A4%F0%9F%98%80");
    }

    #[test]
    fn decoding_gives_the_cursor_back() {
        let cursor: String = (0..0x250_u32).filter_map(char::from_u32).collect();
        let uri = after("acme://n", &cursor, BOUNDS);
        let query = uri.split_once('?').unwrap().1;
        let decoded: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(decoded, [pair("cursor", &cursor), pair("maxEvents", "100"), pair("maxAgeMs", "7776000000")]);
    }
}
