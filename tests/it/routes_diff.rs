//! `switchbell routes diff`: the inbox decided under two configurations.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::{Ended, Entry, Inbox, Intake};
use switchbell::notification::{Event, Level};

use crate::support::{Sink, World, operator, run};

const ROUTES: &str = "members: { admin@example.com: admin }
connectors: { registrar: { command: outbox, notifications: { resource: \"acme://n\" }, ceiling: CEILING } }
routes:
  - name: news
    owner: admin@example.com
    when: { name: \"domain.*\" }
    deliver: [ { id: chat, plugin: no-such-plugin, with: { webhook: { secret: unset } }TIMING } ]
  - name: NAME
    owner: admin@example.com
    when: { level: urgent }
    deliver: [ { id: page, plugin: no-such-plugin } ]
";

fn routes(ceiling: &str, timing: &str, name: &str) -> String {
    ROUTES.replace("CEILING", ceiling).replace("TIMING", timing).replace("NAME", name)
}

/// A server's folder whose inbox holds ten notifications about domains, a minute after the other, the last a minute ago;
/// every second is urgent. Its plugins are not there, nor are the values of its secrets.
async fn world() -> (Sink, World) {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{}", "{}");
    let commands = "{ outbox: { run: [cat], workspaces: [acme] } }";
    let operator = operator(&sink, commands).replace("slack-ops: { env: SLACK_OPS", "unset: { env: NOT_SET_ANYWHERE");
    world.write("switchbell.yaml", &operator.replace("directory: plugins/", "directory: nowhere/"));
    world.write("workspaces/acme.yaml", &routes("urgent", "", "wake"));
    let now = switchbell::clock::Clock::system().now();
    let inbox = SqliteInbox::open(&world.path("data/switchbell.db"), now).unwrap();
    for number in 1..=10_u32 {
        let received_at = now - Duration::from_secs(60 * u64::from(11 - number));
        let sent = intake(number, received_at);
        inbox.accept(sent).await.unwrap();
    }
    (sink, world)
}

fn intake(number: u32, received_at: Timestamp) -> Intake {
    let event = Event {
        event_id: format!("e{number}"),
        name: if number <= 8 { "domain.active" } else { "mail.bounced" }.to_owned(),
        timestamp: received_at,
        level: if number.is_multiple_of(2) { Level::Urgent } else { Level::Info },
        subject: Some(format!("s{number}.example")),
        title: "a title".to_owned(),
        body: None,
        link: None,
        data: "{}".to_owned(),
        content: None,
    };
    let entry = Entry { effective_level: event.level, event, owed: Vec::new(), consumers: Vec::new() };
    Intake {
        workspace: "acme".parse().unwrap(),
        source: "registrar".parse().unwrap(),
        received_at,
        is_first: false,
        entries: vec![entry],
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

fn check(world: &World, sink: &Sink, arguments: &[&str], code: i32, says: &[&str]) -> String {
    let (found, out, error) = run(world, sink, &[&["routes", "diff"], arguments].concat());
    let said = format!("{out}{error}");
    assert_eq!(found, code, "{arguments:?} said: {said}");
    for text in says {
        assert!(said.contains(text), "{arguments:?} does not say {text:?}: {said}");
    }
    said
}

/// The file that is there, and another beside it.
fn files(world: &World, other: &str) -> (String, String) {
    world.write("new.yaml", other);
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    (path("workspaces/acme.yaml"), path("new.yaml"))
}

fn target<'a>(found: &'a Value, id: &str) -> &'a Value {
    let targets = found["workspaces"][0]["targets"].as_array().unwrap();
    targets.iter().find(|target| target["old"]["target"] == id || target["new"]["target"] == id).unwrap()
}

fn json_of(world: &World, sink: &Sink, arguments: &[&str]) -> Value {
    let (_, out, error) = run(world, sink, &[&["routes", "diff", "--json"], arguments].concat());
    serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}{error}"))
}

#[tokio::test]
async fn what_would_be_new_gone_or_changed_is_said_with_examples() {
    let (sink, world) = world().await;
    let (old, same) = files(&world, &routes("urgent", "", "wake"));
    check(&world, &sink, &[&old, &same], 0, &["10 notifications", "none would be delivered otherwise"]);
    let other = routes("urgent", ", after: 5m", "wake")
        .replace("domain.*", "domain.a*\", \"mail.*")
        .replace("name: \"domain.a*\", \"mail.*\"", "name: [\"domain.a*\", \"mail.*\"]");
    let (old, new) = files(&world, &other);
    let said = check(&world, &sink, &[&old, &new, "--limit", "2"], 1, &["10 would be delivered otherwise"]);
    for says in
        ["new: news: chat (no-such-plugin): 2 notifications", "changed (timing): news: chat", "#10", "#9", "#8", "#7"]
    {
        assert!(said.contains(says), "{says:?} is not in {said}");
    }
    assert!(!said.contains("#6"), "two of each are shown: {said}");
    let found = json_of(&world, &sink, &[&old, &new]);
    let chat = target(&found, "chat");
    assert_eq!((&chat["counts"], &chat["differsIn"]), (&json!({"new": 2, "changed": 8}), &json!(["timing"])));
    assert_eq!(chat["examples"]["new"][0]["subject"], "s10.example");
    assert_eq!(target(&found, "page")["counts"], json!({"same": 5}));
}

#[tokio::test]
async fn a_lower_ceiling_shows_what_it_silences() {
    let (sink, world) = world().await;
    let (old, new) = files(&world, &routes("attention", "", "wake"));
    let says = [
        "5 notifications of another level, such as urgent -> attention",
        "gone: wake: page",
        "changed (level): news: chat",
    ];
    check(&world, &sink, &[&old, &new], 1, &says);
}

#[tokio::test]
async fn a_renamed_route_is_no_difference() {
    let (sink, world) = world().await;
    let (old, new) = files(&world, &routes("urgent", "", "alarm"));
    check(
        &world,
        &sink,
        &[&old, &new],
        0,
        &["renamed: wake -> alarm: page (no-such-plugin): 5 notifications, all as before"],
    );
}

#[tokio::test]
async fn timing_is_compared_where_it_is_simulated() {
    let (sink, world) = world().await;
    let collects = ", collect: { by: none, wait: 6m }";
    let (old, new) = files(&world, &routes("urgent", collects, "wake"));
    let says = ["as if nothing had been waiting", "8 -> 1", "alone 8 -> 0", "digest 0 -> 1", "still waiting 0 -> 1"];
    check(&world, &sink, &[&old, &new, "--simulate"], 1, &says);
    let found = json_of(&world, &sink, &[&old, &new, "--simulate"]);
    let simulated = &target(&found, "chat")["simulated"];
    assert_eq!((&simulated["old"]["deliveries"], &simulated["new"]["stillWaiting"]), (&json!(8), &json!(1)));
    assert_eq!(target(&found, "page")["simulated"]["isSame"], true);
}

#[tokio::test]
async fn operators_files_are_compared_workspace_by_workspace() {
    let (sink, world) = world().await;
    world.write("next/workspaces/acme.yaml", &routes("urgent", "", "wake").replace("domain.*", "domain.none"));
    world.write("next/workspaces/beta.yaml", "members: { admin@example.com: admin }\n");
    let operator = std::fs::read_to_string(world.config()).unwrap();
    world.write("next/switchbell.yaml", &operator.replace("sqlite:data", "sqlite:not-there"));
    let path = |name: &str| world.path(name).to_str().unwrap().to_owned();
    let (old, new) = (path("switchbell.yaml"), path("next/switchbell.yaml"));
    let says =
        ["workspace beta: only the new configuration has it", "gone: news: chat (no-such-plugin): 8 notifications"];
    check(&world, &sink, &[&old, &new], 1, &says);
    check(&world, &sink, &[&old, &new, "--workspace", "beta"], 2, &["unknown workspace \"beta\""]);
    check(&world, &sink, &[&old, &old], 0, &[]);
}

#[tokio::test]
async fn only_what_came_in_that_time_is_looked_at() {
    let (sink, world) = world().await;
    let (old, new) = files(&world, &routes("urgent", "", "wake").replace("domain.*", "domain.none"));
    check(
        &world,
        &sink,
        &[&old, &new, "--since", "5m30s"],
        1,
        &["5 notifications", "gone: news: chat (no-such-plugin): 3"],
    );
    check(&world, &sink, &[&old, &new, "--until", "5m30s"], 1, &["gone: news: chat (no-such-plugin): 5"]);
    check(&world, &sink, &[&old, &new, "--until", "2020-01-01T00:00:00Z"], 2, &["is later than --until"]);
}

#[tokio::test]
async fn what_cannot_be_compared_is_said_with_2() {
    let (sink, world) = world().await;
    let (old, new) = files(&world, "routes: [ { name: x } ]\n");
    check(&world, &sink, &[&old, &new], 2, &["new.yaml:1", "`owner` is missing"]);
    let config = world.config();
    check(&world, &sink, &[config.to_str().unwrap(), &old], 2, &["of different kinds"]);
    check(&world, &sink, &[&old, "not-there.yaml"], 2, &["not-there.yaml: cannot be read"]);
    check(&world, &sink, &[&old, &old, "--since", "yesterday"], 2, &["--since", "2026-11-23T00:00:00Z"]);
}
