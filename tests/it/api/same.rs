//! The API and the commands say the same in the same words.

use serde_json::{Value, json};

use super::stage::Api;

fn keys(of: &Value) -> Vec<&String> {
    of.as_object().unwrap().keys().collect()
}

#[tokio::test]
async fn the_api_says_what_the_commands_print() {
    let mut api = Api::start().await;
    api.deliver("a title").await;
    let command = |arguments: &[&str]| api.world.json(&api.sink, &[arguments, &["--workspace", "acme"]].concat());
    assert_eq!(api.acme("/notifications").await["items"], command(&["inbox", "list"]));
    assert_eq!(api.acme("/notifications/1").await, command(&["inbox", "show", "1"]));
    let deliveries = api.acme("/deliveries").await;
    assert_eq!(deliveries["items"], command(&["deliveries", "list"]));
    let id = deliveries["items"][0]["id"].as_str().unwrap();
    assert_eq!(api.acme(&format!("/deliveries/{id}")).await, command(&["deliveries", "show", id]));
    let connectors = api.acme("/connectors").await;
    assert_eq!(keys(&connectors["items"][0]), keys(&command(&["connector", "list"])[0]));
    let consumers = api.acme("/consumers").await;
    assert_eq!(consumers["items"], command(&["consumer", "list"]));
    let counts = ["name", "pending", "oldestSeq", "joined", "lost", "isLosing", "isConfigured"];
    let of_triage = counts.map(|key| consumers["items"][0][key].clone());
    assert_eq!(json!(of_triage), json!(["triage", 1, 1, 1, 0, false, true]));
    assert_eq!(consumers["items"][0]["when"]["name"], json!(["domain.**"]));
    let plugins = api.get(super::stage::As::Operator, "/v1/plugins").await.json();
    let printed = api.world.json(&api.sink, &["plugin", "list"]);
    assert_eq!(plugins["items"][0]["active"]["digest"], printed[0]["digest"]);
    let document = api.get(super::stage::As::Nobody, "/v1/openapi.json").await.json();
    let shown = [
        ("Notification", &command(&["inbox", "list"])[0]),
        ("Delivery", &deliveries["items"][0]),
        ("Consumer", &consumers["items"][0]),
    ];
    for (name, shown) in shown {
        let described = &document["components"]["schemas"][name]["properties"];
        assert_eq!(keys(described), keys(shown), "{name}");
    }
}
