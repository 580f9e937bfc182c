//! The servers that are measured, each in a process of its own.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use futures_util::stream;
use serde_json::json;
use switchbell::app::App;
use switchbell::clock::Clock;
use switchbell::config::{self, Config};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::{Ended, Entry, Intake, Scope, Token, TokenKind, Tokens as _};
use switchbell::notification::{Level, Name};
use switchbell::serve::auth::TokenText;
use switchbell::telemetry::Nobody;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use super::{EXTENSION, PAGE_EVENTS};
use crate::stream::{asked, now};
use crate::waiting::allow_open_files;
use crate::world::{name, notification};

/// Consumers, in workspaces of as many as one may have.
pub const CONSUMERS: usize = WORKSPACES * EACH;
const WORKSPACES: usize = 5;
const EACH: usize = 200;

/// Set for a process of its own that serves: how.
pub const ROLE: &str = "SWITCHBELL_BENCH_PUSH";

/// Serves, in the process that was started for that.
pub async fn serve_if_asked() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    allow_open_files();
    if role == "switchbell" {
        ours().await
    } else {
        bare().await
    }
    std::process::exit(0);
}

async fn ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = configuration(folder.path());
    let tokens = tokens(&config).await;
    let app = App::start(Arc::new(config), Clock::system(), Arc::new(Nobody)).await.expect("a server");
    println!("{} {}", app.address(), tokens.join(" "));
    let mut asked = asked();
    let mut number = 0;
    while let Some(line) = asked.recv().await {
        let (what, count) = line.split_once(' ').expect("two words");
        let (workspaces, consumers, events) = match what {
            "round" => (WORKSPACES, EACH, 1),
            "fill" => (1, 1, count.parse().expect("a number")),
            _ => (1, 1, 1),
        };
        for workspace in 0..workspaces {
            let consumers = (0..consumers).flat_map(|consumer| std::iter::repeat_n(consumer, events));
            let entries = consumers.map(|consumer| {
                number += 1;
                entry(number, consumer)
            });
            app.inbox().accept(intake(workspace, entries.collect())).await.expect("a write");
        }
        println!("{}", now());
    }
}

fn configuration(folder: &Path) -> Config {
    let put = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    put("switchbell.yaml", "listen: 127.0.0.1:0\nplugins: { directory: plugins/ }\n");
    put("plugins/none.txt", "");
    let mut workspace = "members: { a@example.com: admin }\nconsumers:\n".to_owned();
    for consumer in 0..EACH {
        let _ = writeln!(workspace, "  c{consumer}: {{ when: {{ name: \"for.c{consumer}\" }} }}");
    }
    (0..WORKSPACES).for_each(|number| put(&format!("workspaces/w{number}.yaml"), &workspace));
    config::load(&folder.join("switchbell.yaml"), &|_: &str| None).expect("a configuration").config
}

/// A token for each consumer, in the store that the server is going to open.
async fn tokens(config: &Config) -> Vec<String> {
    std::fs::create_dir_all(config.store.parent().expect("a folder")).expect("a folder");
    let store = SqliteInbox::open(&config.store, Clock::system().now()).expect("a store");
    let mut tokens = Vec::new();
    for number in 0..CONSUMERS {
        let text = TokenText::draw(TokenKind::Bearer).expect("a token");
        let scope = Scope::Agent {
            workspace: workspace(number / EACH),
            consumer: consumer(number % EACH),
            may_read: true,
            may_ack: true,
        };
        let token = Token {
            id: 0,
            kind: TokenKind::Bearer,
            hash: text.hash(),
            label: None,
            scope,
            parent: None,
            created_at: Clock::system().now(),
            expires_at: None,
            revoked_at: None,
            used_at: None,
        };
        store.add_token(token).await.expect("a write");
        tokens.push(text.as_str().to_owned());
    }
    tokens
}

fn workspace(number: usize) -> Name {
    name(&format!("w{number}"))
}

fn consumer(number: usize) -> Name {
    name(&format!("c{number}"))
}

fn entry(number: u64, to: usize) -> Entry {
    Entry {
        event: notification(number).event,
        effective_level: Level::Attention,
        owed: Vec::new(),
        consumers: vec![consumer(to)],
    }
}

fn intake(number: usize, entries: Vec<Entry>) -> Intake {
    Intake {
        is_first: false,
        workspace: workspace(number),
        source: name("registrar"),
        received_at: Clock::system().now(),
        entries,
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

/// The same bytes from a channel, for all who listen, a page that is always the same, and acknowledgements of nothing.
async fn bare() {
    let (sender, _) = broadcast::channel::<Bytes>(1_024);
    let events: Vec<_> = (0..PAGE_EVENTS).map(|number| envelope(&number.to_string())).collect();
    let result = json!({ "resultType": "complete", "events": events, "hasMore": true });
    let page = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
    let routes = Router::new().route("/mcp", post(answer)).with_state((sender.clone(), Bytes::from(page)));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    println!("{} {}", listener.local_addr().expect("an address"), vec!["none"; CONSUMERS].join(" "));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let mut asked = asked();
    while let Some(line) = asked.recv().await {
        let params = json!({ "event": envelope(&line), "_meta": { "io.modelcontextprotocol/subscriptionId": 1 } });
        let told = json!({ "jsonrpc": "2.0", "method": format!("{EXTENSION}/event"), "params": params });
        let _ = sender.send(format!("data: {told}\n\n").into());
        println!("{}", now());
    }
}

fn envelope(id: &str) -> serde_json::Value {
    let event = notification(1).event;
    let data: serde_json::Value = serde_json::from_str(&event.data).expect("JSON");
    let text = format!("{}\n\n{}", event.title, event.body.unwrap_or_default());
    json!({ "eventId": format!("w0:registrar:{id}"), "sourceId": "registrar", "type": event.name,
        "createdAt": "1970-01-01T00:00:00Z", "content": [{ "type": "text", "text": text }], "data": data })
}

async fn answer(State((told, page)): State<(broadcast::Sender<Bytes>, Bytes)>, body: Bytes) -> Response {
    let asked: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    let method = asked.get("method").and_then(serde_json::Value::as_str).unwrap_or_default();
    if method.ends_with("/get") {
        return ([(header::CONTENT_TYPE, "application/json")], page).into_response();
    }
    if method.ends_with("/ack") {
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
        return ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    }
    let first = r#"data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}"#;
    let first = stream::iter([Ok(Bytes::from(format!("{first}\n\n")))]);
    let events = stream::unfold(told.subscribe(), async |mut receiver| {
        let bytes = receiver.recv().await.ok()?;
        Some((Ok::<_, Infallible>(bytes), receiver))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(first, events));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}
