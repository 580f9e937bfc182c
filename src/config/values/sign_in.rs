//! What it takes to sign in to a connector: names of headers, and the parts of OAuth.

use super::super::OAuthGrant;
use super::super::read::FromText;
use super::super::schema::{Form, Words, one_of, word};
use super::words::{TOKEN, is_token};

/// The name of a header that a secret may fill, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct HeaderName(pub String);

/// Longest name of a header, in bytes: longer than any in use, and servers limit the whole head.
const HEADER_NAME_BYTES_MAX: usize = 64;

/// Headers that the host or the connection sets, or that say whose request this is.
const HOST_HEADERS: [&str; 21] = [
    "accept",
    "connection",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "last-event-id",
    "origin",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-tenant-id",
    "x-workspace-id",
];
/// The same, by how their names begin.
const HOST_HEADERS_BEGIN: [&str; 6] = ["accept-", "content-", "mcp-", "proxy-", "sec-", "x-forwarded-"];

impl FromText for HeaderName {
    const WANTED: &'static str = "the name of a header such as `X-Api-Key`";

    /// Never quotes a text that is no name: people write the value itself here.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let name = text.to_ascii_lowercase();
        if !is_token(&name) || name.len() > HEADER_NAME_BYTES_MAX {
            return Err(format!(
                "this is no name of a header: write 1 to {HEADER_NAME_BYTES_MAX} letters, digits and hyphens, as in \
                 `X-Api-Key`"
            ));
        }
        if name == "authorization" {
            return Err("the header authorization is what `bearer` and `oauth` set: write `bearer: { secret: NAME }`"
                .to_owned());
        }
        if HOST_HEADERS.contains(&name.as_str()) || HOST_HEADERS_BEGIN.iter().any(|begin| name.starts_with(begin)) {
            return Err(format!(
                "the header {name} is set by Switchbell or the connection itself: a secret needs another"
            ));
        }
        Ok(Self(name))
    }

    fn form() -> Form {
        let taken = format!(
            "(?:{}|{})$|(?:{})",
            one_of(&["authorization"]),
            one_of(&HOST_HEADERS),
            one_of(&HOST_HEADERS_BEGIN)
        );
        let pattern = format!(r"(?=.{{1,{HEADER_NAME_BYTES_MAX}}}$)(?!{taken}){TOKEN}");
        Form::pattern(pattern, &["X-Api-Key"])
    }
}

impl FromText for OAuthGrant {
    const WANTED: &'static str = "a grant (authorization_code or client_credentials)";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| {
            "unknown grant: write authorization_code (a person signs in once) or client_credentials (the client's own id \
             and secret)"
                .to_owned()
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for OAuthGrant {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("authorization_code", Self::AuthorizationCode, "A person signs in once."),
            ("client_credentials", Self::ClientCredentials, "By the client's own id and secret, both required."),
        ]
    }
}

/// A client's id (RFC 6749, appendix A.1).
#[derive(Debug, Clone)]
pub(in crate::config) struct ClientId(pub String);

/// Longest id of a client, in bytes: it may be a URL, and goes into one.
const CLIENT_ID_BYTES_MAX: usize = 512;

impl FromText for ClientId {
    const WANTED: &'static str = "the id of a client";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let is_visible = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if !is_visible || text.trim() != text || !(1..=CLIENT_ID_BYTES_MAX).contains(&text.len()) {
            return Err(format!(
                "this is no client's id: write the 1 to {CLIENT_ID_BYTES_MAX} ASCII characters that the authorization \
                 server gave"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(format!(r"(?=.{{1,{CLIENT_ID_BYTES_MAX}}}$)[!-~](?:[ -~]*[!-~])?"), &["switchbell"])
    }
}

/// One scope (RFC 6749 §3.3).
#[derive(Debug, Clone)]
pub(in crate::config) struct Scope(pub String);

/// Longest scope, in bytes: some are URLs, and all of them go into one.
const SCOPE_BYTES_MAX: usize = 256;

impl FromText for Scope {
    const WANTED: &'static str = "a scope such as `notifications:read`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        if text.contains(' ') {
            return Err(format!("{quoted} is no scope: scopes hold no space; write each as an item of the list"));
        }
        let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
        if !text.bytes().all(fits) || !(1..=SCOPE_BYTES_MAX).contains(&text.len()) {
            return Err(format!(
                "{quoted} is no scope: a scope is 1 to {SCOPE_BYTES_MAX} ASCII characters without white space, `\"` and \
                 `\\`"
            ));
        }
        Ok(Self(text.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(format!(r"[!#-\[\]-~]{{1,{SCOPE_BYTES_MAX}}}"), &["notifications:read"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_may_fill_a_header_that_nobody_else_sets() {
        for (text, name) in [("X-Api-Key", "x-api-key"), ("api_key", "api_key"), ("X-Acme.Token!", "x-acme.token!")] {
            assert_eq!(HeaderName::from_text(text, ""), Ok(HeaderName(name.to_owned())));
        }
        let long = "x".repeat(65);
        for text in [
            "",
            "X Key",
            "X:Key",
            "Schlüssel",
            &long,
            "Authorization",
            "HOST",
            "Cookie",
            "content-length",
            "Accept",
            "Accept-Encoding",
            "MCP-Session-Id",
            "mcp-protocol-version",
            "Last-Event-ID",
            "Proxy-Authorization",
            "TE",
            "X-Tenant-Id",
            "X-Workspace-Id",
            "User-Agent",
            "Transfer-Encoding",
            "Keep-Alive",
        ] {
            assert!(HeaderName::from_text(text, "").is_err(), "{text}");
        }
        assert!(HeaderName::from_text(&"x".repeat(64), "").is_ok());
    }

    #[test]
    fn scopes_and_ids_are_those_of_the_standard() {
        for text in ["read", "notifications:read", "https://api.example.com/auth/x.y", "!#[]~"] {
            assert!(Scope::from_text(text, "").is_ok(), "{text}");
        }
        for text in ["", "a b", "a\"b", "a\\b", "ä", "a\tb"] {
            assert!(Scope::from_text(text, "").is_err(), "{text}");
        }
        for (length, fits) in [(256, true), (257, false)] {
            assert_eq!(Scope::from_text(&"s".repeat(length), "").is_ok(), fits);
        }
        for (text, fits) in [("a client", true), ("", false), (" a", false), ("ä", false), ("a\nb", false)] {
            assert_eq!(ClientId::from_text(text, "").is_ok(), fits, "{text}");
        }
        for (length, fits) in [(512, true), (513, false)] {
            assert_eq!(ClientId::from_text(&"i".repeat(length), "").is_ok(), fits);
        }
    }
}
