//! Signing in: a person opens an address, grants access, and comes back with a code (RFC 6749 §4.1 with PKCE, RFC 8252).

use std::fmt;

use jiff::Timestamp;
use url::Url;

use super::super::words;
use super::account::Account;
use super::file::Credential;
use super::renew::ends_at;
use super::server::{OFFLINE, Received, Server, parameter};
use crate::config::OAuthGrant;
use crate::fetch::outbox::ReadError;

/// How this program calls itself where it registers.
const CLIENT_NAME: &str = "Switchbell";

/// A sign-in that waits for a person.
#[derive(Debug)]
pub struct Login {
    account: Account,
    server: Server,
    address: String,
    state: String,
    client: Registered,
    scopes: Vec<String>,
}

struct Registered {
    id: String,
    secret: Option<String>,
}

/// What a person granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The authorization server.
    pub by: String,
    /// The scopes; none when the server named none.
    pub scopes: Vec<String>,
    /// When the token ends, where that was said.
    pub until: Option<Timestamp>,
    /// Whether it is renewed without a person.
    pub is_renewable: bool,
}

/// Why there is no sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginError {
    /// What came back belongs to no sign-in that waits here: it changes nothing.
    NotOurs,
    /// The person or the server refused: why.
    Refused(String),
    /// It could not be done: why.
    Failed(String),
}

impl fmt::Debug for Registered {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Registered").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Display for LoginError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOurs => out.write_str("this is not the answer to the sign-in that waits here"),
            Self::Refused(why) | Self::Failed(why) => out.write_str(why),
        }
    }
}

impl std::error::Error for LoginError {}

impl Login {
    /// Finds the authorization server, registers a client where the configuration names none (RFC 7591), and makes the
    /// address to open. The person comes back to `redirect`.
    ///
    /// # Errors
    /// [`LoginError::Refused`] when the server registers no client, else [`LoginError::Failed`].
    pub async fn begin(account: Account, redirect: &str) -> Result<Self, LoginError> {
        if account.grant == OAuthGrant::ClientCredentials {
            let what = "the connector signs in with its client credentials: there is no person to log in";
            return Err(LoginError::Failed(what.to_owned()));
        }
        let mut server = Server::discover(&account).await.map_err(failed)?;
        let scopes = server.scopes_for_a_person(&account).await;
        let asked: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let client = match &account.client {
            Some(client) => {
                server.may_have_secret_of(&account).map_err(failed)?;
                let secret = client.secret.as_ref().map(|secret| secret.value.clone());
                server.set_client_at(&client.id, secret.as_deref(), redirect).map_err(failed)?;
                Registered { id: client.id.clone(), secret: None }
            }
            None => {
                let made = server.manager.register_client(CLIENT_NAME, redirect, &asked).await;
                let made = made.map_err(|error| refused_or_failed(&server, server.told(&error)))?;
                Registered { id: made.client_id, secret: made.client_secret }
            }
        };
        let address =
            server.manager.get_authorization_url(&asked).await.map_err(|error| failed(server.told(&error)))?;
        let address = with_consent(&address, &scopes);
        if !account.may_be_opened(&address) {
            let what = format!("the address to sign in at, of {}, is not https", server.name());
            return Err(LoginError::Failed(what));
        }
        let state = parameter(&address, "state").unwrap_or_default();
        Ok(Self { account, server, address, state, client, scopes })
    }

    /// The address that the person opens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Takes what the person came back with, the whole URL: gets the tokens and writes the credential's file.
    ///
    /// # Errors
    /// [`LoginError::NotOurs`] for a stranger's URL, after which the sign-in still waits.
    pub async fn finish(&self, came_back: &str) -> Result<Granted, LoginError> {
        let given = |name| parameter(came_back, name);
        if self.state.is_empty() || given("state").as_ref() != Some(&self.state) {
            return Err(LoginError::NotOurs);
        }
        let issuer = given("iss");
        // RFC 9207: also an error is believed only from the server that was asked.
        if issuer.is_some() && issuer.as_deref() != self.server.issuer() {
            return Err(LoginError::NotOurs);
        }
        if let Some(code) = given("error") {
            let words = given("error_description").map_or_else(String::new, |words| format!(": {words}"));
            return Err(LoginError::Refused(words::fit(
                &format!("{} did not grant it ({code}){words}", self.server.name()),
                &[],
            )));
        }
        let code = given("code").ok_or(LoginError::NotOurs)?;
        let exchanged =
            self.server.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref()).await;
        let response = exchanged.map_err(|error| refused_or_failed(&self.server, self.server.told(&error)))?;
        let nothing = || LoginError::Refused(format!("{} gave no token", self.server.name()));
        let received = Received::from_response(&response).ok_or_else(nothing)?;
        let granted = self.server.manager.get_current_scopes().await;
        self.keep(received, granted).await
    }

    async fn keep(&self, received: Received, scopes: Vec<String>) -> Result<Granted, LoginError> {
        let Account { file, clock, .. } = &self.account;
        let received_at = clock.now();
        let expires_at = ends_at(received_at, received.lasts_seconds);
        let granted = Granted {
            by: self.server.name(),
            scopes: scopes.clone(),
            until: expires_at,
            is_renewable: received.refresh_token.is_some(),
        };
        let credential = Credential {
            url: self.account.url.as_str().to_owned(),
            issuer: self.server.issuer().map(str::to_owned),
            client_id: self.client.id.clone(),
            client_secret: self.client.secret.clone(),
            is_registered: self.account.client.is_none(),
            access_token: received.access_token,
            refresh_token: received.refresh_token,
            received_at,
            expires_at,
            scopes,
        };
        let _lock = file.lock().await.map_err(LoginError::Failed)?;
        file.save(credential).await.map_err(LoginError::Failed)?;
        Ok(granted)
    }

    /// The scopes that are asked for.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The authorization server, as a person knows it.
    pub fn server(&self) -> String {
        self.server.name()
    }
}

/// OpenID servers grant renewal only to a person who is asked for it (OpenID Connect Core §11).
fn with_consent(address: &str, scopes: &[String]) -> String {
    match Url::parse(address) {
        Ok(mut url) if scopes.iter().any(|scope| scope == OFFLINE) => {
            url.query_pairs_mut().append_pair("prompt", "consent");
            url.into()
        }
        _ => address.to_owned(),
    }
}

fn failed(error: ReadError) -> LoginError {
    LoginError::Failed(error.to_string())
}

/// A server that answered has refused.
fn refused_or_failed(server: &Server, error: ReadError) -> LoginError {
    if server.has_refused() { LoginError::Refused(error.to_string()) } else { failed(error) }
}
