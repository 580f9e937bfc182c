//! Each format, as libraries read it.

use serde_json::{Value, json};

use super::stage::{Stage, read};

/// Data whose keys are in no order.
const DATA: &str = r#"{"b":1,"a":1.5,"text":"ü"}"#;

/// A stage whose one route delivers to the endpoint in each format, digests of what `collect` says.
async fn stage(collect: &str) -> Stage {
    let target = |format: &str| {
        let with = format!("{{ url: \"AT/{format}\", format: {format} }}");
        format!("{{ plugin: webhook, with: {with}{collect} }}")
    };
    Stage::new(&["webhook"], "", &["standard", "cloudevents", "cloudevents-binary"].map(target)).await
}

fn add(stage: &Stage, title: &str) {
    let text = ["--level", "urgent", "--subject", "example.com", "--data", DATA];
    stage.add(&[&["--title", title], &text[..]].concat());
}

#[tokio::test]
async fn an_event_arrives_in_each_format_as_libraries_read_it() {
    let mut stage = stage("").await;
    let _server = stage.begin();
    add(&stage, "größe \u{1F514} 100%");
    let arrived = stage.endpoint.next_by_path(3).await;
    let (structured, binary) = (&arrived["/cloudevents"], &arrived["/cloudevents-binary"]);
    for event in [read("event", structured), read("event", binary)] {
        let attributes = &event["attributes"];
        assert_eq!((&attributes["specversion"], &attributes["type"]), (&json!("1.0"), &json!("domain.active")));
        assert_eq!(attributes["source"], "/switchbell/acme/registrar");
        assert!(attributes["id"].as_str().unwrap().starts_with("acme/registrar/"), "{attributes}");
        assert_eq!((&attributes["subject"], &attributes["level"]), (&json!("example.com"), &json!("attention")));
        assert_eq!((&attributes["title"], &attributes["seq"]), (&json!("größe 🔔 100%"), &json!("1")));
        assert_eq!(event["data"], serde_json::from_str::<Value>(DATA).unwrap());
    }
    let without_type = |event: Value| {
        let mut attributes = event["attributes"].as_object().unwrap().clone();
        attributes.remove("datacontenttype");
        attributes
    };
    assert_eq!(without_type(read("event", structured)), without_type(read("event", binary)), "both say the same");

    let standard = &arrived["/standard"];
    let payload: Value = serde_json::from_str(&standard.body).unwrap();
    assert_eq!((&payload["type"], &payload["data"]["title"]), (&json!("domain.active"), &json!("größe 🔔 100%")));
    let ids: std::collections::BTreeSet<&str> =
        arrived.values().map(|arrived| arrived.headers["webhook-id"].as_str()).collect();
    assert_eq!(ids.len(), 3, "each delivery has an id of its own");
    for arrived in arrived.values() {
        let body = arrived.body.replace(' ', "");
        assert!(body.contains(r#""b":1,"a":1.5,"text":"ü""#), "the keys are not in their order: {body}");
    }
}

#[tokio::test]
async fn a_digest_arrives_as_a_batch() {
    let mut stage = stage(", collect: { by: none, wait: 2s, most: 2 }").await;
    let _server = stage.begin();
    ["one", "two"].iter().for_each(|title| add(&stage, title));
    let arrived = stage.endpoint.next_by_path(3).await;
    for path in ["/cloudevents", "/cloudevents-binary"] {
        let batch = read("batch", &arrived[path]);
        let titles: Vec<&Value> = batch.as_array().unwrap().iter().map(|event| &event["attributes"]["title"]).collect();
        assert_eq!(titles, ["one", "two"], "{path}");
    }
    let digest: Value = serde_json::from_str(&arrived["/standard"].body).unwrap();
    assert_eq!((&digest["type"], &digest["data"]["omitted"]), (&json!("switchbell.digest"), &json!(0)));
    assert_eq!(digest["data"]["notifications"].as_array().unwrap().len(), 2);
}
