//! What people do with deliveries and notifications on the command line, through a running server and without one.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Outbox, Reply, Server, Sink, World, python_outbox, run, workspace};

/// A world of one outbox whose events are delivered at once, or as `timing` says.
struct Stage {
    outbox: Outbox,
    sink: Sink,
    world: World,
    _folder: tempfile::TempDir,
}

const ESCALATION: &str = "after: 1h\n        unless: acknowledged\n        ";

async fn stage(timing: &str) -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let text = workspace(&World::stdio_connector(), "{ source: registrar }");
    world.write("workspaces/acme.yaml", &text.replace("with: {", &format!("{timing}with: {{")));
    Stage { outbox, sink, world, _folder: folder }
}

impl Stage {
    fn serve(&self) -> Server {
        Server::start(&self.world, &self.sink)
    }

    /// Starts it, and returns once events that are added are new.
    fn begin(&self) -> Server {
        let mut server = self.serve();
        server.wait_for("bootstrap=true");
        server
    }

    /// Adds an event and returns once it is in the inbox.
    fn add(&self) {
        self.outbox.add(&["domain.active", "--title", "a title"]);
        self.check(&["connector", "poll", "registrar"], 0, &["registrar: "]);
    }

    /// Has an event delivered to a destination that never takes it.
    async fn dead(&mut self, server: &mut Server) {
        self.sink.answer_next([Reply { status: 400, headers: Vec::new(), body: "invalid_payload" }]);
        self.outbox.add(&["domain.active", "--title", "a title"]);
        self.sink.next().await;
        server.wait_for("not delivered");
    }

    fn check(&self, arguments: &[&str], code: i32, says: &[&str]) {
        let (found, out, error) = run(&self.world, &self.sink, arguments);
        let said = format!("{out}{error}");
        assert_eq!(found, code, "{arguments:?} said: {said}");
        for text in says {
            assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
        }
    }

    fn json(&self, arguments: &[&str]) -> Value {
        self.world.json(&self.sink, arguments)
    }

    /// The newest delivery of the first notification.
    fn newest(&self) -> Value {
        self.json(&["deliveries", "list", "--seq", "1"])[0].clone()
    }
}

fn id(of: &Value) -> &str {
    of["id"].as_str().unwrap()
}

#[tokio::test]
async fn a_dead_delivery_is_made_again_by_the_running_server() {
    let mut stage = stage("").await;
    let mut server = stage.begin();
    stage.dead(&mut server).await;
    let dead = stage.newest();
    assert_eq!((&dead["state"], &dead["attempts"][0]["outcome"]), (&json!("dead"), &json!("reject")));
    stage.check(
        &["deliveries", "list", "--state", "dead,unknown", "--since", "1h"],
        0,
        &[id(&dead), "invalid_payload"],
    );
    stage.check(&["deliveries", "list", "--state", "delivered"], 0, &["no deliveries"]);
    let says = ["dead: given up", "everything -> slack", "#1", "a title", "reject", "invalid_payload"];
    stage.check(&["deliveries", "show", id(&dead)], 0, &says);

    stage.check(&["deliveries", "retry", id(&dead)], 0, &[id(&dead), "goes on at once"]);
    stage.sink.next().await;
    server.wait_for("INFO delivered");
    let made = stage.json(&["deliveries", "show", id(&dead)]);
    assert_eq!((&made["state"], &made["retryOf"], &made["why"]), (&json!("delivered"), &Value::Null, &Value::Null));
    assert_eq!((&made["nextAt"], &made["omitted"], &made["notifications"]), (&Value::Null, &json!(0), &json!([1])));
    assert_eq!(
        (&made["attempts"][1]["number"], &made["pluginVersion"]),
        (&json!(2), &made["attempts"][1]["pluginVersion"])
    );
    assert!(made["createdAt"].is_string() && made["dueAt"].is_string(), "{made}");

    let again = stage.json(&["deliveries", "retry", id(&dead)]);
    stage.sink.next().await;
    server.wait_for("INFO delivered");
    let new = stage.newest();
    assert_eq!((&new["retryOf"], &new["id"]), (&dead["id"], &again["done"][0]["newId"]));
    stage.check(&["deliveries", "show", id(&new)], 0, &["retry of", id(&dead)]);
}

#[tokio::test]
async fn dead_deliveries_are_made_again_by_filter_once_a_server_runs() {
    let mut stage = stage("").await;
    let mut server = stage.begin();
    stage.dead(&mut server).await;
    server.stop(Signal::TERM);
    stage.check(
        &["deliveries", "retry", "--plugin", "slack", "--since", "2h"],
        0,
        &["goes on at once", "no server runs"],
    );
    stage.check(&["deliveries", "retry", "--all"], 0, &["nothing to retry"]);
    let mut server = stage.serve();
    stage.sink.next().await;
    server.wait_for("INFO delivered");
    assert_eq!(stage.newest()["state"], "delivered");
}

#[tokio::test]
async fn a_scheduled_delivery_is_cancelled_with_and_without_a_server() {
    let stage = stage(ESCALATION).await;
    let server = stage.begin();
    stage.add();
    let first = stage.newest();
    assert_eq!(first["state"], "scheduled");
    stage.check(&["deliveries", "show", id(&first)], 0, &["scheduled: its `after` has not passed", "next       in "]);
    stage.check(&["deliveries", "retry", id(&first)], 1, &["refused: it is scheduled: it goes by itself"]);
    stage.check(&["deliveries", "cancel", "--route", "everything"], 0, &[id(&first), "cancelled"]);
    assert_eq!(stage.newest()["state"], "cancelled");
    stage.check(&["deliveries", "cancel", id(&first)], 1, &["refused: it is cancelled: it is over"]);
    stage.add();
    server.stop(Signal::TERM);
    stage.check(&["deliveries", "cancel", "--all"], 0, &["cancelled", "no server runs"]);
    stage.check(&["deliveries", "list", "--state", "scheduled"], 0, &["no deliveries"]);
    stage.check(&["deliveries", "list", "--state", "cancelled"], 0, &["cancelled by a person on the command line"]);
}

#[tokio::test]
async fn an_acknowledgement_makes_an_escalation_needless_with_and_without_a_server() {
    let stage = stage(ESCALATION).await;
    let server = stage.begin();
    stage.add();
    stage.add();
    let delivery = stage.newest();
    stage.check(&["inbox", "read", "1"], 0, &["#1: read by admin@example.com"]);
    assert_eq!(stage.newest()["state"], "scheduled");
    let acknowledged = stage.json(&["inbox", "ack", "1", "--by", "admin@example.com"]);
    let expected =
        json!({"by": "admin@example.com", "seqs": [1], "missing": [], "suppressed": [delivery["id"].clone()]});
    assert_eq!(acknowledged, expected);
    assert_eq!(stage.newest()["state"], "suppressed");
    stage.check(&["inbox", "ack", "1", "99"], 1, &["#1: acknowledged", "no notification 99"]);
    let shown = stage.json(&["inbox", "show", "1"]);
    assert_eq!(
        (&shown["readBy"], &shown["acknowledgedBy"]),
        (&json!("admin@example.com"), &json!("admin@example.com"))
    );
    assert!(shown["readAt"].is_string() && shown["acknowledgedAt"].is_string(), "{shown}");
    stage.check(&["inbox", "show", "1"], 0, &["by admin@example.com", "suppressed"]);
    let listed = stage.json(&["inbox", "list"]);
    assert_eq!((&listed[0]["readAt"], &listed[1]["readBy"]), (&Value::Null, &json!("admin@example.com")));

    server.stop(Signal::TERM);
    stage.check(&["inbox", "ack", "2"], 0, &["#2: acknowledged", "suppressed", "no server runs"]);
    stage.check(&["deliveries", "list", "--state", "suppressed", "--seq", "2"], 0, &["suppressed"]);
}

#[tokio::test]
async fn what_is_not_there_is_named_with_a_remedy() {
    let stage = stage(ESCALATION).await;
    stage.check(&["deliveries", "retry", "--all"], 2, &["switchbell.db", "there is none yet"]);
    let server = stage.begin();
    stage.add();
    let delivery = stage.newest();
    let (tag, _) = id(&delivery).split_once('-').unwrap();
    let unknown = format!("{tag}-999");
    for command in ["show", "retry", "cancel"] {
        stage.check(
            &["deliveries", command, &unknown],
            1,
            &["workspace acme has no delivery", &unknown, "deliveries list"],
        );
        stage.check(&["deliveries", command, "7"], 2, &["eight hexadecimal digits"]);
    }
    let route = "unknown route \"everythin\" in acme: did you mean \"everything\"?";
    stage.check(&["deliveries", "list", "--route", "everythin"], 2, &[route]);
    stage.check(&["deliveries", "cancel", "--route", "everythin"], 2, &[route]);
    stage.check(&["deliveries", "list", "--plugin", "slak"], 2, &["\"slak\"", "did you mean \"slack\"?"]);
    stage.check(&["deliveries", "list", "--state", "deed"], 2, &["deed", "dead"]);
    stage.check(&["deliveries", "list", "--since", "yesterday"], 2, &["--since", "how long ago"]);
    stage.check(&["deliveries", "retry"], 2, &["name the deliveries to retry: ids, a filter", "--all"]);
    stage.check(&["inbox", "ack", "1", "--by", "admn@example.com"], 2, &["did you mean \"admin@example.com\"?"]);
    stage.check(&["inbox", "ack", "1", "--by", "triage"], 2, &["unknown member \"triage\" of acme"]);

    stage.world.write("workspaces/beta.yaml", "members: { a@example.com: admin, b@example.com: member }\n");
    let elsewhere = ["deliveries", "show", id(&delivery), "--workspace", "beta"];
    stage.check(&elsewhere, 1, &["it is of the workspace acme: add --workspace acme"]);
    let says = ["--by NAME is needed", "a@example.com, b@example.com"];
    stage.check(&["reload"], 0, &["beta: workspace new"]);
    stage.check(&["inbox", "ack", "1", "--workspace", "beta"], 2, &says);
    server.stop(Signal::TERM);
    stage.check(&["inbox", "ack", "1", "--workspace", "beta"], 2, &says);
}

#[tokio::test]
async fn a_store_whose_server_does_not_answer_is_left_alone() {
    let stage = stage("").await;
    let server = stage.begin();
    std::fs::remove_file(stage.world.path("data/switchbell.db.sock")).unwrap();
    let says = ["is in use", "switchbell.db.sock does not answer"];
    stage.check(&["deliveries", "retry", "--all"], 2, &says);
    drop(server);
}
