//! One entry of a grant's `http` list.

use super::super::node::{Kind, Node};
use super::super::raw::RawHttpGrant;
use super::super::read::{FromText, Placed, Read, placed};
use super::super::schema::{File, Form, Schema};
use super::super::source::Report;
use super::super::{HostPattern, HttpGrant};
use super::address::{HOST, IPV6, PORT, about, parse_host};
use crate::notification::Name;

/// `host`, `host:port`, `*.suffix`, `http://…`, or a mapping with `host`, `private` and `workspaces`.
#[derive(Debug)]
pub(in crate::config) struct HttpEntry {
    /// What it grants.
    pub grant: HttpGrant,
    /// The workspaces it is limited to, with their places.
    pub workspaces: Vec<Placed<Name>>,
}

/// The origin that an entry names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Origin {
    scheme: &'static str,
    host: HostPattern,
    port: u16,
}

impl Read for HttpEntry {
    const WANTED: &'static str = "a host such as `hooks.example.com`, or a mapping with `host`";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if !matches!(node.kind, Kind::Mapping(_)) {
            let origin: Placed<Origin> = placed(node, report)?;
            return Some(Self::new(origin.value, false, Vec::new()));
        }
        let raw = RawHttpGrant::read(node, report)?;
        let is_private = raw.private.is_some_and(|private| private.value);
        let workspaces = raw.workspaces.map_or_else(Vec::new, |list| list.value.0);
        Some(Self::new(raw.host?.value, is_private, workspaces))
    }

    fn schema(file: File) -> Schema {
        Schema::either(Self::WANTED, Origin::schema(file), RawHttpGrant::schema(file))
    }
}

impl HttpEntry {
    fn new(origin: Origin, private: bool, workspaces: Vec<Placed<Name>>) -> Self {
        let Origin { scheme, host, port } = origin;
        let names = workspaces.iter().map(|name| name.value.clone()).collect();
        Self { grant: HttpGrant { scheme, host, port, private, workspaces: names }, workspaces }
    }
}

/// The grant that a text alone writes.
///
/// # Errors
/// Says what is wrong with the text and what to write instead.
pub(in crate::config) fn http_grant(text: &str) -> Result<HttpGrant, String> {
    origin(text).map(|origin| HttpEntry::new(origin, false, Vec::new()).grant)
}

impl FromText for Origin {
    const WANTED: &'static str = "a host such as `hooks.example.com`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        origin(text).map_err(|why| about(text, quoted) + &why)
    }

    fn form() -> Form {
        let pattern = format!(r"(?:[Hh][Tt][Tt][Pp][Ss]?:\/\/)?(?:(?:\*\.)?{HOST}|{IPV6})(?::{PORT})?");
        Form::pattern(pattern, &["hooks.example.com", "*.example.com", "name.example:8443", "http://127.0.0.1:9000"])
    }
}

fn origin(text: &str) -> Result<Origin, String> {
    let (scheme, rest, scheme_port) = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest, 80),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest, 443),
        Some(_) => return Err("only https and http can be granted".to_owned()),
        None => ("https", text, 443),
    };
    let port_start = match rest.rfind(']') {
        Some(bracket) => rest.get(bracket + 1..).and_then(|after| after.find(':')).map(|at| bracket + 1 + at),
        None if rest.parse::<std::net::Ipv6Addr>().is_ok() => None,
        None => rest.rfind(':'),
    };
    // What is no port is left to `parse_host`, which knows paths, queries, users and passwords.
    let port_start = port_start.filter(|_| !rest.contains(['/', '?', '#', '@']));
    let (host, port) = port_start.map_or((rest, None), |at| (rest.get(..at).unwrap_or(rest), rest.get(at + 1..)));
    let port = match port {
        None => scheme_port,
        Some(port) => port_number(port).ok_or_else(|| format!("{port:?} is no port: write 1 to 65535"))?,
    };
    Ok(Origin { scheme, host: parse_host(host)?, port })
}

pub(super) fn port_number(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|&port| is_number && port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &str, u16), &str>) {
        let found = origin(text).map(|origin| {
            let host = match origin.host {
                HostPattern::Exact(host) | HostPattern::Suffix(host) => host,
            };
            (origin.scheme, host, origin.port)
        });
        match (&found, expected) {
            (Ok((scheme, host, port)), Ok(expected)) => assert_eq!((*scheme, host.as_str(), *port), expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            _ => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_grant_names_an_origin() {
        check("hooks.slack.com", Ok(("https", "hooks.slack.com", 443)));
        check("Hooks.Slack.COM:8443", Ok(("https", "hooks.slack.com", 8443)));
        check("*.example.com", Ok(("https", ".example.com", 443)));
        check("http://127.0.0.1:9000", Ok(("http", "127.0.0.1", 9000)));
        check("http://agents.internal", Ok(("http", "agents.internal", 80)));
        check("https://a.example", Ok(("https", "a.example", 443)));
        check("[::1]:8080", Ok(("https", "::1", 8080)));
        check("http://[::1]", Ok(("http", "::1", 80)));
        check("bücher.example", Ok(("https", "xn--bcher-kva.example", 443)));
    }

    #[test]
    fn a_grant_names_nothing_but_an_origin() {
        check("https://a.example/", Err("remove the `/`"));
        check("a.example/hook", Err("a path cannot be granted"));
        check("a.example:443/hook", Err("a path cannot be granted"));
        check("a.example?x", Err("a query"));
        check("u:p@a.example", Err("user and password"));
        check("ftp://a.example", Err("only https and http"));
        check("a.example:0", Err("no port"));
        check("a.example:99999", Err("no port"));
        check("a.example:+80", Err("no port"));
        check("a.example:", Err("no port"));
        check("::1", Err("in brackets"));
        check("*", Err("every host"));
        check("a.*.example", Err("very beginning"));
        check("*.*.example", Err("very beginning"));
        check("*.1.2.3.4", Err("no suffix"));
        check("", Err("missing"));
        check("a b", Err("no host name"));
        check("a.example.", Err("remove the `.`"));
    }
}
