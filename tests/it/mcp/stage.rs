//! A server in this process, its tokens, and requests to it as they go over the wire.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use switchbell::app::{App, Origin};
use switchbell::clock::Clock;
use switchbell::inbox::{Ended, Entry, Intake};
use switchbell::notification::{Event, Level, Name};
use switchbell::telemetry::{Happening, Observer};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::support::PATIENCE;

pub const LEGACY: &str = "2025-06-18";
pub const MODERN: &str = "2026-07-28";

#[derive(Debug)]
struct Told(mpsc::UnboundedSender<Happening>);

impl Observer for Told {
    fn happened(&self, what: &Happening) {
        let _ = self.0.send(what.clone());
    }
}

pub struct Stage {
    pub folder: TempDir,
    pub app: App,
    pub url: String,
    pub client: reqwest::Client,
    told: mpsc::UnboundedReceiver<Happening>,
}

/// An answer as it came.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub challenge: Option<String>,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// An event as a connector would have told it.
pub fn event(id: &str) -> Event {
    Event {
        event_id: id.to_owned(),
        name: "domain.active".to_owned(),
        timestamp: "2026-09-01T18:42:10Z".parse().unwrap(),
        level: Level::Attention,
        subject: Some("a.example".to_owned()),
        title: format!("title of {id}"),
        body: Some("more\nof it".to_owned()),
        link: Some("acme://domains/a".to_owned()),
        data: "{ \"b\": 1.50, \"a\" : 12345678901234567890123 }".to_owned(),
        content: None,
    }
}

impl Stage {
    /// A server with the workspaces `acme`, of an admin and a member, and `globex`.
    pub async fn start() -> Self {
        Self::start_at(Clock::system()).await
    }

    /// The same with this clock.
    pub async fn start_at(clock: Clock) -> Self {
        // The only TLS provider linked.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("switchbell.yaml", OPERATOR);
        put("workspaces/acme.yaml", ACME);
        put("workspaces/globex.yaml", "members: { admin@example.com: admin }\n");
        fs::create_dir_all(folder.path().join("plugins")).unwrap();
        Self::open(folder, clock).await
    }

    /// The same server, stopped and started again.
    pub async fn again(self) -> Self {
        self.app.stop().await;
        Self::open(self.folder, Clock::system()).await
    }

    async fn open(folder: TempDir, clock: Clock) -> Self {
        let (told, happened) = mpsc::unbounded_channel();
        let (origin, _) = Origin::read(&folder.path().join("switchbell.yaml"), Arc::new(|_: &str| None)).unwrap();
        let app = App::start(origin, clock, Arc::new(Told(told))).await.unwrap();
        let url = format!("http://{}/mcp", app.address());
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { folder, app, url, client, told: happened }
    }

    /// The operator's file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("switchbell.yaml")
    }

    /// A token, made by the operator of this machine.
    pub async fn token(&self, wanted: Value) -> String {
        self.make(wanted).await["token"].as_str().unwrap().to_owned()
    }

    /// The same with all that is told of it.
    pub async fn make(&self, wanted: Value) -> Value {
        self.local("/v1/tokens", &wanted).await
    }

    /// Asks the control socket.
    pub async fn local(&self, path: &str, asked: &Value) -> Value {
        let socket = self.folder.path().join("data/switchbell.db.sock");
        let client = reqwest::Client::builder().unix_socket(socket).no_proxy().build().unwrap();
        let request = client.post(format!("http://switchbell{path}")).body(asked.to_string());
        let response = request.header("content-type", "application/json").send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {response:?}");
        serde_json::from_str(&response.text().await.unwrap()).unwrap()
    }

    /// The token of an agent of `acme` that may do all an agent can.
    pub async fn agent(&self) -> String {
        self.token(json!({ "role": "agent", "workspaceId": "acme", "consumer": "triage" })).await
    }

    /// Writes what a connector told into the inbox of a workspace.
    pub async fn accept(&self, workspace: &str, source: &str, events: Vec<Event>) {
        let entry = |event: Event| Entry {
            effective_level: event.level.min(Level::Attention),
            event,
            owed: Vec::new(),
            consumers: Vec::new(),
        };
        let intake = Intake {
            workspace: name(workspace),
            source: name(source),
            received_at: Clock::system().now(),
            is_first: false,
            entries: events.into_iter().map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.app.inbox().accept(intake).await.unwrap();
    }

    /// Posts a message with these headers and no others of MCP.
    pub async fn post(&self, message: &Value, headers: &[(&str, &str)]) -> Answer {
        let mut request = self.client.post(&self.url).body(message.to_string());
        request = request.header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let (status, challenge) = (response.status().as_u16(), header("www-authenticate"));
        Answer { status, challenge, text: response.text().await.unwrap() }
    }

    /// Asks as the revisions before 2026-07-28 do.
    pub async fn ask(&self, token: &str, method: &str, params: Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let bearer = format!("Bearer {token}");
        self.post(&message, &[("authorization", &bearer), ("mcp-protocol-version", LEGACY)]).await
    }

    /// The result of a request.
    pub async fn result(&self, token: &str, method: &str, params: Value) -> Value {
        let answer = self.ask(token, method, params).await.json();
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The result of a tool.
    pub async fn call(&self, token: &str, tool: &str, arguments: Value) -> Value {
        self.result(token, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// A tool's structured answer.
    pub async fn structured(&self, token: &str, tool: &str, arguments: Value) -> Value {
        let result = self.call(token, tool, arguments).await;
        assert_eq!(result["isError"], json!(false), "{result}");
        result["structuredContent"].clone()
    }

    /// The words of a tool that could not do it.
    pub async fn refusal(&self, token: &str, tool: &str, arguments: Value) -> String {
        let result = self.call(token, tool, arguments).await;
        assert_eq!(result["isError"], json!(true), "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// A read of our outbox.
    pub async fn read(&self, token: &str, uri: &str) -> Value {
        let found = self.result(token, "resources/read", json!({ "uri": uri })).await;
        let contents = found["contents"].as_array().unwrap();
        assert_eq!((contents.len(), &contents[0]["uri"]), (1, &json!(uri)));
        assert_eq!(contents[0]["mimeType"], "application/json");
        serde_json::from_str(contents[0]["text"].as_str().unwrap()).unwrap()
    }

    /// The next thing that happens.
    pub async fn next(&mut self) -> Happening {
        tokio::time::timeout(PATIENCE, self.told.recv()).await.expect("nothing happened").unwrap()
    }

    /// Takes a file into the configuration.
    pub async fn reload_with(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
        self.app.reload().reload().await.unwrap();
    }
}

/// Numbers of notifications.
pub fn seqs(listed: &Value) -> Vec<u64> {
    listed["items"].as_array().unwrap().iter().map(|item| item["seq"].as_u64().unwrap()).collect()
}

pub const OPERATOR: &str = "listen: 127.0.0.1:0
store: sqlite:data/switchbell.db
poll: { base: 50ms, floor: 20ms, ceiling: 200ms, budget_per_minute: 100000 }
plugins: { directory: plugins/ }
";

pub const ACME: &str = "members: { admin@example.com: admin, reader@example.com: member }\n";
