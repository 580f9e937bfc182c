//! HTTP/1.1: no redirect, proxy, cookie, referer or decompression; addresses checked where it connects; connections kept
//! for their own plugin, workspace and origin.
//!
//! The framing stands here, over a parser of heads, because a client library keeps two buffers and a task for every
//! request: ten thousand that wait for slow destinations would take three times the memory this engine allows itself.

mod answer;
mod body;
mod connection;
mod exchange;
mod message;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use super::guard::{Allowed, Fetched, judge, tokens_wanted};
use super::mask::Mask;
use super::token::{Ask, Post, Tokens};
use super::{EffectsError, Permission, denied, fault};
use crate::address::NOT_PUBLIC;
use crate::config::TokenSource;
use crate::notification::Name;
use crate::wasm::{Fault, Reach, Request, Response};
use connection::{Connector, NotOpened};
use exchange::exchange;
use pool::{Pool, User};

/// The longest an answer may take, connecting included: a destination that needs longer is polled.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes kept of an answer's body: error texts and receipts are far smaller.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Bytes read beyond what is kept of the answer to a request with a secret, so that one that stands across the cut is
/// masked: more than any secret has, however it is written.
const BEYOND_THE_CUT_BYTES: usize = 128 * 1024;
/// The status of an answer to a request whose credential is not good (RFC 9110 §15.5.2).
const UNAUTHORIZED: u16 = 401;
/// How often idle connections are looked through.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Makes requests, and keeps connections for further ones. Clones share them.
#[derive(Clone)]
pub struct HttpClient(Arc<Shared>);

struct Shared {
    connector: Connector,
    pool: Pool,
}

impl std::fmt::Debug for HttpClient {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("HttpClient").field("pool", &self.0.pool).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Sets up the client.
    ///
    /// # Errors
    /// When the system's certificates cannot be used.
    pub fn new() -> Result<Self, EffectsError> {
        let tls = connection::tls().map_err(|error| EffectsError(error.to_string()))?;
        Ok(Self::speaking(tls))
    }

    fn speaking(tls: rustls::ClientConfig) -> Self {
        Self(Arc::new(Shared { connector: Connector::new(tls), pool: Pool::default() }))
    }

    /// Closes connections that have been idle for too long, for ever.
    pub(super) async fn tidy(&self) {
        loop {
            tokio::time::sleep(SWEEP_EVERY).await;
            self.0.pool.sweep(tokio::time::Instant::now());
        }
    }

    /// Judges a request, makes it, and reads the answer.
    pub(super) async fn perform(
        &self,
        request: Request,
        permission: &Permission<'_>,
        tokens: &Tokens,
    ) -> Result<Response, Fault> {
        let wanted = tokens_wanted(&request, permission);
        if wanted.is_empty() {
            return self.exchange(request, permission, &Fetched::new()).await;
        }
        Box::pin(self.with_tokens(request, permission, (&wanted, tokens))).await
    }

    /// A request that is answered by 401 was not acted upon: it is made once more with new tokens.
    async fn with_tokens(
        &self,
        request: Request,
        permission: &Permission<'_>,
        (wanted, tokens): (&[(&Name, &TokenSource)], &Tokens),
    ) -> Result<Response, Fault> {
        let fetched = self.fetched(wanted, tokens).await?;
        let answer = self.exchange(request.clone(), permission, &fetched).await?;
        if answer.status != UNAUTHORIZED {
            return Ok(answer);
        }
        for (name, token) in &fetched {
            tokens.forget(name, token).await;
        }
        let fetched = self.fetched(wanted, tokens).await?;
        self.exchange(request, permission, &fetched).await
    }

    async fn fetched(&self, wanted: &[(&Name, &TokenSource)], tokens: &Tokens) -> Result<Fetched, Fault> {
        let mut fetched = Fetched::new();
        for (name, source) in wanted {
            fetched.insert((*name).clone(), Box::pin(tokens.get(name, source, self)).await?);
        }
        Ok(fetched)
    }

    async fn exchange(
        &self,
        request: Request,
        permission: &Permission<'_>,
        fetched: &Fetched,
    ) -> Result<Response, Fault> {
        let kept = request.response_max.map_or(ANSWER_BYTES_MAX, |asked| asked.try_into().unwrap_or(usize::MAX));
        let kept = kept.min(ANSWER_BYTES_MAX);
        let (wait, wishes) = asked_of_the_answer(&request)?;
        let mut allowed = Box::new(judge(request, permission, fetched)?);
        let carried = std::mem::take(&mut allowed.carried);
        let user = User::of(&allowed, permission);
        let beyond = if carried.is_empty() { 0 } else { BEYOND_THE_CUT_BYTES };
        let answer = self.in_time(allowed, user, kept + beyond, wait).await?;
        Ok(answer::handed_on(answer, &wishes, &Mask::of(&carried, fetched), kept))
    }

    async fn in_time(
        &self,
        allowed: Box<Allowed<'_>>,
        user: User,
        kept_bytes: usize,
        wait: Duration,
    ) -> Result<Response, Fault> {
        let sent = self.send(allowed, user, kept_bytes);
        let late = |_| fault(Reach::Unanswered, "timeout", format!("no whole answer within {wait:?}"));
        tokio::time::timeout(wait, sent).await.map_err(late)?
    }

    /// Nothing is ever sent twice: a kept connection is looked at right before it is used, and what fails after that is
    /// told.
    async fn send(&self, allowed: Box<Allowed<'_>>, user: User, kept_bytes: usize) -> Result<Response, Fault> {
        let Shared { connector, pool } = &*self.0;
        let mut connection = match pool.take(&user) {
            Some(connection) => connection,
            // Boxed: it is over before the wait for the answer begins.
            None => Box::pin(connector.open(&allowed.url, allowed.private)).await.map_err(unsent)?,
        };
        let (request, method) = (message::request(&allowed), allowed.method.clone());
        // Nothing of it is needed while the answer is waited for.
        drop(allowed);
        let exchanged = exchange(&mut connection, request, method, kept_bytes).await;
        let (answer, reusable) = exchanged.map_err(|cut| {
            fault(Reach::Unanswered, "no-answer", format!("it was sent, but no whole answer came: {cut}"))
        })?;
        if reusable {
            pool.put(user, connection);
        }
        Ok(answer)
    }
}

impl Post for HttpClient {
    async fn post(&self, ask: Ask) -> Result<(u16, Vec<u8>), Fault> {
        let allowed = Box::new(ask.allowed()?);
        let user = User::of_the_host(&allowed);
        let answer = self.in_time(allowed, user, ANSWER_BYTES_MAX, ANSWER_TIME_MAX).await?;
        Ok((answer.status, answer.body))
    }
}

/// How long an answer may take, and what of it is asked for.
fn asked_of_the_answer(request: &Request) -> Result<(Duration, answer::Wishes), Fault> {
    let wait = request.timeout_ms.map_or(ANSWER_TIME_MAX, |asked| Duration::from_millis(asked.into()));
    if wait.is_zero() {
        return Err(denied("timeout", "a request that is given no time is not made".to_owned()));
    }
    Ok((wait.min(ANSWER_TIME_MAX), answer::Wishes::of(&request.extras)?))
}

/// All that is decided about a request before it is made; no access token is fetched for it.
pub(super) fn judged(request: &Request, permission: &Permission<'_>) -> Result<(), Fault> {
    asked_of_the_answer(request)?;
    let token = |(name, _): (&Name, _)| (name.clone(), "a-token-that-was-not-fetched".to_owned());
    let tokens = tokens_wanted(request, permission).into_iter().map(token).collect();
    judge(request.clone(), permission, &tokens).map(drop)
}

fn unsent(why: NotOpened) -> Fault {
    match why {
        NotOpened::Private => {
            let message =
                format!("{NOT_PUBLIC}: the operator may say `private: true` in the grant if that is intended");
            fault(Reach::Denied, "private-address", message)
        }
        NotOpened::Unnameable => {
            fault(Reach::Denied, "request", "the request cannot be made: its host is no name".to_owned())
        }
        NotOpened::Failed(error) => fault(Reach::Unsent, "connect", format!("no connection: {error}")),
    }
}

#[cfg(test)]
mod tests;
