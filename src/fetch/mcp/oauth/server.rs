//! The authorization server that a connector's server names, found as MCP says: protected resource metadata
//! (RFC 9728), then the authorization server's own (RFC 8414, or OpenID Connect Discovery).

use std::sync::Arc;

use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, ClientCredentialsConfig, OAuthClientConfig,
    OAuthTokenResponse,
};
use serde_json::{Value, json};
use url::Url;

use super::super::words;
use super::account::Account;
use super::wire::{Trouble, Wire, host_of};
use crate::fetch::outbox::ReadError;

/// Where a person comes back to; a renewal names it without using it.
const NOWHERE: &str = "http://127.0.0.1/callback";

/// The scope that asks for renewal (OpenID Connect Core §11).
pub(super) const OFFLINE: &str = "offline_access";

/// How a server's metadata (RFC 8414 §2) name the ways in which a client's secret is sent, and the one in a header.
const METHODS: &str = "token_endpoint_auth_methods_supported";
const BASIC: &str = "client_secret_basic";

/// An authorization server, and the library's state for it.
pub(super) struct Server {
    pub manager: AuthorizationManager,
    pub metadata: AuthorizationMetadata,
    wire: Arc<Wire>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("issuer", &self.metadata.issuer).finish_non_exhaustive()
    }
}

impl Server {
    /// Asks the connector's server, and then the one it names.
    ///
    /// # Errors
    /// A failed read, which says whom it could not ask, or what is missing.
    pub(super) async fn discover(account: &Account) -> Result<Self, ReadError> {
        let wire = Arc::new(Wire::new(account)?);
        let made = AuthorizationManager::new_with_oauth_http_client(account.url.clone(), Arc::clone(&wire) as _).await;
        let mut manager = made.map_err(|error| told(&error, &wire))?;
        let found = manager.resolve_metadata().await.map_err(|error| told(&error, &wire))?;
        manager.set_metadata(found.metadata.clone());
        Ok(Self { manager, metadata: found.metadata, wire })
    }

    pub(super) fn issuer(&self) -> Option<&str> {
        self.metadata.issuer.as_deref()
    }

    /// Who this is to a person: the issuer, or the host of its endpoints.
    pub(super) fn name(&self) -> String {
        self.issuer().map_or_else(|| self.token_host().unwrap_or_default(), |issuer| words::fit(issuer, &[]))
    }

    /// Host and port of the token endpoint.
    pub(super) fn token_host(&self) -> Option<String> {
        Url::parse(&self.metadata.token_endpoint).ok().map(|url| host_of(&url))
    }

    /// Sets the client for renewals.
    pub(super) fn set_client(&mut self, id: &str, secret: Option<&str>) -> Result<(), ReadError> {
        self.set_client_at(id, secret, NOWHERE)
    }

    /// Sets the client, whose person comes back to `redirect`.
    pub(super) fn set_client_at(&mut self, id: &str, secret: Option<&str>, redirect: &str) -> Result<(), ReadError> {
        let config = OAuthClientConfig::new(id, redirect);
        let config = match secret {
            Some(secret) => config.with_client_secret(secret),
            None => config,
        };
        self.manager.configure_client(config).map_err(|error| told(&error, &self.wire))
    }

    /// Whether the client's secret may be sent to the token endpoint.
    ///
    /// # Errors
    /// A failed read when it may not.
    pub(super) fn may_have_secret_of(&self, account: &Account) -> Result<(), ReadError> {
        let Some(secret) = account.secret().filter(|secret| !secret.hosts.is_empty()) else { return Ok(()) };
        let url = Url::parse(&self.metadata.token_endpoint).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if secret.hosts.iter().any(|pattern| pattern.covers(host)) {
            return Ok(());
        }
        Err(ReadError::NoToken(format!(
            "the secret {} may not be sent to {}, which the connector's server names for signing in: the operator \
             decides by its `hosts`",
            secret.name,
            words::fit(host, &[])
        )))
    }

    /// The resource as its own metadata names it (RFC 8707), else the connector's URL.
    pub(super) async fn resource(&mut self, account: &Account) -> String {
        // The library knows, and tells only as a part of the address that a person would open.
        let asked = match self.set_client("-", None) {
            Ok(()) => self.manager.get_authorization_url(&[]).await.ok(),
            Err(_) => None,
        };
        let named = asked.and_then(|address| parameter(&address, "resource"));
        named.unwrap_or_else(|| account.url.as_str().to_owned())
    }

    /// What a client asks for that acts for itself.
    pub(super) async fn scopes_for_a_client(&self, account: &Account) -> Vec<String> {
        if !account.scopes.is_empty() {
            return account.scopes.clone();
        }
        let mut scopes = self.manager.select_initial_scopes(&[]).await;
        // Renewal is for what a person granted.
        scopes.retain(|scope| scope != OFFLINE);
        scopes
    }

    /// What is asked of a person: with renewal, where the server offers it as a scope.
    pub(super) async fn scopes_for_a_person(&self, account: &Account) -> Vec<String> {
        if account.scopes.is_empty() {
            return self.manager.select_initial_scopes(&[]).await;
        }
        let mut scopes = account.scopes.clone();
        let offered = self.metadata.scopes_supported.iter().flatten().any(|scope| scope == OFFLINE);
        if offered && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }

    /// Exchanges client credentials for a token. Servers take a client's secret in the form or in a header, often only
    /// as the client was registered, and offer both: what is refused in the form is tried in the header.
    pub(super) async fn exchange(&mut self, config: &ClientCredentialsConfig) -> Result<OAuthTokenResponse, ReadError> {
        self.manager.configure_client_credentials(config).map_err(|error| self.told(&error))?;
        match self.manager.exchange_client_credentials(config).await {
            Ok(response) => return Ok(response),
            Err(error) if self.refusal().as_deref() != Some("invalid_client") => return Err(self.told(&error)),
            Err(error) if !self.has_left_only_basic() => return Err(self.told(&error)),
            Err(_) => {}
        }
        self.manager.configure_client_credentials(config).map_err(|error| self.told(&error))?;
        self.manager.exchange_client_credentials(config).await.map_err(|error| self.told(&error))
    }

    /// Leaves only the header, where it is offered and is not all that was.
    fn has_left_only_basic(&mut self) -> bool {
        let only = json!([BASIC]);
        let offered = self.metadata.additional_fields.entry(METHODS.to_owned()).or_insert_with(|| json!([BASIC, ""]));
        let is_offered = offered.as_array().is_some_and(|methods| methods.iter().any(|method| method == BASIC));
        if !is_offered || *offered == only {
            return false;
        }
        *offered = only;
        self.manager.set_metadata(self.metadata.clone());
        true
    }

    /// The code of the error that the last request brought, where it was one of OAuth.
    pub(super) fn refusal(&self) -> Option<String> {
        match self.wire.trouble()? {
            Trouble::Refused { code, .. } => code,
            Trouble::Forbidden { .. } | Trouble::Unreachable { .. } => None,
        }
    }

    /// Whether the last request was answered by an error.
    pub(super) fn has_refused(&self) -> bool {
        matches!(
            self.wire.trouble(),
            Some(Trouble::Refused { status: 300..=499, .. } | Trouble::Refused { code: Some(_), .. })
        )
    }

    /// What an error of the library means.
    pub(super) fn told(&self, error: &AuthError) -> ReadError {
        told(error, &self.wire)
    }
}

/// A parameter of a URL's query.
pub(super) fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// What a server gave.
pub(super) struct Received {
    pub access_token: String,
    pub refresh_token: Option<String>,
    pub lasts_seconds: Option<u64>,
}

impl Received {
    /// Reads an answer by its form on the wire (RFC 6749 §5.1), which is what the library offers to others.
    pub(super) fn from_response(response: &OAuthTokenResponse) -> Option<Self> {
        let form = serde_json::to_value(response).ok()?;
        let text = |key: &str| form.get(key).and_then(Value::as_str).map(str::to_owned);
        let lasts_seconds = form.get("expires_in").and_then(Value::as_u64);
        Some(Self { access_token: text("access_token")?, refresh_token: text("refresh_token"), lasts_seconds })
    }
}

/// An error of the library in our words. What the wire saw says more than the library does.
fn told(error: &AuthError, wire: &Wire) -> ReadError {
    let fit = |text: &dyn std::fmt::Display| words::fit(&text.to_string(), &[]);
    let what = match error {
        AuthError::AuthorizationServersUnavailable { authorization_servers, .. } => format!(
            "the connector's server names {} for signing in, where no metadata of an authorization server was found",
            fit(&authorization_servers.join(", "))
        ),
        AuthError::ProtectedResourceMetadataInvalid { reason, .. } => {
            format!("the metadata of the connector's server do not describe it: {}", fit(reason))
        }
        AuthError::AuthorizationServerMismatch { expected_issuer, received_issuer } => format!(
            "the authorization server {} calls itself {}: it is not trusted",
            fit(expected_issuer),
            fit(received_issuer)
        ),
        AuthError::AuthorizationServerMissingIssuer { expected_issuer } => {
            format!("the authorization server {} does not say that it is the issuer", fit(expected_issuer))
        }
        AuthError::PkceUnsupported => "the authorization server does not support PKCE with S256".to_owned(),
        error => match wire.trouble() {
            Some(trouble) => trouble_told(&trouble),
            None => match error {
                AuthError::CredentialStoreError(what) => what.clone(),
                AuthError::RegistrationFailed(_) => "the authorization server registers no clients: register one \
                                                     there and write its `client_id` under auth.oauth"
                    .to_owned(),
                _ => "the authorization server answered something that is not OAuth".to_owned(),
            },
        },
    };
    ReadError::NoToken(what)
}

fn trouble_told(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Forbidden { host } => format!(
            "the connector's server names {host} for signing in, which may not be asked: it must be https and a \
             public address"
        ),
        Trouble::Unreachable { host, why } => format!("{host} cannot be reached for signing in: {why}"),
        Trouble::Refused { host, status, code, description } => {
            let code = code.as_ref().map_or_else(String::new, |code| format!(", {code}"));
            let description = description.as_ref().map_or_else(String::new, |words| format!(": {words}"));
            format!("{host} refused the sign-in (HTTP {status}{code}){description}")
        }
    }
}
