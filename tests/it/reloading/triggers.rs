//! What makes a reload: a file that changes, a signal, a command.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;
use crate::support::Server;

const TAKEN: &str = "the configuration is taken";

#[tokio::test]
async fn a_file_that_changes_is_followed_by_itself() {
    let mut stage = Stage::new().await;
    let mut server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await, ("/hook".to_owned(), "one".to_owned()));
    stage.add_route("more", "/more");
    assert!(server.wait_for(TAKEN).contains("changes=1"));
    stage.add("two");
    let mut paths = vec![stage.arrived().await.0, stage.arrived().await.0];
    paths.sort();
    assert_eq!(paths, ["/hook", "/more"]);
    // As an editor or a volume does: another file under the name.
    let text = stage.read("workspaces/acme.yaml").replace("admin@example.com", "boss@example.com");
    stage.posting.world.write("workspaces/.acme.new", &text);
    fs::rename(stage.posting.world.path("workspaces/.acme.new"), stage.posting.world.path("workspaces/acme.yaml"))
        .unwrap();
    assert!(server.wait_for(TAKEN).contains("changes=3"), "its members and the owners of both routes");
    stage.posting.world.write("workspaces/globex.yaml", "members: { a@example.com: admin }\n");
    assert!(server.wait_for(TAKEN).contains("changes=1"));
    fs::remove_file(stage.posting.world.path("workspaces/globex.yaml")).unwrap();
    assert!(server.wait_for(TAKEN).contains("changes=1"));
}

#[tokio::test]
async fn a_file_with_a_secret_that_changes_is_followed_by_itself() {
    let mut stage = Stage::new().await;
    stage.edit("switchbell.yaml", "SLACK_OPS, in: url", "SLACK_OPS, in: url");
    let at = stage.posting.endpoint.address;
    let world = &stage.posting.world;
    world.write("hook.txt", &format!("http://{at}/first-secret\n"));
    stage.edit("switchbell.yaml", "secrets:\n", "secrets:\n  hook: { file: hook.txt, in: url, workspaces: [acme] }\n");
    stage.edit("workspaces/acme.yaml", &format!("url: \"http://{at}/hook\""), "url: { secret: hook }");
    let mut server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await.0, "/first-secret");
    stage.posting.world.write("hook.txt", &format!("http://{at}/second-secret\n"));
    server.wait_for(TAKEN);
    stage.add("two");
    assert_eq!(stage.arrived().await.0, "/second-secret");
    let said = server.stop(Signal::TERM).2;
    assert!(!said.contains("-secret"), "a secret is in the log: {said}");
}

#[tokio::test]
async fn a_command_reloads_at_once_and_says_what_changed() {
    let stage = Stage::new().await;
    stage.check(&["reload"], 2, &["no server runs on", "the next start reads the configuration"]);
    let server = stage.begin();
    stage.check(&["reload"], 0, &["reloaded: nothing differs"]);
    stage.add_route("more", "/more");
    stage.edit("workspaces/acme.yaml", "ceiling: attention", "ceiling: urgent");
    stage.check(&["reload"], 0, &["reloaded: 2 changes", "acme: connector registrar changed", "acme: route more new"]);
    stage.edit("workspaces/acme.yaml", "/more", "/other");
    let taken = stage.reload();
    let change = json!({"workspaceId": "acme", "what": "target", "name": "more", "route": "more", "how": "changed"});
    assert_eq!((&taken["changes"], &taken["connectorsKept"]), (&json!([change]), &json!(1)));
    stage.check(&["reload", "--status"], 0, &["taken     20"]);
    let status = stage.json(&["reload", "--status"]);
    assert_eq!((&status["isGood"], &status["refused"], &status["aside"]), (&json!(true), &json!(null), &json!([])));
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_needs_a_restart_stays_and_is_named() {
    let mut stage = Stage::new().await;
    let server = stage.begin();
    stage.edit("switchbell.yaml", "listen: 127.0.0.1:0", "listen: 127.0.0.2:0");
    stage.edit("switchbell.yaml", "data/switchbell.db", "elsewhere/switchbell.db");
    let limits = "plugins:\n  limits: { memory: 64MiB, steps: 7 }\n";
    stage.edit("switchbell.yaml", "plugins:\n", limits);
    // The command finds the server by the store that it runs on.
    stage.edit("switchbell.yaml", "elsewhere/switchbell.db", "data/switchbell.db");
    stage.check(
        &["reload"],
        0,
        &["plugins.limits changed", "a restart is needed to follow listen, plugins.limits.memory"],
    );
    stage.check(&["reload", "--status"], 0, &["a restart is needed to follow listen, plugins.limits.memory"]);
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_hangup_reloads_and_ends_nothing() {
    let stage = Stage::new().await;
    let mut server = stage.begin();
    for _ in 0..3 {
        server.signal(Signal::HUP);
        server.wait_for(TAKEN);
    }
    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn a_hangup_while_it_starts_is_heard_once_it_has_started() {
    let stage = Stage::new().await;
    let pipe = stage.posting.world.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let secret = format!("secrets:\n  slow: {{ command: [cat, {pipe:?}], in: sign, workspaces: [acme] }}\n");
    stage.edit("switchbell.yaml", "secrets:\n", &secret);
    let mut server = Server::spawn_serving(&stage.posting.world, &stage.posting.sink);
    // Opening it waits for whoever reads: the program is loading its configuration.
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    server.signal(Signal::HUP);
    let write = |writer: &mut fs::File| std::io::Write::write_all(writer, b"a-value-that-is-long-enough").unwrap();
    write(&mut writer);
    drop(writer);
    server.wait_for(" ready ");
    write(&mut fs::OpenOptions::new().write(true).open(&pipe).unwrap());
    server.wait_for(TAKEN);
    server.stop(Signal::TERM);
}
