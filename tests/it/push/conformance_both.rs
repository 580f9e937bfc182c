//! Two Switchbells: what one routes into the queue of a consumer, the other follows.

use serde_json::Value;

use super::conformance_client::Client;
use super::conformance_stage::{Side, Which};
use crate::mcp::stage::event;
use crate::support::PATIENCE;

#[tokio::test(flavor = "multi_thread")]
async fn events_arrive_once_and_in_order_over_restarts_of_either() {
    let mut server = Side::start(Which::Ours).await;
    let names = ["c", "a", "b", "live-1", "live-2", "away-1", "away-2", "again-1", "again-2"];
    let all: Vec<String> = names.iter().map(|name| server.wire(name)).collect();

    // What waited, then what comes live. Nothing of another consumer's.
    server.emit(1, "for-another").await;
    server.emit_all(0, &names[..3]).await;
    let mut client = Client::start(&server.url, &format!("token {}", server.token(0))).await;
    client.until_ids(&all[..3]).await;
    server.emit_all(0, &names[3..5]).await;
    client.until_ids(&all[..5]).await;

    // The client is away.
    client.stop().await;
    server.emit_all(0, &names[5..7]).await;
    client.start_again().await;
    client.until_ids(&all[..7]).await;

    // The server is away.
    server.restart().await;
    server.emit_all(0, &names[7..]).await;
    client.until_ids(&all).await;

    for (item, text) in client.inbox().await {
        let data = event("any").data;
        assert!(text.contains(&format!("\"data\":{data}")), "{data} is not, byte for byte, in {text}");
        assert_eq!((&item["name"], &item["subject"]), (&Value::from("domain.active"), &Value::from("crm")));
    }
    assert_eq!(client.handed_on().await, 0, "two that read each other never echo an event");
    let emptied = async { while !server.pending(0).await.is_empty() {} };
    assert!(tokio::time::timeout(PATIENCE, emptied).await.is_ok(), "something is pending still");
    assert_eq!(server.pending(1).await, [server.wire("for-another")]);
}
