//! Whose tokens: one connector of one workspace, and what it signs in with.

use std::collections::BTreeMap;

use url::Url;

use super::super::{Clients, Common};
use super::file::{Credential, Credentials};
use crate::clock::Clock;
use crate::config::{Auth, Connector, HostPattern, OAuthGrant, Secret, Transport};
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// One connector's sign-in, as the configuration has it.
#[derive(Clone)]
pub struct Account {
    pub(super) workspace: Name,
    pub(super) connector: Name,
    /// Without query, which may hold a credential, and without fragment: the resource's identifier (RFC 8707).
    pub(super) url: Url,
    pub(super) is_private: bool,
    pub(super) grant: OAuthGrant,
    pub(super) client: Option<Client>,
    pub(super) scopes: Vec<String>,
    pub(super) file: Credentials,
    pub(super) clock: Clock,
    pub(super) clients: Clients,
}

/// The client that the configuration names.
#[derive(Clone)]
pub(super) struct Client {
    pub id: String,
    pub secret: Option<ClientSecret>,
}

/// Its secret.
#[derive(Clone)]
pub(super) struct ClientSecret {
    pub name: Name,
    pub value: String,
    /// The hosts it may be sent to; all when empty.
    pub hosts: Vec<HostPattern>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = out.debug_struct("Account");
        shown.field("workspace", &self.workspace).field("connector", &self.connector).finish_non_exhaustive()
    }
}

impl Account {
    /// The account of a connector; none when it does not sign in by OAuth.
    ///
    /// # Errors
    /// When the configuration names a secret that is not there, or client credentials without a client.
    pub fn of(workspace: &Name, connector: &Connector, common: &Common<'_>) -> Result<Option<Self>, ReadError> {
        let Transport::Http { url, auth: Auth::OAuth(oauth), private, .. } = &connector.transport else {
            return Ok(None);
        };
        let secret = oauth.client_secret.as_ref().map(|name| client_secret(name, common.secrets)).transpose()?;
        let client = oauth.client_id.clone().map(|id| Client { id, secret });
        let is_complete = client.as_ref().is_some_and(|client| client.secret.is_some());
        if oauth.grant == OAuthGrant::ClientCredentials && !is_complete {
            let what = "auth.oauth: client credentials need `client_id` and `client_secret`";
            return Err(ReadError::NoToken(what.to_owned()));
        }
        let mut url = url.clone();
        url.set_query(None);
        url.set_fragment(None);
        Ok(Some(Self {
            workspace: workspace.clone(),
            connector: connector.name.clone(),
            url,
            is_private: *private,
            grant: oauth.grant,
            client,
            scopes: oauth.scopes.clone(),
            file: Credentials::new(common.credentials, workspace, &connector.name),
            clock: common.clock.clone(),
            clients: common.clients.clone(),
        }))
    }

    /// What this account's servers are trusted with by the configuration.
    pub(super) fn hidden(&self) -> Vec<String> {
        self.secret().map(|secret| secret.value.clone()).into_iter().collect()
    }

    pub(super) fn secret(&self) -> Option<&ClientSecret> {
        self.client.as_ref()?.secret.as_ref()
    }

    /// That only a person can go on, why, and how.
    pub(super) fn reauthorize(&self, why: &str) -> ReadError {
        ReadError::Reauthorize(format!(
            "{why}: run `switchbell connector login {} --workspace {}`",
            self.connector, self.workspace
        ))
    }

    /// Whether a person may be sent to this address: encryption is not given up on the way.
    pub(super) fn may_be_opened(&self, address: &str) -> bool {
        let scheme = Url::parse(address).map(|url| url.scheme().to_owned()).unwrap_or_default();
        scheme == "https" || (scheme == "http" && self.url.scheme() == "http")
    }

    /// Why a credential that was found is not this account's, if it is not.
    pub(super) fn foreign(&self, found: &Credential) -> Option<&'static str> {
        if found.url != self.url.as_str() {
            return Some("the sign-in was for another url of this connector");
        }
        let is_our_client = match &self.client {
            Some(client) => !found.is_registered && client.id == found.client_id,
            None => found.is_registered,
        };
        (!is_our_client).then_some("the sign-in was made with another client than auth.oauth names now")
    }
}

fn client_secret(name: &Name, secrets: &BTreeMap<Name, Secret>) -> Result<ClientSecret, ReadError> {
    let missing = || ReadError::NoToken(format!("the secret \"{name}\" is not there: add it to `secrets`"));
    let found = secrets.get(name).ok_or_else(missing)?;
    Ok(ClientSecret {
        name: name.clone(),
        value: found.fixed().unwrap_or_default().to_owned(),
        hosts: found.hosts.clone(),
    })
}
