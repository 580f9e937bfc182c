//! How a token is had and renewed, by each grant. One renewal of a credential runs at a time: here because
//! [`super::Tokens`] starts the next one when the last has ended, elsewhere because of the file's lock.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rmcp::transport::auth::{
    AuthError, ClientCredentialsConfig, CredentialStore, InMemoryCredentialStore, StoredCredentials,
};
use serde_json::json;

use super::account::Account;
use super::file::Credential;
use super::server::{Received, Server};
use crate::clock::later;
use crate::config::OAuthGrant;
use crate::fetch::outbox::ReadError;
use crate::private_file::Stamp;

/// A token is renewed so long before its end, or a tenth of its life where that is less.
const AHEAD_MAX: SignedDuration = SignedDuration::from_secs(60);

/// Finding the authorization server, all requests together. A renewal's own request is bounded too: together they stay
/// below the time for which another process waits.
const DISCOVERY_TIME_MAX: Duration = Duration::from_secs(45);

/// Codes that say a refresh token is over: of RFC 6749 §5.2, and one that a large server says instead.
const OVER: [&str; 2] = ["invalid_grant", "bad_refresh_token"];
/// Codes that say a client is known no more.
const UNKNOWN_CLIENT: [&str; 2] = ["invalid_client", "unauthorized_client"];

/// One account's tokens and what is known of their server.
#[derive(Debug)]
pub(super) struct Renewer {
    account: Account,
    state: Mutex<State>,
    server: tokio::sync::Mutex<Option<Server>>,
}

#[derive(Debug, Default)]
struct State {
    held: Option<Held>,
    /// The token that the connector's server refused last.
    refused: Option<String>,
    /// The file whose refresh token is over, and why: it is not tried again.
    over: Option<(Stamp, String)>,
    /// What was granted in place of the file of this stamp, and could not be written yet.
    unsaved: Option<(Stamp, Credential)>,
}

struct Held {
    token: String,
    received_at: Timestamp,
    expires_at: Option<Timestamp>,
    /// Of the file it was in.
    stamp: Option<Stamp>,
}

enum NotRenewed {
    /// Only a person can go on, and why.
    Over(String),
    /// It may go better another time.
    Failed(ReadError),
}

impl std::fmt::Debug for Held {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Held").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl Renewer {
    pub(super) fn new(account: Account) -> Self {
        Self { account, state: Mutex::default(), server: tokio::sync::Mutex::default() }
    }

    /// The token, where there is one that need not be renewed and nobody has replaced.
    pub(super) fn usable(&self) -> Option<String> {
        let stamp = match self.account.grant {
            OAuthGrant::AuthorizationCode => self.account.file.stamp(),
            OAuthGrant::ClientCredentials => None,
        };
        let state = self.state();
        let held = state.held.as_ref().filter(|held| held.stamp == stamp)?;
        (!self.is_due(&state, held)).then(|| held.token.clone())
    }

    /// Takes note that the connector's server does not take this token.
    pub(super) fn refused(&self, token: &str) {
        self.state().refused = Some(token.to_owned());
    }

    /// What it means that a token which was just renewed is refused too.
    pub(super) fn refused_again(&self) -> ReadError {
        match self.account.grant {
            OAuthGrant::AuthorizationCode => self.account.reauthorize("the server refuses the token of this sign-in"),
            OAuthGrant::ClientCredentials => ReadError::Http { status: 401, retry_after: None },
        }
    }

    /// A token that is good by now: what another has renewed meanwhile, or a new one.
    pub(super) async fn renew(&self) -> Result<String, ReadError> {
        match self.account.grant {
            OAuthGrant::AuthorizationCode => self.signed_in().await,
            OAuthGrant::ClientCredentials => match self.fetch().await {
                Ok(held) => Ok(self.hold(held)),
                Err(error) => {
                    let old = self.state().held.take();
                    self.make_do(old, NotRenewed::Failed(error))
                }
            },
        }
    }

    async fn signed_in(&self) -> Result<String, ReadError> {
        let file = &self.account.file;
        if file.stamp().is_none() {
            return Err(self.account.reauthorize("nobody has signed in yet"));
        }
        let _lock = file.lock().await.map_err(ReadError::NoToken)?;
        self.write_unsaved().await?;
        let (mut credential, mut stamp) = self.found()?;
        let mut is_second = false;
        loop {
            let held = held_of(&credential, stamp);
            if !self.is_due(&self.state(), &held) {
                return Ok(self.hold(held));
            }
            let error = match self.refresh(credential, stamp).await {
                Ok(held) => return Ok(self.hold(held)),
                Err(error) => error,
            };
            // Whoever put another file there without the lock knows better.
            let there = self.found()?;
            if there.1 == stamp || is_second {
                return self.make_do(Some(held), error);
            }
            (credential, stamp) = there;
            is_second = true;
        }
    }

    /// The credential in the file.
    fn found(&self) -> Result<(Credential, Stamp), ReadError> {
        let missing = || self.account.reauthorize("nobody has signed in yet");
        let (found, stamp) =
            self.account.file.load().map_err(|why| self.account.reauthorize(&why))?.ok_or_else(missing)?;
        match self.account.foreign(&found) {
            Some(why) => Err(self.account.reauthorize(why)),
            None => Ok((found, stamp)),
        }
    }

    /// Renews what is in the file of this stamp, and writes it before anybody uses it.
    async fn refresh(&self, old: Credential, stamp: Stamp) -> Result<Held, NotRenewed> {
        if let Some((_, why)) = self.state().over.as_ref().filter(|(over, _)| *over == stamp) {
            return Err(NotRenewed::Over(why.clone()));
        }
        let renewed = match self.refreshed(old).await {
            Ok(renewed) => renewed,
            Err(NotRenewed::Over(why)) => {
                self.state().over = Some((stamp, why.clone()));
                return Err(NotRenewed::Over(why));
            }
            Err(error) => return Err(error),
        };
        self.state().unsaved = Some((stamp, renewed.clone()));
        self.write_unsaved().await.map_err(NotRenewed::Failed)?;
        Ok(Held { stamp: self.account.file.stamp(), ..held_of(&renewed, stamp) })
    }

    async fn refreshed(&self, old: Credential) -> Result<Credential, NotRenewed> {
        let Some(refresh_token) = old.refresh_token.clone() else {
            return Err(NotRenewed::Over("the sign-in has ended, and it was granted without renewal".to_owned()));
        };
        let mut known = self.server.lock().await;
        let known_server = known.take().filter(|server| server.issuer() == old.issuer.as_deref());
        let mut server = match known_server {
            Some(server) => server,
            None => self.discovered().await.map_err(NotRenewed::Failed)?,
        };
        if server.issuer() != old.issuer.as_deref() {
            let why = format!("the connector's server names {} now, where nobody has signed in", server.name());
            return Err(NotRenewed::Over(why));
        }
        if !old.is_registered {
            server.may_have_secret_of(&self.account).map_err(NotRenewed::Failed)?;
        }
        let secret = old.client_secret.clone().or_else(|| self.account.secret().map(|secret| secret.value.clone()));
        server.set_client(&old.client_id, secret.as_deref()).map_err(NotRenewed::Failed)?;
        let store = InMemoryCredentialStore::new();
        let stored = stored(&old, &refresh_token).map_err(NotRenewed::Failed)?;
        store.save(stored).await.map_err(|error| NotRenewed::Failed(server.told(&error)))?;
        server.manager.set_credential_store(store.clone());
        let response = server.manager.refresh_token().await.map_err(|error| not_renewed(&error, &server, &old))?;
        let received = Received::from_response(&response).ok_or_else(|| NotRenewed::Failed(no_token()))?;
        let scopes = store.load().await.ok().flatten().map_or(old.scopes, |stored| stored.granted_scopes);
        *known = Some(server);
        let received_at = self.account.clock.now();
        Ok(Credential {
            access_token: received.access_token,
            refresh_token: received.refresh_token.or(Some(refresh_token)),
            received_at,
            expires_at: ends_at(received_at, received.lasts_seconds),
            scopes,
            ..old
        })
    }

    /// A new token by the client's own id and secret.
    async fn fetch(&self) -> Result<Held, ReadError> {
        let account = &self.account;
        let Some(client) = &account.client else { return Err(no_token()) };
        let mut known = self.server.lock().await;
        let mut server = match known.take() {
            Some(server) => server,
            None => self.discovered().await?,
        };
        server.may_have_secret_of(account)?;
        let resource = server.resource(account).await;
        let config = ClientCredentialsConfig::ClientSecret {
            client_id: client.id.clone(),
            client_secret: account.secret().map(|secret| secret.value.clone()).unwrap_or_default(),
            scopes: server.scopes_for_a_client(account).await,
            resource: Some(resource),
        };
        let response = server.exchange(&config).await?;
        let received = Received::from_response(&response).ok_or_else(no_token)?;
        *known = Some(server);
        let received_at = account.clock.now();
        let expires_at = ends_at(received_at, received.lasts_seconds);
        Ok(Held { token: received.access_token, received_at, expires_at, stamp: None })
    }

    async fn discovered(&self) -> Result<Server, ReadError> {
        let discovered = Server::discover(&self.account);
        let in_time = tokio::time::timeout(DISCOVERY_TIME_MAX, discovered).await;
        in_time.unwrap_or(Err(ReadError::Timeout { waited: DISCOVERY_TIME_MAX }))
    }

    /// Writes what was granted and is not on disk, unless another file came to stand there.
    async fn write_unsaved(&self) -> Result<(), ReadError> {
        let unsaved = self.state().unsaved.clone();
        if let Some((stamp, credential)) = unsaved
            && self.account.file.stamp() == Some(stamp)
        {
            self.account.file.save(credential).await.map_err(ReadError::NoToken)?;
        }
        self.state().unsaved = None;
        Ok(())
    }

    /// A renewal ahead of time may fail while the old token is still good.
    fn make_do(&self, old: Option<Held>, error: NotRenewed) -> Result<String, ReadError> {
        let now = self.account.clock.now();
        let is_good = |held: &Held| {
            held.expires_at.is_none_or(|end| now < end) && self.state().refused.as_ref() != Some(&held.token)
        };
        let error = match error {
            NotRenewed::Over(why) => self.account.reauthorize(&why),
            NotRenewed::Failed(error) => error,
        };
        match old.filter(is_good) {
            Some(held) => {
                let (workspace, source) = (&self.account.workspace, &self.account.connector);
                tracing::warn!(%workspace, %source, "the token is not renewed yet: {error}");
                Ok(self.hold(held))
            }
            None => Err(error),
        }
    }

    fn is_due(&self, state: &State, held: &Held) -> bool {
        let is_refused = state.refused.as_ref() == Some(&held.token);
        is_refused || is_due(self.account.clock.now(), held.received_at, held.expires_at)
    }

    fn hold(&self, held: Held) -> String {
        let token = held.token.clone();
        self.state().held = Some(held);
        token
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn held_of(credential: &Credential, stamp: Stamp) -> Held {
    Held {
        token: credential.access_token.clone(),
        received_at: credential.received_at,
        expires_at: credential.expires_at,
        stamp: Some(stamp),
    }
}

/// Whether a token should be renewed by now.
fn is_due(now: Timestamp, received_at: Timestamp, expires_at: Option<Timestamp>) -> bool {
    expires_at.is_some_and(|end| end.duration_since(now) <= (end.duration_since(received_at) / 10).min(AHEAD_MAX))
}

/// When a token ends that came at this time.
pub(super) fn ends_at(received_at: Timestamp, lasts_seconds: Option<u64>) -> Option<Timestamp> {
    lasts_seconds.map(|seconds| later(received_at, Duration::from_secs(seconds)))
}

/// The library's form of a credential.
fn stored(of: &Credential, refresh_token: &str) -> Result<StoredCredentials, ReadError> {
    let form = json!({"access_token": of.access_token, "token_type": "bearer", "refresh_token": refresh_token});
    let tokens = serde_json::from_value(form).map_err(|_| no_token())?;
    let stored = StoredCredentials::new(of.client_id.clone(), Some(tokens), of.scopes.clone(), None);
    Ok(stored.with_issuer(of.issuer.clone()))
}

fn not_renewed(error: &AuthError, server: &Server, old: &Credential) -> NotRenewed {
    let code = server.refusal();
    let is_one_of = |codes: &[&str]| code.as_deref().is_some_and(|code| codes.contains(&code));
    let is_rejected = matches!(error, AuthError::TokenRefreshRejected(_) | AuthError::AuthorizationRequired);
    if is_rejected || is_one_of(&OVER) {
        NotRenewed::Over(format!("{} has ended the sign-in", server.name()))
    } else if old.is_registered && is_one_of(&UNKNOWN_CLIENT) {
        NotRenewed::Over(format!("{} does not know this client any more", server.name()))
    } else {
        NotRenewed::Failed(server.told(error))
    }
}

/// What a renewal says that brought no token.
fn no_token() -> ReadError {
    ReadError::NoToken("the authorization server gave no token".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_a_minute_or_a_tenth_of_its_life_ahead() {
        let start = Timestamp::UNIX_EPOCH;
        let at = |seconds: u64| later(start, Duration::from_secs(seconds));
        let check = |lasts: u64, now: u64, expected: bool| {
            assert_eq!(is_due(at(now), start, Some(at(lasts))), expected, "{lasts} s, after {now} s");
        };
        check(3600, 3539, false);
        check(3600, 3540, true);
        check(100, 89, false);
        check(100, 90, true);
        check(0, 0, true);
        check(60, 100, true);
        assert!(!is_due(Timestamp::MAX, start, None));
    }
}
