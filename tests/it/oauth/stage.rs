//! What the tests of OAuth stand on.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use switchbell::clock::Clock;
use switchbell::config::{Auth, Connector, OAuth, OAuthGrant, Poll, Secret, SecretPlace, Transport};
use switchbell::fetch::mcp::oauth::login::{Granted, Login};
use switchbell::fetch::mcp::oauth::{Account, Credentials, Tokens};
use switchbell::fetch::mcp::{Clients, Common, McpOutbox, Times};
use switchbell::fetch::outbox::ReadError;
use switchbell::notification::{Level, Name};
use tempfile::TempDir;

use crate::support::{Authorization, sign_in};

pub const RESOURCE: &str = "acme://notifications";
pub const BACK: &str = "http://127.0.0.1:7429/callback";
/// What the servers' tokens last.
pub const LIFE: Duration = Duration::from_secs(3600);

/// A connector that signs in, its server, and a clock that is moved by hand.
pub struct Stage {
    pub servers: Authorization,
    pub connector: Connector,
    pub secrets: BTreeMap<Name, Secret>,
    store: TempDir,
    pub clock: Clock,
}

impl Stage {
    pub async fn start(oauth: OAuth, secret: &str) -> Self {
        let servers = Authorization::start().await;
        let url = servers.mcp.parse().unwrap();
        let connector = Connector {
            is_of_catalog: false,
            name: "registrar".parse().unwrap(),
            transport: Transport::Http { url, auth: Auth::OAuth(oauth), headers: BTreeMap::new(), private: false },
            outbox: Some("acme://notifications".to_owned()),
            push: None,
            not_polled: None,
            ceiling: Level::Info,
            poll: Poll::default(),
        };
        let (place, hosts) = (SecretPlace::Connector, Vec::new());
        let secret = Secret { hosts, ..Secret::new(secret.to_owned(), place) };
        let secrets = BTreeMap::from([("client".parse().unwrap(), secret)]);
        let clock = Clock::manual("2026-09-01T18:42:10Z".parse().unwrap());
        Self { servers, connector, secrets, store: tempfile::tempdir().unwrap(), clock }
    }

    /// A connector whose client is registered at the first login.
    pub async fn for_a_person() -> Self {
        Self::start(oauth(OAuthGrant::AuthorizationCode, None), "").await
    }

    pub async fn for_a_robot() -> Self {
        Self::start(oauth(OAuthGrant::ClientCredentials, Some("robot")), "the-secret-of-the-robot").await
    }

    pub fn account(&self) -> Account {
        let account = self.with(|workspace, common| Account::of(workspace, &self.connector, common));
        account.unwrap().unwrap()
    }

    pub fn outbox(&self) -> McpOutbox {
        self.with(|workspace, common| McpOutbox::new(workspace, &self.connector, common)).unwrap()
    }

    pub fn with<T>(&self, make: impl FnOnce(&Name, &Common<'_>) -> T) -> T {
        let common = Common {
            secrets: &self.secrets,
            times: Times::default(),
            clock: self.clock.clone(),
            clients: Clients::new(),
            credentials: &Credentials::folder_of(&self.store.path().join("switchbell.db")),
        };
        make(&"acme".parse().unwrap(), &common)
    }

    pub fn tokens(&self) -> Tokens {
        Tokens::new(self.account())
    }

    pub async fn log_in(&self) -> Granted {
        let login = Login::begin(self.account(), BACK).await.unwrap();
        login.finish(&sign_in(login.address(), BACK).await).await.unwrap()
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.store.path().join("credentials/acme/registrar.json")
    }

    /// A field of the credential's file.
    pub fn kept(&self, field: &str) -> Value {
        let whole: Value = serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap();
        whole[field].clone()
    }

    pub async fn revoke(&self, field: &str) {
        let (token, client) = (self.kept(field), self.kept("client_id"));
        self.servers.revoke(token.as_str().unwrap(), client.as_str().unwrap()).await;
    }

    pub fn auth(&mut self) -> &mut OAuth {
        match &mut self.connector.transport {
            Transport::Http { auth: Auth::OAuth(oauth), .. } => oauth,
            other => panic!("{other:?}"),
        }
    }
}

pub fn oauth(grant: OAuthGrant, client: Option<&str>) -> OAuth {
    let secret = client.map(|_| "client".parse().unwrap());
    OAuth { grant, client_id: client.map(str::to_owned), client_secret: secret, scopes: Vec::new() }
}

#[track_caller]
pub fn assert_reauthorize(result: Result<String, ReadError>, why: &str) {
    match result {
        Err(ReadError::Reauthorize(text)) => {
            let expected = format!("{why}: run `switchbell connector login registrar --workspace acme`");
            assert!(text.ends_with(&expected), "{text}");
        }
        other => panic!("{other:?}"),
    }
}
