//! How the server is reached.

use std::net::SocketAddr;

use super::super::access::Access;
use super::super::code::Code;
use super::super::node::At;
use super::super::read::Placed;
use super::super::source::Report;
use super::super::values::{Network, PublicUrl};

/// Most networks of proxies.
const PROXIES_MAX: usize = 100;

/// Checks the keys. `listen` is the address with its place in the file.
pub(super) fn check(
    listen: Option<(&At, SocketAddr)>,
    public_url: Option<Placed<PublicUrl>>,
    proxies: Option<Placed<Vec<Placed<Network>>>>,
    report: &mut Report,
) -> Access {
    if let Some(list) = proxies.as_ref().filter(|list| list.len() > PROXIES_MAX) {
        let text = format!("{} networks: name at most {PROXIES_MAX}", list.len());
        report.mistake(&list.at, Code::OutOfBounds.says(text));
    }
    let networks = proxies.map_or_else(Vec::new, |list| list.value);
    let access = Access {
        public_url: public_url.map(|url| url.value.0),
        trusted_proxies: networks.into_iter().map(|network| network.value.0).collect(),
    };
    let is_encrypted = access.public_url.as_ref().is_some_and(|url| url.scheme() == "https");
    if let Some((at, listen)) = listen
        && !listen.ip().is_loopback()
        && !is_encrypted
        && access.trusted_proxies.is_empty()
    {
        report.warning(
            at,
            Code::Unencrypted.says(
                "tokens and notifications would travel unencrypted, since other machines can reach this address: let a \
                 proxy with TLS stand before it, and name its `public_url: https://…` and `trusted_proxies`",
            ),
        );
    }
    access
}
