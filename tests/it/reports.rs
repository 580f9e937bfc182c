//! What an agent reports, through the program itself: a notice that reaches people and starts no agent.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Over, Peer, Server, Sink, Stage, World, prepared};

/// The scripted plugin, describing itself as one that starts agents.
fn agent() -> Vec<u8> {
    let mut component = fs::read(prepared("dist/guests/scripted.wasm", "guests")).unwrap();
    for (from, to) in [("scripted\"", "an-agent\""), ("\"agent\":false", "\"agent\":true ")] {
        let at = component.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        component[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    component
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_reaches_people_and_no_agent() {
    let (stage, sink) = (Stage::new(Peer::FastMcp3, Over::Stdio, "c-0").await, Sink::start().await);
    let world = World::new(&sink, &format!("{{ peer: {} }}", stage.command()), "{}");
    let route = |name: &str, pattern: &str, deliver: Value| {
        let when = json!({ "name": pattern });
        json!({ "name": name, "owner": "admin@example.com", "when": when, "deliver": [deliver] })
    };
    let run = json!({ "plugin": "an-agent", "with": { "script": "finding all-is-well" } });
    let tell = json!({ "plugin": "scripted", "with": { "script": "told" } });
    let connector = json!({ "command": "peer", "notifications": { "resource": "acme://notifications" } });
    let workspace = json!({
        "members": { "admin@example.com": "admin" },
        "connectors": { "registrar": connector },
        "routes": [route("runs", "**", run.clone()), route("again", "agent.*", run), route("people", "agent.*", tell)],
    });
    world.write("workspaces/acme.yaml", &workspace.to_string());
    fs::copy(prepared("dist/guests/scripted.wasm", "guests"), world.path("plugins/scripted.wasm")).unwrap();
    fs::write(world.path("plugins/an-agent.wasm"), agent()).unwrap();

    let mut server = Server::start(&world, &sink);
    server.wait_for("read the outbox");
    stage.add(&[("one", "c-1")], false);
    let line = server.wait_for("route=people");
    assert!(line.contains("delivered"), "{line}");
    let inbox = world.json(&sink, &["inbox", "list"]);
    let found: Vec<Value> =
        inbox.as_array().unwrap().iter().map(|one| json!([one["seq"], one["source"], one["name"]])).collect();
    assert_eq!(found, [json!([2, "switchbell", "agent.report"]), json!([1, "registrar", "domain.active"])]);
    assert_eq!((&inbox[0]["title"], &inbox[0]["body"]), (&json!("all-is-well"), &json!("what was found")));
    assert_eq!((&inbox[0]["level"], &inbox[0]["data"]["reference"]), (&json!("info"), &json!("run-7")));
    let deliveries = world.json(&sink, &["deliveries", "list"]);
    let made: Vec<Value> =
        deliveries.as_array().unwrap().iter().map(|one| json!([one["route"], one["notifications"]])).collect();
    assert_eq!(made, [json!(["people", [2]]), json!(["runs", [1]])]);
}
