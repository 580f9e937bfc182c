//! What the measurements run on: a configuration in a folder of its own, and a sink on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use jiff::Timestamp;
use switchbell::config::{self, Config};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::notification::{Event, Level, Name, Notification};
use switchbell::wasm::{Catalog, Plugin, Sandbox, Settings};
use tempfile::TempDir;

pub struct World {
    pub folder: TempDir,
    pub config: Arc<Config>,
    pub sink: SocketAddr,
}

impl World {
    /// A workspace `acme` with `routes` routes, of which only the first, `news`, matches `domain.active`.
    pub async fn new(routes: usize) -> Self {
        Self::with_sink(routes, sink().await)
    }

    /// The same, with a sink of one's own.
    pub fn with_sink(routes: usize, sink: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let plugins = plugin_path().parent().expect("a folder").to_owned();
        let operator = format!(
            "listen: 127.0.0.1:0\nplugins: {{ directory: {plugins:?}, grants: {{ slack: {{ http: [\"http://{sink}\"] }} }} }}\n\
             commands: {{ none: {{ run: [\"true\"], workspaces: [acme] }} }}\n\
             secrets: {{ hook: {{ env: HOOK, in: url, workspaces: [acme] }} }}\n"
        );
        let mut workspace =
            "members: { a@example.com: admin }\nconnectors: { registrar: { command: none, ceiling: urgent, \
             notifications: { resource: \"acme://n\" } } }\nroutes:\n"
                .to_owned();
        for number in 0..routes {
            let (name, pattern) = match number {
                0 => ("news".to_owned(), "domain.*".to_owned()),
                _ => (format!("other-{number}"), format!("service{number}.*.failed")),
            };
            workspace.push_str(&format!(
                "  - {{ name: {name}, owner: a@example.com, when: {{ name: \"{pattern}\" }}, deliver: [ {{ plugin: slack, \
                 with: {{ webhook: {{ secret: hook }} }} }} ] }}\n"
            ));
        }
        write(&folder.path().join("switchbell.yaml"), &operator);
        write(&folder.path().join("workspaces/acme.yaml"), &workspace);
        let environment =
            |name: &str| (name == "HOOK").then(|| format!("http://{sink}/services/T00000000/B00000000/x").into());
        let loaded = config::load(&folder.path().join("switchbell.yaml"), &environment).expect("a configuration");
        Self { config: Arc::new(loaded.config), folder, sink }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn inbox(&self, name: &str) -> SqliteInbox {
        SqliteInbox::open(&self.path(name), Timestamp::UNIX_EPOCH).expect("a store")
    }

    pub async fn catalog(&self) -> Catalog {
        let sandbox = Sandbox::new(Settings::new(self.config.plugins.limits)).expect("a sandbox");
        Catalog::open(&sandbox, &self.config.plugins.directory).await.0
    }
}

pub async fn slack(catalog: &Catalog) -> Plugin {
    catalog.get(&name("slack")).expect("dist/plugins/slack.wasm is missing: run `make plugins`")
}

pub fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

pub fn notification(seq: u64) -> Notification {
    let event = Event {
        event_id: format!("evt_{seq}"),
        name: "domain.active".to_owned(),
        timestamp: Timestamp::UNIX_EPOCH,
        level: Level::Attention,
        subject: Some("acme-outreach.test".to_owned()),
        title: "acme-outreach.test is active".to_owned(),
        body: Some("DNS propagated. Two mailboxes can now be created on it.".to_owned()),
        link: Some("acme://campaigns/cmp_8f2a".to_owned()),
        data: r#"{"campaign_id":"cmp_8f2a","provider":"acme-registrar"}"#.to_owned(),
        content: None,
    };
    Notification {
        workspace: name("acme"),
        seq,
        source: name("registrar"),
        received_at: Timestamp::UNIX_EPOCH,
        effective_level: Level::Attention,
        event,
    }
}

pub fn plugin_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("dist/plugins/slack.wasm")
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

/// Takes any request and answers as Slack does.
async fn sink() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(async |_: Bytes| "ok")).await });
    address
}
