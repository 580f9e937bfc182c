//! What is an address.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// The longest address, in characters (RFC 5321 section 4.5.3.1.3, less the angle brackets).
pub(crate) const ADDRESS_MAX: usize = 254;

/// The longest part before the `@`, in characters (RFC 5321 section 4.5.3.1.1).
const LOCAL_MAX: usize = 64;

/// The longest label of a domain, in characters (RFC 1035 section 2.3.4).
const LABEL_MAX: usize = 63;

/// Whether this is an address alone: the forms that every relay takes, without names, comments, quotes and literals.
pub(crate) fn check(address: &str) -> Result<(), String> {
    if address.len() > ADDRESS_MAX {
        return Err(format!("longer than {ADDRESS_MAX} characters"));
    }
    if address.contains(['<', '>', ' ', '"', '(', ',', ';']) {
        return Err("write the address alone, such as ops@example.com, without a name; several as a list".to_owned());
    }
    if !address.is_ascii() {
        return Err("only ASCII can be sent to: write the domain in its xn-- form".to_owned());
    }
    match address.rsplit_once('@') {
        Some((local, domain)) if is_local(local) && is_domain(domain) => Ok(()),
        _ => Err("not an address: write one such as ops@example.com".to_owned()),
    }
}

/// A dot-atom (RFC 5322 section 3.2.3), without the signs that ask a relay to pass the mail on (`%`, `!`).
fn is_local(local: &str) -> bool {
    let special = |byte: u8| b"#$&'*+-/=?^_`{|}~".contains(&byte);
    let is_atom =
        |atom: &str| !atom.is_empty() && atom.bytes().all(|byte| byte.is_ascii_alphanumeric() || special(byte));
    local.len() <= LOCAL_MAX && local.split('.').all(is_atom)
}

fn is_domain(domain: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    domain.split('.').all(|label| {
        let edges = !label.starts_with('-') && !label.ends_with('-');
        !label.is_empty() && label.len() <= LABEL_MAX && edges && label.bytes().all(inner)
    })
}
