//! One Switchbell reads another.

use serde_json::json;
use switchbell::inbox::Page;
use switchbell::telemetry::Happening;

use super::stage::{ACME, OPERATOR, Stage, event, name};

/// Has `reader` read the outbox of `source` as its connector of this name, and waits for its first answer.
async fn connect(reader: &mut Stage, source: &Stage, connector: &str) {
    let token = source.token(json!({ "role": "agent", "workspaceId": "acme", "consumer": "upstream", "scopes": ["read"] })).await;
    std::fs::write(reader.folder.path().join("token"), token).unwrap();
    let secret = "secrets: { peer: { file: token, in: connector, hosts: [127.0.0.1], workspaces: [acme] } }\n";
    std::fs::write(reader.config(), format!("{OPERATOR}{secret}")).unwrap();
    let url = &source.url;
    let connectors = format!(
        "connectors:\n  {connector}:\n    url: \"{url}\"\n    auth: {{ bearer: {{ secret: peer }} }}\n    ceiling: urgent\n    \
         notifications: {{ resource: \"switchbell://notifications\" }}\n"
    );
    reader.reload_with("workspaces/acme.yaml", &format!("{ACME}{connectors}")).await;
    loop {
        match reader.next().await {
            Happening::Read { bootstrap: true, .. } => return,
            Happening::ReadFailed { reason, .. } => panic!("{reason}"),
            _ => {}
        }
    }
}

/// The next event that a server takes, after any number of reads without one.
async fn taken(stage: &mut Stage) -> (String, String) {
    loop {
        if let Happening::Accepted { source, event, .. } = stage.next().await {
            return (source.to_string(), event.event_id.clone());
        }
    }
}

/// Reads without news, one after another.
async fn idle(stage: &mut Stage, reads: usize) {
    let mut seen = 0;
    while seen < reads {
        match stage.next().await {
            Happening::Read { events: 0, .. } => seen += 1,
            Happening::Read { .. } | Happening::Accepted { .. } => panic!("something came"),
            _ => {}
        }
    }
}

async fn count(stage: &Stage) -> usize {
    let page = Page { workspace: name("acme"), before: None, limit: 100 };
    stage.app.inbox().notifications(page).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_read_each_other_hand_an_event_on_once() {
    let (mut first, mut second) = (Stage::start().await, Stage::start().await);
    connect(&mut second, &first, "first").await;
    connect(&mut first, &second, "second").await;
    first.accept("acme", "crm", vec![event("from-first")]).await;
    assert_eq!(taken(&mut second).await, ("first".to_owned(), "acme:crm:from-first".to_owned()));
    second.accept("acme", "crm", vec![event("from-second")]).await;
    assert_eq!(taken(&mut first).await, ("second".to_owned(), "acme:crm:from-second".to_owned()));
    idle(&mut first, 5).await;
    idle(&mut second, 5).await;
    assert_eq!((count(&first).await, count(&second).await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_that_is_gone_is_still_known_for_a_switchbell() {
    let (first, mut second) = (Stage::start().await, Stage::start().await);
    connect(&mut second, &first, "first").await;
    first.accept("acme", "crm", vec![event("one")]).await;
    taken(&mut second).await;
    idle(&mut second, 1).await;
    second.reload_with("workspaces/acme.yaml", ACME).await;
    second.accept("acme", "crm", vec![event("own")]).await;
    let token = second.agent().await;
    let start = second.read(&token, "switchbell://notifications").await;
    let beginning = start["cursor"].as_str().unwrap().rsplit_once('-').unwrap().0.to_owned();
    let found = second.read(&token, &format!("switchbell://notifications?cursor={beginning}-0")).await;
    let ids: Vec<_> = found["events"].as_array().unwrap().iter().map(|event| &event["eventId"]).collect();
    assert_eq!((ids, &found["truncated"]), (vec![&json!("acme:crm:own")], &json!(false)), "{found}");
}
