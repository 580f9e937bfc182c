//! Which network addresses are public: the only ones a host name may lead to unless the grant says otherwise.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public internet: not loopback, private, link-local (cloud metadata), shared,
/// reserved, documentation or multicast, in whatever IPv6 form it hides (IANA special-purpose registries, RFC 6890).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => embedded_v4(address).map_or_else(|| is_public_v6(address), is_public_v4),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        0 | 10 | 127 => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => a >= 224,
    };
    !special
}

/// The IPv4 address inside an IPv4-mapped, IPv4-compatible, NAT64 or 6to4 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(v4(high, low)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        _ => None,
    }
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    // Global unicast is 2000::/3; of it, Teredo and protocol assignments (2001::/23), documentation (2001:db8::/32,
    // 3fff::/20) are not.
    let global = (0x2000..0x4000).contains(&first);
    let special = (first == 0x2001 && (second < 0x200 || second == 0xdb8)) || (first == 0x3fff && second < 0x1000);
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &[&str], expected: bool) {
        for address in addresses {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        check(&["1.1.1.1", "100.63.0.1", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "223.255.255.255"], true);
        check(&["2606:4700::1111", "2001:4860::8888", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::1"], true);
    }

    #[test]
    fn everything_else_is_not_in_whatever_form() {
        check(&["0.0.0.0", "10.1.2.3", "127.0.0.1", "100.64.0.1", "169.254.169.254", "172.16.0.1", "192.168.0.1"], false);
        check(&["192.0.0.192", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "255.255.255.255"], false);
        check(&["::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001::1", "3fff::1"], false);
        check(&["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "64:ff9b:1::1"], false);
    }
}
