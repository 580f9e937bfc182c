//! Tokens that the host fetches, keeps and renews for a connector (MCP, "Authorization").
//!
//! [`Tokens`] gives every request of one connector its bearer token. By client credentials it is fetched and kept in
//! memory. By authorization code a person signs in once ([`login`], `switchbell connector login`), which leaves a file
//! ([`Credentials`]); from then on the token is renewed ahead of its end. Servers that rotate refresh tokens take a
//! second use for theft and end the sign-in, so there is one renewal at a time, here and among processes; it is not
//! given up half way; and the new refresh token is on disk before the new access token is used.

mod account;
mod file;
pub mod login;
mod renew;
mod server;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::credential;
use crate::fetch::outbox::ReadError;
use renew::Renewer;

pub use account::Account;
pub use file::Credentials;

/// The tokens of one connector, for all its requests.
#[derive(Debug)]
pub struct Tokens {
    renewer: Arc<Renewer>,
    /// How many renewals have ended.
    ended: AtomicU64,
    turn: Mutex<Turn>,
}

/// The renewal that runs, and how the last one ended. The task lives no longer than the connector's tokens do; it is
/// one so that a request which is given up does not give up the renewal, whose answer may hold the only token that is
/// still good.
#[derive(Debug, Default)]
struct Turn {
    running: JoinSet<Result<String, ReadError>>,
    last: Option<Result<String, ReadError>>,
}

impl Tokens {
    /// The tokens of this account.
    pub fn new(account: Account) -> Self {
        Self { renewer: Arc::new(Renewer::new(account)), ended: AtomicU64::new(0), turn: Mutex::default() }
    }

    /// The token for a request. When it has to be renewed first, requests that come meanwhile wait for the one renewal
    /// and take what it brought.
    ///
    /// # Errors
    /// [`ReadError::Reauthorize`] when a person has to sign in; another when none could be had this time.
    pub async fn token(&self) -> Result<String, ReadError> {
        if let Some(token) = self.renewer.usable() {
            return Ok(token);
        }
        let seen = self.ended.load(Ordering::Acquire);
        let mut turn = self.turn.lock().await;
        if self.ended.load(Ordering::Acquire) != seen
            && let Some(last) = &turn.last
        {
            return last.clone();
        }
        // One that ended while nobody waited is over: its token is held, or was refused since.
        while turn.running.try_join_next().is_some() {}
        if let Some(token) = self.renewer.usable() {
            return Ok(token);
        }
        if turn.running.is_empty() {
            let renewer = Arc::clone(&self.renewer);
            turn.running.spawn(async move { renewer.renew().await });
        }
        let broken = || Err(ReadError::NoToken("the renewal of the token broke off".to_owned()));
        let result = match turn.running.join_next().await {
            Some(Ok(result)) => result,
            Some(Err(_)) | None => broken(),
        };
        turn.last = Some(result.clone());
        self.ended.fetch_add(1, Ordering::Release);
        result
    }

    /// Takes note that the connector's server answered a request with this token by 401: the next [`Tokens::token`]
    /// is another one.
    pub fn refused(&self, token: &str) {
        self.renewer.refused(token);
    }
}

impl credential::Tokens for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<String, ReadError>> {
        self.token().boxed()
    }

    fn refused<'a>(&'a self, token: &'a str, _challenge: Option<&'a str>) -> BoxFuture<'a, Result<(), ReadError>> {
        self.refused(token);
        std::future::ready(Ok(())).boxed()
    }

    fn refused_again(&self) -> ReadError {
        self.renewer.refused_again()
    }
}
