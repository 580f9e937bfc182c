//! `oauth:` of a secret.

use super::super::super::code::Code;
use super::super::super::node::At;
use super::super::super::raw::{RawSource, RawToken};
use super::super::super::read::{Placed, Read};
use super::super::super::source::Report;
use super::super::super::values::{Claim, ClientId, GrantKind, PlaceEntry, TokenUrl};
use super::super::super::{SecretPlace, TokenGrant, TokenSource};
use super::super::auth::SCOPES_MAX;
use super::super::endpoint::{is_localhost, is_loopback_literal, is_private_literal};
use super::key;
use super::source::Sources;

/// Whether a token may be put there; reported otherwise.
pub(super) fn fits(place: &Placed<PlaceEntry>, report: &mut Report) -> bool {
    let fits = matches!(place.0, SecretPlace::Header { .. } | SecretPlace::Query(_) | SecretPlace::Body(_));
    if !fits {
        let message = "a token that is fetched stands in a header, a query or a body: write \"header:Authorization:Bearer\", \
                       or `query:KEY` or `body:POINTER`";
        report.mistake(&place.at, Code::ConflictingKeys.says(message));
    }
    fits
}

/// Checks the section and reads its values, which are empty where values are not read. None when it is unusable and was
/// reported.
pub(super) fn check(raw: Placed<RawToken>, sources: &Sources<'_>, report: &mut Report) -> Option<Box<TokenSource>> {
    let Placed { at, value: raw } = raw;
    let is_private = raw.private.as_ref().is_some_and(|private| private.value);
    let url = raw.token_url.as_ref().filter(|url| is_reachable(url, is_private, report)).map(|url| url.0.clone());
    if let Some(scopes) = &raw.scopes
        && scopes.len() > SCOPES_MAX
    {
        report.mistake(
            &scopes.at,
            Code::OutOfBounds.says(format!("{} scopes: at most {SCOPES_MAX} may stand here", scopes.len())),
        );
    }
    let kind = raw.grant.as_ref()?.value;
    let is_complete = has_its_keys(&at, kind, &raw, report);
    let audience = raw.audience.map(|audience| audience.value.0);
    let scopes = raw.scopes.map_or_else(Vec::new, |scopes| scopes.value);
    let parts = Parts {
        client_id: raw.client_id,
        client_secret: raw.client_secret,
        refresh_token: raw.refresh_token,
        key: raw.key,
        key_id: raw.key_id,
        issuer: raw.issuer,
        subject: raw.subject,
    };
    let grant = parts.grant(kind, sources, report);
    let url = url?;
    Some(Box::new(TokenSource {
        // An address that the operator writes out is its own permission.
        private: is_private || is_private_literal(&url),
        token_url: url,
        grant: grant.filter(|_| is_complete)?,
        scopes: scopes.into_iter().map(|scope| scope.value.0).collect(),
        audience,
    }))
}

fn is_reachable(url: &Placed<TokenUrl>, is_private: bool, report: &mut Report) -> bool {
    let objection = if url.0.scheme() == "http" && !is_loopback_literal(&url.0) {
        "the client's secret and the token would travel unencrypted: write https:// (http:// only to 127.0.0.1 or [::1])"
    } else if is_localhost(&url.0) && !is_private {
        "this name leads to this machine: add `private: true`, or write the literal 127.0.0.1"
    } else {
        return true;
    };
    report.mistake(&url.at, Code::UnreachableAddress.says(objection));
    false
}

/// The keys that a grant needs, and those it may have besides.
fn keys(kind: GrantKind) -> (&'static [&'static str], &'static [&'static str]) {
    match kind {
        GrantKind::ClientCredentials => (&["client_id", "client_secret"], &[]),
        GrantKind::RefreshToken => (&["client_id", "refresh_token"], &["client_secret"]),
        GrantKind::JwtBearer => (&["issuer", "key"], &["subject", "key_id"]),
    }
}

/// Whether the keys are those of the grant; reported otherwise.
fn has_its_keys(at: &At, kind: GrantKind, raw: &RawToken, report: &mut Report) -> bool {
    fn place<T: Read>(value: &Option<Placed<T>>) -> Option<&At> {
        value.as_ref().map(|value| &value.at)
    }
    let (needed, besides) = keys(kind);
    let all = [
        ("client_id", place(&raw.client_id)),
        ("client_secret", place(&raw.client_secret)),
        ("refresh_token", place(&raw.refresh_token)),
        ("key", place(&raw.key)),
        ("key_id", place(&raw.key_id)),
        ("issuer", place(&raw.issuer)),
        ("subject", place(&raw.subject)),
    ];
    let quoted = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    let mut is_complete = true;
    for (key, at) in all.into_iter().filter(|(key, _)| !needed.contains(key) && !besides.contains(key)) {
        if let Some(at) = at {
            let takes = quoted(&[needed, besides].concat());
            report.mistake(
                at,
                Code::ConflictingKeys
                    .says(format!("`grant: {}` takes {takes}, but no `{key}`: remove it", kind.as_str())),
            );
            is_complete = false;
        }
    }
    let missing: Vec<&str> = needed.iter().copied().filter(|key| !raw.given.has(key)).collect();
    if !missing.is_empty() {
        if raw.given.is_clean() {
            report.mistake(
                at,
                Code::MissingKey.says(format!(
                    "`grant: {}` needs {}: add what is missing",
                    kind.as_str(),
                    quoted(&missing)
                )),
            );
        }
        is_complete = false;
    }
    is_complete
}

struct Parts {
    client_id: Option<Placed<ClientId>>,
    client_secret: Option<Placed<RawSource>>,
    refresh_token: Option<Placed<RawSource>>,
    key: Option<Placed<RawSource>>,
    key_id: Option<Placed<Claim>>,
    issuer: Option<Placed<Claim>>,
    subject: Option<Placed<Claim>>,
}

impl Parts {
    /// Every value that the grant takes is read, so that all mistakes are found at once.
    fn grant(self, kind: GrantKind, sources: &Sources<'_>, report: &mut Report) -> Option<TokenGrant> {
        let (needed, besides) = keys(kind);
        let takes = |key: &str| needed.contains(&key) || besides.contains(&key);
        let has_secret = self.client_secret.is_some();
        let client_id = self.client_id.map(|id| id.value.0);
        let text = |claim: Option<Placed<Claim>>| claim.map(|claim| claim.value.0);
        let secret = self
            .client_secret
            .filter(|_| takes("client_secret"))
            .and_then(|secret| credential(secret, sources, report));
        let token =
            self.refresh_token.filter(|_| takes("refresh_token")).and_then(|token| credential(token, sources, report));
        let key = self.key.filter(|_| takes("key")).and_then(|key| signing_key(key, sources, report));
        Some(match kind {
            GrantKind::ClientCredentials => {
                TokenGrant::ClientCredentials { client_id: client_id?, client_secret: secret? }
            }
            GrantKind::RefreshToken if has_secret && secret.is_none() => return None,
            GrantKind::RefreshToken => {
                TokenGrant::RefreshToken { client_id: client_id?, client_secret: secret, refresh_token: token? }
            }
            GrantKind::JwtBearer => TokenGrant::JwtBearer {
                issuer: text(self.issuer)?,
                subject: text(self.subject),
                key: key?,
                key_id: text(self.key_id),
            },
        })
    }
}

/// A client's secret or a refresh token (RFC 6749, appendices A.2 and A.17).
fn credential(raw: Placed<RawSource>, sources: &Sources<'_>, report: &mut Report) -> Option<String> {
    let Placed { at, value } = sources.read_part(raw, report)?;
    let value = value.unwrap_or_default();
    if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        report.mistake(
            &at,
            Code::BadSecret.says("the value holds a line end or another character that is no visible ASCII"),
        );
        return None;
    }
    Some(value)
}

fn signing_key(raw: Placed<RawSource>, sources: &Sources<'_>, report: &mut Report) -> Option<String> {
    let Placed { at, value } = sources.read_part(raw, report)?;
    let Some(value) = value else { return Some(String::new()) };
    key::private_key(&value).map_err(|message| report.mistake(&at, Code::BadSecret.says(message))).ok()?;
    Some(value)
}
