//! `in:` of a secret.

use super::super::SecretPlace;
use super::super::read::FromText;
use super::super::schema::{Form, one_of};
use super::words::{TOKEN, is_token};

/// The one place where a secret may be put.
#[derive(Debug, Clone)]
pub(in crate::config) struct PlaceEntry(pub SecretPlace);

/// Longest name of a parameter and longest JSON Pointer, in bytes: longer than any that an API has.
const KEY_BYTES_MAX: usize = 256;

/// Headers that the host sets itself and no secret may replace.
const HOST_HEADERS: [&str; 15] = [
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-tenant-id",
    "x-workspace-id",
];

impl FromText for PlaceEntry {
    const WANTED: &'static str = "a place such as `url`, `header:NAME` or `connector`";

    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
        let place = match (kind, rest) {
            ("url", None) => SecretPlace::Url,
            ("header", Some(header)) => header_place(header)?,
            ("basic", None) => SecretPlace::Basic,
            ("query", Some(key)) => query_place(key)?,
            ("path", None) => SecretPlace::Path,
            ("body", Some(pointer)) => body_place(pointer)?,
            ("sign", None) => SecretPlace::Sign,
            ("mail", None) => SecretPlace::Mail,
            ("connector", None) => SecretPlace::Connector,
            _ => return Err(unknown(kind).to_owned()),
        };
        Ok(Self(place))
    }

    fn form() -> Form {
        let header =
            format!(r"header:(?!(?:{}|[Pp][Rr][Oo][Xx][Yy]-.*)(?::|$)){TOKEN}(?::[!-~]+)?", one_of(&HOST_HEADERS));
        let query = format!(r#"query:[!"$'-*,-<>-~]{{1,{KEY_BYTES_MAX}}}"#);
        let body = format!(r"body:(?=[\s\S]{{1,{KEY_BYTES_MAX}}}$)(?:\/(?:[^~\/\u0000-\u001f\u007f-\u009f]|~[01])*)+");
        let examples = &[
            "url",
            "header:Authorization:Bearer",
            "header:X-Api-Key",
            "basic",
            "query:api_key",
            "path",
            "body:/routing_key",
            "sign",
            "mail",
            "connector",
        ];
        Form::pattern(format!("url|basic|path|sign|mail|connector|{header}|{query}|{body}"), examples)
    }
}

/// Never quotes the text: people write the value itself here.
fn unknown(kind: &str) -> &'static str {
    match kind {
        "query" => "the parameter is missing: write `query:KEY`, as in \"query:api_key\"",
        "body" => "the place in the JSON body is missing: write `body:POINTER`, as in \"body:/routing_key\"",
        "header" => "the header's name is missing: write `header:NAME`, as in \"header:Authorization:Bearer\"",
        "bearer" => "a bearer token is written \"header:Authorization:Bearer\"",
        "url" | "basic" | "path" | "sign" | "mail" | "connector" => {
            "nothing stands behind this place: remove the `:` and what follows"
        }
        _ => {
            "unknown place: write `url` (the secret is a whole URL), `header:NAME`, `header:NAME:PREFIX` (as in \
             \"header:Authorization:Bearer\"), `basic`, `query:KEY`, `path`, `body:POINTER`, `sign`, `mail` or `connector`"
        }
    }
}

fn header_place(text: &str) -> Result<SecretPlace, String> {
    let (name, prefix) = text.split_once(':').map_or((text, None), |(name, prefix)| (name, Some(prefix)));
    let name = name.to_ascii_lowercase();
    if !is_token(&name) {
        return Err("a header's name is missing or holds a character it may not: write `header:NAME`, as in \
                    \"header:Authorization:Bearer\""
            .to_owned());
    }
    if HOST_HEADERS.contains(&name.as_str()) || name.starts_with("proxy-") {
        return Err(format!("the header {name} is set by Switchbell itself: a secret needs another"));
    }
    let prefix_fits = |prefix: &str| !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_graphic());
    if !prefix.is_none_or(prefix_fits) {
        return Err("the prefix after the header's name is one word, as in \"header:Authorization:Bearer\"".to_owned());
    }
    Ok(SecretPlace::Header { name, prefix: prefix.map(str::to_owned) })
}

fn query_place(key: &str) -> Result<SecretPlace, String> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"&=#+%".contains(&byte);
    if !key.bytes().all(fits) || !(1..=KEY_BYTES_MAX).contains(&key.len()) {
        return Err(format!(
            "behind `query:` stands the name of one parameter: 1 to {KEY_BYTES_MAX} visible ASCII characters, none of \
             `&=#+%`, as in \"query:api_key\""
        ));
    }
    Ok(SecretPlace::Query(key.to_owned()))
}

/// A JSON Pointer (RFC 6901 §3), but not that of the whole body.
fn body_place(pointer: &str) -> Result<SecretPlace, String> {
    let objection = if pointer.is_empty() {
        "a secret is never the whole body: name its place by a JSON Pointer, as in \"body:/routing_key\""
    } else if !pointer.starts_with('/') {
        "a JSON Pointer begins with `/`, as in \"body:/routing_key\" or \"body:/auth/tokens/0\""
    } else if pointer.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1'])) {
        "in a JSON Pointer `~` is written `~0`, and a `/` that belongs to a key is written `~1`"
    } else if pointer.len() > KEY_BYTES_MAX || pointer.contains(char::is_control) {
        "this JSON Pointer is too long or holds a control character"
    } else {
        return Ok(SecretPlace::Body(pointer.to_owned()));
    };
    Err(objection.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<SecretPlace, &str>) {
        match (PlaceEntry::from_text(text, ""), expected) {
            (Ok(PlaceEntry(found)), Ok(expected)) => {
                assert_eq!(found, expected, "{text}");
                assert_eq!(found.to_string(), text.replace("AUTHORIZATION", "authorization").replace("Auth", "auth"));
            }
            (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn every_place_is_written_in_one_way() {
        let header = |prefix: Option<&str>| SecretPlace::Header {
            name: "authorization".to_owned(),
            prefix: prefix.map(str::to_owned),
        };
        check("url", Ok(SecretPlace::Url));
        check("header:Authorization", Ok(header(None)));
        check("header:AUTHORIZATION:Bearer", Ok(header(Some("Bearer"))));
        check("basic", Ok(SecretPlace::Basic));
        check("query:api_key", Ok(SecretPlace::Query("api_key".to_owned())));
        check("query:a[b]", Ok(SecretPlace::Query("a[b]".to_owned())));
        check("path", Ok(SecretPlace::Path));
        check("body:/routing_key", Ok(SecretPlace::Body("/routing_key".to_owned())));
        check("body:/a~1b/~0/0/", Ok(SecretPlace::Body("/a~1b/~0/0/".to_owned())));
        check("sign", Ok(SecretPlace::Sign));
        check("mail", Ok(SecretPlace::Mail));
        check("connector", Ok(SecretPlace::Connector));
    }

    #[test]
    fn what_is_no_place_says_how_it_is_written() {
        for (text, part) in [("query", "query:KEY"), ("body", "body:POINTER"), ("header", "header:NAME")] {
            check(text, Err(part));
        }
        for text in ["url:x", "basic:user", "path:0", "sign:hmac", "mail:x", "connector:x"] {
            check(text, Err("nothing stands behind"));
        }
        check("bearer", Err("header:Authorization:Bearer"));
        check("cookie", Err("unknown place"));
        check("", Err("unknown place"));
        for key in ["", "a b", "a=b", "a&b", "ä", "a%20b"] {
            check(&format!("query:{key}"), Err("one parameter"));
        }
        check("body:", Err("whole body"));
        check("body:routing_key", Err("begins with `/`"));
        for pointer in ["/~", "/a~2", "/~~0"] {
            check(&format!("body:{pointer}"), Err("`~0`"));
        }
        check(&format!("body:/{}", "x".repeat(256)), Err("too long"));
    }
}
