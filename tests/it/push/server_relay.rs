//! The extension over standard input and output, through `switchbell mcp`.

use serde_json::{Value, json};

use super::server_stage::{ACK, Consumer, EXTENSION, GET, LISTEN, SUBSCRIPTION, emit_ids, filter, ids, message, start};
use crate::mcp::relay::Relay;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

async fn listen(relay: &mut Relay, id: &str) {
    relay.write(&message(&json!(id), LISTEN, filter()).to_string()).await;
}

/// Waits until the stream has begun; an event may still be under way on the one that was cancelled before.
async fn begun(relay: &mut Relay, under_way: &str) {
    let mut message = relay.next().await;
    if message["params"]["event"]["eventId"] == under_way {
        message = relay.next().await;
    }
    assert_eq!(message["method"], ACKNOWLEDGED, "{message}");
}

async fn ask(relay: &mut Relay, id: u64, method: &str, params: Value) -> Value {
    relay.write(&message(&json!(id), method, params).to_string()).await;
    let answer = relay.next().await;
    assert_eq!(answer["id"], id, "{answer}");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_it_comes_through() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let mut relay = Relay::start(&stage, &triage.token, &[]);
    let began = ask(&mut relay, 1, "server/discover", json!({})).await;
    assert_eq!(began["result"]["capabilities"]["extensions"], json!({ EXTENSION: {} }), "{began}");
    listen(&mut relay, "one").await;
    let first = relay.next().await;
    assert_eq!(
        (&first["method"], &first["params"]["_meta"][SUBSCRIPTION]),
        (&json!(ACKNOWLEDGED), &json!("one")),
        "{first}"
    );
    emit_ids(&stage, &["1"], &["triage"]).await;
    let told = relay.next().await;
    assert_eq!(told["params"]["event"]["eventId"], "acme:crm:1", "{told}");
    let page = ask(&mut relay, 2, GET, json!({})).await;
    assert_eq!(ids(&page["result"]), ["acme:crm:1"]);
    let done = ask(&mut relay, 3, ACK, json!({ "eventIds": ["acme:crm:1"] })).await;
    assert_eq!(done["result"], json!({ "resultType": "complete" }));
    assert_eq!(ids(&ask(&mut relay, 4, GET, json!({})).await["result"]), Vec::<String>::new());
    let refused = ask(
        &mut relay,
        5,
        GET,
        json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    } }),
    );
    assert_eq!(refused.await["error"]["code"], -32021, "the server's own words, with any status");

    // Another takes its place: the end of the one and the begin of the other, in any order.
    listen(&mut relay, "two").await;
    let both = [relay.next().await, relay.next().await];
    assert!(both.iter().any(|one| one["id"] == "one" && one["result"]["_meta"][SUBSCRIPTION] == "one"), "{both:?}");
    assert!(both.iter().any(|one| one["params"]["_meta"][SUBSCRIPTION] == "two"), "{both:?}");
    relay.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"two"}}"#).await;
    emit_ids(&stage, &["2"], &["triage"]).await;
    // The id is free again, and nothing comes of the one before but what was under way.
    listen(&mut relay, "two").await;
    begun(&mut relay, "acme:crm:2").await;
    emit_ids(&stage, &["3"], &["triage"]).await;
    assert_eq!(relay.next().await["params"]["event"]["eventId"], "acme:crm:3");
    // And it is not taken for the one that was cancelled before.
    relay.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"two"}}"#).await;
    emit_ids(&stage, &["4"], &["triage"]).await;
    listen(&mut relay, "two").await;
    begun(&mut relay, "acme:crm:4").await;
    relay.end().await;
    assert_eq!(triage.pending().await, ["acme:crm:2", "acme:crm:3", "acme:crm:4"]);
}
