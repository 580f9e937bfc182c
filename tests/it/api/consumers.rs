//! The queues of consumers, as people see them.

use serde_json::{Value, json};

use super::stage::{Api, As};

async fn of_triage(api: &Api) -> [Value; 3] {
    let found = api.acme("/consumers").await;
    ["pending", "joined", "isConfigured"].map(|key| found["items"][0][key].clone())
}

fn configure(api: &Api, consumers: &str) {
    let path = api.world.path("workspaces/acme.yaml");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once('\n').unwrap();
    api.world.write("workspaces/acme.yaml", &format!("consumers: {consumers}\n{rest}"));
    let told = api.world.json(&api.sink, &["reload"]);
    assert!(told.to_string().contains(r#""consumer""#), "{told}");
}

#[tokio::test]
async fn a_consumer_that_is_taken_out_of_the_file_keeps_what_waits_and_goes_on_when_it_is_back() {
    let mut api = Api::start().await;
    api.deliver("first").await;
    assert_eq!(of_triage(&api).await, [json!(1), json!(1), json!(true)]);
    let explained = api.world.json(&api.sink, &["explain", "--workspace", "acme", "--seq", "1"]);
    assert_eq!(explained["consumers"], json!(["triage"]));
    let asked = json!({ "of": { "seq": 1 } });
    let previewed = api.post(As::Operator, "/v1/workspaces/acme/preview", &asked).await.json();
    assert_eq!(previewed["consumers"], json!(["triage"]));
    configure(&api, "{}");
    api.deliver("second").await;
    assert_eq!(of_triage(&api).await, [json!(1), json!(1), json!(false)]);
    assert_eq!(api.world.json(&api.sink, &["explain", "--workspace", "acme", "--seq", "2"])["consumers"], json!([]));
    configure(&api, "{ triage: { when: { source: registrar } } }");
    api.deliver("third").await;
    assert_eq!(of_triage(&api).await, [json!(2), json!(2), json!(true)]);
    let counted = api.get(As::Operator, "/metrics").await;
    assert_eq!(counted.status, 200);
    let line = r#"switchbell_queue_pending{workspace="acme",consumer="triage"} 2"#;
    assert!(counted.text.contains(line), "{}", counted.text);
}

#[tokio::test]
async fn a_queue_that_loses_events_is_told_in_the_inbox_while_the_server_runs() {
    let mut api = Api::start().await;
    let operator = std::fs::read_to_string(api.world.config()).unwrap();
    api.deliver("first").await;
    api.deliver("second").await;
    // Only the newest is kept from now on: what was delivered goes, and with it what waits in the queue.
    api.world.write("switchbell.yaml", &format!("{operator}\nretention: {{ count: 1 }}\n"));
    api.world.json(&api.sink, &["reload"]);
    api.server.wait_for("the queue of a consumer loses events");
    let found = api.acme("/consumers").await;
    let counts = ["lost", "lostTooOld", "isLosing"].map(|key| found["items"][0][key].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(true)], "{found}");
    let notices = api.acme("/notifications?name=consumer.losing").await;
    assert_eq!(notices["items"][0]["subject"], "triage");
    assert_eq!(notices["items"][0]["source"], "switchbell");
}
