//! The guard: pure code that decides on a request and the grants, and builds the one thing that is sent.

use std::net::IpAddr;

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::secret::{header_value, host_allowed};
use super::{Permission, denied};
use crate::config::{Grant, HostPattern, HttpGrant, Secret, SecretPlace};
use crate::notification::Name;
use crate::wasm::{Fault, Request};

/// Longest URL, bytes: what common servers accept.
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// Most headers of a request, and their bytes together: what common servers accept.
pub const HEADERS_MAX: usize = 64;
/// Bytes of all header names and values together.
pub const HEADER_BYTES_MAX: usize = 16 * 1024;
/// Largest body of a request, bytes: far above what any first-party channel takes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// What may be sent.
#[derive(Debug)]
pub struct Allowed {
    /// The method.
    pub method: Method,
    /// Where to: the very URL that was judged.
    pub url: Url,
    /// The headers, with secrets in.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the host may be at a private address.
    pub private: bool,
}

impl HttpGrant {
    /// Whether a request of this workspace to this URL is granted.
    pub fn covers(&self, url: &Url, workspace: &Name) -> bool {
        let at_home = self.workspaces.is_empty() || self.workspaces.contains(workspace);
        at_home
            && self.scheme == url.scheme()
            && Some(self.port) == url.port_or_known_default()
            && self.host.covers(bare_host(url))
    }
}

/// The host of a URL, without the brackets of an IPv6 literal.
pub fn bare_host(url: &Url) -> &str {
    let host = url.host_str().unwrap_or_default();
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Judges a request.
///
/// # Errors
/// Why it is refused, and what the operator or the plugin's author should change.
pub fn judge(request: Request, permission: &Permission<'_>) -> Result<Allowed, Fault> {
    let method = method(&request.method)?;
    if request.body.len() > BODY_BYTES_MAX {
        return Err(denied("body-too-large", format!("a request body has at most {BODY_BYTES_MAX} bytes")));
    }
    if !request.sign.is_empty() {
        return Err(denied("not-supported", "this version of the host does not sign requests".to_owned()));
    }
    let url = url(&request.url, permission)?;
    let grant = granted(permission, &url)?;
    if let Some(secret) = permission.seals.found_in(&request.body) {
        return Err(misplaced(secret, "the body"));
    }
    let headers = headers(&request.headers, &url, permission)?;
    Ok(Allowed { method, url, headers, body: request.body, private: grant.private || is_literal(&grant.host) })
}

fn method(asked: &str) -> Result<Method, Fault> {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
    let method = known.contains(&asked).then(|| Method::from_bytes(asked.as_bytes()).ok()).flatten();
    method.ok_or_else(|| denied("method", format!("the method is one of {}", known.join(", "))))
}

fn url(asked: &str, permission: &Permission<'_>) -> Result<Url, Fault> {
    let secret = permission.seals.get(asked);
    let text = match secret {
        Some((_, secret @ Secret { place: SecretPlace::Url, .. })) => secret.fixed().unwrap_or_default(),
        Some((name, _)) => return Err(misplaced(name, "the URL")),
        None => asked,
    };
    if let (None, Some(name)) = (secret, permission.seals.found_in(asked.as_bytes())) {
        return Err(misplaced(name, "a part of the URL"));
    }
    if text.len() > URL_BYTES_MAX {
        return Err(denied("url", format!("a URL has at most {URL_BYTES_MAX} bytes")));
    }
    // The parser's own message never quotes the URL, which may be a secret.
    let parsed = Url::parse(text).map_err(|error| denied("url", format!("the URL cannot be read: {error}")))?;
    if !parsed.has_host() || !matches!(parsed.scheme(), "http" | "https") {
        return Err(denied("url", "the URL needs a host and the scheme https or http".to_owned()));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err(denied("url", "a URL must not hold a user name or password".to_owned()));
    }
    if let Some((name, secret)) = secret {
        let limited = !secret.hosts.is_empty();
        if limited && !host_allowed(&secret.hosts, bare_host(&parsed)) {
            return Err(denied("secret-host", format!("secret {name} may not be sent to that host: see its `hosts`")));
        }
    }
    Ok(parsed)
}

fn granted<'a>(permission: &Permission<'a>, url: &Url) -> Result<&'a HttpGrant, Fault> {
    let grant: &'a Grant = permission.grant;
    let found = grant.http.iter().find(|grant| grant.covers(url, permission.workspace));
    found.ok_or_else(|| {
        let host = bare_host(url);
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if url.scheme() == "http" { "http://" } else { "" };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let message = format!(
            "plugin {plugin} is not granted {scheme}{host}{port} in workspace {workspace}: the operator may add it in \
             switchbell.yaml under plugins.grants.{plugin}.http",
            plugin = permission.plugin,
            workspace = permission.workspace,
        );
        denied("not-granted", message)
    })
}

fn is_literal(host: &HostPattern) -> bool {
    matches!(host, HostPattern::Exact(host) if host.parse::<IpAddr>().is_ok())
}

fn headers(asked: &[(String, String)], url: &Url, permission: &Permission<'_>) -> Result<HeaderMap, Fault> {
    let bytes: usize = asked.iter().map(|(name, value)| name.len() + value.len()).sum();
    if asked.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX {
        let message = format!("a request has at most {HEADERS_MAX} headers of {HEADER_BYTES_MAX} bytes together");
        return Err(denied("headers", message));
    }
    let mut headers = HeaderMap::with_capacity(asked.len());
    for (name, value) in asked {
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| denied("headers", format!("{name:?} is no header name")))?;
        if is_the_hosts(parsed.as_str()) {
            return Err(denied(
                "headers",
                format!("header {parsed} is set by the host and may not be set by a plugin"),
            ));
        }
        let value = one_header(&parsed, value, url, permission)?;
        headers.append(parsed, value);
    }
    Ok(headers)
}

fn one_header(name: &HeaderName, asked: &str, url: &Url, permission: &Permission<'_>) -> Result<HeaderValue, Fault> {
    let unusable = || denied("headers", format!("the value of header {name} has characters that headers cannot hold"));
    let Some((secret_name, secret)) = permission.seals.get(asked) else {
        return match permission.seals.found_in(asked.as_bytes()) {
            Some(secret) => Err(misplaced(secret, &format!("a part of header {name}"))),
            None => HeaderValue::from_str(asked).map_err(|_| unusable()),
        };
    };
    let value = header_value(secret, name.as_str()).ok_or_else(|| misplaced(secret_name, &format!("header {name}")))?;
    if !host_allowed(&secret.hosts, bare_host(url)) {
        let message = format!("secret {secret_name} may not be sent to {}: see its `hosts`", bare_host(url));
        return Err(denied("secret-host", message));
    }
    let mut value = HeaderValue::from_str(&value).map_err(|_| unusable())?;
    value.set_sensitive(true);
    Ok(value)
}

/// Headers that frame the message or claim an identity.
fn is_the_hosts(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "host",
        "cookie",
        "connection",
        "keep-alive",
        "content-length",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "http2-settings",
    ];
    NAMES.contains(&name) || name.starts_with("proxy-")
}

fn misplaced(secret: &Name, place: &str) -> Fault {
    denied(
        "secret-place",
        format!("secret {secret} may not stand in {place}: `in:` of the secret names the one place where it may"),
    )
}

#[cfg(test)]
mod tests;
