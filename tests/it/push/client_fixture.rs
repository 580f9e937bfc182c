//! The program as a client of a server that is no work of its own language.

use serde_json::{Value, json};

use super::conformance_stage::fixture;
use crate::support::{PATIENCE, Server, Sink, World, run};

fn ids(world: &World, sink: &Sink) -> Vec<String> {
    let (_, listed, _) = run(world, sink, &["inbox", "list", "--limit", "100", "--json"]);
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let of_queue = listed.iter().rev().filter(|one| one["source"] == "shell");
    of_queue.map(|one| one["eventId"].as_str().unwrap().to_owned()).collect()
}

async fn until(world: &World, sink: &Sink, expected: &[&str]) {
    let arrived = async {
        while ids(world, sink) != expected {
            tokio::task::yield_now().await;
        }
    };
    let arrived = tokio::time::timeout(PATIENCE, arrived).await;
    assert!(arrived.is_ok(), "{:?} and not {expected:?}", ids(world, sink));
}

async fn check(capability_code: i32) {
    let (process, url) = fixture(capability_code).await;
    let base = url.strip_suffix("/mcp").unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |path: &str, body: Value| {
        let sent = client.post(format!("{base}{path}")).body(body.to_string()).send().await.unwrap();
        assert!(sent.status().is_success());
    };
    let sink = Sink::start().await;
    let connectors = format!("{{ shell: {{ url: \"{url}\", notifications: {{ push: true }} }} }}");
    let world = World::new(&sink, "{}", &connectors);
    post("/emit", json!({ "eventId": "pending" })).await;
    let server = Server::start(&world, &sink);
    until(&world, &sink, &["pending"]).await;
    post("/emit", json!({ "eventId": "live", "type": "with white  space" })).await;
    until(&world, &sink, &["pending", "live"]).await;
    post("/drop", json!({})).await;
    post("/emit", json!({ "eventId": "after the cut" })).await;
    until(&world, &sink, &["pending", "live", "after the cut"]).await;
    drop((server, process));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_by_hand_is_followed_over_a_cut_whatever_its_code_of_a_missing_capability() {
    check(-32021).await;
    check(-32003).await;
}
