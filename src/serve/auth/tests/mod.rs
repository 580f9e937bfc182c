//! The gate over a real store, with a clock that is moved by hand.

mod ends;
mod makes;
mod requests;
mod signs_in;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use axum::http::{Method, Request, header};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::watch;

use super::sessions::Presented;
use super::*;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{SESSIONS_MAX, Scope, Tokens};
use crate::serve::problem::Problem;

const ACME: &str = "members: { admin@example.com: admin, reader@example.com: member }\n";

fn from() -> SocketAddr {
    "192.0.2.1:4711".parse().unwrap()
}

struct Stage {
    gate: Gate,
    store: Arc<SqliteInbox>,
    clock: Clock,
    config: watch::Sender<Arc<Config>>,
    folder: TempDir,
}

impl Stage {
    /// A gate of a server on `127.0.0.1:7420` with the workspaces `acme` and `globex`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual("2026-11-30T12:00:30Z".parse().unwrap());
        let store = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), clock.now()).unwrap());
        let first = loaded(&folder, "", &[("acme", ACME), ("globex", ACME)]);
        let (config, current) = watch::channel(Arc::new(first));
        let listen = "127.0.0.1:7420".parse().unwrap();
        let gate = Gate::new(Arc::clone(&store) as Arc<dyn Tokens>, current, clock.clone(), listen);
        Self { gate, store, clock, config, folder }
    }

    /// Takes another configuration.
    fn configure(&self, operator: &str, workspaces: &[(&str, &str)]) {
        self.config.send_replace(Arc::new(loaded(&self.folder, operator, workspaces)));
    }

    async fn made(&self, scope: Scope) -> Made {
        self.made_for(scope, None).await
    }

    async fn made_for(&self, scope: Scope, life: Option<Duration>) -> Made {
        self.gate.make(&Caller::local(), Wanted { scope, is_link: false, label: None, life }).await.unwrap()
    }

    async fn link(&self, scope: Scope) -> TokenText {
        let wanted = Wanted { scope, is_link: true, label: None, life: None };
        self.gate.make(&Caller::local(), wanted).await.unwrap().text
    }

    /// Who presents this token.
    async fn caller(&self, text: &TokenText) -> Result<Caller, Problem> {
        self.gate.caller(&bearer(text.as_str()), Some(from()), true).await
    }

    /// The caller that a browser with this cookie is.
    async fn browser(&self, session: &TokenText) -> Result<Caller, Problem> {
        self.gate.caller(&with_cookie(Method::GET, session, &[]), Some(from()), true).await
    }

    async fn signed_in(&self, with: &TokenText) -> TokenText {
        self.gate.sign_in(Presented::Token(with.as_str()), Some(from().ip())).await.unwrap()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

fn loaded(folder: &TempDir, operator: &str, workspaces: &[(&str, &str)]) -> Config {
    for needed in ["workspaces", "plugins"] {
        let _ = std::fs::remove_dir_all(folder.path().join(needed));
        std::fs::create_dir_all(folder.path().join(needed)).unwrap();
    }
    for (name, text) in workspaces {
        std::fs::write(folder.path().join(format!("workspaces/{name}.yaml")), text).unwrap();
    }
    let file = folder.path().join("switchbell.yaml");
    std::fs::write(&file, format!("listen: 127.0.0.1:7420\n{operator}")).unwrap();
    config::load(&file, &|_| None).unwrap().config
}

fn member(name: &str, is_admin: bool) -> Scope {
    Scope::Member { workspace: "acme".parse().unwrap(), member: name.to_owned(), is_admin }
}

fn agent() -> Scope {
    let (workspace, consumer) = ("acme".parse().unwrap(), "triage".parse().unwrap());
    Scope::Agent { workspace, consumer, may_read: true, may_ack: false }
}

fn request(method: Method, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri("/v1/me").header(header::HOST, "127.0.0.1:7420");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn bearer(text: &str) -> Parts {
    request(Method::POST, &[("authorization", &format!("Bearer {text}"))])
}

fn with_cookie(method: Method, session: &TokenText, headers: &[(&str, &str)]) -> Parts {
    let cookie = format!("{COOKIE}={}", session.as_str());
    request(method, &[headers, &[("cookie", &cookie)]].concat())
}

fn says(found: Result<Caller, Problem>, status: u16, text: &str) {
    let problem = found.unwrap_err();
    assert!(problem.json().status == status && problem.to_string().contains(text), "{problem:?}");
}
