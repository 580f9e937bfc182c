//! Addresses of mail: a strict part of RFC 5321, which every relay takes.

use url::Host;

use super::super::read::FromText;
use super::super::schema::Form;
use super::super::{Mailbox, RecipientPattern};

/// Longest local part, in bytes (RFC 5321 §4.5.3.1.1).
const LOCAL_BYTES_MAX: usize = 64;
/// Longest address, in bytes (RFC 5321 §4.5.3.1.3, less the angle brackets).
const ADDRESS_BYTES_MAX: usize = 254;
/// Longest label of a domain, in bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;
/// Longest display name, in bytes: it shares a line of the header with the address, even encoded.
const NAME_BYTES_MAX: usize = 128;

/// The pattern of a domain, for editors: letters beyond ASCII may be any.
fn domain_pattern() -> String {
    const LETTER: &str = r"[^\u0000-\/:-@\[-`{-\u007f]";
    const LETTER_OR_HYPHEN: &str = r"[^\u0000-,.\/:-@\[-`{-\u007f]";
    let label = format!("{LETTER}(?:{LETTER_OR_HYPHEN}*{LETTER})?");
    format!(r"{label}(?:\.{label})*")
}

/// The pattern of an address, for editors.
fn address_pattern() -> String {
    const ATOM: &str = r"[A-Za-z0-9!#$%&'*+\-\/=?^_`{|}~]+";
    format!(r"(?=[^@]{{1,{LOCAL_BYTES_MAX}}}@){ATOM}(?:\.{ATOM})*@{}", domain_pattern())
}

impl FromText for Mailbox {
    const WANTED: &'static str = "a sender such as `Switchbell <bell@example.com>`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        mailbox(text.trim()).map_err(|why| format!("{quoted}: {why}"))
    }

    fn form() -> Form {
        let (name, address) =
            (r#"(?:[^<"\\\u0000-\u001f\u007f-\u009f]*|\s*"[^"\\<\u0000-\u001f\u007f-\u009f]*"\s*)"#, address_pattern());
        Form::pattern(
            format!(r"\s*(?:{name}<{address}>|{address})\s*"),
            &["Switchbell <bell@example.com>", "bell@example.com"],
        )
    }
}

impl FromText for RecipientPattern {
    const WANTED: &'static str = "an address such as `ops@example.com`, `\"*@example.com\"`, or `\"*\"` for everybody";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        recipient(text).map_err(|why| format!("{quoted}: {why}"))
    }

    fn form() -> Form {
        let pattern = format!(r"\*|\*@{}|(?![^@]*\*){}", domain_pattern(), address_pattern());
        Form::pattern(pattern, &["*@example.com", "ops@example.com", "*"])
    }
}

fn mailbox(text: &str) -> Result<Mailbox, String> {
    let Some((name, rest)) = text.split_once('<') else {
        return Ok(Mailbox { name: None, address: address(text)? });
    };
    let inside = rest.strip_suffix('>').ok_or("behind the name stands the address in `<` and `>`, and nothing more")?;
    let name = name.trim();
    let name = match name.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').ok_or("the quotes around the name are not closed")?,
        None => name,
    };
    if name.contains(['"', '\\']) || name.contains(char::is_control) {
        return Err("a name holds no quotes, no `\\` and no control characters".to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("a name has at most {NAME_BYTES_MAX} bytes"));
    }
    let name = (!name.is_empty()).then(|| name.to_owned());
    Ok(Mailbox { name, address: address(inside)? })
}

fn recipient(text: &str) -> Result<RecipientPattern, String> {
    if text == "*" {
        return Ok(RecipientPattern::Anyone);
    }
    if let Some(domain) = text.strip_prefix("*@") {
        return self::domain(domain).map(RecipientPattern::Domain);
    }
    if text.contains('*') {
        return Err(
            "a `*` stands alone before the `@`, as in `*@example.com`, or is everything, as in `\"*\"`".to_owned()
        );
    }
    if text.contains('<') {
        return Err("only the address is wanted: remove the name".to_owned());
    }
    if !text.contains('@') && text.contains('.') {
        return Err(format!("for every address of a domain write `\"*@{text}\"`"));
    }
    address(text).map(RecipientPattern::Exact)
}

/// An address with its domain in ASCII and lower case.
fn address(text: &str) -> Result<String, String> {
    let (local, domain) = text.rsplit_once('@').ok_or("an address is written `NAME@DOMAIN`")?;
    check_local(local)?;
    let address = format!("{local}@{}", self::domain(domain)?);
    if address.len() > ADDRESS_BYTES_MAX {
        return Err(format!("an address has at most {ADDRESS_BYTES_MAX} bytes"));
    }
    Ok(address)
}

/// Checks for a dot-atom (RFC 5321 §4.1.2).
fn check_local(local: &str) -> Result<(), String> {
    if local.starts_with('"') {
        return Err("an address whose first part stands in quotes is not supported: take another".to_owned());
    }
    if local.len() > LOCAL_BYTES_MAX {
        return Err(format!("before the `@` stand at most {LOCAL_BYTES_MAX} bytes"));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte);
    if local.split('.').any(|atom| atom.is_empty() || !atom.bytes().all(fits)) {
        return Err(
            "before the `@` stand ASCII letters, digits and some signs, with single dots between them".to_owned()
        );
    }
    Ok(())
}

/// A domain in ASCII and lower case.
fn domain(text: &str) -> Result<String, String> {
    if text.starts_with('[') {
        return Err("behind the `@` stands a domain, no IP address".to_owned());
    }
    let no_domain = || "behind the `@` stands a domain such as `example.com`".to_owned();
    // What parses hosts decodes percent signs, which belong to URLs.
    if text.contains('%') {
        return Err(no_domain());
    }
    let Ok(Host::Domain(domain)) = Host::parse(text) else { return Err(no_domain()) };
    let label_fits = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if !domain.split('.').all(label_fits) || domain.len() > ADDRESS_BYTES_MAX {
        return Err(no_domain());
    }
    Ok(domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_mailbox(text: &str, expected: Result<(Option<&str>, &str), &str>) {
        match (mailbox(text), expected) {
            (Ok(found), Ok((name, address))) => {
                assert_eq!((found.name.as_deref(), found.address.as_str()), (name, address), "{text}");
            }
            (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_mailbox_is_an_address_with_or_without_a_name() {
        check_mailbox("bell@example.com", Ok((None, "bell@example.com")));
        check_mailbox("<bell@example.com>", Ok((None, "bell@example.com")));
        check_mailbox("Switchbell <bell@Example.COM>", Ok((Some("Switchbell"), "bell@example.com")));
        check_mailbox(
            "\"Bell, Night\" <Bell.Night+x@bücher.example>",
            Ok((Some("Bell, Night"), "Bell.Night+x@xn--bcher-kva.example")),
        );
        check_mailbox("Glöckchen<bell@localhost>", Ok((Some("Glöckchen"), "bell@localhost")));
        check_mailbox(
            &format!("{}@example.com", "a".repeat(64)),
            Ok((None, &format!("{}@example.com", "a".repeat(64)))),
        );
    }

    #[test]
    fn what_is_no_mailbox_says_why() {
        check_mailbox("", Err("NAME@DOMAIN"));
        check_mailbox("Switchbell", Err("NAME@DOMAIN"));
        check_mailbox("Switchbell <bell@example.com", Err("in `<` and `>`"));
        check_mailbox("Switchbell <bell@example.com> x", Err("in `<` and `>`"));
        check_mailbox("a <b@example.com>, c <d@example.com>", Err("before the `@`"));
        check_mailbox("\"Bell <bell@example.com>", Err("not closed"));
        check_mailbox("Be\"ll <bell@example.com>", Err("no quotes"));
        check_mailbox("Bell\r\nBcc: x <bell@example.com>", Err("control characters"));
        check_mailbox(&format!("{} <bell@example.com>", "x".repeat(129)), Err("at most 128"));
        check_mailbox("\"a b\"@example.com", Err("stands in quotes"));
        check_mailbox("a b@example.com", Err("before the `@`"));
        check_mailbox("a..b@example.com", Err("before the `@`"));
        check_mailbox(".a@example.com", Err("before the `@`"));
        check_mailbox("ä@example.com", Err("before the `@`"));
        check_mailbox("@example.com", Err("before the `@`"));
        check_mailbox(&format!("{}@example.com", "a".repeat(65)), Err("at most 64"));
        for domain in ["", "a b", "-a.example", "a_b.example", "a..example", "1.2.3.4", "%61.example", "a.example."] {
            check_mailbox(&format!("bell@{domain}"), Err("stands a domain"));
        }
        check_mailbox("bell@[127.0.0.1]", Err("no IP address"));
        let long = format!("bell@{}", "abcdefghi.".repeat(26) + "example");
        check_mailbox(&long, Err("stands a domain"));
    }

    #[test]
    fn a_recipient_is_an_address_a_domain_or_everybody() {
        let exact = |text: &str| Ok(RecipientPattern::Exact(text.to_owned()));
        assert_eq!(recipient("Ops@Example.com"), exact("Ops@example.com"));
        assert_eq!(recipient("*@Example.com"), Ok(RecipientPattern::Domain("example.com".to_owned())));
        assert_eq!(recipient("*"), Ok(RecipientPattern::Anyone));
        for (text, part) in [
            ("*.example.com", "stands alone before"),
            ("ops-*@example.com", "stands alone before"),
            ("*@*.example.com", "stands a domain"),
            ("*@", "stands a domain"),
            ("example.com", "\"*@example.com\""),
            ("Ops <ops@example.com>", "remove the name"),
            ("ops", "NAME@DOMAIN"),
        ] {
            assert!(recipient(text).is_err_and(|message| message.contains(part)), "{text}: {:?}", recipient(text));
        }
    }
}
