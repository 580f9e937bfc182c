//! URLs that everybody reads alike.

/// The host (and port) of an http or https URL that is plain enough for everybody to agree on it; `None` otherwise.
///
/// A link's label shows its host, so that a person sees where it leads. Browsers, Slack and this function must not
/// differ about which part that is, so a URL with a backslash, white space, control characters, quotes or angle
/// brackets has none, and neither has one whose host is not ASCII (a letter of another script may look like another).
#[inline(never)]
pub fn host(url: &str) -> Option<&str> {
    let rest = strip_scheme(url, "https://").or_else(|| strip_scheme(url, "http://"))?;
    if rest.contains(unfit) {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    (!host.is_empty() && !host.starts_with([':', '.']) && host.bytes().all(plain)).then_some(host)
}

/// What follows a scheme, which is written in any case (RFC 3986 section 3.1).
fn strip_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (start, rest) = url.split_at_checked(scheme.len())?;
    start.eq_ignore_ascii_case(scheme).then_some(rest)
}

fn unfit(letter: char) -> bool {
    letter.is_whitespace() || letter.is_control() || matches!(letter, '\\' | '"' | '<' | '>' | '`' | '|')
}
