//! `switchbell connector`: how connectors do, and a read right now, with a server and without one.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Server, Sink, World, operator, python_outbox, run};

/// A world whose outboxes are read by hand only: nothing is due for an hour.
fn slow(sink: &Sink, commands: &str, connectors: &str) -> World {
    let world = World::new(sink, commands, connectors);
    let quick = "{ base: 50ms, floor: 20ms, ceiling: 200ms, budget_per_minute: 100000 }";
    let text = operator(sink, commands).replace(quick, "{ base: 1h, ceiling: 1h }");
    assert!(!text.contains(quick) && text.contains("1h"));
    world.write("switchbell.yaml", &text);
    world
}

fn connectors(second: &str) -> String {
    World::stdio_connector().replace("{ registrar:", &format!("{{ {second}, registrar:"))
}

fn of<'a>(listed: &'a Value, name: &str) -> &'a Value {
    listed.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {listed}"))
}

#[tokio::test]
async fn a_running_server_says_how_connectors_do_and_reads_when_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let others = "silent: { url: \"http://127.0.0.1:9/mcp\" }, gone: { url: \"http://127.0.0.1:9/mcp\", \
                  notifications: { resource: \"gone://n\" } }";
    let world = slow(&sink, &outbox.commands(), &connectors(others));
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    outbox.add(&["domain.active", "--level", "urgent"]);

    let (code, out, error) = run(&world, &sink, &["connector", "poll", "registrar"]);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("registrar: 1 event, 1 new; next read in "), "{out}");
    assert!(sink.next().await.to_string().contains("domain.active"));
    let polled = world.json(&sink, &["connector", "poll", "registrar"]);
    assert_eq!((&polled["failure"], &polled["events"], &polled["reads"]), (&Value::Null, &json!(0), &json!(1)));

    let (code, out, _) = run(&world, &sink, &["connector", "poll", "gone"]);
    assert_eq!(code, 1);
    assert!(out.contains("gone: not read: 127.0.0.1:9 cannot be reached"), "{out}");
    let (code, _, error) = run(&world, &sink, &["connector", "poll", "silent"]);
    assert_eq!(code, 2);
    assert!(error.contains("the connector silent is not polled: it declares no outbox"), "{error}");
    let (code, _, error) = run(&world, &sink, &["connector", "poll", "nobody"]);
    assert_eq!(code, 2);
    assert!(error.contains("there is no connector \"nobody\""), "{error}");

    let listed = world.json(&sink, &["connector", "list"]);
    let registrar = of(&listed, "registrar");
    assert_eq!((&registrar["state"], &registrar["transport"]), (&json!("ok"), &json!("stdio")));
    assert_eq!((&registrar["failures"], &registrar["lastError"]), (&json!(0), &Value::Null));
    assert_eq!(registrar["budget"]["perMinute"], 60);
    for moment in ["lastReadAt", "nextReadAt", "cursorMovedAt", "revision"] {
        assert!(registrar[moment].is_string(), "{moment}: {registrar}");
    }
    assert_eq!(of(&listed, "silent")["state"], "not-polled");
    let gone = of(&listed, "gone");
    assert_eq!((&gone["state"], &gone["lastReadAt"]), (&json!("failing"), &Value::Null));
    assert!(gone["lastError"]["reason"].as_str().unwrap().contains("cannot be reached"), "{gone}");

    let (code, out, _) = run(&world, &sink, &["connector", "show", "gone"]);
    assert_eq!(code, 0);
    assert!(out.contains("state           failing") && out.contains("cannot be reached"), "{out}");
    let (code, _, error) = run(&world, &sink, &["connector", "show", "nobody"]);
    assert_eq!(code, 1);
    assert!(error.contains("there are: gone, registrar, silent"), "{error}");

    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
}

#[tokio::test]
async fn a_manifest_declares_the_outbox_and_one_that_cannot_be_read_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let sink = Sink::start().await;
    let connectors = "{ registrar: { command: outbox, notifications: { manifest: bundle/manifest.json } }, \
                      broken: { command: outbox, notifications: { manifest: bundle/broken.json } } }";
    let world = slow(&sink, &outbox.commands(), connectors);
    let manifest = |host: &str| format!("{{ \"name\": \"b\", \"_meta\": {{ \"ai.nimblebrain/host\": {host} }} }}");
    let good = r#"{ "host_version": "1.7", "new": 1, "notifications": { "resource": "acme://notifications" } }"#;
    world.write("workspaces/bundle/manifest.json", &manifest(good));
    let bad = r#"{ "host_version": "1.3", "notifications": { "resource": "acme://notifications?all=1" } }"#;
    world.write("workspaces/bundle/broken.json", &manifest(bad));
    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    let listed = world.json(&sink, &["connector", "list"]);
    assert_eq!(
        (&of(&listed, "registrar")["state"], &of(&listed, "registrar")["outbox"]),
        (&json!("ok"), &json!("acme://notifications"))
    );
    let broken = of(&listed, "broken");
    assert_eq!(broken["state"], "not-polled");
    let reason = broken["reason"].as_str().unwrap();
    assert!(reason.contains("broken.json") && reason.contains("query"), "{reason}");
    let (code, _, error) = run(&world, &sink, &["connector", "poll", "broken"]);
    assert_eq!(code, 2);
    assert!(error.contains("is not polled: ") && error.contains("broken.json"), "{error}");
}

#[tokio::test]
async fn without_a_server_the_store_remembers_and_a_read_is_made_here() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let world = slow(&sink, &outbox.commands(), &World::stdio_connector());
    let (code, out, error) = run(&world, &sink, &["connector", "poll", "registrar"]);
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.contains("the first read found the place to start from"), "{out}");
    assert!(error.contains("no server runs"), "{error}");
    outbox.add(&["domain.active"]);
    let polled = world.json(&sink, &["connector", "poll", "registrar"]);
    assert_eq!((&polled["new"], &polled["nextInMs"]), (&json!(1), &Value::Null));

    let listed = world.json(&sink, &["connector", "list"]);
    let registrar = of(&listed, "registrar");
    assert_eq!((&registrar["state"], &registrar["budget"]), (&json!("stopped"), &Value::Null));
    assert!(registrar["cursorMovedAt"].is_string());
    let (code, _, error) = run(&world, &sink, &["connector", "poll", "nobody"]);
    assert_eq!(code, 1);
    assert!(error.contains("unknown connector \"nobody\" in acme (there are: registrar)"), "{error}");

    let server = Server::start(&world, &sink);
    assert!(sink.next().await.to_string().contains("domain.active"), "it is delivered once a server runs");
    server.kill();
    let (code, out, error) = run(&world, &sink, &["connector", "list"]);
    assert_eq!(code, 0, "a socket that was left behind is no server: {error}");
    assert!(out.contains("acme/registrar  stopped"), "{out}");
}
