//! What holds for every request and every answer of the address of `listen:`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::Gate;
use crate::serve::Served;
use crate::serve::problem::Problem;

/// What a page of ours may load, and who may show it: nothing but this server, and nobody.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                                       connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What those ask who know this server by whatever name, and who learn nothing of a workspace there.
const FOR_ANY_HOST: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Webhooks are known by their own secret.
const HOOKS: &str = "/hooks/";

/// Refuses what is sent to a host that is not ours, and puts the headers that browsers need on every answer that has not its
/// own.
pub(in crate::serve) async fn protect(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_for_any = FOR_ANY_HOST.contains(&path) || path.starts_with(HOOKS);
    let mut response = match is_for_any || is_ours(&served.gate, &request) {
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
fn is_ours(gate: &Gate, request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_only = hosts.next().is_none();
    let named = request.uri().authority().map(|authority| authority.as_str());
    is_only && host.is_some_and(|host| gate.is_our_host(host)) && named.is_none_or(|named| gate.is_our_host(named))
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
