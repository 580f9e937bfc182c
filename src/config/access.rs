//! How the server is reached, and whose word on a client's address counts.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use url::Url;

use super::Config;
use crate::notification::Name;

/// Longest URL of a digest in the inbox, in characters: what a message can carry besides its text.
const DIGEST_URL_CHARS_MAX: usize = 400;

/// How the server is reached from outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// Where people and programs reach it: http or https, a host, perhaps a port, and nothing else.
    pub public_url: Option<Url>,
    /// Whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<IpNet>,
}

impl Access {
    /// Whether this address is that of a proxy whose word counts.
    pub fn is_trusted(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }

    /// Where the server is reached: the public URL, else its own loopback address. It ends with `/`.
    pub fn base(&self, listen: SocketAddr) -> Option<Url> {
        let own = || Url::parse(&format!("http://{listen}/")).ok();
        let is_known = listen.ip().is_loopback() && listen.port() != 0;
        self.public_url.clone().or_else(|| is_known.then(own).flatten())
    }
}

impl Config {
    /// Where a person sees these notifications of a workspace; none where nobody knows how the server is reached. A number of
    /// 0 is that of one that is in no inbox.
    pub fn inbox_url(&self, workspace: &Name, seqs: &[u64]) -> Option<String> {
        inbox_url(&self.access.base(self.listen)?, workspace, seqs)
    }
}

fn inbox_url(base: &Url, workspace: &Name, seqs: &[u64]) -> Option<String> {
    let inbox = base.join(&format!("w/{workspace}/inbox")).ok()?.to_string();
    let seqs: Vec<u64> = seqs.iter().copied().filter(|seq| *seq != 0).collect();
    Some(match seqs.as_slice() {
        [] => inbox,
        [seq] => format!("{inbox}/{seq}"),
        seqs => {
            let list: Vec<String> = seqs.iter().map(u64::to_string).collect();
            let all = format!("{inbox}?seqs={}", list.join(","));
            if all.len() <= DIGEST_URL_CHARS_MAX { all } else { inbox }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(public_url: Option<&str>, proxies: &[&str]) -> Access {
        Access {
            public_url: public_url.map(|url| url.parse().unwrap()),
            trusted_proxies: proxies.iter().map(|network| network.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn the_server_is_reached_at_its_public_url_else_on_this_machine() {
        let check = |public_url: Option<&str>, listen: &str, expected: Option<&str>| {
            let base = access(public_url, &[]).base(listen.parse().unwrap());
            assert_eq!(base.as_ref().map(Url::as_str), expected, "{public_url:?} {listen}");
        };
        check(Some("https://bell.example.com"), "0.0.0.0:7420", Some("https://bell.example.com/"));
        check(Some("https://bell.example.com"), "127.0.0.1:0", Some("https://bell.example.com/"));
        check(None, "127.0.0.1:7420", Some("http://127.0.0.1:7420/"));
        check(None, "[::1]:7420", Some("http://[::1]:7420/"));
        check(None, "127.0.0.1:0", None);
        check(None, "0.0.0.0:7420", None);
    }

    #[test]
    fn a_message_links_to_what_it_is_about() {
        let base = Url::parse("https://bell.example.com").unwrap();
        let check = |seqs: &[u64], expected: &str| {
            let found = inbox_url(&base, &"acme".parse().unwrap(), seqs).unwrap();
            assert_eq!(found, format!("https://bell.example.com/w/acme/inbox{expected}"), "{seqs:?}");
        };
        check(&[7], "/7");
        check(&[7, 9, 12], "?seqs=7,9,12");
        check(&[], "");
        check(&[0], "");
        check(&(1_000_000..1_000_100).collect::<Vec<u64>>(), "");
    }

    #[test]
    fn a_proxy_is_trusted_by_its_network_however_its_address_is_written() {
        let access = access(None, &["10.0.0.0/8", "fd00::/8"]);
        for (address, expected) in
            [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("11.0.0.1", false), ("fd00::1", true), ("::1", false)]
        {
            assert_eq!(access.is_trusted(address.parse().unwrap()), expected, "{address}");
        }
    }
}
