//! Commands that ask a server elsewhere, with `--server URL` and a token, and `inbox tail`.

use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::stream::token;
use crate::support::{Server, Sink, World, command, python_outbox, run};

/// Runs a command on a machine without any file of the server's.
fn elsewhere(token: &str, arguments: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.current_dir(folder.path()).env("SWITCHBELL_TOKEN", token).env_remove("SWITCHBELL_CONFIG");
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// What a command elsewhere prints as JSON.
fn json(token: &str, url: &str, arguments: &[&str]) -> Value {
    let (code, out, error) = elsewhere(token, &[arguments, &["--json", "--server", url]].concat());
    assert_eq!(code, 0, "{arguments:?} failed: {out}{error}");
    serde_json::from_str(&out).unwrap()
}

#[tokio::test]
async fn a_server_elsewhere_answers_what_the_files_and_the_store_do() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = Sink::start().await;
    let outbox = python_outbox(folder.path());
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let mut server = Server::start(&world, &sink);
    let url = server.url();
    server.wait_for("bootstrap=true");
    for title in ["one", "two", "three"] {
        outbox.add(&["domain.active", "--title", title]);
        sink.next().await;
    }
    let (operator, _) = token(&world, &sink, &["operator"]);
    // What a sink has is recorded a moment later.
    while json(&operator, &url, &["deliveries", "list"])
        .as_array()
        .unwrap()
        .iter()
        .any(|one| one["state"] != "delivered")
    {}
    let listed = json(&operator, &url, &["inbox", "list"]);
    let newest = listed[0]["seq"].as_u64().unwrap().to_string();
    assert!(listed.as_array().unwrap().len() >= 3, "{listed}");
    for arguments in [
        vec!["inbox", "list"],
        vec!["inbox", "list", "--unread", "--oldest", "--limit", "2"],
        vec![
            "inbox", "list", "--name", "domain.*", "--source", "reg*", "--level", "info", "--query", "TWO", "--since",
            "1h",
        ],
        vec!["inbox", "list", "--after", "1", "--before", newest.as_str()],
        vec!["inbox", "show", newest.as_str()],
        vec!["deliveries", "list", "--plugin", "slack"],
    ] {
        assert_eq!(json(&operator, &url, &arguments), world.json(&sink, &arguments), "{arguments:?}");
        let (_, here, _) = run(&world, &sink, &arguments);
        let there = elsewhere(&operator, &[arguments.as_slice(), &["--server", &url]].concat()).1;
        assert_eq!(there, here, "{arguments:?}");
    }
    let delivery = json(&operator, &url, &["deliveries", "list", "--limit", "1"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(json(&operator, &url, &["deliveries", "show", &delivery])["id"], delivery.as_str());
    assert_eq!(json(&operator, &url, &["connector", "list"])[0]["name"], "registrar");
    assert_eq!(json(&operator, &url, &["connector", "show", "registrar"])["state"], "ok");
    assert_eq!(json(&operator, &url, &["connector", "poll", "registrar"])["failure"], Value::Null);
    assert_eq!(json(&operator, &url, &["plugin", "list"])[0]["name"], "slack");
    assert!(json(&operator, &url, &["explain", "--seq", &newest])["at"].is_string());
    assert!(json(&operator, &url, &["preview", "--seq", &newest]).is_object());
    assert!(json(&operator, &url, &["reload", "--status"]).is_object());
    assert!(json(&operator, &url, &["reload"]).is_object());
    assert_eq!(json(&operator, &url, &["check"])["errors"], 0);

    // Who acknowledges is who has the token.
    let (member, _) = token(&world, &sink, &["admin"]);
    assert_eq!(json(&member, &url, &["inbox", "ack", &newest])["by"], "admin@example.com");
    assert_eq!(json(&member, &url, &["inbox", "show", &newest])["acknowledgedBy"], "admin@example.com");
    let again = json(&member, &url, &["deliveries", "retry", &delivery]);
    assert_eq!(again["done"][0]["id"], delivery.as_str());
    sink.next().await;
    // A token in a file.
    let file = folder.path().join("token");
    std::fs::write(&file, format!("{member}\n")).unwrap();
    let from_file = ["inbox", "list", "--json", "--server", &url, "--token-file", file.to_str().unwrap()];
    assert_eq!(elsewhere("", &from_file).0, 0);
}

#[tokio::test]
async fn what_a_server_elsewhere_refuses_is_said_with_the_remedy() {
    let sink = Sink::start().await;
    let world = World::new(&sink, "{}", "{}");
    let server = Server::start(&world, &sink);
    let url = server.url();
    let (agent, _) = token(&world, &sink, &["agent", "--consumer", "triage"]);
    for (secret, arguments, expected) in [
        ("", vec!["inbox", "list", "--server", url.as_str()], "SWITCHBELL_TOKEN holds no token"),
        (
            "swb_x",
            vec!["inbox", "list", "--server", url.as_str(), "--workspace", "acme"],
            "SWITCHBELL_TOKEN (or --token-file): ",
        ),
        ("swb_x", vec!["inbox", "list", "--server", "http://bell.example.com"], "--insecure-http"),
        ("swb_x", vec!["inbox", "list", "--server", "http://127.0.0.1:9"], "http://127.0.0.1:9 cannot be reached"),
        ("swb_x", vec!["inbox", "tail", "--server", "http://127.0.0.1:9"], "cannot be reached"),
        (
            agent.as_str(),
            vec!["inbox", "list", "--server", url.as_str(), "--workspace", "other"],
            "there is no workspace \"other\"",
        ),
        (agent.as_str(), vec!["deliveries", "list", "--server", url.as_str()], "does not allow it"),
        (agent.as_str(), vec!["reload", "--server", url.as_str()], "does not allow it"),
        (agent.as_str(), vec!["plugin", "list", "--server", url.as_str()], "does not allow it"),
    ] {
        let (code, out, error) = elsewhere(secret, &arguments);
        assert_eq!(code, 2, "{arguments:?}: {out}{error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    // What is not there is found out, as it is from the files.
    let (operator, _) = token(&world, &sink, &["operator"]);
    for missing in [["inbox", "show", "9999"], ["deliveries", "show", "00000000-9999"]] {
        let (code, _, error) =
            elsewhere(&operator, &[&missing[..], &["--server", &url, "--workspace", "acme"]].concat());
        assert_eq!(code, 1, "{missing:?}: {error}");
        assert!(error.contains("workspace acme has no "), "{missing:?}: {error}");
    }
    // The token is in no message.
    assert!(!elsewhere("swb_x", &["inbox", "list", "--server", &url]).2.contains("swb_x"));
}

#[tokio::test]
async fn a_tail_prints_each_notification_once_also_when_the_server_was_away() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = Sink::start().await;
    let outbox = python_outbox(folder.path());
    let world = World::new(&sink, &outbox.commands(), &World::stdio_connector());
    let (code, _, error) = run(&world, &sink, &["inbox", "tail"]);
    assert_eq!(code, 2);
    assert!(error.contains("no server runs"), "{error}");

    let mut server = Server::start(&world, &sink);
    server.wait_for("bootstrap=true");
    outbox.add(&["domain.active", "--title", "before"]);
    sink.next().await;
    let mut tail = Server::spawn(command(&world.config(), &sink).args(["inbox", "tail", "--after", "0"]));
    let mut lines = Server::spawn(command(&world.config(), &sink).args(["inbox", "tail", "--after", "0", "--json"]));
    tail.wait_for("SEQ");
    tail.wait_for("before");
    lines.wait_for("\"before\"");
    outbox.add(&["domain.active", "--title", "while it runs"]);
    tail.wait_for("while it runs");
    sink.next().await;
    let (status, _, said) = server.stop(Signal::TERM);
    assert!(status.success(), "{said}");
    tail.wait_for("the server is away");
    outbox.add(&["domain.active", "--title", "while it was away"]);
    let _server = Server::start(&world, &sink);
    tail.wait_for("the server is back");
    tail.wait_for("while it was away");
    lines.wait_for("while it was away");
    let (status, _, said) = tail.stop(Signal::INT);
    assert!(status.success(), "{said}");
    for title in ["before", "while it runs", "while it was away"] {
        assert_eq!(said.matches(title).count(), 1, "{said}");
    }
    let (status, _, said) = lines.stop(Signal::TERM);
    assert!(status.success(), "{said}");
    let seqs: Vec<u64> = said
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64) && seqs.len() >= 3, "{seqs:?}");
}
