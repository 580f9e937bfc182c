//! Where things are: the address to listen on, the store, the URLs of connectors, hosts.

use std::net::{IpAddr, SocketAddr};

use url::{Host as UrlHost, Url};

use super::super::HostPattern;
use super::super::read::FromText;
use super::super::schema::Form;

/// Patterns of the parts of addresses, for editors. A name of a host is judged by its characters alone.
pub(super) const HOST: &str = r"[^\s\u0000-\u001f\u007f#%*/:<>?@\[\\\]^|]*[^\s\u0000-\u001f\u007f#%*./:<>?@\[\\\]^|]";
pub(super) const IPV4: &str = r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|(?![\d.]))){4}";
pub(super) const IPV6: &str = r"\[[0-9A-Fa-f:.]+\]";
/// 1 to 65535.
pub(super) const PORT: &str = r"0*(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|[1-9]\d{0,3})";
/// The same and 0, which has the system choose one.
const PORT_OR_NONE: &str = r"0*(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|\d{1,4})";
/// An absolute URL without user, fragment and white space.
pub(super) const HTTP_URL: &str = r"[Hh][Tt][Tt][Pp][Ss]?:[\/\\]*(?![^\/\\?]*@)[^\s#\/\\?][^\s#]*";

/// An address to listen on.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct Listen(pub SocketAddr);

impl FromText for Listen {
    const WANTED: &'static str = "an address such as `127.0.0.1:7420`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| {
            let port = text.rsplit(':').next().filter(|port| port.parse::<u16>().is_ok()).unwrap_or("7420");
            let host = match text.rsplit_once(':').map_or("", |(host, _)| host) {
                "localhost" => "127.0.0.1",
                "*" => "0.0.0.0",
                _ => "",
            };
            let example = if host.is_empty() { format!("127.0.0.1:{port}") } else { format!("{host}:{port}") };
            format!("{quoted} is no address to listen on: write an IP address and a port, as in `{example}`")
        })
    }

    fn form() -> Form {
        Form::pattern(format!("(?:{IPV4}|{IPV6}):{PORT_OR_NONE}"), &["127.0.0.1:7420", "0.0.0.0:7420", "[::1]:7420"])
    }
}

/// The database: the path of an SQLite file as it is written.
#[derive(Debug, Clone)]
pub(in crate::config) struct Store(pub String);

impl FromText for Store {
    const WANTED: &'static str = "a store such as `sqlite:data/switchbell.db`";

    /// Never quotes the text: a database's URL may hold a password.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        if text.starts_with("postgres:") || text.starts_with("postgresql:") {
            return Err("`postgres:` is not supported by this version: write `sqlite:PATH`".to_owned());
        }
        let path = text
            .strip_prefix("sqlite:")
            .ok_or_else(|| "a store is written `sqlite:PATH`, as in `sqlite:data/switchbell.db`".to_owned())?;
        if path.is_empty() || path.ends_with('/') || path.contains(['?', '\0']) || path.starts_with(':') {
            return Err("after `sqlite:` stands the path of a file, as in `sqlite:data/switchbell.db`".to_owned());
        }
        if path.starts_with("//") {
            return Err(
                "write the path right after `sqlite:`, without `//`: `sqlite:data/x.db`, or `sqlite:/srv/x.db`"
                    .to_owned(),
            );
        }
        Ok(Self(path.to_owned()))
    }

    fn form() -> Form {
        Form::pattern(r"sqlite:(?![:]|\/\/)[^?\u0000]*[^?\/\u0000]", &["sqlite:data/switchbell.db"])
    }
}

/// The endpoint of a connector over HTTP.
#[derive(Debug, Clone)]
pub(in crate::config) struct ConnectorUrl(pub Url);

impl FromText for ConnectorUrl {
    const WANTED: &'static str = "a URL such as `https://mcp.example.com/mcp`";

    /// Never quotes the text: a URL may hold a credential.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let url = Url::parse(text)
            .map_err(|error| format!("this is no URL ({error}): write one such as `https://mcp.example.com/mcp`"))?;
        let objection = if !matches!(url.scheme(), "http" | "https") {
            "a connector's URL begins with https:// or http://"
        } else if !url.username().is_empty() || url.password().is_some() {
            "a connector's URL holds no user and no password: use `auth: { bearer: { secret: NAME } }`"
        } else if url.fragment().is_some() {
            "a connector's URL has no fragment: remove the `#` and what follows"
        } else if text.contains(char::is_whitespace) {
            "a URL has no white space"
        } else {
            return Ok(Self(url));
        };
        Err(objection.to_owned())
    }

    fn form() -> Form {
        Form::pattern(HTTP_URL, &["https://mcp.example.com/mcp"])
    }
}

/// A host name or IP literal, or with `*.` in front every name below it; without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct Host(pub HostPattern);

impl FromText for Host {
    const WANTED: &'static str = "a host such as `hooks.example.com` or `*.example.com`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let has_port = !text.starts_with('[') && text.contains(':') && !text.contains("//");
        if has_port && text.parse::<IpAddr>().is_err() {
            return Err(about(text, quoted) + "a secret's host has no port: remove the `:` and what follows");
        }
        parse_host(text).map(Self).map_err(|why| about(text, quoted) + &why)
    }

    fn form() -> Form {
        Form::pattern(format!(r"(?:\*\.)?{HOST}|{IPV6}"), &["hooks.example.com", "*.example.com"])
    }
}

/// The beginning of a message about a host: the text, unless it may hold a credential.
pub(super) fn about(text: &str, quoted: &str) -> String {
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    if bare.contains(['/', '?', '#', '@']) { String::new() } else { format!("{quoted}: ") }
}

/// Reads `host`, `*.suffix`, an IPv4 literal, or an IPv6 literal in brackets. Names become ASCII in lower case.
pub(super) fn parse_host(text: &str) -> Result<HostPattern, String> {
    let objection = if text.is_empty() {
        "a host is missing"
    } else if text.contains("://") {
        "only a host is wanted: remove the scheme"
    } else if text.ends_with('/') && text.matches('/').count() == 1 {
        "remove the `/` at the end"
    } else if text.contains('/') {
        "a path cannot be granted: keep the host alone"
    } else if text.contains(['?', '#']) {
        "a query or fragment cannot be granted: keep the host alone"
    } else if text.contains('@') {
        "user and password do not belong here: keep the host alone"
    } else if text.parse::<std::net::Ipv6Addr>().is_ok() {
        "an IPv6 address stands in brackets, as in \"[::1]\""
    } else if text.ends_with('.') {
        "remove the `.` at the end"
    } else if text == "*" || text == "*." {
        "every host cannot be granted: name hosts, or a suffix such as `*.example.com`"
    } else if text.trim_start_matches("*.").contains('*') || text.starts_with("*.*") {
        "a `*` stands only at the very beginning, before a dot, as in `*.example.com`"
    } else {
        return pattern(text);
    };
    Err(objection.to_owned())
}

fn pattern(text: &str) -> Result<HostPattern, String> {
    let (is_suffix, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
    let host = UrlHost::parse(name).map_err(|_| "this is no host name".to_owned())?;
    match host {
        UrlHost::Domain(name) if is_suffix => Ok(HostPattern::Suffix(format!(".{name}"))),
        UrlHost::Domain(name) => Ok(HostPattern::Exact(name)),
        _ if is_suffix => Err("an IP address has no suffix: write it whole".to_owned()),
        UrlHost::Ipv4(address) => Ok(HostPattern::Exact(address.to_string())),
        UrlHost::Ipv6(address) => Ok(HostPattern::Exact(address.to_string())),
    }
}
