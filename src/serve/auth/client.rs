//! Where a request comes from, behind proxies.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;

use crate::config::Access;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// Hops of a chain that are looked at, from the server on.
const HOPS_MAX: usize = 32;

/// The address of the client: that of the peer; behind trusted proxies the last address of `X-Forwarded-For` that is none of
/// theirs. What stands before it is anybody's word.
pub(super) fn address(access: &Access, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = peer.to_canonical();
    if !access.is_trusted(client) {
        return client;
    }
    let lines = headers.get_all(FORWARDED_FOR).iter().rev();
    // A line that is no text ends the chain: nobody knows what it says.
    let hops = lines.flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
    for hop in hops.take(HOPS_MAX) {
        let Some(address) = hop_address(hop.trim()) else { break };
        client = address.to_canonical();
        if !access.is_trusted(client) {
            break;
        }
    }
    client
}

/// An address, perhaps with a port.
fn hop_address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(peer: &str, lines: &[&str], expected: &str) {
        let access = Access {
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
            ..Access::default()
        };
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(FORWARDED_FOR, line.parse().unwrap());
        }
        let found = address(&access, peer.parse().unwrap(), &headers);
        assert_eq!(found, expected.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
    }

    #[test]
    fn the_last_address_that_is_no_proxys_is_the_client() {
        check("10.0.0.1", &["192.0.2.7"], "192.0.2.7");
        check("10.0.0.1", &["198.51.100.9, 192.0.2.7"], "192.0.2.7");
        check("10.0.0.1", &["192.0.2.7, 10.0.0.3, 10.0.0.2"], "192.0.2.7");
        check("10.0.0.1", &["192.0.2.6", "192.0.2.7", "10.0.0.2"], "192.0.2.7");
        check("::ffff:10.0.0.1", &["192.0.2.7:4711"], "192.0.2.7");
        check("fd00::1", &["[2001:db8::7]:4711"], "2001:db8::7");
        check("fd00::1", &["2001:db8::7"], "2001:db8::7");
    }

    #[test]
    fn who_is_no_proxy_says_nothing_about_itself() {
        check("192.0.2.1", &["127.0.0.1"], "192.0.2.1");
    }

    #[test]
    fn a_chain_that_says_nothing_more_ends_at_its_last_known_address() {
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["192.0.2.7, unknown"], "10.0.0.1");
        check("10.0.0.1", &["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &["10.0.0.3, 10.0.0.2"], "10.0.0.3");
        check("10.0.0.1", &[", ,"], "10.0.0.1");
    }

    #[test]
    fn an_endless_chain_is_read_only_so_far() {
        check("10.0.0.1", &[&format!("192.0.2.7{}", ", 10.0.0.2".repeat(HOPS_MAX))], "10.0.0.2");
    }
}
