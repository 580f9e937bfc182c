//! HTTP/1.1: no redirect, proxy, cookie, referer or decompression; addresses checked where it connects; connections kept
//! for their own plugin, workspace and origin.
//!
//! The framing stands here, over a parser of heads, because a client library keeps two buffers and a task for every
//! request: ten thousand that wait for slow destinations would take three times the memory this engine allows itself.

mod body;
mod connection;
mod exchange;
mod message;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use super::guard::{Allowed, Fetched, judge};
use super::mask::Mask;
use super::{EffectsError, Permission, fault};
use crate::address::NOT_PUBLIC;
use crate::wasm::{Fault, Reach, Request, Response};
use connection::{Connector, NotOpened};
use exchange::exchange;
use pool::{Pool, User};

/// The longest an answer may take, connecting included: a destination that needs longer is polled.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(30);
/// Bytes kept of an answer's body: error texts and receipts are far smaller.
const ANSWER_BYTES_MAX: usize = 256 * 1024;
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
    pub(super) async fn perform(&self, request: Request, permission: &Permission<'_>) -> Result<Response, Fault> {
        let wait = request.timeout_ms.map_or(ANSWER_TIME_MAX, |asked| Duration::from_millis(asked.into()));
        let kept = request.response_max.map_or(ANSWER_BYTES_MAX, |asked| asked.try_into().unwrap_or(usize::MAX));
        let fetched = Fetched::new();
        let allowed = Box::new(judge(request, permission, &fetched)?);
        let mask = Mask::of(&allowed.carried, &fetched);
        let user = User::of(&allowed, permission);
        let sent = self.send(allowed, user, kept.min(ANSWER_BYTES_MAX));
        match tokio::time::timeout(wait.min(ANSWER_TIME_MAX), sent).await {
            Ok(answer) => answer.map(|answer| masked(answer, &mask)),
            Err(_) => Err(fault(Reach::Unanswered, "timeout", format!("no whole answer within {wait:?}"))),
        }
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

/// An answer without the secrets that its request carried.
fn masked(mut answer: Response, mask: &Mask) -> Response {
    if mask.is_empty() {
        return answer;
    }
    for (_, value) in &mut answer.headers {
        let mut bytes = std::mem::take(value).into_bytes();
        mask.apply(&mut bytes);
        *value = String::from_utf8_lossy(&bytes).into_owned();
    }
    mask.apply(&mut answer.body);
    answer
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
