//! `switchbell outbox check`: the example servers keep every rule, those that the guide prints are told what to change,
//! and one by hand shows what no SDK would do.

use std::process::{Command, Output};

use serde_json::Value;

use crate::support::{Sdk, TOKEN, prepared, root};

const RESOURCE: &str = "acme://notifications";

/// The command, with these arguments: its exit code, what it prints, and what it says.
fn check(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.args(["outbox", "check"]).args(arguments).env("CHECK_TOKEN", TOKEN).env("CHECK_WRONG", "a\nb");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// Its JSON, whatever the exit code.
fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, out, error) = check(&[&["--json", "--resource", RESOURCE], arguments].concat());
    (code, serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}{error}")))
}

/// The ids of the rules with this verdict.
fn ids(report: &Value, verdict: &str) -> Vec<String> {
    let rules = report["rules"].as_array().unwrap();
    let ids =
        rules.iter().filter(|rule| rule["verdict"] == verdict).map(|rule| rule["id"].as_str().unwrap().to_owned());
    ids.collect()
}

fn case(name: &str) -> String {
    root().join("tests/cases/outbox-servers").join(name).to_str().unwrap().to_owned()
}

fn keeps_every_rule(code: i32, report: &Value, not_seen: &[&str]) {
    let told = (ids(report, "broken"), ids(report, "warning"));
    assert_eq!(told, (vec![], vec![]), "{report:#}");
    assert_eq!(ids(report, "not_seen"), not_seen, "{report:#}");
    assert_eq!((code, &report["couldNotRun"]), (0, &Value::Null));
}

#[test]
fn the_example_servers_keep_every_rule() {
    for sdk in [Sdk::FastMcp, Sdk::TypeScript1, Sdk::TypeScript2, Sdk::Rust] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = sdk.outbox(folder.path());
        let (variable, trigger, words) = (outbox.variable(), outbox.adding(3), outbox.words());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (code, report) = json(&[&["--env", &variable, "--trigger", &trigger, "--"], words.as_slice()].concat());
        keeps_every_rule(code, &report, &["next-poll"]);
        assert_eq!(report["events"], 3, "{sdk:?}");
    }
}

#[test]
fn the_example_servers_keep_them_over_http() {
    for sdk in [Sdk::TypeScript2, Sdk::Rust] {
        let folder = tempfile::tempdir().unwrap();
        let outbox = sdk.outbox(folder.path());
        let server = outbox.over_http();
        let trigger = outbox.adding(3);
        // A name that leads to this machine, and a header besides.
        let url = server.url.replace("127.0.0.1", "localhost");
        let signed = ["--url", &url, "--bearer-env", "CHECK_TOKEN", "--header-env", "X-Key=CHECK_TOKEN"];
        let (code, report) = json(&[&signed[..], &["--trigger", &trigger]].concat());
        keeps_every_rule(code, &report, &["stdout", "next-poll"]);

        let (code, report) = json(&["--url", &server.url]);
        assert_eq!((code, ids(&report, "broken")), (2, vec!["connection".to_owned()]), "{sdk:?}: {report:#}");
        assert!(report.to_string().contains("--bearer-env NAME"), "{report:#}");
        assert!(!report.to_string().contains(TOKEN), "{report:#}");
    }
}

#[test]
fn the_python_server_of_the_guide_is_told_to_register_the_template() {
    let python = prepared("examples/outbox-python/.venv/bin/python", "deps");
    let (code, out, _) = check(&["--resource", RESOURCE, "--", python.to_str().unwrap(), &case("as-printed.py")]);
    assert_eq!(code, 2, "{out}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in [
        "BROKEN connection MUST",
        "ValueError: URI template must contain at least one parameter",
        "@mcp.resource(\"acme://notifications{?cursor,maxEvents,maxAgeMs}\"",
        "The check could not be made: see above.",
    ] {
        assert!(out.contains(text), "{text:?} is not in: {out}");
    }
}

#[test]
fn the_typescript_server_of_the_guide_is_told_to_register_every_shape() {
    let folder = tempfile::tempdir().unwrap();
    let server = folder.path().join("as-printed.mjs");
    std::fs::copy(case("as-printed.mjs"), &server).unwrap();
    let modules = prepared("examples/outbox-typescript/v1/node_modules", "deps");
    std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).unwrap();

    let (code, report) = json(&["--", "node", server.to_str().unwrap()]);
    assert_eq!((code, ids(&report, "broken")), (1, vec!["bootstrap.bare".to_owned(), "bootstrap.bounds".to_owned()]));
    let text = report.to_string();
    for words in ["register the bare URI as a static resource", "{?maxEvents,maxAgeMs}", "decodeURIComponent"] {
        assert!(text.contains(words), "{words:?} is not in: {report:#}");
    }
    // With a position to start from, the rest is seen, too.
    let (_, report) = json(&["--cursor", "0", "--", "node", server.to_str().unwrap()]);
    assert_eq!(ids(&report, "broken"), ["bootstrap.bare", "bootstrap.bounds", "max-age"], "{report:#}");
    assert_eq!(ids(&report, "warning"), ["cursor.unknown", "has-more.end"], "{report:#}");
}

#[test]
fn a_server_by_hand_is_told_of_its_habit() {
    let server = case("scripted.py");
    let told = |habit: &str, broken: &str, says: &str| {
        let command = format!("python3 '{server}' {habit}");
        let (code, report) = json(&["--timeout", "1s", "--command", &command]);
        assert_eq!((code, ids(&report, "broken")), (1, vec![broken.to_owned()]), "{habit}: {report:#}");
        assert!(report.to_string().contains(says), "{habit}: {report:#}");
    };
    told("chatters", "stdout", "listening to the world");
    told("dies", "read.answered", "ValueError: no such cursor");
    told("hangs", "read.answered", "did not answer within 1 s");
    told("refuses", "read.answered", "invalid literal for int()");
}

#[test]
fn the_report_fits_a_terminal() {
    let server = case("scripted.py");
    let (code, out, _) = check(&["--resource", RESOURCE, "--command", "python3", "--", &server, "refuses"]);
    assert_eq!(code, 1);
    let wide: Vec<_> = out.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    for text in [
        "acme://notifications, MCP 2025-11-25\n",
        "kept     bootstrap.empty        no events\n",
        "BROKEN   read.answered          MUST\n    rule    The host reads your resource as",
        "not seen max-events             needs two events\n",
        "No event was seen. Make some happen with --trigger",
        "1 MUST is broken.\n",
    ] {
        assert!(out.contains(text), "{text:?} is not in: {out}");
    }
}

#[test]
fn what_cannot_be_checked_is_told_with_the_remedy() {
    let check = |arguments: &[&str], says: &str| {
        let (code, out, error) = check(arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{error}");
        assert!(format!("{out}{error}").contains(says), "{arguments:?}: {out}{error}");
    };
    let uri = ["--resource", RESOURCE];
    let with = |more: &[&'static str]| [&uri, more].concat();
    check(&with(&[]), "`-- PROGRAM ARGUMENT…` at the end, or --url URL");
    check(&["--", "cat"], "--resource");
    check(&with(&["--", "no-such-program-anywhere"]), "cannot be started");
    check(&with(&["--command", "python3 'server.py"]), "a quote is not closed");
    check(&with(&["--url", "http://127.0.0.1:1/mcp"]), "cannot be reached");
    check(&with(&["--url", "ftp://127.0.0.1/"]), "it must be http or https");
    check(&with(&["--url", "https://name:word@a.example/mcp"]), "--bearer-env");
    check(&with(&["--url", "http://127.0.0.1:1/", "--bearer-env", "CHECK_NONE"]), "CHECK_NONE is not set");
    check(&with(&["--url", "http://127.0.0.1:1/", "--bearer-env", "CHECK_WRONG"]), "cannot stand in a header");
    check(&with(&["--url", "http://127.0.0.1:1/", "--header-env", "x-key"]), "give HEADER=VARIABLE");
    check(&with(&["--url", "http://127.0.0.1:1/", "--", "cat"]), "cannot be used with");
    check(&with(&["--env", "=1", "--", "cat"]), "NAME=VALUE");
    check(&with(&["--directory", "/no/such/folder", "--", "cat"]), "there is no such folder");
    check(&with(&["--wait", "5", "--", "cat"]), "write `5s`");
    check(&with(&["--timeout", "0s", "--", "cat"]), "more than none");
    let server = case("scripted.py");
    check(&[&uri[..], &["--trigger", "exit 3", "--", "python3", &server, "is-good"]].concat(), "exit status: 3");
}

#[test]
fn a_uri_that_no_host_polls_is_a_broken_must() {
    let server = case("scripted.py");
    let (code, out, _) = check(&["--resource", "ui://notifications", "--", "python3", &server, "is-good"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("BROKEN   declaration") && out.contains("reserved"), "{out}");
}
