//! Connectors that did not change keep their connections; others come and go.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;

/// Has the outbox's program note each of its starts in a file.
fn noting(stage: &Stage) {
    let starts = stage.posting.world.path("starts");
    let noted = format!("run: [sh, -c, 'echo started >> {}; exec \"$@\"', sh, ", starts.display());
    stage.edit("switchbell.yaml", "run: [", &noted);
    fs::write(starts, "").unwrap();
}

fn starts(stage: &Stage) -> usize {
    stage.read("starts").lines().count()
}

#[tokio::test]
async fn a_connector_that_is_reached_as_before_is_not_connected_again() {
    let mut stage = Stage::new().await;
    noting(&stage);
    let server = stage.begin();
    for (from, to) in [
        ("ceiling: attention", "ceiling: info"),
        ("source: registrar", "source: [registrar]"),
        ("ceiling: info", "poll: { base: 70ms, floor: 20ms }, ceiling: attention"),
    ] {
        stage.edit("workspaces/acme.yaml", from, to);
        let taken = stage.reload();
        assert_eq!(taken["changes"].as_array().unwrap().len(), 1, "{taken}");
    }
    stage.edit("switchbell.yaml", "budget_per_minute: 100000", "budget_per_minute: 90000");
    stage.check(&["reload"], 0, &["poll.budget_per_minute changed"]);
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one");
    assert_eq!(starts(&stage), 1, "the program runs on");
    let listed = stage.json(&["connector", "list"]);
    assert_eq!(listed[0]["budget"]["perMinute"], json!(90_000));
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_connector_that_changes_is_ended_and_begins_again_where_it_was() {
    let mut stage = Stage::new().await;
    noting(&stage);
    let server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one");
    for number in 0..3 {
        stage.edit("switchbell.yaml", "env: { ", &format!("env: {{ ANOTHER_{number}: x, "));
        assert_eq!(
            stage.reload()["changes"][0],
            json!({"workspaceId": "acme", "what": "connector", "name": "registrar", "route": null, "how": "changed"})
        );
        stage.add(&format!("after {number}"));
        assert_eq!(stage.arrived().await.1, format!("after {number}"), "nothing is lost or read twice");
    }
    assert_eq!(stage.posting.endpoint.left(), 0);
    assert_eq!(starts(&stage), 4);
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn connectors_come_and_go() {
    let mut stage = Stage::new().await;
    noting(&stage);
    let mut server = stage.begin();
    let workspace = stage.read("workspaces/acme.yaml");
    let second = workspace.replace(
        "{ registrar: {",
        "{ second: { command: outbox, notifications: { resource: \"acme://notifications\" } }, registrar: {",
    );
    stage.posting.world.write("workspaces/acme.yaml", &second);
    stage.check(&["reload"], 0, &["acme: connector second new", "connectors: 1 new, 0 gone, 0 changed, 1 as before"]);
    server.wait_for("source=second");
    stage.check(&["connector", "list"], 0, &["registrar", "second"]);
    stage.posting.world.write("workspaces/acme.yaml", &workspace);
    stage.check(&["reload"], 0, &["acme: connector second gone"]);
    stage.check(&["connector", "poll", "second"], 2, &["there is no connector \"second\""]);
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one");
    assert_eq!(starts(&stage), 2);
    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
}
