//! Mistakes: those of the operator change nothing, those of a workspace are its own.

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;

const GLOBEX: &str = "members: { a@example.com: admin }\n";

#[tokio::test]
async fn a_mistake_of_the_operator_changes_nothing_and_is_told() {
    let mut stage = Stage::new().await;
    let (mut server, address) = stage.begin_at();
    stage.edit("switchbell.yaml", "poll:", "pol:");
    stage.add_route("more", "/more");
    let says =
        ["switchbell.yaml:3:1: pol: unknown key \"pol\"", "1 mistake: nothing was changed, and what ran goes on"];
    stage.check(&["reload"], 1, &says);
    server.wait_for("the configuration is not taken, and what ran goes on: ");
    stage.check(&["reload", "--status"], 1, &["refused   20", says[0]]);
    let name = "switchbell_config_last_reload_successful";
    assert_eq!(stage.metric(&address, name).await, format!("{name} 0"));
    stage.add("one");
    assert_eq!(stage.arrived().await.0, "/hook");
    assert_eq!(stage.posting.endpoint.left(), 0, "the new route is not followed");
    stage.edit("switchbell.yaml", "pol:", "poll:");
    stage.check(&["reload"], 0, &["acme: route more new"]);
    stage.check(&["reload", "--status"], 0, &["taken     20"]);
    assert_eq!(stage.metric(&address, name).await, format!("{name} 1"));
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_workspace_with_mistakes_goes_on_as_it_was_and_others_follow_theirs() {
    let mut stage = Stage::new().await;
    stage.posting.world.write("workspaces/globex.yaml", GLOBEX);
    let (server, address) = stage.begin_at();
    stage.edit("workspaces/acme.yaml", "source: registrar", "source: registar");
    stage.posting.world.write("workspaces/globex.yaml", &GLOBEX.replace("a@", "b@"));
    let says =
        ["globex: members changed", "workspace acme goes on as it was before: its file has mistakes", "acme.yaml:"];
    stage.check(&["reload"], 1, &says);
    stage.check(&["reload"], 1, &["reloaded: nothing differs", says[1]]);
    stage.check(&["reload", "--status"], 1, &[says[1]]);
    let name = "switchbell_config_workspaces_aside";
    assert_eq!(stage.metric(&address, name).await, format!("{name} 0"));
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one", "what it ran on goes on");
    assert_eq!(stage.notices(), ["configuration.mistakes"], "each trouble is told once");
    stage.edit("workspaces/acme.yaml", "source: registar", "source: registrar, level: loud");
    stage.check(&["reload"], 1, &[says[1]]);
    stage.edit("workspaces/acme.yaml", "level: loud", "level: info");
    stage.check(&["reload"], 0, &["acme: route everything changed"]);
    let notices = ["configuration.mistakes", "configuration.mistakes", "configuration.good"];
    assert_eq!(stage.notices(), notices);
    stage.add("two");
    assert_eq!(stage.arrived().await.1, "two");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_a_workspace_ran_on_is_judged_again_beside_the_operators_file() {
    let stage = Stage::new().await;
    let server = stage.begin();
    stage.edit("workspaces/acme.yaml", "source: registrar", "source: registar");
    stage.check(&["reload"], 1, &["goes on as it was before", "its members stay as before, too: who was taken out"]);
    stage.edit("switchbell.yaml", "{ outbox: {", "{ another: {");
    stage.check(&["reload"], 1, &["acme: workspace gone", "workspace acme is set aside, and what it is owed waits"]);
    stage.check(&["deliveries", "retry", "--all", "--workspace", "acme"], 2, &["acme is set aside"]);
    stage.edit("workspaces/acme.yaml", "source: registar", "source: registrar");
    stage.edit("switchbell.yaml", "{ another: {", "{ outbox: {");
    stage.check(&["reload"], 0, &["acme: workspace new"]);
    stage.add("one");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_start_beside_a_workspace_with_mistakes_runs_the_others_and_what_it_is_owed_waits() {
    let mut stage = Stage::with(&super::stage::target(", after: 1s")).await.watching();
    stage.posting.world.write("workspaces/globex.yaml", GLOBEX);
    let server = stage.begin();
    stage.add("owed");
    server.kill();
    stage.edit("workspaces/acme.yaml", "owner: admin", "owner: nobody");
    let mut server = stage.posting.serve();
    let (_, out, _) = stage.run(&["reload", "--status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&status["isGood"], &status["aside"][0]["workspaceId"]), (&json!(true), &json!("acme")));
    let says = ["the connector registrar", "acme"];
    let (code, _, error) = stage.run(&["connector", "poll", "registrar", "--workspace", "acme"]);
    assert_eq!(code, 2, "{error} {says:?}");
    assert_eq!(stage.deliveries()[0].1, "scheduled", "it is neither made nor cancelled");
    stage.edit("workspaces/acme.yaml", "owner: nobody", "owner: admin");
    server.wait_for("the file of a workspace is good again");
    assert_eq!(stage.arrived().await.1, "owed");
    assert_eq!(stage.notices(), ["configuration.mistakes", "configuration.good"]);
    server.stop(Signal::TERM);
}
