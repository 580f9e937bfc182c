//! What holds for every request and every answer of the address of `listen:`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::{Caller, Gate};
use crate::serve::Served;
use crate::serve::problem::Problem;

/// What a page of ours may load, and who may show it: nothing but this server, and nobody.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                       connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What those ask who know this server by whatever name. They learn nothing of a workspace there, of `/metrics` without being
/// [on this machine](is_from_this_machine) or having the operator's token.
const FOR_ANY_HOST: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Webhooks are known by their own secret.
const HOOKS: &str = "/hooks/";

/// Refuses what is sent to a host that is not ours, and puts the headers that browsers need on every answer that has not its
/// own.
pub(in crate::serve) async fn protect(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_for_any = FOR_ANY_HOST.contains(&path) || path.starts_with(HOOKS);
    let mut response = match is_for_any || is_ours(&served.gate, request.headers(), request.uri()) {
        true => next.run(request).await,
        false => Problem::Misdirected(
            "this server does not go by the name in `Host`: use its own address, or say the name as `public_url`"
                .to_owned(),
        )
        .into_response(),
    };
    put(response.headers_mut(), served.gate.is_encrypted());
    response
}

/// Whether a request is sent to us. What stands in its first line counts before `Host` (RFC 9112, section 3.2.2).
fn is_ours(gate: &Gate, headers: &HeaderMap, uri: &Uri) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_only = hosts.next().is_none();
    let named = uri.authority().map(|authority| authority.as_str());
    is_only && host.is_some_and(|host| gate.is_our_host(host)) && named.is_none_or(|named| gate.is_our_host(named))
}

/// What proxies write, by which a request of somebody else is told from one of this machine.
const OF_PROXIES: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

/// Whether a program of this machine asks: by the control socket, or from a loopback address, for one of our hosts, and not for
/// somebody else.
pub(in crate::serve) fn is_from_this_machine(gate: &Gate, parts: &Parts) -> bool {
    let is_local = parts.extensions.get::<Caller>().is_some_and(Caller::is_local);
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
    let is_direct = !OF_PROXIES.iter().any(|name| parts.headers.contains_key(*name));
    is_local || is_direct && peer.is_some_and(|peer| peer.is_loopback()) && is_ours(gate, &parts.headers, &parts.uri)
}

fn put(headers: &mut HeaderMap, is_encrypted: bool) {
    let mut or_own = |name: HeaderName, value| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    or_own(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY);
    or_own(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    or_own(header::REFERRER_POLICY, "no-referrer");
    or_own(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    or_own(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    or_own(header::CACHE_CONTROL, "no-store");
    if is_encrypted {
        or_own(header::STRICT_TRANSPORT_SECURITY, "max-age=31536000");
    }
}
