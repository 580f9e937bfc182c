//! The main job, end to end: a real outbox server, the program itself, a destination over real HTTP.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Outbox, Reply, Sdk, Server, Sink, World, python_outbox, root, run};

/// What the bootstrap leaves in the log; events added after it are new.
const BOOTSTRAPPED: &str = "bootstrap=true";

async fn event_reaches_slack(world: World, outbox: &Outbox, mut sink: Sink) {
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    let title = "<!channel> & <http://evil|x>";
    outbox.add(&[
        "domain.active",
        "--level",
        "urgent",
        "--title",
        title,
        "--subject",
        "acme-outreach.test",
        "--data",
        r#"{"b":1,"a":1.50}"#,
    ]);
    let message = sink.next().await.to_string();
    assert!(message.contains("&lt;!channel&gt; &amp; &lt;http://evil|x&gt;"), "{message}");
    assert!(!message.contains("<!channel>") && !message.contains("<http"), "{message}");
    server.wait_for("INFO delivered");

    let listed = world.json(&sink, &["inbox", "list"]);
    let one = &listed[0];
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!((&one["seq"], &one["source"], &one["workspaceId"]), (&json!(1), &json!("registrar"), &json!("acme")));
    assert_eq!((&one["level"], &one["effectiveLevel"]), (&json!("urgent"), &json!("attention")));
    assert_eq!((&one["title"], &one["subject"]), (&json!(title), &json!("acme-outreach.test")));
    let deliveries = world.json(&sink, &["deliveries", "list"]);
    assert_eq!((&deliveries[0]["state"], &deliveries[0]["notifications"]), (&json!("delivered"), &json!([1])));
    assert_eq!(deliveries[0]["attempts"][0]["outcome"], "delivered");

    let (status, took, said) = server.stop(Signal::TERM);
    assert!(status.success(), "it ended with {status}: {said}");
    assert!(took < Duration::from_secs(10), "it took {took:?} to stop");
}

async fn over_stdio(sdk: Sdk) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = sdk.outbox(folder.path());
    let sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    event_reaches_slack(world, &outbox, sink).await;
}

async fn over_http(sdk: Sdk) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = sdk.outbox(folder.path());
    let served = outbox.over_http();
    let sink = Sink::start().await;
    let world = World::new(&sink, "{}", &World::http_connector(&served.url));
    event_reaches_slack(world, &outbox, sink).await;
}

#[tokio::test]
async fn an_event_of_a_fastmcp_server_reaches_slack_over_stdio() {
    over_stdio(Sdk::FastMcp).await;
}

#[tokio::test]
async fn an_event_of_a_fastmcp_server_reaches_slack_over_http() {
    over_http(Sdk::FastMcp).await;
}

#[tokio::test]
async fn an_event_of_a_typescript_1_server_reaches_slack_over_stdio() {
    over_stdio(Sdk::TypeScript1).await;
}

#[tokio::test]
async fn an_event_of_a_typescript_1_server_reaches_slack_over_http() {
    over_http(Sdk::TypeScript1).await;
}

#[tokio::test]
async fn an_event_of_a_typescript_2_server_reaches_slack_over_stdio() {
    over_stdio(Sdk::TypeScript2).await;
}

#[tokio::test]
async fn an_event_of_a_typescript_2_server_reaches_slack_over_http() {
    over_http(Sdk::TypeScript2).await;
}

#[tokio::test]
async fn an_event_of_an_rmcp_server_reaches_slack_over_stdio() {
    over_stdio(Sdk::Rust).await;
}

#[tokio::test]
async fn an_event_of_an_rmcp_server_reaches_slack_over_http() {
    over_http(Sdk::Rust).await;
}

/// After the first read nothing is due before the test is over: a hint is all that makes it read.
async fn a_hint_is_followed(world: World, outbox: &Outbox, mut sink: Sink) {
    let text = std::fs::read_to_string(world.config()).unwrap();
    let hourly = text.replace("base: 50ms, floor: 20ms, ceiling: 200ms", "base: 1h, floor: 20ms, ceiling: 1h");
    assert_ne!(text, hourly);
    world.write("switchbell.yaml", &hourly);
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    for title in ["first", "second"] {
        outbox.add(&["domain.active", "--title", title]);
        let message = sink.next().await.to_string();
        assert!(message.contains(title), "{message}");
    }
}

#[tokio::test]
async fn a_hint_of_an_rmcp_server_is_followed_over_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Sdk::Rust.outbox(folder.path());
    let sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    a_hint_is_followed(world, &outbox, sink).await;
}

#[tokio::test]
async fn a_hint_of_an_rmcp_server_is_followed_over_http() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = Sdk::Rust.outbox(folder.path());
    let served = outbox.over_http();
    let sink = Sink::start().await;
    let world = World::new(&sink, "{}", &World::http_connector(&served.url));
    a_hint_is_followed(world, &outbox, sink).await;
}

/// The world of one Python outbox over stdio.
async fn python_world() -> (tempfile::TempDir, Outbox, Sink, World) {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let sink = Sink::start().await;
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    (folder, outbox, sink, world)
}

#[tokio::test]
async fn a_destination_that_asks_to_wait_is_asked_again_when_it_said() {
    let (_folder, outbox, mut sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    let busy = Reply { status: 429, headers: vec![("retry-after", "2".to_owned())], body: "rate_limited" };
    sink.answer_next([busy]);
    outbox.add(&["domain.active"]);
    sink.next().await;
    sink.next().await;
    server.wait_for("INFO delivered");
    let delivery = &world.json(&sink, &["deliveries", "list"])[0];
    let outcomes: Vec<&Value> =
        delivery["attempts"].as_array().unwrap().iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["retry", "delivered"]);
    let moment = |attempt: usize, field: &str| {
        delivery["attempts"][attempt][field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let waited = moment(1, "startedAt").duration_since(moment(0, "endedAt"));
    assert!(waited >= jiff::SignedDuration::from_millis(1_990), "it waited only {waited:?}");
}

#[tokio::test]
async fn a_webhook_that_is_gone_blocks_the_delivery_with_its_reason_until_a_person_has_it_retried() {
    let (_folder, outbox, mut sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    sink.answer_next([Reply { status: 404, headers: Vec::new(), body: "no_service" }]);
    outbox.add(&["domain.active"]);
    sink.next().await;
    let said = server.wait_for("not delivered");
    assert!(said.contains("no_service") && !said.contains("secret-part"), "{said}");
    let delivery = &world.json(&sink, &["deliveries", "list"])[0];
    assert_eq!((&delivery["state"], &delivery["attempts"][0]["outcome"]), (&json!("blocked"), &json!("reconnect")));
    let (code, out, _) = run(&world, &sink, &["deliveries", "retry", "--state", "blocked"]);
    assert!(code == 0 && out.contains("goes on at once"), "{out}");
    sink.next().await;
    server.wait_for("INFO delivered");
}

#[tokio::test]
async fn a_destination_that_echoes_its_secret_does_not_spread_it() {
    let (_folder, outbox, mut sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    let body = "Cannot POST /services/T00000000/B00000000/secret-part";
    sink.answer_next([Reply { status: 404, headers: Vec::new(), body }]);
    outbox.add(&["domain.active"]);
    sink.next().await;
    server.wait_for("[secret slack-ops]");
    let (_, listed, _) = run(&world, &sink, &["deliveries", "list", "--json"]);
    assert!(listed.contains("[secret slack-ops]") && !listed.contains("secret-part"), "{listed}");
    assert!(!server.said().contains("secret-part"), "{}", server.said());
}

#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let (_folder, outbox, mut sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    server.stop_reading();
    for number in 1..=3 {
        outbox.add(&["domain.active", "--title", &format!("event-{number}")]);
        sink.next().await;
    }
    let (status, _, _) = server.stop(Signal::TERM);
    assert!(status.success(), "it ended with {status}");
    let listed = world.json(&sink, &["deliveries", "list"]);
    assert!(listed.as_array().unwrap().iter().all(|delivery| delivery["state"] == "delivered"), "{listed}");
}

#[tokio::test]
async fn what_an_unreachable_slack_is_owed_arrives_when_it_is_back() {
    let (_folder, outbox, mut sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    sink.close().await;
    outbox.add(&["domain.active"]);
    let said = server.wait_for("not delivered");
    assert!(said.contains("no connection") && said.contains("retrying"), "{said}");
    sink.open_again().await;
    sink.next().await;
    server.wait_for(" delivered ");
}

#[tokio::test]
async fn a_broken_plugin_and_a_broken_connector_leave_the_rest_working() {
    let folder = tempfile::tempdir().unwrap();
    let outbox = python_outbox(folder.path());
    let mut sink = Sink::start().await;
    let commands = outbox.commands();
    let commands = format!(
        "{}, gone: {{ run: [sh, -c, \"echo no database here >&2; exit 3\"], workspaces: [acme] }} }}",
        commands.strip_suffix(" }").unwrap()
    );
    let connectors = World::stdio_connector();
    let connectors = format!(
        "{}, gone: {{ command: gone, notifications: {{ resource: \"gone://x\" }} }} }}",
        connectors.strip_suffix(" }").unwrap()
    );
    let world = World::new(&sink, &commands, &connectors);
    world.write("plugins/broken.wasm", "this is no component");
    let mut server = Server::start(&world, &sink);
    let said = server.wait_for("no events could be fetched");
    let (_moment, said) = said.split_once(' ').unwrap();
    assert!(said.contains("no database here") && said.contains("gone") && said.contains('3'), "{said}");
    assert!(server.said().contains("broken.wasm"), "{}", server.said());
    if !server.said().contains(BOOTSTRAPPED) {
        server.wait_for(BOOTSTRAPPED);
    }
    outbox.add(&["domain.active"]);
    sink.next().await;
}

#[tokio::test]
async fn a_second_server_on_the_same_store_refuses() {
    let (_folder, _outbox, sink, world) = python_world().await;
    let server = Server::start(&world, &sink);
    let (code, _, error) = run(&world, &sink, &["serve"]);
    assert_eq!(code, 2);
    assert!(error.contains("in use") && error.contains(&server.pid().to_string()), "{error}");
}

#[tokio::test]
async fn a_store_that_cannot_be_made_is_named() {
    let (_folder, _outbox, sink, world) = python_world().await;
    let text = std::fs::read_to_string(world.config()).unwrap();
    world.write("switchbell.yaml", &text.replace("sqlite:data/switchbell.db", "sqlite:/proc/nowhere/switchbell.db"));
    let (code, _, error) = run(&world, &sink, &["serve"]);
    assert_eq!(code, 2);
    assert!(error.contains("/proc/nowhere/switchbell.db"), "{error}");
}

#[tokio::test]
async fn it_answers_that_it_is_healthy_and_ready_and_counts() {
    let (_folder, _outbox, sink, world) = python_world().await;
    let mut server = Server::start(&world, &sink);
    server.wait_for(BOOTSTRAPPED);
    let address =
        server.said().split("listen=").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned();
    let _ = rustls::crypto::ring::default_provider().install_default();
    for path in ["healthz", "readyz"] {
        let answer = reqwest::get(format!("http://{address}/{path}")).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
    }
    let counters = reqwest::get(format!("http://{address}/metrics")).await.unwrap().text().await.unwrap();
    let counted = "switchbell_reads_total{workspace=\"acme\",connector=\"registrar\",result=\"answered\"} ";
    assert!(counters.contains(counted), "{counters}");
}

#[tokio::test]
async fn the_demo_shows_the_whole_path_and_stops_when_asked() {
    let world = demo_world();
    let mut demo = Server::spawn(
        std::process::Command::new(env!("CARGO_BIN_EXE_switchbell"))
            .arg("--config")
            .arg(world.path().join("demo/switchbell.yaml"))
            .arg("demo"),
    );
    for text in ["first read", "domain-news", "matches", "Slack got", "delivered"] {
        demo.wait_for(text);
    }
    let (status, took, said) = demo.stop(Signal::INT);
    assert!(status.success() && said.contains("Stopped"), "it ended with {status}: {said}");
    assert!(took < Duration::from_secs(10), "it took {took:?} to stop");
}

/// The demo's own files, with a store of their own.
fn demo_world() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["switchbell.yaml", "workspaces/acme.yaml"] {
        let text = std::fs::read_to_string(root().join("examples/demo").join(name)).unwrap();
        let at_home = |path: &str| root().join(path).display().to_string();
        let text = text.replace("../outbox-python", &at_home("examples/outbox-python"));
        let text =
            text.replace("../../dist/plugins", &at_home("dist/plugins")).replace("--pretend]", "--pretend, \"0.2\"]");
        let path = folder.path().join("demo").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("base: 3s, floor: 1s", "base: 200ms, floor: 50ms")).unwrap();
    }
    folder
}
