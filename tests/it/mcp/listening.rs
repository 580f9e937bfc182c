//! Hints that the outbox changed.

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::stage::{MODERN, Stage, event};
use crate::support::PATIENCE;

const OUTBOX: &str = "switchbell://notifications";

/// The messages of a stream as they come.
struct Listener {
    stream: futures_util::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    rest: String,
}

impl Listener {
    async fn start(stage: &Stage, token: &str, uris: &[&str]) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
        });
        let params = json!({ "notifications": { "resourceSubscriptions": uris }, "_meta": meta });
        let message = json!({ "jsonrpc": "2.0", "id": 9, "method": "subscriptions/listen", "params": params });
        let request = stage.client.post(&stage.url).bearer_auth(token).body(message.to_string());
        let request = request.header("content-type", "application/json").header("mcp-protocol-version", MODERN);
        let request = request.header("accept", "application/json, text/event-stream").header("mcp-method", "subscriptions/listen");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{response:?}");
        let stream = response.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec())).boxed();
        Self { stream, rest: String::new() }
    }

    /// The next message; none at the end.
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:")).map(|data| data.trim().to_owned());
                self.rest = rest.to_owned();
                match data {
                    Some(data) if !data.is_empty() => return Some(serde_json::from_str(&data).unwrap()),
                    _ => continue,
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("nothing came")?;
            self.rest.push_str(&String::from_utf8(chunk.ok()?).unwrap().replace('\r', ""));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_hears_that_something_came_and_nothing_of_what() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    stage.accept("acme", "crm", vec![event("before")]).await;
    let mut listener = Listener::start(&stage, &token, &[OUTBOX, "acme://other"]).await;
    let accepted = listener.next().await.unwrap();
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([OUTBOX]), "{accepted}");
    // Neither what is done with a notification nor what comes to others is new here.
    stage.structured(&token, "notifications__acknowledge", json!({ "ids": [1] })).await;
    stage.accept("globex", "crm", vec![event("theirs")]).await;
    stage.accept("acme", "crm", vec![event("new")]).await;
    let hint = listener.next().await.unwrap();
    assert_eq!((&hint["method"], &hint["params"]["uri"]), (&json!("notifications/resources/updated"), &json!(OUTBOX)), "{hint}");
    assert!(!hint.to_string().contains("title of"), "{hint}");
    stage.accept("acme", "crm", vec![event("newer")]).await;
    assert_eq!(listener.next().await.unwrap()["params"]["uri"], OUTBOX);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_revoked_hears_nothing_more() {
    let stage = Stage::start().await;
    let made = stage.make(json!({ "role": "agent", "workspaceId": "acme", "consumer": "triage" })).await;
    let mut listener = Listener::start(&stage, made["token"].as_str().unwrap(), &[OUTBOX]).await;
    listener.next().await.unwrap();
    stage.local(&format!("/v1/tokens/{}/revoke", made["made"]["id"]), &json!({})).await;
    let end = listener.next().await.unwrap();
    assert_eq!((&end["id"], end["result"].is_object()), (&json!(9), true), "{end}");
    assert_eq!(listener.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_may_not_read_it_may_not_listen_for() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    let mut listener = Listener::start(&stage, &token, &["switchbell://notifications/globex"]).await;
    listener.next().await.unwrap();
    let refused = listener.next().await.unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("that this token may see"), "{refused}");
}
