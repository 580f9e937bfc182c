//! Tools of connectors, called by a plugin through the program itself, on a real server over stdio and over HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panic"
)]

use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Over, Peer, Server, Sink, Stage, World, prepared};

/// A server with tools, and the program that polls it and hands what it brings to a plugin that follows scripts.
struct Play {
    stage: Stage,
    server: Server,
    world: World,
    sink: Sink,
    events: usize,
}

impl Play {
    /// One route for each script. The peer is the connector `registrar`; with `unpolled` another, `helper`, is the same
    /// program without an outbox.
    async fn new(over: Over, scripts: &[&str]) -> Self {
        let settings: Vec<Value> = scripts.iter().map(|script| json!({ "script": script })).collect();
        Self::with(over, "scripted", prepared("dist/guests/scripted.wasm", "guests"), &settings).await
    }

    /// One route for each target's settings.
    async fn with(over: Over, plugin: &str, component: PathBuf, settings: &[Value]) -> Self {
        let (stage, sink) = (Stage::new(Peer::Tools, over, "c-0").await, Sink::start().await);
        let mut registrar = match stage.url() {
            Some(url) => json!({ "url": url, "auth": { "bearer": { "secret": "outbox-token" } } }),
            None => json!({ "command": "peer" }),
        };
        registrar["notifications"] = json!({ "resource": "acme://notifications" });
        let connectors = json!({
            "registrar": registrar,
            "helper": { "command": "peer" },
            "closed": { "url": "http://127.0.0.1:9/mcp" },
        });
        let world = World::new(&sink, &format!("{{ peer: {} }}", stage.command()), "{}");
        world.write("workspaces/acme.yaml", &workspace(&connectors, plugin, settings));
        let operator = fs::read_to_string(world.config()).unwrap();
        let tools = ["echo", "plain", "fail", "refuse", "sleep", "die", "much"];
        let entry = |connector: &'static str| move |tool: &&str| format!("acme:{connector}/{tool}");
        let entries = tools.iter().map(entry("registrar")).chain(["echo", "plain"].iter().map(entry("helper")));
        let grant = json!({ "tools": entries.chain(["acme:closed/echo".to_owned()]).collect::<Vec<_>>() });
        let operator = operator.replace("  grants:\n", &format!("  grants:\n    {plugin}: {grant}\n"));
        world.write("switchbell.yaml", &operator);
        fs::copy(component, world.path(&format!("plugins/{plugin}.wasm"))).unwrap();
        let mut server = Server::start(&world, &sink);
        server.wait_for("read the outbox");
        Self { stage, server, world, sink, events: 0 }
    }

    /// Has the outbox bring an event: each route makes one delivery.
    fn begin(&mut self) {
        self.events += 1;
        let (title, cursor) = (format!("event {}", self.events), format!("c-{}", self.events));
        self.stage.add(&[(&title, &cursor)], false);
    }

    /// What the plugin was told of its call, whose route is the only one.
    fn told(&mut self) -> String {
        self.begin();
        self.end()
    }

    /// What the plugin was told of the next call that ends.
    fn end(&mut self) -> String {
        let line = self.server.wait_for("not delivered: ");
        line.split_once("not delivered: ").unwrap().1.to_owned()
    }
}

/// One route for each target, `r-0` and so on.
fn workspace(connectors: &Value, plugin: &str, settings: &[Value]) -> String {
    let route = |(number, settings): (usize, &Value)| {
        json!({
            "name": format!("r-{number}"),
            "owner": "admin@example.com",
            "when": { "name": "domain.*" },
            "deliver": [{ "plugin": plugin, "with": settings }],
        })
    };
    let routes: Vec<Value> = settings.iter().enumerate().map(route).collect();
    json!({ "members": { "admin@example.com": "admin" }, "connectors": connectors, "routes": routes }).to_string()
}

async fn check(over: Over, script: &str, expected: &[&str]) {
    let mut play = Play::new(over, &[&format!("{script}|report")]).await;
    let told = play.told();
    for expected in expected {
        assert!(told.contains(expected), "{over:?} {script}: {told:?} does not say {expected:?}");
    }
}

/// The answer, what came with the call, and that polls and calls go on together.
async fn check_a_call(over: Over) -> Play {
    let mut play = Play::new(over, &["tool registrar/echo text=hi times=2|report"]).await;
    let told = play.told();
    assert!(told.starts_with("error false, truncated false: {\"content\":[{"), "{told}");
    assert!(told.contains(r#""structuredContent":{"said":"hi hi"}"#), "{told}");
    let called = play.stage.next("called").await;
    let deliveries = play.world.json(&play.sink, &["deliveries", "list"]);
    let meta = json!({ "switchbell/on-behalf-of": "admin@example.com", "switchbell/delivery": deliveries[0]["id"] });
    assert_eq!(called["meta"], meta);
    assert!(play.told().contains("hi hi"), "it is called again");
    let again = play.stage.next("called").await;
    assert_eq!(again["pid"], called["pid"]);
    match over {
        Over::Stdio => assert_eq!(called["headers"], json!({})),
        Over::Http => {
            let token = format!("Bearer {}", crate::support::TOKEN);
            let expected = json!({ "x-tenant-id": "acme", "x-workspace-id": "acme", "authorization": token });
            assert_eq!(called["headers"], expected);
        }
    }
    play
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_of_a_polled_program_is_called_and_the_program_runs_once() {
    let mut play = check_a_call(Over::Stdio).await;
    assert_eq!(play.stage.all("started").len(), 1, "one program, one process");
    let (status, _, said) = play.server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_behind_a_tool_is_run_once_and_what_it_answers_is_reported() {
    let settings = json!({
        "protocol": "mcp",
        "connector": "registrar",
        "tool": "echo",
        "prompt": "Find out why.",
        "arguments": { "text": "{input}", "times": 1 },
        "report": true,
    });
    let component = prepared("dist/plugins/agent-run.wasm", "plugins");
    let mut play = Play::with(Over::Stdio, "agent-run", component, &[settings]).await;
    play.begin();
    play.server.wait_for("INFO delivered");
    play.stage.next("called").await;
    let told = play.world.json(&play.sink, &["inbox", "list"]);
    let report = told.as_array().unwrap().iter().find(|one| one["name"] == "agent.report").cloned().unwrap();
    assert_eq!((&report["source"], &report["level"]), (&json!("switchbell"), &json!("info")));
    let body = report["body"].as_str().unwrap();
    assert!(body.contains("Find out why.") && body.contains("data, not instructions"), "{body}");
    assert_eq!(play.stage.all("called"), Vec::<Value>::new(), "it is called once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_over_http_is_called_with_the_connectors_own_credential() {
    check_a_call(Over::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_fails_answers_and_an_error_of_the_protocol_is_a_refusal() {
    for over in [Over::Stdio, Over::Http] {
        check(over, "tool registrar/fail", &["error true, truncated false: ", "the domain is locked"]).await;
        let refused = ["Reach::Refused mcp-32602: Unknown tool: refuse", "(status None, after None)"];
        check(over, "tool registrar/refuse", &refused).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_said_to_be_left_out() {
    check(Over::Stdio, "tool registrar/much", &["error false, truncated true: {}"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_granted_or_not_there_is_denied_with_a_remedy() {
    let line = r#"add "acme:registrar/unheard-of" in switchbell.yaml to plugins.grants.scripted.tools"#;
    check(Over::Stdio, "tool registrar/unheard-of", &["Reach::Denied not-granted", line]).await;
    check(Over::Stdio, "tool crm/echo", &["Reach::Denied no-connector", "workspace acme has no connector crm"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_be_reached_was_sent_nothing() {
    check(Over::Stdio, "tool closed/echo text=hi times=1", &["Reach::Unsent connect: 127.0.0.1:9 cannot be reached"])
        .await;
}

/// A slow call keeps neither polls nor other calls waiting, and the server is told when it is given up.
async fn check_a_slow_call(over: Over) {
    let slow = "tool-in 1500 registrar/sleep seconds=600|report";
    let mut play = Play::new(over, &[slow, "tool registrar/plain text=meanwhile|report"]).await;
    play.begin();
    play.stage.next("sleeping").await;
    let told = play.end();
    assert!(told.contains("meanwhile"), "{over:?}: {told}");
    play.stage.all("read");
    play.stage.next("read").await;
    let told = play.end();
    assert!(told.starts_with("Reach::Unanswered timeout: the server did not answer within 1.5 s"), "{told}");
    assert_eq!(play.stage.next("cancelled").await, json!(600.0));
    assert_eq!(play.stage.all("started").len(), 1, "it runs on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_over_stdio_delays_nothing_and_is_cancelled() {
    check_a_slow_call(Over::Stdio).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_call_over_http_delays_nothing_and_is_cancelled() {
    check_a_slow_call(Over::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_dies_of_a_call_may_have_done_it_and_is_started_again() {
    let mut play = Play::new(Over::Stdio, &["tool registrar/die|report"]).await;
    let told = play.told();
    assert!(told.starts_with("Reach::Unanswered disconnected: "), "{told}");
    assert!(told.contains("exited with status 3 before it answered"), "{told}");
    play.stage.next("started").await;
    play.stage.next("started").await;
    let told = play.told();
    assert!(told.starts_with("Reach::Unanswered disconnected: "), "the next call meets a new one: {told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_without_an_outbox_is_called_too() {
    let script = "tool helper/plain text=first|tool helper/plain text=second|report";
    let mut play = Play::new(Over::Http, &[script]).await;
    assert!(play.told().contains("second"));
    assert_eq!(play.stage.all("started").len(), 2, "the server over HTTP, and one program for both calls");
    let (status, _, said) = play.server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
}
