//! Marks of agents.

use serde_json::{Value, json};

use super::stage::{Stage, event, name};

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_is_an_agents_whatever_the_token() {
    let stage = Stage::start().await;
    stage.accept("acme", "crm", ["1", "2", "3", "4"].map(event).to_vec()).await;
    let agent = stage.agent().await;
    let member = stage.token(json!({ "role": "member", "workspaceId": "acme", "member": "reader@example.com" })).await;
    let operator = stage.token(json!({ "role": "operator" })).await;
    for (token, seq, by, workspace) in [
        (&agent, 1, "triage", Value::Null),
        (&member, 2, "reader@example.com", Value::Null),
        (&operator, 3, "operator", json!("acme")),
    ] {
        let asked = json!({ "ids": [seq, 99], "workspace": workspace });
        let done = stage.structured(token, "notifications__acknowledge", asked.clone()).await;
        assert_eq!(done, json!({ "marked": [seq], "missing": [99], "by": by, "suppressed": 0 }));
        assert_eq!(stage.structured(token, "notifications__acknowledge", asked).await, done, "again changes nothing");
        let marks = stage.app.inbox().marks(&name("acme"), vec![seq]).await.unwrap();
        let mark = marks[0].acknowledged.as_ref().unwrap();
        assert_eq!((mark.by.name.as_str(), mark.by.is_agent), (by, true));
    }
    stage.structured(&agent, "notifications__mark_read", json!({ "ids": [4] })).await;
    let marks = stage.app.inbox().marks(&name("acme"), vec![4]).await.unwrap();
    assert!(marks[0].read.as_ref().is_some_and(|mark| mark.by.is_agent) && marks[0].acknowledged.is_none());
    let listed = stage.structured(&agent, "notifications__list", json!({ "ids": [1] })).await;
    assert_eq!(listed["items"][0]["acknowledgedBy"], "triage");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mark_names_one_to_a_hundred() {
    let stage = Stage::start().await;
    let token = stage.agent().await;
    for (ids, says) in [
        (json!([]), "ids: name 1 to 100, not 0"),
        (json!((1..=101).collect::<Vec<u64>>()), "ids: name 1 to 100, not 101"),
        (json!("1"), "the arguments do not fit"),
        (Value::Null, "the arguments do not fit"),
    ] {
        let why = stage.refusal(&token, "notifications__acknowledge", json!({ "ids": ids })).await;
        assert!(why.contains(says), "{ids}: {why}");
    }
}
