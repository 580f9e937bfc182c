//! `switchbell test`: routes under test in files, and the examples that everybody copies.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{prepared, root};

const OPERATOR: &str = "workspaces: workspaces/\nplugins: { directory: nowhere/ }\n\
    secrets: { hook: { env: NOT_SET_ANYWHERE, in: url, workspaces: [acme] } }\n";
const WORKSPACE: &str = "members: { a@example.com: admin }
connectors: { registrar: { url: \"https://mcp.example.com\", notifications: { resource: \"acme://n\" }, ceiling: attention } }
routes:
  - name: loud
    owner: a@example.com
    when: { level: attention }
    deliver:
      - { id: chat, plugin: slack, with: { webhook: { secret: hook } } }
      - { id: page, plugin: mail, after: 15m, unless: acknowledged }
";
const GOOD: &str = "tests:
  - name: a page follows when nobody acknowledges
    events: [ { source: registrar, name: domain.failed, level: urgent, subject: a.example } ]
    expect:
      - { route: loud, target: chat, at: 0s, events: [1] }
      - { route: loud, plugin: mail, at: 15m }
  - name: info is for nobody
    events: [ { source: registrar, name: domain.active } ]
    expect: []
";

/// A folder with a configuration and these files of tests.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("switchbell.yaml", OPERATOR);
    write("workspaces/acme.yaml", WORKSPACE);
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    files.iter().for_each(|(name, text)| write(&format!("tests/{name}"), text));
    folder
}

fn run_in(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    let output = command.current_dir(folder).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout) + &text(output.stderr))
}

fn check(folder: &TempDir, arguments: &[&str], code: i32, says: &[&str]) -> String {
    let (found, said) = run_in(folder.path(), &[&["test", "tests"], arguments].concat());
    assert_eq!(found, code, "{said}");
    for text in says {
        assert!(said.contains(text), "{text:?} is not said: {said}");
    }
    said
}

#[test]
fn tests_that_pass_are_counted() {
    let folder = folder(&[("loud.yaml", GOOD), ("deeper/again.yaml", GOOD)]);
    check(&folder, &[], 0, &["4 tests: all passed"]);
    check(&folder, &["--filter", "deeper"], 0, &["2 tests"]);
    check(&folder, &["--filter", "info is"], 0, &["2 tests"]);
    check(&folder, &["--filter", "none of them"], 2, &["no test has that"]);
}

#[test]
fn a_failure_says_what_was_expected_where_and_what_came_instead() {
    let bad = GOOD.replace("at: 15m", "at: 10m").replace("expect: []", "expect: [ { route: loud, events: [1] } ]");
    let folder = folder(&[("loud.yaml", &bad)]);
    let says = [
        "tests/loud.yaml:2:5: failed: a page follows when nobody acknowledges",
        "tests/loud.yaml:6:9: expected route loud, plugin mail, at 10m",
        "got route loud, target page (mail), at 15m (2026-06-01T12:15:00Z), event 1 (escalation)",
        "event 1 does not match: `level` asks for attention or above, and it has info",
        "2 tests: 2 failed",
    ];
    check(&folder, &[], 1, &says);
    let said = check(&folder, &["--json"], 1, &[]);
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["failed"], &said["tests"][0]["passed"]), (&json!(2), &json!(false)));
    assert_eq!(said["tests"][0]["deliveries"][1]["at"], "2026-06-01T12:15:00Z");
}

#[test]
fn the_level_of_an_event_is_capped_as_a_server_would() {
    let file = GOOD.replace("expect: []", "expect: []\n    routes: [loud]");
    let folder = folder(&[("loud.yaml", &file)]);
    let text = WORKSPACE.replace("level: attention", "level: urgent");
    std::fs::write(folder.path().join("workspaces/acme.yaml"), text).unwrap();
    check(&folder, &[], 1, &["`level` asks for urgent or above, and it has attention"]);
}

#[test]
fn every_mistake_of_every_file_is_told_at_once_with_its_place() {
    let wrong = "tests:
  - name: wrong in many ways
    events: [ { source: registra, name: \"domain.*\" } ]
    acknowledge: [ { at: 1m, event: 2, by: robot } ]
    expect:
      - { route: lou, target: chat }
      - { route: loud, target: chatt, events: [7] }
      - { rout: loud }
";
    let folder = folder(&[("a.yaml", wrong), ("b.yaml", "tests: []\n"), ("c.yaml", "workspace: acmee\ntests: []\n")]);
    let says = [
        "tests/a.yaml:3:25: tests[0].events[0].source: unknown connector \"registra\": did you mean \"registrar\"?",
        "is a pattern: an event has one name",
        "robot",
        "unknown key \"rout\": did you mean \"route\"?",
        "tests/b.yaml:1:8: tests: no test: write at least one",
        "tests/c.yaml:1:12: workspace: unknown workspace \"acmee\": did you mean \"acme\"?",
    ];
    check(&folder, &[], 2, &says);
    let names = wrong.replace("registra,", "registrar,").replace("\"domain.*\"", "a.b").replace("robot", "person");
    let folder = self::folder(&[("a.yaml", &names.replace("rout:", "route:"))]);
    let says = [
        "there is no event 2: this test has 1",
        "unknown route \"lou\": did you mean \"loud\"?",
        "unknown target \"chatt\": did you mean \"chat\"?",
        "there is no event 7",
    ];
    check(&folder, &[], 2, &says);
}

#[test]
fn a_folder_without_tests_is_a_mistake() {
    check(&folder(&[]), &[], 2, &["no test: no file here ends in .yaml"]);
    let folder = folder(&[]);
    std::fs::remove_dir(folder.path().join("tests")).unwrap();
    check(&folder, &[], 2, &["tests: cannot be read"]);
}

#[test]
fn build_servers_read_what_came_of_it() {
    let bad =
        GOOD.replace("at: 15m", "at: 10m").replace("info is for nobody", "info is <for> \\\"nobody\\\" & nothing");
    let bad =
        bad.replace("name: info is <for> \\\"nobody\\\" & nothing", "name: \"info is <for> \\\"nobody\\\" & nothing\"");
    let folder = folder(&[("loud.yaml", &bad), ("more.yaml", GOOD)]);
    check(&folder, &["--junit", "out.xml"], 1, &[]);
    let python = prepared("tests/peers/junit/.venv/bin/python", "deps");
    let output = Command::new(python)
        .arg(root().join("tests/peers/junit/read.py"))
        .arg(folder.path().join("out.xml"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    let read: Value = serde_json::from_str(&said).unwrap_or_else(|why| panic!("{why}: {said}"));
    assert_eq!((&read["tests"], &read["failures"], &read["errors"]), (&json!(4), &json!(1), &json!(0)));
    assert_eq!(read["suites"][0]["name"], "tests/loud.yaml");
    let cases = read["suites"][0]["cases"].as_array().unwrap();
    assert_eq!(cases[1], json!({"name": "info is <for> \"nobody\" & nothing", "classname": "acme", "failure": null}));
    let failure = cases[0]["failure"].as_str().unwrap();
    assert!(failure.contains("loud.yaml:6:9: expected route loud, plugin mail, at 10m"), "{failure}");
    check(&folder, &["--junit", "no/such/folder.xml"], 2, &["--junit no/such/folder.xml"]);
}

#[test]
fn the_examples_pass_their_tests_and_the_check() {
    prepared("dist/plugins/slack.wasm", "plugins");
    let config = ["--config", "examples/routes/switchbell.yaml"];
    let (code, said) = run_in(root(), &[&config[..], &["test", "examples/routes/tests"]].concat());
    assert_eq!(code, 0, "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    for (name, value) in [
        ("SLACK_OPS_WEBHOOK", "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX"),
        ("SLACK_TEST_WEBHOOK", "https://hooks.slack.com/services/T00000000/B00000001/XXXXXXXXXXXXXXXXXXXXXXXX"),
        ("SLACK_BOT_TOKEN", "xoxb-000000000000-000000000000-XXXXXXXXXXXXXXXXXXXXXXXX"),
        ("AGENT_TOKEN", "an-agents-token-of-some-length"),
    ] {
        command.env(name, value);
    }
    let output = command.current_dir(root()).args(config).args(["check", "--deny-warnings"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
}
