//! `switchbell push check`: the fixture and our own server keep every rule, and what cannot be checked is told.

use std::process::Output;
use std::time::Duration;

use futures_util::FutureExt as _;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::Value;
use switchbell::clock::Clock;
use switchbell::fetch::conformance::Verdict;
use switchbell::fetch::conformance::push::{Asked, check as check_server};
use tokio::process::Command;

use super::conformance_stage::{Side, Which};

/// The command, with these arguments: its exit code, what it prints, and what it says.
async fn check(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.args(["push", "check"]).args(arguments).env("CHECK_TOKEN", "a-token").env("CHECK_WRONG", "a\nb");
    let Output { status, stdout, stderr } = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

/// A command for the shell that makes two events happen for a token.
fn emitting(url: &str, token: &str) -> String {
    let url = url.replace("/mcp", "/emit");
    let once =
        format!("fetch('{url}', {{ method: 'POST', headers: {{ authorization: 'Bearer {token}' }}, body: '{{}}' }})");
    format!("node -e \"{once}.then(() => {once})\"")
}

/// The ids of the rules with this verdict.
fn ids<'a>(report: &'a Value, verdict: &str) -> Vec<&'a str> {
    let rules = report["rules"].as_array().unwrap();
    rules.iter().filter(|rule| rule["verdict"] == verdict).map(|rule| rule["id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fixture_keeps_every_rule() {
    let side = Side::start(Which::Fixture).await;
    let trigger = emitting(&side.url, "anonymous");
    let (code, out, error) = check(&["--json", "--ack", "--trigger", &trigger, "--url", &side.url]).await;
    let report: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("no JSON: {out}{error}"));
    assert_eq!((ids(&report, "broken"), ids(&report, "warning")), (vec![], vec![]), "{report:#}");
    assert_eq!(ids(&report, "not_seen"), ["consumer.checked", "listen.alive"], "{report:#}");
    assert_eq!((code, &report["couldNotRun"], report["events"].as_u64()), (0, &Value::Null, Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_nobody_was_given_is_a_warning_where_it_is_let_in() {
    let side = Side::start(Which::Fixture).await;
    let trigger = emitting(&side.url, "a-token");
    let url = format!("{}?key=secret", side.url);
    let arguments = ["--bearer-env", "CHECK_TOKEN", "--trigger", &trigger, "--url", &url];
    let (code, out, error) = check(&arguments).await;
    assert_eq!(code, 0, "{out}{error}");
    for text in [
        "/mcp\n\n",
        "kept     ack.unknown            it succeeds\n",
        "warning  consumer.checked       MUST\n    rule    Servers MUST apply the same",
        "seen    get takes a token that nobody was given\n",
        "not seen ack.excludes           needs --ack and a pending event\n",
        "No MUST that was seen is broken.\n",
    ] {
        assert!(out.contains(text), "{text:?} is not in: {out}");
    }
    assert!(!out.contains("secret") && !out.contains("a-token"), "{out}");
    let wide: Vec<_> = out.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    // What was not to be acknowledged is still there.
    let (_, out, _) = check(&["--json", "--bearer-env", "CHECK_TOKEN", "--url", &url]).await;
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["events"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn our_server_keeps_every_rule() {
    let side = Side::start(Which::Ours).await;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, format!("Bearer {}", side.token(0)).parse().unwrap())]);
    let url = side.url.parse().unwrap();
    let happen = async {
        side.emit_all(0, &["one", "two", "three"]).await;
        Ok(())
    };
    let asked = Asked {
        url: &url,
        headers: &headers,
        timeout: Duration::from_secs(30),
        wait: Duration::from_secs(30),
        trigger: Some(happen.boxed()),
        ack: true,
        keep_alive: Some(Duration::from_secs(60)),
    };
    let report = check_server(asked, &Clock::system()).await;
    let not_kept: Vec<_> = report.findings.iter().filter(|finding| finding.verdict != Verdict::Pass).collect();
    assert!(not_kept.is_empty(), "{not_kept:#?}");
    assert_eq!((report.events, report.could_not_run), (3, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_server_of_the_extension_breaks_its_rules() {
    let side = Side::start(Which::Fixture).await;
    // It has nothing there.
    let (code, out, _) = check(&["--json", "--url", &side.url.replace("/mcp", "/drop")]).await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, ids(&report, "broken")), (2, vec!["connection"]), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_checked_is_told_with_the_remedy() {
    async fn says(arguments: &[&str], words: &str) {
        let (code, out, error) = check(arguments).await;
        assert_eq!(code, 2, "{arguments:?}: {out}{error}");
        let told = format!("{out}{error}").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(words), "{arguments:?}: {told}");
    }
    let url = "http://127.0.0.1:1/mcp";
    says(&[], "--url").await;
    says(&["--url", url], "The check could not be made: see above.").await;
    says(&["--url", "ftp://127.0.0.1/"], "it must be http or https").await;
    says(&["--url", "https://name:word@a.example/mcp"], "--bearer-env").await;
    says(&["--url", url, "--bearer-env", "CHECK_NONE"], "CHECK_NONE is not set").await;
    says(&["--url", url, "--bearer-env", "CHECK_WRONG"], "cannot stand in a header").await;
    says(&["--url", url, "--header-env", "x-key"], "give HEADER=VARIABLE").await;
    says(&["--url", url, "--wait", "5"], "write `5s`").await;
    says(&["--url", url, "--timeout", "0s"], "more than none").await;
    let ours = Side::start(Which::Ours).await;
    says(&["--url", &ours.url], "give the token with --bearer-env NAME").await;
    let fixture = Side::start(Which::Fixture).await;
    says(&["--url", &fixture.url, "--trigger", "exit 3"], "exit status: 3").await;
}
