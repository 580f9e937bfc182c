//! Where a connector's URL leads, as far as its text tells.

use std::net::IpAddr;

use url::{Host, Url};

use crate::address::is_public;

/// Whether the URL leads to this machine by a literal address or a name that means nothing else (RFC 6761 §6.3).
pub(super) fn is_loopback(url: &Url) -> bool {
    is_loopback_literal(url) || is_localhost(url)
}

/// Whether a loopback address is written out.
pub(super) fn is_loopback_literal(url: &Url) -> bool {
    literal(url).is_some_and(|address| address.is_loopback())
}

/// Whether an address that is not public is written out.
pub(super) fn is_private_literal(url: &Url) -> bool {
    literal(url).is_some_and(|address| !is_public(address))
}

/// Whether the URL's name always means this machine.
pub(super) fn is_localhost(url: &Url) -> bool {
    matches!(url.host(), Some(Host::Domain(name)) if name == "localhost" || name.ends_with(".localhost"))
}

/// Why a workspace's connector may not be reached at this URL.
pub(super) fn unreachable(url: &Url, listens_on_loopback: bool) -> Option<&'static str> {
    if is_localhost(url) {
        return Some(
            "a connector's URL reaches public addresses only: for a server on this machine write the literal 127.0.0.1, which is allowed while `listen` is a loopback address",
        );
    }
    let address = literal(url)?;
    match (address.is_loopback(), listens_on_loopback) {
        (true, true) => None,
        (true, false) => Some(
            "a loopback address may be reached only while `listen` is one too; a connector's URL reaches public addresses only",
        ),
        (false, _) if is_public(address) => None,
        (false, _) => Some("this address is not public; a connector's URL reaches public addresses only"),
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.to_canonical()),
        Host::Domain(_) => None,
    }
}
