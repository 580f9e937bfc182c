//! The official TypeScript SDK 2.x as a client of the extension, over HTTP and over `switchbell mcp`.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::server_stage::{Consumer, EXTENSION, emit_ids, ids, start};
use crate::support::{PATIENCE, prepared, root};

/// A client that prints what it gets.
struct Client {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(way: &Value) -> Self {
        prepared("tests/peers/mcp-clients/node_modules", "deps");
        let mut command = Command::new("node");
        command.arg(root().join("tests/peers/mcp-clients/push.mjs")).arg(way.to_string()).kill_on_drop(true);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("nothing came").unwrap();
        serde_json::from_str(&line.expect("it ended")).unwrap()
    }
}

async fn check(way: impl FnOnce(&str, &str, &str) -> Value) {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    emit_ids(&stage, &["1", "2"], &["triage"]).await;
    let mut client = Client::start(&way(&stage.url, stage.config().to_str().unwrap(), &triage.token));
    let began = client.next().await;
    assert_eq!(
        (&began["revision"], &began["capabilities"]["extensions"]),
        (&json!("2026-07-28"), &json!({ EXTENSION: {} }))
    );
    // The SDK shows the keys of a filter that it knows itself.
    assert_eq!(client.next().await["honoured"], json!({}));
    let page = client.next().await;
    assert_eq!(ids(&page["page"]), ["acme:crm:1", "acme:crm:2"]);
    assert_eq!((&page["page"]["hasMore"], &page["page"]["events"][0]["data"]["b"]), (&json!(false), &json!(1.5)));
    assert_eq!(page["acknowledged"], json!({}), "{page}");
    emit_ids(&stage, &["3"], &["triage"]).await;
    let told = client.next().await;
    assert_eq!(told["notification"]["method"], format!("{EXTENSION}/event"), "{told}");
    assert_eq!(told["notification"]["params"]["event"]["eventId"], "acme:crm:3", "{told}");
    assert_eq!(ids(&client.next().await["rest"]), Vec::<String>::new());
    assert_eq!(client.next().await["closed"], "graceful");
    assert_eq!(client.next().await["refused"]["code"], -32602);
    let ended = tokio::time::timeout(PATIENCE, client.child.wait()).await.expect("it does not end").unwrap();
    assert!(ended.success(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_2_consumes_over_http() {
    check(|url, _, token| json!({ "url": url, "token": token })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_2_consumes_over_stdio() {
    check(|_, config, token| {
        let command = [env!("CARGO_BIN_EXE_switchbell"), "--config", config, "mcp"];
        json!({ "command": command, "environment": { "SWITCHBELL_TOKEN": token } })
    })
    .await;
}
