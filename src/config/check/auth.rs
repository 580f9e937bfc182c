//! `auth:` of a connector or of an entry of the catalog.

use std::collections::BTreeMap;

use url::Url;

use super::super::code::Code;
use super::super::node::At;
use super::super::raw::{RawAuth, RawOAuth, RawSecretName};
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::values::HeaderName;
use super::super::{Auth, OAuth, OAuthGrant};
use super::endpoint::is_loopback;
use super::secret::{self, Rule, Use, Who, granted};
use crate::notification::Name;

/// Most headers that secrets fill: servers limit the whole head, and each value may be 8 KiB.
const HEADERS_MAX: usize = 16;
/// Most scopes that are asked for: all of them go into one URL.
pub(super) const SCOPES_MAX: usize = 50;

/// Said where `auth` stands beside a program.
pub(super) const FOR_URLS: &str =
    "`auth` is for a `url`: a program gets its credentials from `commands.NAME.env` in switchbell.yaml";

/// How to sign in.
#[derive(Debug)]
pub(super) struct SignIn {
    pub auth: Auth,
    /// Headers with the secret that each holds; names in lower case.
    pub headers: BTreeMap<String, Name>,
}

/// What `auth` is checked against.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The endpoint.
    pub url: &'a Url,
    /// Where it is written, or what names it.
    pub url_at: &'a At,
    /// The secrets that there are.
    pub secrets: &'a BTreeMap<Name, Rule>,
    /// Who asks for them.
    pub who: Who<'a>,
}

/// Checks the section. None when it is unusable and was reported.
pub(super) fn check(raw: Option<Placed<RawAuth>>, context: Context<'_>, report: &mut Report) -> Option<SignIn> {
    let Some(Placed { at, value: raw }) = raw else {
        return Some(SignIn { auth: Auth::None, headers: BTreeMap::new() });
    };
    let is_broken = raw.oauth.is_none() && raw.given.has("oauth") || raw.bearer.is_none() && raw.given.has("bearer");
    if let (Some(bearer), Some(_)) = (&raw.bearer, &raw.oauth) {
        report.mistake(
            &bearer.at,
            Code::ConflictingKeys.says("both `bearer` and `oauth`: a connector signs in with one of them"),
        );
    }
    let says_something = ["bearer", "oauth", "headers"].iter().any(|key| raw.given.has(key));
    if !says_something && raw.given.is_clean() {
        report.mistake(
            &at,
            Code::MissingKey
                .says("this signs in with nothing: write `bearer`, `oauth` or `headers`, or leave `auth` out"),
        );
    }
    let headers = headers(raw.headers, context, report);
    let auth = match (raw.bearer, raw.oauth) {
        (Some(bearer), _) => secret_for_endpoint(bearer.value, context, report).map(Auth::Bearer),
        (None, Some(oauth)) => oauth_client(oauth, context, report).map(Auth::OAuth),
        (None, None) => Some(Auth::None),
    };
    let sign_in = SignIn { auth: auth.filter(|_| !is_broken)?, headers: headers? };
    warn_of_plain_http(&sign_in, context, report);
    Some(sign_in)
}

fn headers(
    raw: Option<Placed<Map<HeaderName, RawSecretName>>>,
    context: Context<'_>,
    report: &mut Report,
) -> Option<BTreeMap<String, Name>> {
    let Some(Placed { at, value: Map(entries) }) = raw else { return Some(BTreeMap::new()) };
    if entries.len() > HEADERS_MAX {
        report.mistake(
            &at,
            Code::OutOfBounds.says(format!("{} headers: at most {HEADERS_MAX} may stand here", entries.len())),
        );
        return None;
    }
    let mut headers = BTreeMap::new();
    let mut is_whole = true;
    for entry in entries {
        let name = entry.name.0;
        let secret = entry.value.and_then(|value| secret_for_endpoint(value.value, context, report));
        if headers.contains_key(&name) {
            report.mistake(
                &entry.at,
                Code::Duplicate.says(format!("the header {name} stands here twice, since case makes no difference")),
            );
        }
        is_whole &= secret.is_some();
        headers.extend(secret.map(|secret| (name, secret)));
    }
    is_whole.then_some(headers)
}

/// A secret that is sent to the endpoint itself.
fn secret_for_endpoint(raw: RawSecretName, context: Context<'_>, report: &mut Report) -> Option<Name> {
    let name = raw.secret?;
    let (secret, rule) = granted(context.secrets, &name.0, &name.at, (context.who, Use::Connector), report)?;
    let host = secret::host_of(context.url);
    if !rule.hosts.is_empty() && !rule.hosts.iter().any(|pattern| pattern.covers(&host)) {
        let message = format!("the secret {secret} may not be sent to {host}: the operator decides by its `hosts`");
        report.mistake(&name.at, Code::NotGranted.says(message));
    }
    Some(secret.clone())
}

fn oauth_client(raw: Placed<RawOAuth>, context: Context<'_>, report: &mut Report) -> Option<OAuth> {
    let Placed { at, value: raw } = raw;
    let grant = raw.grant?.value;
    let has = |key: &str| raw.given.has(key);
    let missing = match (grant, has("client_id"), has("client_secret")) {
        _ if !raw.given.is_clean() => None,
        (OAuthGrant::ClientCredentials, false, false) => {
            Some("client_credentials needs the client's own id and secret: add `client_id` and `client_secret`")
        }
        (OAuthGrant::ClientCredentials, true, false) => {
            Some("client_credentials needs the client's own secret: add `client_secret: { secret: NAME }`")
        }
        (_, false, true) => Some("`client_secret` without `client_id`: add the id that the secret belongs to"),
        _ => None,
    };
    if let Some(message) = missing {
        report.mistake(&at, Code::MissingKey.says(message));
    }
    if let Some(scopes) = &raw.scopes
        && scopes.len() > SCOPES_MAX
    {
        report.mistake(
            &scopes.at,
            Code::OutOfBounds.says(format!("{} scopes: at most {SCOPES_MAX} may stand here", scopes.len())),
        );
    }
    let client_secret = match raw.client_secret.and_then(|secret| secret.value.secret) {
        // Its hosts are those of authorization servers, which are not known yet.
        Some(name) => {
            Some(granted(context.secrets, &name.0, &name.at, (context.who, Use::Connector), report)?.0.clone())
        }
        None => None,
    };
    let scopes = raw.scopes.map_or_else(Vec::new, |scopes| scopes.value);
    let scopes = scopes.into_iter().map(|scope| scope.value.0).collect();
    Some(OAuth { grant, client_id: raw.client_id.map(|id| id.value.0), client_secret, scopes })
}

fn warn_of_plain_http(sign_in: &SignIn, context: Context<'_>, report: &mut Report) {
    if context.url.scheme() != "http" || is_loopback(context.url) {
        return;
    }
    let mut secrets: Vec<&Name> = sign_in.headers.values().collect();
    match &sign_in.auth {
        Auth::Bearer(name) => secrets.insert(0, name),
        Auth::OAuth(_) => report
            .warning(context.url_at, Code::Unencrypted.says("the tokens of `oauth` travel unencrypted: use https")),
        Auth::None => {}
    }
    let mut told = Vec::new();
    for secret in secrets {
        if !told.contains(&secret) {
            report.warning(
                context.url_at,
                Code::Unencrypted.says(format!("the secret {secret} travels unencrypted: use https")),
            );
            told.push(secret);
        }
    }
}
