//! A server of the extension, whoever wrote it, as the cases of the suite see it: events can be made to happen for each of two
//! consumers, streams cut, the server started again.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use switchbell::app::{App, Origin};
use switchbell::clock::Clock;
use switchbell::inbox::{Ended, Entry, Intake};
use switchbell::notification::{Event, Level};
use switchbell::telemetry::{Happening, Observer};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::mcp::stage::name;
use crate::support::{PATIENCE, free_port, root};

pub const EXTENSION: &str = "io.stagewise/push-notifications";
pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The consumers that each server knows.
pub const CONSUMERS: [&str; 2] = ["triage", "watch"];

/// A running server.
pub struct Side {
    pub url: String,
    tokens: [String; 2],
    client: reqwest::Client,
    kind: Kind,
}

enum Kind {
    Ours(Box<Ours>),
    Fixture { _process: Box<Child> },
}

/// The whole program but for its arguments, in this process.
pub struct Ours {
    pub folder: TempDir,
    app: Option<App>,
}

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    Ours,
    Fixture,
}

#[derive(Debug)]
pub struct Deaf;

impl Observer for Deaf {
    fn happened(&self, _: &Happening) {}
}

/// Starts the server of a folder with a configuration.
pub async fn app(folder: &Path) -> App {
    let (origin, _) = Origin::read(&folder.join("switchbell.yaml"), Arc::new(|_: &str| None)).unwrap();
    App::start(origin, Clock::system(), Arc::new(Deaf)).await.unwrap()
}

/// Asks the control socket of the server of a folder.
pub async fn local(folder: &Path, path: &str, asked: &Value) -> Value {
    let socket = folder.join("data/switchbell.db.sock");
    let client = reqwest::Client::builder().unix_socket(socket).no_proxy().build().unwrap();
    let request = client.post(format!("http://switchbell{path}")).body(asked.to_string());
    let response = request.header("content-type", "application/json").send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {response:?}");
    serde_json::from_str(&response.text().await.unwrap()).unwrap()
}

impl Ours {
    /// A server on a port that it keeps, with the workspace `acme` and its consumers.
    pub async fn start() -> (Self, String) {
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let put = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put(
            "switchbell.yaml",
            &format!(
                "listen: 127.0.0.1:{port}\nstore: sqlite:data/switchbell.db\nplugins: {{ directory: plugins/ }}\n"
            ),
        );
        put(
            "workspaces/acme.yaml",
            "members: { admin@example.com: admin }\nconsumers: { triage: {}, watch: { when: { name: \"domain.**\" } } }\n",
        );
        std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
        let app = Some(app(folder.path()).await);
        (Self { folder, app }, format!("http://127.0.0.1:{port}/mcp"))
    }

    pub async fn token(&self, consumer: &str) -> String {
        let wanted = json!({ "role": "agent", "workspaceId": "acme", "consumer": consumer });
        let made = local(self.folder.path(), "/v1/tokens", &wanted).await;
        made["token"].as_str().unwrap().to_owned()
    }

    /// Writes events into the inbox, and into the queue of `consumer`.
    pub async fn accept(&self, events: Vec<Event>, consumer: &str) {
        let entry =
            |event| Entry { effective_level: Level::Info, event, owed: Vec::new(), consumers: vec![name(consumer)] };
        let intake = Intake {
            workspace: name("acme"),
            source: name("crm"),
            received_at: Clock::system().now(),
            is_first: false,
            entries: events.into_iter().map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.app.as_ref().unwrap().inbox().accept(intake).await.unwrap();
    }

    pub async fn restart(&mut self) {
        self.stop().await;
        self.app = Some(app(self.folder.path()).await);
    }

    pub async fn stop(&mut self) {
        self.app.take().unwrap().stop().await;
    }
}

impl Side {
    pub async fn start(which: Which) -> Self {
        // The only TLS provider linked.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        match which {
            Which::Ours => {
                let (ours, url) = Ours::start().await;
                let tokens = [ours.token(CONSUMERS[0]).await, ours.token(CONSUMERS[1]).await];
                Self { url, tokens, client, kind: Kind::Ours(Box::new(ours)) }
            }
            Which::Fixture => {
                let (process, url) = fixture(-32021).await;
                let tokens = CONSUMERS.map(str::to_owned);
                Self { url, tokens, client, kind: Kind::Fixture { _process: Box::new(process) } }
            }
        }
    }

    pub fn token(&self, consumer: usize) -> &str {
        &self.tokens[consumer]
    }

    /// The id under which a server tells the event `id`.
    pub fn wire(&self, id: &str) -> String {
        match self.kind {
            Kind::Ours(_) => format!("acme:crm:{id}"),
            Kind::Fixture { .. } => id.to_owned(),
        }
    }

    /// Makes an event happen for a consumer.
    pub async fn emit(&self, consumer: usize, id: &str) {
        match &self.kind {
            Kind::Ours(ours) => ours.accept(vec![crate::mcp::stage::event(id)], CONSUMERS[consumer]).await,
            Kind::Fixture { .. } => {
                let event = json!({ "eventId": id, "data": { "b": 1.5, "a": [id] } });
                self.plain("emit", consumer, &event).await;
            }
        }
    }

    /// Makes several happen, one after the other.
    pub async fn emit_all(&self, consumer: usize, ids: &[&str]) {
        for id in ids {
            self.emit(consumer, id).await;
        }
    }

    /// Cuts off every stream, without a result where the server can be made to.
    pub async fn drop_streams(&mut self) {
        match &mut self.kind {
            Kind::Ours(ours) => ours.restart().await,
            Kind::Fixture { .. } => self.plain("drop", 0, &json!({})).await,
        }
    }

    /// Stops the server and starts it again, where it keeps anything over that.
    pub async fn restart(&mut self) {
        if let Kind::Ours(ours) = &mut self.kind {
            ours.restart().await;
        }
    }

    async fn plain(&self, path: &str, consumer: usize, body: &Value) {
        let url = self.url.replace("/mcp", &format!("/{path}"));
        let request = self.client.post(url).bearer_auth(self.token(consumer)).body(body.to_string());
        assert!(request.send().await.unwrap().status().is_success());
    }

    async fn post(&self, consumer: usize, message: &Value) -> reqwest::Response {
        let request = self.client.post(&self.url).bearer_auth(self.token(consumer)).body(message.to_string());
        let request = request.header("content-type", "application/json").header("mcp-protocol-version", "2026-07-28");
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-method", message["method"].as_str().unwrap());
        tokio::time::timeout(PATIENCE, request.send()).await.expect("no answer").unwrap()
    }

    /// What a message is answered with, whole.
    pub async fn ask(&self, consumer: usize, message: &Value) -> Value {
        let text = self.post(consumer, message).await.text().await.unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        serde_json::from_str(data).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// The result of a request of the extension.
    pub async fn result(&self, consumer: usize, what: &str, params: Value) -> Value {
        let answer = self.ask(consumer, &message(&json!(7), what, params)).await;
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(7)), "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// The code that refuses a request of the extension.
    pub async fn refusal(&self, what: &str, params: Value) -> i64 {
        let answer = self.ask(0, &message(&json!(7), what, params)).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no refusal: {answer}"))
    }

    /// The first page of what is pending.
    pub async fn page(&self, consumer: usize) -> Value {
        self.result(consumer, "get", json!({ "limit": 100 })).await
    }

    /// The ids of the first page.
    pub async fn pending(&self, consumer: usize) -> Vec<String> {
        ids(&self.page(consumer).await)
    }

    pub async fn ack(&self, consumer: usize, ids: &[String]) -> Value {
        self.result(consumer, "ack", json!({ "eventIds": ids })).await
    }

    /// Opens a stream, and takes its acknowledgement.
    pub async fn listen(&self, consumer: usize, id: Value) -> Live {
        let mut live = self.open(consumer, id).await;
        let first = live.next().await.expect("the stream ended");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        live
    }

    /// Opens a stream.
    pub async fn open(&self, consumer: usize, id: Value) -> Live {
        let response = self.post(consumer, &message(&id, "listen", json!({}))).await;
        assert_eq!(response.status().as_u16(), 200);
        Live {
            stream: response.bytes_stream().map(|piece| piece.map(|piece| piece.to_vec())).boxed(),
            rest: String::new(),
            id,
        }
    }
}

/// The peer, on a port that the system gave it, which refuses whoever does not declare the extension with this code.
pub async fn fixture(capability_code: i32) -> (Child, String) {
    let mut command = Command::new("node");
    command
        .arg(root().join("tests/peers/push-fixture/server.mjs"))
        .env("PORT", "0")
        .env("CAP_CODE", capability_code.to_string())
        .kill_on_drop(true);
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
    let first = tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("node said nothing").unwrap().unwrap();
    let port = first.strip_prefix("listening ").unwrap_or_else(|| panic!("{first}")).to_owned();
    // What it logs of requests is read on, else it would wait for a reader.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (process, format!("http://127.0.0.1:{port}/mcp"))
}

/// The ids of a page.
pub fn ids(page: &Value) -> Vec<String> {
    let events = page["events"].as_array().unwrap_or_else(|| panic!("no page: {page}"));
    events.iter().map(|event| event["eventId"].as_str().unwrap().to_owned()).collect()
}

/// A request, by a client that declares the extension: `get`, `ack`, `listen`, or another method as it is.
pub fn message(id: &Value, what: &str, params: Value) -> Value {
    message_with(id, what, params, &json!({ EXTENSION: {} }))
}

/// The same by a client with these extensions.
pub fn message_with(id: &Value, what: &str, mut params: Value, extensions: &Value) -> Value {
    let method = match what {
        "get" | "ack" => format!("{EXTENSION}/{what}"),
        "listen" => "subscriptions/listen".to_owned(),
        _ => what.to_owned(),
    };
    if what == "listen" {
        params = json!({ "notifications": { EXTENSION: params } });
    }
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "suite", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": extensions },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A live stream.
pub struct Live {
    stream: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    rest: String,
    pub id: Value,
}

impl Live {
    /// The next message; none at the end, however it comes.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.rest.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: ")).map(str::to_owned);
                self.rest = rest.to_owned();
                if let Some(data) = data {
                    return Some(serde_json::from_str(&data).unwrap());
                }
            }
            let piece = tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("nothing came");
            self.rest.push_str(&String::from_utf8(piece?.ok()?).unwrap());
        }
    }

    /// The event that is told next.
    pub async fn told(&mut self) -> Value {
        let message = self.next().await.expect("the stream ended");
        assert_eq!(message["method"], format!("{EXTENSION}/event"), "{message}");
        assert_eq!(message["params"]["_meta"][SUBSCRIPTION], self.id, "{message}");
        message["params"]["event"].clone()
    }

    /// The id of the event that is told next.
    pub async fn told_id(&mut self) -> String {
        self.told().await["eventId"].as_str().unwrap().to_owned()
    }
}
