//! What a token endpoint is asked (RFC 6749 §4.4.2 and §6, RFC 7523 §2.1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use jiff::Timestamp;
use url::{Url, form_urlencoded};

use super::assertion;
use crate::config::{TokenGrant, TokenSource};
use crate::send::effect::denied;
use crate::send::effect::guard::{Allowed, bare_host};
use crate::wasm::Fault;

/// A form to be posted.
pub(in crate::send::effect) struct Ask {
    pub(in crate::send::effect) url: Url,
    /// Whether the name may resolve to a private address.
    pub(in crate::send::effect) private: bool,
    /// Of the header `authorization`.
    pub(in crate::send::effect) authorization: Option<String>,
    /// `application/x-www-form-urlencoded`.
    pub(in crate::send::effect) body: String,
    /// What of it nobody else may know.
    pub(in crate::send::effect) credentials: Vec<String>,
}

impl Ask {
    pub(super) fn new(
        source: &TokenSource,
        refresh_token: Option<&str>,
        secret_in_body: bool,
        now: Timestamp,
    ) -> Result<Self, String> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        let (mut authorization, mut credentials) = (None, Vec::new());
        match &source.grant {
            TokenGrant::ClientCredentials { client_id, client_secret } => {
                form.append_pair("grant_type", "client_credentials");
                authorization = client(&mut form, client_id, Some(client_secret), secret_in_body);
                credentials.push(client_secret.clone());
            }
            TokenGrant::RefreshToken { client_id, client_secret, .. } => {
                form.append_pair("grant_type", "refresh_token");
                form.append_pair("refresh_token", refresh_token.unwrap_or_default());
                authorization = client(&mut form, client_id, client_secret.as_deref(), secret_in_body);
                credentials.extend([client_secret.as_deref(), refresh_token].into_iter().flatten().map(str::to_owned));
            }
            TokenGrant::JwtBearer { issuer, subject, key, key_id } => {
                let claims = assertion::Claims {
                    issuer,
                    subject: subject.as_deref().unwrap_or(issuer),
                    audience: source.audience.as_deref().unwrap_or(source.token_url.as_str()),
                    scopes: &source.scopes,
                    now,
                };
                form.append_pair("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                let assertion = assertion::signed(&claims, key, key_id.as_deref())?;
                form.append_pair("assertion", &assertion);
                credentials.push(assertion);
            }
        }
        if !source.scopes.is_empty() {
            form.append_pair("scope", &source.scopes.join(" "));
        }
        if let (Some(audience), false) = (&source.audience, matches!(source.grant, TokenGrant::JwtBearer { .. })) {
            form.append_pair("audience", audience);
        }
        credentials.extend(authorization.as_deref().and_then(|value| value.strip_prefix("Basic ")).map(str::to_owned));
        let (url, private) = (source.token_url.clone(), source.private);
        Ok(Self { url, private, authorization, body: form.finish(), credentials })
    }

    /// The request. The operator wrote the URL, so that an address in it is its own permission.
    pub(in crate::send::effect) fn allowed(self) -> Result<Allowed<'static>, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        if let Some(authorization) = self.authorization {
            let value = HeaderValue::from_str(&authorization);
            let mut value =
                value.map_err(|_| denied("token-refused", "the client's secret fits into no header".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let is_literal = bare_host(&self.url).parse::<std::net::IpAddr>().is_ok();
        Ok(Allowed {
            method: Method::POST,
            private: self.private || is_literal,
            url: self.url,
            headers,
            body: self.body.into_bytes(),
            carried: Vec::new(),
        })
    }
}

/// Names the client: in the header as RFC 6749 §2.3.1 prefers, or in the form.
fn client(
    form: &mut form_urlencoded::Serializer<'_, String>,
    id: &str,
    secret: Option<&str>,
    secret_in_body: bool,
) -> Option<String> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    match secret {
        Some(secret) if !secret_in_body => {
            Some(format!("Basic {}", STANDARD.encode(format!("{}:{}", encoded(id), encoded(secret)))))
        }
        secret => {
            form.append_pair("client_id", id);
            if let Some(secret) = secret {
                form.append_pair("client_secret", secret);
            }
            None
        }
    }
}

impl TokenGrant {
    /// Whether the client proves itself by a secret.
    pub(super) fn has_client_secret(&self) -> bool {
        match self {
            Self::ClientCredentials { .. } => true,
            Self::RefreshToken { client_secret, .. } => client_secret.is_some(),
            Self::JwtBearer { .. } => false,
        }
    }
}
