//! The URI of a declared outbox.

use super::super::read::FromText;
use super::super::schema::{Form, one_of};

/// A URI that can be polled (notifications seed, the declaration of an outbox).
#[derive(Debug, Clone)]
pub(in crate::config) struct OutboxUri(pub String);

/// Longest URI of an outbox, in characters.
const URI_CHARS_MAX: usize = 512;

/// Schemes that a host resolves itself, so that no server can own them.
const RESERVED_SCHEMES: [&str; 6] = ["skill", "ui", "instructions", "artifact", "files", "app"];

impl FromText for OutboxUri {
    const WANTED: &'static str = "the URI of an outbox such as `acme://notifications`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        mistake(text).map_or_else(|| Ok(Self(text.to_owned())), |why| Err(about(text, quoted) + &why))
    }

    fn form() -> Form {
        let reserved = one_of(&RESERVED_SCHEMES);
        let characters = format!(r"(?=[\s\S]{{1,{URI_CHARS_MAX}}}$)(?!(?:{reserved}):)");
        Form::pattern(
            format!(r"{characters}[A-Za-z][A-Za-z0-9+.\-]*:[^\s\u0000-\u001f\u007f-\u009f?#]*"),
            &["acme://notifications"],
        )
    }
}

/// The beginning of a message about a URI: the text, unless it may hold a credential, as a query may, or a name before the
/// host.
pub(in crate::config) fn about(text: &str, quoted: &str) -> String {
    if text.contains(['?', '@']) { String::new() } else { format!("{quoted}: ") }
}

/// Why a text declares no outbox; none when it does.
pub(in crate::config) fn mistake(text: &str) -> Option<String> {
    if text.chars().nth(URI_CHARS_MAX).is_some() {
        return Some(format!("the URI of an outbox has at most {URI_CHARS_MAX} characters"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Some("the URI of an outbox has no white space and no control characters".to_owned());
    }
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'.' | b'-'))
    };
    let Some((scheme, _)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return Some(
            "the URI of an outbox begins with a scheme of letters, digits, `+`, `.` and `-`, as in \
             `acme://notifications`"
                .to_owned(),
        );
    };
    let scheme = scheme.to_ascii_lowercase();
    if RESERVED_SCHEMES.contains(&scheme.as_str()) {
        return Some(format!(
            "the scheme {scheme} is reserved for resources that a host resolves itself: the server must declare its \
             outbox under a scheme of its own, as in `acme://notifications`"
        ));
    }
    if text.contains('?') {
        return Some("an outbox has no query: Switchbell adds its own; remove the `?` and what follows".to_owned());
    }
    text.contains('#').then(|| "an outbox has no fragment: remove the `#` and what follows".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_has_a_scheme_of_its_own_and_nothing_behind_the_path() {
        for uri in ["acme://notifications", "acme:notifications", "urn:x:y", "https://a.example/n", "a+b.c-d:x", "a:"] {
            assert_eq!(mistake(uri), None, "{uri}");
        }
        for uri in [
            "",
            "notifications",
            "acme_x://n",
            "1a:n",
            ":n",
            "acme://n?",
            "acme://n#x",
            "acme://a b",
            "UI://n",
            "Files:n",
            "app:x",
            "acme://a\u{a0}b",
            "äcme:x",
        ] {
            assert!(mistake(uri).is_some(), "{uri}");
        }
        assert_eq!(mistake(&format!("a:{}", "x".repeat(510))), None);
        assert!(mistake(&format!("a:{}", "x".repeat(511))).is_some());
    }
}
