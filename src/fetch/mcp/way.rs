//! The way to one server: what it is reached by, who we are to it, and how a connection begins.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::service::{ClientCacheConfig, ClientInitializeError, ClientLifecycleMode};

use super::connection::{self, Carrier, Connection};
use super::credential::Credential;
use super::fault::Faults;
use super::hints::Handler;
use super::http::{Endpoint, Signature};
use super::oauth::{Account, Tokens};
use super::stdio::Program;
use super::tap::Tap;
use super::{Common, Times, words};
use crate::config::{Auth, Connector, Secret, Transport};
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// Longest revision that is kept, in characters: they are dates.
const REVISION_CHARS_MAX: usize = 32;

/// Cloning it is the same way: sign-ins are shared.
#[derive(Clone, Debug)]
pub(super) struct Way {
    server: Arc<Server>,
    pub times: Times,
    pub faults: Faults,
    /// The bare URI of the outbox, if it has one.
    resource: Arc<str>,
    /// Whether it leads to a push queue.
    is_pushed: bool,
}

#[derive(Debug)]
enum Server {
    Stdio(Program),
    Http(Endpoint),
}

impl Way {
    /// # Errors
    /// When the connector names a secret that is not there or cannot be sent, or its program is empty.
    pub(super) fn new(workspace: &Name, connector: &Connector, common: &Common<'_>) -> Result<Self, ReadError> {
        let Common { secrets, times, clock, clients, .. } = common;
        let (server, hidden) = match &connector.transport {
            Transport::Stdio { run, env, directory } => {
                let program = Program::new(workspace, &connector.name, run, env, directory)
                    .ok_or_else(|| ReadError::NotConnected("the connector's command names no program".to_owned()))?;
                (Server::Stdio(program), words::hidden_in(env))
            }
            Transport::Http { url, auth, headers, private } => {
                let (credential, token) = match auth {
                    Auth::Bearer(name) => {
                        let token = value_of(name, secrets)?;
                        (Credential::Bearer(token.as_str().into()), Some(token))
                    }
                    Auth::OAuth(_) => {
                        let account = Account::of(workspace, connector, common)?;
                        let tokens = account.map(|account| Arc::new(Tokens::new(account)) as _);
                        (tokens.map_or(Credential::None, Credential::Tokens), None)
                    }
                    Auth::None => (Credential::None, None),
                };
                let values = headers.values().map(|name| value_of(name, secrets)).collect::<Result<Vec<_>, _>>()?;
                let signature = Signature { credential, headers: headers.clone() };
                let waits = times.waits();
                let endpoint = Endpoint::new(workspace, url, *private, signature, secrets, clients, waits)?;
                let endpoint = endpoint.of_catalog(connector.is_of_catalog);
                (Server::Http(endpoint), values.into_iter().chain(token).collect())
            }
        };
        Ok(Self {
            server: Arc::new(server),
            times: *times,
            faults: Faults::new(hidden, clock.clone()),
            resource: connector.outbox.as_deref().unwrap_or_default().into(),
            is_pushed: connector.push.is_some(),
        })
    }

    /// The way to an outbox behind this endpoint.
    #[cfg(test)]
    pub(super) fn to(endpoint: Endpoint, times: Times) -> Self {
        let faults = Faults::new(Vec::new(), crate::clock::Clock::system());
        Self { server: Arc::new(Server::Http(endpoint)), times, faults, resource: "acme://n".into(), is_pushed: false }
    }

    /// Whether the server is a program of ours.
    pub(super) fn is_program(&self) -> bool {
        matches!(*self.server, Server::Stdio(_))
    }

    /// Makes a connection that begins so.
    pub(super) async fn connect(&self, lifecycle: ClientLifecycleMode) -> Result<Connection, ReadError> {
        let handler = Handler::new(&self.resource, self.is_pushed);
        let tap = self.is_pushed.then(Tap::new);
        let (service, carrier) = match &*self.server {
            Server::Stdio(program) => {
                let (process, transport) = program.start(&self.faults, tap.clone())?;
                let service = connection::serve(handler.clone(), transport, lifecycle, self.times.connect);
                let served = process.while_it_runs(service, &self.faults).await;
                match served.and_then(|served| served.map_err(|error| self.refused(error))) {
                    Ok(service) => (service, Carrier::Child(process)),
                    Err(error) => return Err(process.explain_start(error, &self.faults, self.times).await),
                }
            }
            Server::Http(endpoint) => {
                let (transport, heard) = endpoint.transport(&self.faults, tap.clone())?;
                let served = connection::serve(handler.clone(), transport, lifecycle, self.times.connect).await;
                let service = served.map_err(|error| endpoint.explain(heard.explain(self.refused(error))))?;
                (service, Carrier::Http(heard))
            }
        };
        // A cached answer would be an outbox that stands still.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        let spoken = service.peer().peer_info().map(|server| server.protocol_version.to_string());
        let spoken = spoken.map(|spoken| self.faults.fit(&spoken).chars().take(REVISION_CHARS_MAX).collect());
        Ok(Connection::new(service, handler, carrier, spoken, tap))
    }

    /// Says more about an error.
    pub(super) fn explain(&self, error: ReadError) -> ReadError {
        match &*self.server {
            Server::Http(endpoint) => endpoint.explain(error),
            Server::Stdio(_) => error,
        }
    }

    fn refused(&self, error: Option<ClientInitializeError>) -> ReadError {
        match error {
            Some(error) => self.faults.of_connecting(&error),
            None => ReadError::Timeout { waited: self.times.connect },
        }
    }
}

/// The value of a secret that a connector names.
pub(super) fn value_of(name: &Name, secrets: &BTreeMap<Name, Secret>) -> Result<String, ReadError> {
    let missing = || ReadError::NotConnected(format!("the secret \"{name}\" is not there: add it to `secrets`"));
    secrets.get(name).and_then(Secret::fixed).map(str::to_owned).ok_or_else(missing)
}
