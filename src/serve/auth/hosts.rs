//! Which names of hosts and which origins are this server's own: a page of a stranger whose name was turned to lead here (DNS
//! rebinding) has neither.

use std::net::SocketAddr;

use url::{Host, Url};

use crate::config::Access;

/// The names of this server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hosts<'a> {
    /// How it is reached.
    pub(super) access: &'a Access,
    /// Where it listens.
    pub(super) listen: SocketAddr,
}

impl Hosts<'_> {
    /// Whether a `Host` is one of ours, as `host` or `host:port`: that of the public URL; on loopback this machine's, with our
    /// port. A server for other machines that has no public URL goes by addresses, and by `localhost`, at any port: nobody can
    /// turn those to lead elsewhere.
    pub(super) fn is_host(self, host: &str) -> bool {
        let scheme = self.access.public_url.as_ref().map_or("http", Url::scheme);
        authority(scheme, host).is_some_and(|url| self.is_public(&url))
            || authority("http", host).is_some_and(|url| self.is_local(&url))
    }

    /// Whether an `Origin` is one of ours.
    pub(super) fn is_origin(self, origin: &str) -> bool {
        self.is_public_origin(origin) || self.is_local_origin(origin)
    }

    /// Whether a page of ours sent this: its origin is that of the public URL, or the very host that was asked.
    pub(super) fn is_from_here(self, origin: &str, host: &str) -> bool {
        let is_same = || origin.strip_prefix("http://").is_some_and(|it| it.eq_ignore_ascii_case(host));
        self.is_public_origin(origin) || self.is_local_origin(origin) && is_same()
    }

    fn is_public_origin(self, origin: &str) -> bool {
        let public = self.access.public_url.as_ref();
        public.is_some_and(|url| url.origin().ascii_serialization() == origin)
    }

    fn is_local_origin(self, origin: &str) -> bool {
        let host = origin.strip_prefix("http://");
        host.and_then(|host| authority("http", host)).is_some_and(|url| self.is_local(&url))
    }

    fn is_public(self, url: &Url) -> bool {
        let public = self.access.public_url.as_ref();
        public.is_some_and(|public| public.origin() == url.origin())
    }

    fn is_local(self, url: &Url) -> bool {
        let (is_ours, is_literal) = match url.host() {
            Some(Host::Domain(name)) => (name == "localhost", name == "localhost"),
            Some(Host::Ipv4(address)) => (address.is_loopback(), true),
            Some(Host::Ipv6(address)) => (address.to_canonical().is_loopback(), true),
            None => (false, false),
        };
        match (self.listen.ip().is_loopback(), &self.access.public_url) {
            (true, _) => is_ours && url.port_or_known_default() == Some(self.listen.port()),
            (false, None) => is_literal,
            (false, Some(_)) => false,
        }
    }
}

/// The URL of `host` or `host:port`; none when it is more or less than that.
fn authority(scheme: &str, host: &str) -> Option<Url> {
    let is_plain = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    Url::parse(&format!("{scheme}://{host}/")).ok().filter(|url| is_plain && url.path() == "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(public_url: Option<&str>, listen: &str, ours: &[&str], foreign: &[&str]) {
        let access = Access { public_url: public_url.map(|url| url.parse().unwrap()), ..Access::default() };
        let hosts = Hosts { access: &access, listen: listen.parse().unwrap() };
        for (texts, expected) in [(ours, true), (foreign, false)] {
            for text in texts {
                let found =
                    if text.contains("://") || *text == "null" { hosts.is_origin(text) } else { hosts.is_host(text) };
                assert_eq!(found, expected, "{public_url:?} {listen}: {text}");
            }
        }
    }

    #[test]
    fn on_loopback_the_names_of_this_machine_with_our_port_are_ours() {
        check(
            None,
            "127.0.0.1:7420",
            &[
                "localhost:7420",
                "LOCALHOST:7420",
                "127.0.0.1:7420",
                "[::1]:7420",
                "http://localhost:7420",
                "http://127.0.0.1:7420",
            ],
            &[
                "localhost",
                "127.0.0.1",
                "localhost:7421",
                "evil.example:7420",
                "evil.example",
                "localhost.evil.example:7420",
                "10.0.0.1:7420",
                "",
                "a@localhost:7420",
                "localhost:7420/x",
                "localhost:7420,evil.example",
                "https://localhost:7420",
                "http://evil.example",
                "http://localhost:7420/",
                "http://a@localhost:7420",
                "null",
            ],
        );
        check(None, "127.0.0.1:80", &["localhost", "localhost:80", "http://localhost"], &["localhost:81"]);
    }

    #[test]
    fn the_host_of_the_public_url_is_ours() {
        check(
            Some("https://bell.example.com"),
            "0.0.0.0:7420",
            &["bell.example.com", "BELL.example.com", "bell.example.com:443", "https://bell.example.com"],
            &[
                "bell.example.com:7420",
                "www.bell.example.com",
                "localhost:7420",
                "10.0.0.1:7420",
                "http://bell.example.com",
                "https://bell.example.com:8443",
                "https://evil.example",
                "null",
            ],
        );
        check(
            Some("http://bell.internal:7420"),
            "127.0.0.1:7420",
            &["bell.internal:7420", "localhost:7420", "http://bell.internal:7420", "http://localhost:7420"],
            &["bell.internal", "https://bell.internal:7420"],
        );
    }

    #[test]
    fn without_a_public_url_a_server_for_others_goes_by_addresses() {
        check(
            None,
            "0.0.0.0:7420",
            &["10.0.0.1:7420", "10.0.0.1:8080", "[fd00::1]:7420", "localhost:8080", "http://10.0.0.1:7420"],
            &["bell.example.com:7420", "evil.example", "http://evil.example", "https://10.0.0.1"],
        );
    }

    #[test]
    fn a_page_of_another_port_of_this_machine_is_no_page_of_ours() {
        let access = Access::default();
        let hosts = Hosts { access: &access, listen: "0.0.0.0:7420".parse().unwrap() };
        for (origin, host, expected) in [
            ("http://10.0.0.1:7420", "10.0.0.1:7420", true),
            ("http://10.0.0.1:9999", "10.0.0.1:7420", false),
            ("null", "10.0.0.1:7420", false),
        ] {
            assert_eq!(hosts.is_from_here(origin, host), expected, "{origin} {host}");
        }
        let access = Access { public_url: Some("https://bell.example.com".parse().unwrap()), ..Access::default() };
        let hosts = Hosts { access: &access, listen: "127.0.0.1:7420".parse().unwrap() };
        assert!(hosts.is_from_here("https://bell.example.com", "127.0.0.1:7420"), "a proxy may write its own `Host`");
    }
}
