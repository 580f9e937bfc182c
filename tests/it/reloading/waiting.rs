//! What waits goes on waiting, however often the configuration changes: digests, quiet hours, retries, pauses, and what
//! plugins wait for.

use rustix::process::Signal;
use serde_json::json;

use super::stage::{Stage, target};

/// Reloads so often, each time with another route.
fn reload_often(stage: &Stage) {
    for number in 1..=3 {
        stage.add_route(&format!("more-{number}"), "/more");
        let taken = stage.reload();
        assert_eq!((&taken["changes"][0]["what"], &taken["cancelled"]), (&json!("route"), &json!([])));
    }
}

#[tokio::test]
async fn an_open_digest_stays_open_and_is_one() {
    let mut stage = Stage::with(&target(", collect: { wait: 6s, most: 50 }")).await;
    let server = stage.begin();
    stage.add("one");
    let before = stage.deliveries();
    assert_eq!(before[0].1, "collecting");
    let due = stage.json(&["deliveries", "list"])[0]["nextAt"].clone();
    reload_often(&stage);
    assert_eq!(stage.json(&["deliveries", "list"])[0]["nextAt"], due, "it closes when it was to close");
    stage.edit("workspaces/acme.yaml", "source: registrar }", "source: registrar, level: info }");
    stage.reload();
    stage.add("two");
    let mut bodies = Vec::new();
    while bodies.len() < 4 {
        let (path, body) = stage.arrived().await;
        bodies.push(format!("{path} {}", body.replace('\n', ", ")));
    }
    bodies.sort();
    assert_eq!(bodies, ["/hook one, two", "/more two", "/more two", "/more two"]);
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_waits_for_an_hour_and_a_hold_is_left_alone_and_follows_what_its_target_says_now() {
    let mut stage = Stage::with(&target(", after: 1h")).await;
    let server = stage.begin();
    stage.add("one");
    let due = stage.json(&["deliveries", "list"])[0]["nextAt"].clone();
    reload_often(&stage);
    assert_eq!(stage.json(&["deliveries", "list"])[0]["nextAt"], due);
    stage.edit("workspaces/acme.yaml", "after: 1h", "after: 1s");
    stage.reload();
    assert_eq!(stage.arrived().await, ("/hook".to_owned(), "one".to_owned()));
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_retry_comes_when_it_was_to_come_and_once() {
    let mut stage = Stage::with(&target(", retry: { first: 3s }")).await;
    let mut server = stage.begin();
    stage.posting.endpoint.refuse_next([503]);
    stage.add("one");
    stage.arrived().await;
    server.wait_for("not delivered");
    let waiting = stage.json(&["deliveries", "list"])[0].clone();
    assert_eq!(waiting["state"], "retrying");
    reload_often(&stage);
    assert_eq!(stage.json(&["deliveries", "list"])[0]["nextAt"], waiting["nextAt"]);
    assert_eq!(stage.arrived().await.1, "one");
    server.wait_for("INFO delivered");
    let made = stage.json(&["deliveries", "list"])[0].clone();
    assert_eq!((&made["id"], &made["attempts"][1]["number"]), (&waiting["id"], &json!(2)));
    assert_eq!(stage.posting.endpoint.left(), 0);
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_a_plugin_waits_for_goes_on_where_it_was() {
    let mut stage = Stage::behaving("waits", &target("").replace("/hook\"", "/hook\", wait: 3")).await;
    let mut server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await.0, "/hook");
    server.wait_for("the attempt goes on");
    reload_often(&stage);
    let arrived = stage.arrived().await;
    assert_eq!((arrived.0.as_str(), arrived.1.contains("resumes {\"version\":\"1.0.0\"}")), ("/hook/after", true));
    server.wait_for("INFO delivered");
    assert_eq!(stage.deliveries()[0].1, "delivered");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_a_target_that_is_gone_was_owed_is_cancelled_and_told() {
    let mut stage = Stage::with(&target(", after: 1h")).await;
    stage.add_route("more", "/more");
    let server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await.0, "/more");
    stage.edit("workspaces/acme.yaml", "id: hook", "id: other");
    let taken = stage.reload();
    let cancelled = json!([{"workspaceId": "acme", "route": "everything", "target": "hook", "deliveries": 1}]);
    assert_eq!(taken["cancelled"], cancelled);
    assert_eq!(stage.notices(), ["delivery.cancelled"]);
    let states: Vec<String> = stage.deliveries().into_iter().map(|delivery| delivery.1).collect();
    assert!(states.contains(&"cancelled".to_owned()), "{states:?}");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_retry_whose_target_goes_while_it_is_made_is_cancelled_and_told() {
    let mut stage = Stage::with(&target("")).await;
    stage.posting.endpoint.refuse_next([503; 50]);
    let mut server = stage.begin();
    stage.add("one");
    stage.arrived().await;
    server.wait_for("not delivered");
    stage.edit("workspaces/acme.yaml", "id: hook", "id: other");
    stage.check(&["reload"], 0, &["acme: 1 waiting delivery was cancelled: everything has no target hook now"]);
    assert_eq!(stage.deliveries()[0].1, "cancelled");
    server.stop(Signal::TERM);
}
