//! The API and the commands say the same in the same words.

use serde_json::Value;

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
    let plugins = api.get(super::stage::As::Operator, "/v1/plugins").await.json();
    let printed = api.world.json(&api.sink, &["plugin", "list"]);
    assert_eq!(plugins["items"][0]["active"]["digest"], printed[0]["digest"]);
    let document = api.get(super::stage::As::Nobody, "/v1/openapi.json").await.json();
    for (name, shown) in [("Notification", &command(&["inbox", "list"])[0]), ("Delivery", &deliveries["items"][0])] {
        let described = &document["components"]["schemas"][name]["properties"];
        assert_eq!(keys(described), keys(shown), "{name}");
    }
}
