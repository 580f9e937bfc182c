//! Lets callers in.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::failures::{Failures, Limited};
use super::hosts::Hosts;
use super::{Caller, REQUEST_HEADER, Right, client, cookie, scope, text};
use crate::clock::{Clock, until};
use crate::config::{Config, Workspace};
use crate::inbox::{InboxError, Token, TokenKind, Tokens};
use crate::notification::Name;
use crate::serve::problem::Problem;

/// How often it is written down when tokens were used last.
const USED_EVERY: Duration = Duration::from_secs(60);
/// Tokens whose last use waits to be written down; what is beyond is noted at its next use.
const USED_MAX: usize = 10_000;

/// Why a link is refused that was redeemed.
pub(super) const USED_LINK: &str = "this link was used before: have another one made";

/// Knows tokens and sessions, and what they may.
#[derive(Clone)]
pub struct Gate {
    pub(super) tokens: Arc<dyn Tokens>,
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) clock: Clock,
    listen: SocketAddr,
    own: Arc<Own>,
}

/// What all clones of a gate share.
#[derive(Debug, Default)]
struct Own {
    failures: Failures,
    /// When tokens were used last, not yet written down.
    used: Mutex<HashMap<i64, Timestamp>>,
    /// Told whenever a token is revoked.
    revoked: watch::Sender<()>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Gate").field("listen", &self.listen).finish_non_exhaustive()
    }
}

/// A caller in a workspace, with the configuration as it was then.
#[derive(Clone, Debug)]
pub struct Admitted {
    config: Arc<Config>,
    name: Name,
}

impl Admitted {
    /// The workspace's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The workspace; none while its file has mistakes.
    pub fn workspace(&self) -> Option<&Workspace> {
        self.config.workspaces.get(&self.name)
    }
}

impl Gate {
    /// A gate over these tokens. `listen` is the address that the server has.
    pub fn new(
        tokens: Arc<dyn Tokens>,
        config: watch::Receiver<Arc<Config>>,
        clock: Clock,
        listen: SocketAddr,
    ) -> Self {
        Self { tokens, config, clock, listen, own: Arc::default() }
    }

    /// Who sends this request: by its bearer token, else, where `cookies`, by its session cookie. A request of a session that
    /// is no GET or HEAD must have our `Origin` and the header of our pages.
    ///
    /// # Errors
    /// [`Problem::Unauthenticated`], [`Problem::Forbidden`] for a foreign origin, [`Problem::TooMany`] after too many
    /// failures from this address.
    pub async fn caller(&self, request: &Parts, from: Option<SocketAddr>, cookies: bool) -> Result<Caller, Problem> {
        let headers = &request.headers;
        let (kind, text) = match (bearer(headers)?, cookies.then(|| cookie::session(headers)).flatten()) {
            (Some(text), _) => (TokenKind::Bearer, text),
            (None, Some(session)) => {
                if ![Method::GET, Method::HEAD].contains(&request.method) {
                    self.our_page(headers)?;
                }
                (TokenKind::Session, session)
            }
            (None, None) => {
                let why = "a token is needed: send the header `Authorization: Bearer TOKEN`, with a token that `switchbell token \
                           create` has made";
                return Err(Problem::Unauthenticated(why.to_owned()));
            }
        };
        let token = self.token(kind, text, from.map(|from| self.client(headers, from.ip()))).await?;
        let caller = scope::caller(&token, &self.config.borrow())?;
        self.note_use(&token);
        Ok(caller)
    }

    /// The good token of this text. `client` is who presents it; none by the control socket.
    pub(super) async fn token(&self, kind: TokenKind, text: &str, client: Option<IpAddr>) -> Result<Token, Problem> {
        let found = match text::hash(kind, text) {
            Some(hash) => self.tokens.token(hash).await.map_err(unavailable)?.filter(|token| token.kind == kind),
            None => None,
        };
        let Some(token) = found else { return Err(self.failed(client)) };
        match over(&token, self.clock.now()) {
            None => Ok(token),
            Some(why) => Err(Problem::Unauthenticated(why)),
        }
    }

    /// What is answered to a text that is no token. Who has a good one is never refused for the failures of others.
    fn failed(&self, client: Option<IpAddr>) -> Problem {
        let limited = client.and_then(|client| self.own.failures.note(client, self.clock.now()).err());
        match (client, limited) {
            (Some(client), Some(Limited { seconds, is_first })) => {
                if is_first {
                    tracing::warn!(target: "audit", %client, "too many unknown tokens: more of them are not told for a minute");
                }
                let why = format!("too many unknown tokens came from this address: try again in {seconds} s");
                Problem::TooMany(why, seconds)
            }
            (client, _) => {
                let client = client.map_or_else(|| "control socket".to_owned(), |client| client.to_string());
                tracing::warn!(target: "audit", %client, "unknown token");
                let why = "this token is not known: it was mistyped, or made for another server";
                Problem::Unauthenticated(why.to_owned())
            }
        }
    }

    pub(super) fn note_use(&self, token: &Token) {
        let minute = self.clock.now().as_second().div_euclid(60) * 60;
        let Ok(minute) = Timestamp::from_second(minute) else { return };
        if token.used_at.is_some_and(|at| at >= minute) {
            return;
        }
        let mut used = self.own.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < USED_MAX || used.contains_key(&token.id) {
            used.insert(token.id, minute);
        }
    }

    /// Writes down now and then when tokens were used last, and once more at the end.
    pub async fn tend(self, stop: CancellationToken) {
        while stop.run_until_cancelled(self.clock.sleep(USED_EVERY)).await.is_some() {
            self.write_uses().await;
        }
        self.write_uses().await;
    }

    async fn write_uses(&self) {
        let used = std::mem::take(&mut *self.own.used.lock().unwrap_or_else(PoisonError::into_inner));
        if used.is_empty() {
            return;
        }
        if let Err(error) = self.tokens.tokens_used(used.into_iter().collect()).await {
            tracing::warn!(%error, "when tokens were used last cannot be written down");
        }
    }

    /// Ready once the token that a caller came with allows this no more: it was revoked or is over, or the configuration makes
    /// of it another role. Whoever serves one request for long waits for it beside its work. Never ready for the control
    /// socket's caller.
    pub async fn ended(&self, caller: &Caller) {
        let Some(proof) = &caller.proof else { return std::future::pending().await };
        let (mut revoked, mut config) = (self.own.revoked.subscribe(), self.config.clone());
        loop {
            revoked.borrow_and_update();
            config.borrow_and_update();
            if self.still(caller).await.is_err() {
                return;
            }
            let over = async {
                match proof.expires_at {
                    Some(end) => self.clock.sleep(until(self.clock.now(), end)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok(()) = revoked.changed() => {}
                Ok(()) = config.changed() => {}
                () = over => {}
            }
        }
    }

    /// Judges a caller again who was let in before: much may have happened while its request came. The control socket's caller
    /// stays who it is.
    ///
    /// # Errors
    /// [`Problem::Unauthenticated`] once the token is no good any more, [`Problem::Forbidden`] once it is of another role.
    pub async fn still(&self, caller: &Caller) -> Result<(), Problem> {
        let Some(proof) = &caller.proof else { return Ok(()) };
        let Some(token) = self.tokens.token(proof.hash).await.map_err(unavailable)? else {
            return Err(Problem::Unauthenticated("this token is gone: have another one made".to_owned()));
        };
        if let Some(why) = over(&token, self.clock.now()) {
            return Err(Problem::Unauthenticated(why));
        }
        let now = scope::caller(&token, &self.config.borrow())?;
        match (now.role, &now.workspace, &now.actor) == (caller.role, &caller.workspace, &caller.actor) {
            true => Ok(()),
            false => Err(Problem::Forbidden(
                "what this token allows has changed while the request came: send it again".to_owned(),
            )),
        }
    }

    /// The address that the server has.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Tells those who wait in [`Gate::ended`] to look again.
    pub(super) fn tell_revoked(&self) {
        self.own.revoked.send_replace(());
    }

    /// Where a request comes from, of which the other end of its connection is `peer`.
    pub fn client(&self, headers: &HeaderMap, peer: IpAddr) -> IpAddr {
        client::address(&self.config.borrow().access, peer, headers)
    }

    /// Whether a `Host` (`host` or `host:port`) is one of this server's.
    pub fn is_our_host(&self, host: &str) -> bool {
        self.hosts(|hosts| hosts.is_host(host))
    }

    /// Whether an `Origin` is one of this server's.
    pub fn is_our_origin(&self, origin: &str) -> bool {
        self.hosts(|hosts| hosts.is_origin(origin))
    }

    /// Whether a page of ours sent a request: it has our origin, and the header that only our scripts send.
    ///
    /// # Errors
    /// [`Problem::Forbidden`].
    pub(super) fn our_page(&self, headers: &HeaderMap) -> Result<(), Problem> {
        self.our_origin(headers)?;
        match headers.get(REQUEST_HEADER).is_some_and(|value| value == "1") {
            true => Ok(()),
            false => Err(Problem::Forbidden(format!(
                "a browser's session changes things only by our own pages, which send the header `{REQUEST_HEADER}: 1`; \
                 programs use a bearer token"
            ))),
        }
    }

    /// Whether a request has the origin of our pages.
    pub(super) fn our_origin(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (origin, host) = (text(header::ORIGIN), text(header::HOST));
        match self.hosts(|hosts| hosts.is_from_here(origin, host)) {
            true => Ok(()),
            false => Err(Problem::Forbidden(
                "the header `Origin` is not this server's: open its own pages, by the name in `public_url`".to_owned(),
            )),
        }
    }

    /// Where the server is reached, as far as it is known. It ends with `/`.
    pub(super) fn base(&self) -> Option<Url> {
        let at = match (self.listen.port(), self.listen.ip()) {
            (0, _) => None,
            // All addresses of this machine: the browser may well be on it.
            (port, IpAddr::V4(address)) if address.is_unspecified() => Some(SocketAddr::from(([127, 0, 0, 1], port))),
            (port, IpAddr::V6(address)) if address.is_unspecified() => Some((Ipv6Addr::LOCALHOST, port).into()),
            _ => Some(self.listen),
        };
        let base = self.config.borrow().access.base(self.listen);
        base.or_else(|| at.and_then(|at| Url::parse(&format!("http://{at}/")).ok()))
    }

    /// Whether browsers reach the server over TLS alone.
    pub(super) fn is_encrypted(&self) -> bool {
        self.config.borrow().access.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    fn hosts<T>(&self, ask: impl FnOnce(Hosts<'_>) -> T) -> T {
        let config = self.config.borrow();
        ask(Hosts { access: &config.access, listen: self.listen })
    }

    /// Lets a caller into a workspace. Unknown, foreign and set aside for strangers: all the same answer.
    ///
    /// # Errors
    /// [`Problem::Unknown`], [`Problem::Forbidden`] where the workspace is the caller's but the role does not allow it.
    pub fn workspace(&self, caller: &Caller, workspace: &str, right: Right) -> Result<Admitted, Problem> {
        let config = self.config.borrow().clone();
        let is_own = caller.workspace.as_ref().is_none_or(|own| own.as_str() == workspace);
        let known = config.workspaces.keys().chain(&config.aside).find(|name| name.as_str() == workspace && is_own);
        let Some(name) = known.cloned() else {
            return Err(Problem::Unknown(format!("there is no workspace {workspace:?} that this token may see")));
        };
        self.operate(caller, right)?;
        Ok(Admitted { config, name })
    }

    /// Whether a caller may do this, where no workspace is named.
    ///
    /// # Errors
    /// [`Problem::Forbidden`].
    pub fn operate(&self, caller: &Caller, right: Right) -> Result<(), Problem> {
        match caller.may(right) {
            true => Ok(()),
            false => Err(Problem::Forbidden("the role of this token does not allow it".to_owned())),
        }
    }
}

/// The bearer token of a request (RFC 6750, section 2.1).
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let parts = value.to_str().ok().and_then(|text| text.split_once(' '));
    let is_bearer = |(scheme, _): &(&str, &str)| scheme.eq_ignore_ascii_case("bearer");
    match parts.filter(is_bearer) {
        Some((_, token)) => Ok(Some(token.trim())),
        None => Err(Problem::Unauthenticated("the header `Authorization` is written `Bearer TOKEN`".to_owned())),
    }
}

/// Why a token is no good any more.
fn over(token: &Token, now: Timestamp) -> Option<String> {
    let what = match token.kind {
        TokenKind::Bearer => "token",
        TokenKind::Link => "link",
        TokenKind::Session => "session",
    };
    match (token.is_good(now), token.revoked_at) {
        (true, _) => None,
        (false, Some(_)) if token.kind == TokenKind::Link => Some(USED_LINK.to_owned()),
        (false, Some(_)) => Some(format!("this {what} was revoked: have another one made")),
        (false, None) => Some(format!("this {what} is over: have another one made")),
    }
}

pub(super) fn unavailable(error: InboxError) -> Problem {
    Problem::Unavailable(error.to_string())
}
