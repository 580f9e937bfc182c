//! `switchbell mcp`: messages on standard input and output.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::stage::{MODERN, Stage, event};
use crate::support::PATIENCE;

/// A program that relays, and its two ends.
pub struct Relay {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Relay {
    pub fn start(stage: &Stage, token: &str, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
        command
            .arg("--config")
            .arg(stage.config())
            .arg("mcp")
            .args(more)
            .env("SWITCHBELL_TOKEN", token)
            .kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), output, child }
    }

    pub async fn write(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.output.next_line()).await.expect("nothing came").unwrap();
        serde_json::from_str(&line.expect("it ended")).unwrap()
    }

    pub async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Closes its standard input; it ends by itself.
    pub async fn end(mut self) {
        drop(self.input.take());
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await.expect("it does not end").unwrap();
        assert!(ended.success(), "{ended}");
    }
}

pub fn modern(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
    });
    params
}

async fn both_eras(mut relay: Relay) {
    let client =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "it", "version": "1" } });
    let began = relay.ask(1, "initialize", client).await;
    assert_eq!(began["result"]["protocolVersion"], "2025-11-25", "{began}");
    relay.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let list = json!({ "name": "notifications__list", "arguments": {} });
    let listed = relay.ask(2, "tools/call", list.clone()).await;
    assert_eq!(listed["result"]["structuredContent"]["items"][0]["eventId"], "one", "{listed}");
    let found = relay.ask(3, "server/discover", modern(json!({}))).await;
    assert_eq!(found["result"]["resultType"], "complete", "{found}");
    let listed = relay.ask(4, "tools/call", modern(list)).await;
    assert_eq!(listed["result"]["structuredContent"]["items"][0]["eventId"], "one", "{listed}");
    let read = relay.ask(5, "resources/read", modern(json!({ "uri": "switchbell://notifications" }))).await;
    assert_eq!(read["result"]["contents"][0]["mimeType"], "application/json", "{read}");
    let unknown = relay.ask(6, "no/such", modern(json!({}))).await;
    assert_eq!(unknown["error"]["code"], -32601, "the server's own words: {unknown}");
    relay.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn it_speaks_every_revision_by_the_socket_and_by_a_url() {
    let stage = Stage::start().await;
    // A payload over more than one line is on one line here.
    let broken = switchbell::notification::Event { data: "{\n \"a\":\r\n 1\n}".to_owned(), ..event("one") };
    stage.accept("acme", "crm", vec![broken]).await;
    let token = stage.agent().await;
    both_eras(Relay::start(&stage, &token, &[])).await;
    let url = stage.url.trim_end_matches("/mcp").to_owned();
    both_eras(Relay::start(&stage, &token, &["--server", &url])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_can_be_under_way_at_once_waits_and_is_answered() {
    const REQUESTS: u64 = 600;
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let mut relay = Relay::start(&stage, &token, &[]);
    let line = |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": modern(json!({})) });
    let lines: String = (0..REQUESTS).map(|id| format!("{}\n", line(id))).collect();
    let mut input = relay.input.take().unwrap();
    let writing = tokio::spawn(async move { input.write_all(lines.as_bytes()).await.map(|()| input) });
    let mut left: std::collections::BTreeSet<u64> = (0..REQUESTS).collect();
    while !left.is_empty() {
        let answer = relay.next().await;
        assert!(answer["result"]["tools"].is_array(), "{answer}");
        assert!(left.remove(&answer["id"].as_u64().unwrap()), "{answer}");
    }
    relay.input = Some(writing.await.unwrap().unwrap());
    relay.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_come_through_until_they_are_not_wanted_any_more() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let mut relay = Relay::start(&stage, &token, &[]);
    let uris = json!({ "notifications": { "resourceSubscriptions": ["switchbell://notifications"] } });
    let listen = json!({ "jsonrpc": "2.0", "id": "l-1", "method": "subscriptions/listen", "params": modern(uris) });
    relay.write(&listen.to_string()).await;
    assert_eq!(relay.next().await["method"], "notifications/subscriptions/acknowledged");
    stage.accept("acme", "crm", vec![event("one")]).await;
    assert_eq!(relay.next().await["method"], "notifications/resources/updated");
    // Others are answered meanwhile.
    let listed = relay.ask(2, "tools/list", modern(json!({}))).await;
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3);
    relay.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"l-1"}}"#).await;
    stage.accept("acme", "crm", vec![event("two")]).await;
    // The id is free again, and nothing came of the one before.
    relay.write(&listen.to_string()).await;
    assert_eq!(relay.next().await["method"], "notifications/subscriptions/acknowledged");
    relay.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_is_told_with_the_remedy_to_whoever_asked() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let mut relay = Relay::start(&stage, &token, &[]);
    relay.write("this is no JSON").await;
    assert_eq!(relay.next().await["error"]["code"], -32700);
    relay.write("[]").await;
    assert_eq!(relay.next().await["error"]["code"], -32600);
    relay.write(&format!("\"{}\"", "x".repeat(2 << 20))).await;
    assert!(relay.next().await["error"]["message"].as_str().unwrap().contains("too long"));
    relay.end().await;

    let says = async |mut relay: Relay, words: &[&str]| {
        let answer = relay.ask(1, "tools/list", modern(json!({}))).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
        relay.end().await;
    };
    says(Relay::start(&stage, "swb_wrong", &[]), &["SWITCHBELL_TOKEN is refused", "not known", "401"]).await;
    says(
        Relay::start(&stage, &token, &["--server", "http://127.0.0.1:1"]),
        &["http://127.0.0.1:1/mcp", "cannot be reached"],
    )
    .await;
    let config = stage.config();
    let folder = stage.folder;
    stage.app.stop().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.arg("--config").arg(&config).arg("mcp").env("SWITCHBELL_TOKEN", &token).kill_on_drop(true);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap()).lines();
    let relay = Relay { input: child.stdin.take(), output, child };
    says(relay, &["no server answers", "switchbell serve", "--server URL"]).await;
    drop(folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_it_does_not_start() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    let output = command.arg("mcp").env_remove("SWITCHBELL_TOKEN").stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(2), true), "{said}");
    assert!(said.contains("SWITCHBELL_TOKEN is not set") && said.contains("switchbell token create"), "{said}");
}
