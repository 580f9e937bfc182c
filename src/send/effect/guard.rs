//! The guard: pure code that decides on a request and the grants, and builds the one thing that is sent.

mod address;
mod body;
mod filling;
mod header;
mod signature;

use std::net::IpAddr;

use http::Method;
use http::header::HeaderMap;
use memchr::memmem;
use url::Url;

use super::{Permission, denied};
use crate::config::{Grant, HostPattern, HttpGrant, TokenSource};
use crate::notification::Name;
use crate::wasm::{Fault, Request};
use filling::Filling;
use signature::Sent;

pub(super) use address::encoded;
pub use filling::{Carried, Fetched};
pub(super) use header::basic;

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
pub struct Allowed<'a> {
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
    /// The secrets it carries.
    pub carried: Vec<Carried<'a>>,
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

/// The names of the secrets whose tokens a request needs, with how they are had.
pub fn tokens_wanted<'a>(request: &Request, permission: &Permission<'a>) -> Vec<(&'a Name, &'a TokenSource)> {
    let texts = request.headers.iter().map(|(_, value)| value.as_bytes());
    let texts: Vec<&[u8]> = texts.chain([request.url.as_bytes(), &request.body]).collect();
    let stands = |placeholder: &str| texts.iter().any(|text| memmem::find(text, placeholder.as_bytes()).is_some());
    permission
        .seals
        .tokens()
        .filter(|(placeholder, ..)| stands(placeholder))
        .map(|(_, name, source)| (name, source))
        .collect()
}

/// Judges a request, and puts the secrets in.
///
/// # Errors
/// Why it is refused, and what the operator or the plugin's author should change.
pub fn judge<'a>(request: Request, permission: &Permission<'a>, fetched: &'a Fetched) -> Result<Allowed<'a>, Fault> {
    let method = method(&request.method)?;
    if request.body.len() > BODY_BYTES_MAX {
        return Err(denied("body-too-large", format!("a request body has at most {BODY_BYTES_MAX} bytes")));
    }
    let mut filling = Filling::new(permission.seals, fetched);
    let url = address::read(&request.url, &mut filling)?;
    let grant = granted(permission, &url)?;
    let url = address::filled(url, &mut filling)?;
    let body = body::filled(request.body, &mut filling)?;
    let mut headers = header::filled(&request.headers, &mut filling)?;
    signature::signed(&request.sign, &Sent { url: &url, body: &body }, &mut headers, &mut filling)?;
    filling.goes_to(bare_host(&url))?;
    let (headers, private) = (header::sent(headers)?, grant.private || is_literal(&grant.host));
    Ok(Allowed { method, url, headers, body, private, carried: filling.carried() })
}

fn method(asked: &str) -> Result<Method, Fault> {
    let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
    let method = known.contains(&asked).then(|| Method::from_bytes(asked.as_bytes()).ok()).flatten();
    method.ok_or_else(|| denied("method", format!("the method is one of {}", known.join(", "))))
}

fn granted<'a>(permission: &Permission<'a>, url: &Url) -> Result<&'a HttpGrant, Fault> {
    in_workspace(permission)?;
    let grant: &'a Grant = permission.grant;
    let found = grant.http.iter().find(|http| http.covers(url, permission.workspace));
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

/// Refuses what a plugin may do in other workspaces only.
pub(super) fn in_workspace(permission: &Permission<'_>) -> Result<(), Fault> {
    let Permission { plugin, workspace, grant, .. } = permission;
    if grant.allows_in(workspace) {
        return Ok(());
    }
    let message = format!(
        "what plugin {plugin} is granted, it is granted in other workspaces: the operator may add {workspace} in \
         switchbell.yaml under plugins.grants.{plugin}.workspaces"
    );
    Err(denied("not-granted", message))
}

fn is_literal(host: &HostPattern) -> bool {
    matches!(host, HostPattern::Exact(host) if host.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests;
