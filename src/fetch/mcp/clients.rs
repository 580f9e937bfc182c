//! The HTTP clients of connections: a pair for each workspace and kind, so that a thousand connectors share what they can
//! and pooled connections carry nothing from one workspace to another.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::address::PublicOnly;
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// Resolving, connecting and TLS together.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// An idle connection is closed after this: common servers close theirs after five seconds, and a request that meets
/// that moment is lost.
const IDLE_TIME_MAX: Duration = Duration::from_secs(4);

/// Idle connections kept to one host: as many as connectors of a workspace are likely to be read at once.
const IDLE_CONNECTIONS_MAX: usize = 16;

/// A connection on which nothing comes, such as one that waits for hints, is asked so often whether it is still there.
const ALIVE_TIME_MAX: Duration = Duration::from_secs(60);

/// And again, so often and so far apart, before it is given up.
const ALIVE_QUESTIONS_MAX: u32 = 4;
const ALIVE_WAIT: Duration = Duration::from_secs(15);

/// Makes HTTP clients and keeps them. Cloning it shares them.
#[derive(Clone, Default)]
pub struct Clients(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The system's certificates are read once; none when they cannot be used.
    tls: OnceLock<Option<rustls::ClientConfig>>,
    /// By workspace, and whether its names may lead to private addresses.
    made: Mutex<BTreeMap<(Name, bool), Pair>>,
}

/// What one connection makes its requests with.
#[derive(Clone, Debug)]
pub(in crate::fetch) struct Pair {
    /// For requests that are answered.
    pub answers: reqwest::Client,
    /// For those whose answer is a stream without an end. It takes no connection that was used before: such a one keeps
    /// the room that its largest answer took, for as long as the stream is open.
    pub streams: reqwest::Client,
}

impl std::fmt::Debug for Clients {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl Clients {
    /// None are made yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The clients of `workspace` for names that may lead to public addresses only, or to private ones as well.
    pub(in crate::fetch) fn of(&self, workspace: &Name, is_private: bool) -> Result<Pair, ReadError> {
        let mut made = self.0.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (workspace.clone(), is_private);
        if let Some(pair) = made.get(&key) {
            return Ok(pair.clone());
        }
        let pair = self.build(is_private).ok_or_else(|| {
            ReadError::NotConnected(
                "the system's TLS certificates cannot be used; install `ca-certificates`".to_owned(),
            )
        })?;
        made.insert(key, pair.clone());
        Ok(pair)
    }

    fn build(&self, is_private: bool) -> Option<Pair> {
        let tls = self.0.tls.get_or_init(tls).clone()?;
        let build = |pooled_max| {
            let builder = reqwest::Client::builder()
                .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
                .tls_backend_preconfigured(tls.clone())
                .no_proxy()
                .redirect(Policy::none())
                .referer(false)
                .retry(reqwest::retry::never())
                .connect_timeout(CONNECT_TIME_MAX)
                .tcp_keepalive(ALIVE_TIME_MAX)
                .tcp_keepalive_interval(ALIVE_WAIT)
                .tcp_keepalive_retries(ALIVE_QUESTIONS_MAX)
                .pool_max_idle_per_host(pooled_max)
                .pool_idle_timeout(IDLE_TIME_MAX);
            let builder = if is_private { builder } else { builder.dns_resolver(PublicOnly) };
            builder.build().ok()
        };
        Some(Pair { answers: build(IDLE_CONNECTIONS_MAX)?, streams: build(0)? })
    }
}

fn tls() -> Option<rustls::ClientConfig> {
    // One provider for the whole process; whoever comes first installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut tls = rustls::ClientConfig::builder().with_platform_verifier().ok()?.with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(tls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_made_once_for_each_workspace_and_kind() {
        let clients = Clients::new();
        let (acme, globex): (Name, Name) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        for (workspace, is_private, made) in
            [(&acme, false, 1), (&acme, false, 1), (&acme, true, 2), (&globex, false, 3), (&acme, true, 3)]
        {
            clients.clone().of(workspace, is_private).unwrap();
            assert_eq!(clients.0.made.lock().unwrap().len(), made);
        }
    }
}
