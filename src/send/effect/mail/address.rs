//! Addresses of recipients: which are taken at all, and which the operator allows.

use lettre::Address;

use crate::config::RecipientPattern;

/// Longest part before the `@`, bytes (RFC 5321 §4.5.3.1.1).
const LOCAL_BYTES_MAX: usize = 64;
/// Longest domain, bytes (RFC 1035 §2.3.4, without the final dot).
const DOMAIN_BYTES_MAX: usize = 253;
/// Longest label of a domain, bytes (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

/// Reads a bare address: a dot-atom (RFC 5322 §3.4.1), an `@`, and a domain of letters, digits and hyphens.
///
/// # Errors
/// What is wrong with it and what to write instead; the text itself is not repeated.
pub(super) fn checked(text: &str) -> Result<Address, &'static str> {
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || matches!(c, '<' | '>' | '"' | '(' | ')' | ',')) {
        return Err("write the bare address: no name, no brackets, no quotes, no white space");
    }
    let (local, domain) = text.rsplit_once('@').ok_or("an address has an @")?;
    if !text.is_ascii() {
        return Err("write it in ASCII: a domain in its xn-- form");
    }
    // `%` and `!` ask a relay to pass a mail on to another domain than the one that was judged.
    if local.contains(['@', '%', '!']) {
        return Err("the part before the @ may not route to another domain: no second @, no % and no !");
    }
    if local.len() > LOCAL_BYTES_MAX || !local.split('.').all(is_atom) {
        return Err(
            "the part before the @ has at most 64 letters, digits and signs, and no dots in a row or at an end",
        );
    }
    if domain.len() > DOMAIN_BYTES_MAX || !domain.split('.').all(is_label) {
        return Err("the domain has labels of letters, digits and inner hyphens, with dots between them");
    }
    Address::new(local, domain).map_err(|_| "no mail server would take this address")
}

fn is_atom(text: &str) -> bool {
    let sign = |byte: u8| b"#$&'*+-/=?^_`{|}~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || sign(byte))
}

fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LABEL_BYTES_MAX).contains(&text.len())
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The address with its domain in lower case: the same for all spellings of one mailbox that can be told to be one.
pub(super) fn comparable(address: &Address) -> String {
    format!("{}@{}", address.user(), address.domain().to_ascii_lowercase())
}

/// Whether the operator's `mail.recipients` allow mail to this address.
pub(super) fn is_allowed(address: &Address, recipients: &[RecipientPattern]) -> bool {
    let domain = address.domain().to_ascii_lowercase();
    recipients.iter().any(|pattern| match pattern {
        RecipientPattern::Exact(exact) => *exact == comparable(address),
        RecipientPattern::Domain(allowed) => *allowed == domain,
        RecipientPattern::Anyone => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_addresses_are_taken_as_they_are() {
        let longest = format!("{}@{}.example", "a".repeat(64), "b".repeat(63));
        for text in
            ["ops@example.com", "first.last+tag@Sub.Example.com", "o'neil@example.com", "root@localhost", &longest]
        {
            assert_eq!(checked(text).map(|address| address.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn whatever_is_more_than_an_address_is_refused() {
        let long = format!("{}@example.com", "a".repeat(65));
        let long_domain = format!("a@{}", vec!["b".repeat(63); 4].join("."));
        for text in [
            "",
            "ops",
            "@example.com",
            "ops@",
            "Ops <ops@example.com>",
            "<ops@example.com>",
            "ops@example.com, more@example.com",
            "ops@example.com more",
            " ops@example.com",
            "ops@example.com\r\nRCPT TO:<else@example.com>",
            "ops\n@example.com",
            "ops@example.com\0",
            "\"ops\"@example.com",
            "\"a b\"@example.com",
            "ops(comment)@example.com",
            "ops@[192.0.2.1]",
            "ops@exam_ple.com",
            "ops@-example.com",
            "ops@example-.com",
            "ops@example..com",
            "ops@example.com.",
            ".ops@example.com",
            "ops.@example.com",
            "o..ps@example.com",
            "ops@evil.example@example.com",
            "ops%evil.example@example.com",
            "evil.example!ops@example.com",
            "öps@example.com",
            "ops@exämple.com",
            "ops\u{2028}@example.com",
            &long,
            &long_domain,
        ] {
            assert!(checked(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_operators_list_decides_who_gets_mail() {
        let domain = RecipientPattern::Domain("example.com".to_owned());
        let exact = RecipientPattern::Exact("Ops@other.example".to_owned());
        for (text, patterns, expected) in [
            ("ops@example.com", vec![], false),
            ("ops@EXAMPLE.com", vec![domain.clone()], true),
            ("ops@sub.example.com", vec![domain.clone()], false),
            ("ops@notexample.com", vec![domain.clone()], false),
            ("Ops@OTHER.example", vec![domain.clone(), exact.clone()], true),
            ("ops@other.example", vec![domain, exact], false),
            ("whoever@anywhere.example", vec![RecipientPattern::Anyone], true),
        ] {
            assert_eq!(is_allowed(&checked(text).unwrap(), &patterns), expected, "{text} by {patterns:?}");
        }
    }
}
