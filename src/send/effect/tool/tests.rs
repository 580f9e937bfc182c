//! The guard of tools, and what a plugin is told of a call.

use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::config::{Grant, Secret, SecretPlace, ToolGrant};
use crate::send::effect::secret::{Occasion, Sealed, seal};
use crate::send::keys::Keys;

const SECRET: &str = "s3cret-token-of-a-bot";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn secrets() -> BTreeMap<Name, Secret> {
    BTreeMap::from([(name("bot"), Secret::new(SECRET.to_owned(), SecretPlace::Path))])
}

fn sealed(secrets: &BTreeMap<Name, Secret>) -> Sealed<'_> {
    let occasion = Occasion { keys: &Keys::new(&[7; 32]), delivery: "0badcafe-1", attempt: 1 };
    seal(&json!({"secret": "bot"}), secrets, occasion).unwrap()
}

fn grant() -> Grant {
    let tool = |tool: &str| ToolGrant { workspace: name("acme"), connector: name("registrar"), tool: tool.to_owned() };
    let elsewhere = ToolGrant { workspace: name("globex"), ..tool("close") };
    Grant { tools: vec![tool("restart"), tool("gone\"s"), elsewhere], ..Grant::default() }
}

fn call(arguments: &str) -> ToolCall {
    ToolCall {
        connector: "registrar".to_owned(),
        tool: "restart".to_owned(),
        arguments: arguments.to_owned(),
        timeout_ms: None,
        extras: "{}".to_owned(),
    }
}

/// What becomes of a call in `acme`, which has the one connector `registrar`.
fn judged(call: &ToolCall, grant: &Grant) -> Result<AllowedCall, Fault> {
    let secrets = secrets();
    let sealed = sealed(&secrets);
    with_permission(grant, &sealed, |permission| judge(call, permission, |name| name.as_str() == "registrar"))
}

fn with_permission<T>(grant: &Grant, sealed: &Sealed<'_>, then: impl FnOnce(&Permission<'_>) -> T) -> T {
    then(&Permission {
        plugin: &name("agent-run"),
        workspace: &name("acme"),
        route: &name("news"),
        grant,
        seals: &sealed.seals,
        delivery: "0badcafe-1",
        due_at: Timestamp::UNIX_EPOCH,
        on_behalf_of: "admin@example.com",
    })
}

fn check(call: ToolCall, code: &str, says: &str) {
    let fault = judged(&call, &grant()).unwrap_err();
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Denied, code), "{call:?}");
    assert!(fault.message.contains(says), "{:?} does not say {says:?}", fault.message);
}

#[test]
fn what_is_granted_is_called_as_it_was_asked_for() {
    let allowed = judged(&call(r#"{"domain": "a.example", "n": 1.50}"#), &grant()).unwrap();
    assert_eq!((allowed.connector.as_str(), allowed.tool.as_str()), ("registrar", "restart"));
    assert_eq!(Value::Object(allowed.arguments), json!({"domain": "a.example", "n": 1.50}));
    assert_eq!(allowed.time_max, TIME_MAX);
    for (asked, expected) in [(5, 5), (60_000, 60_000), (60_001, 60_000), (u32::MAX, 60_000)] {
        let asked = ToolCall { timeout_ms: Some(asked), ..call("{}") };
        assert_eq!(judged(&asked, &grant()).unwrap().time_max, Duration::from_millis(expected));
    }
}

#[test]
fn what_is_not_granted_is_refused_with_the_line_to_add() {
    let add = r#"add "acme:registrar/close" in switchbell.yaml to plugins.grants.agent-run.tools"#;
    check(ToolCall { tool: "close".to_owned(), ..call("{}") }, "not-granted", add);
    check(ToolCall { tool: "Restart".to_owned(), ..call("{}") }, "not-granted", r#""acme:registrar/Restart""#);
    check(ToolCall { tool: "a\"b".to_owned(), ..call("{}") }, "not-granted", r#"add "acme:registrar/a\"b" in"#);
    assert!(judged(&ToolCall { tool: "gone\"s".to_owned(), ..call("{}") }, &grant()).is_ok());
    let nothing = judged(&call("{}"), &Grant::default()).unwrap_err();
    assert!(nothing.message.contains(r#"add "acme:registrar/restart""#), "{}", nothing.message);
}

#[test]
fn a_grant_for_other_workspaces_is_none_for_this_one() {
    let others = Grant { workspaces: vec![name("globex")], ..grant() };
    let fault = judged(&call("{}"), &others).unwrap_err();
    assert_eq!(fault.code, "not-granted");
    assert!(fault.message.contains("add acme in switchbell.yaml to plugins.grants.agent-run.workspaces"), "{fault:?}");
    let both = Grant { workspaces: vec![name("globex"), name("acme")], ..grant() };
    assert!(judged(&call("{}"), &both).is_ok());
}

#[test]
fn a_connector_that_the_workspace_has_not_is_said_to_be_missing() {
    let other = |connector: &str| ToolCall { connector: connector.to_owned(), ..call("{}") };
    check(other("crm"), "no-connector", "workspace acme has no connector crm");
    check(other("Not a name"), "connector", "tool.connector: a name is");
    check(other(""), "connector", "tool.connector: a name is");
}

#[test]
fn the_name_of_a_tool_has_its_bounds() {
    let named = |tool: String| ToolCall { tool, ..call("{}") };
    check(named(String::new()), "tool", "tool.tool has 0 bytes");
    check(named("x".repeat(TOOL_BYTES_MAX + 1)), "tool", "tool.tool has 257 bytes; a tool's name has 1 to 256");
    check(named("x".repeat(TOOL_BYTES_MAX)), "not-granted", "xxx");
}

#[test]
fn arguments_are_an_object_of_bounded_size() {
    check(call("[]"), "arguments", "no JSON object");
    check(call("{"), "arguments", "no JSON object (EOF");
    let sized = |bytes: usize| call(&format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8)));
    assert!(judged(&sized(ARGUMENTS_BYTES_MAX), &grant()).is_ok());
    check(sized(ARGUMENTS_BYTES_MAX + 1), "arguments-too-large", "has 262145 bytes; at most 262144");
}

#[test]
fn a_placeholder_stands_nowhere_in_a_call() {
    let secrets = secrets();
    let sealed = sealed(&secrets);
    let placeholder = sealed.settings.trim_matches('"');
    let escaped = placeholder.replacen('-', "\\u002d", 1);
    let places = [
        ("connector", ToolCall { connector: placeholder.to_owned(), ..call("{}") }),
        ("tool", ToolCall { tool: format!("x{placeholder}"), ..call("{}") }),
        ("arguments", call(&format!(r#"{{"a":["x {placeholder}"]}}"#))),
        ("arguments", call(&format!(r#"{{"{placeholder}":1}}"#))),
        ("arguments", call(&format!(r#"{{"a":"{escaped}"}}"#))),
        ("extras", ToolCall { extras: format!(r#"{{"a":"{placeholder}"}}"#), ..call("{}") }),
    ];
    for (place, call) in places {
        check(
            call,
            "secret-place",
            &format!("secret bot may not stand in the call of a tool, but does in tool.{place}"),
        );
    }
}

/// Answers every call in one way.
#[derive(Debug)]
struct Answering(Result<Said, Trouble>, Mutex<Vec<String>>);

impl Tools for Answering {
    fn has(&self, workspace: &Name, connector: &Name) -> bool {
        (workspace.as_str(), connector.as_str()) == ("acme", "registrar")
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Said, Trouble>> {
        let Call { workspace, connector, tool, on_behalf_of, delivery, .. } = call;
        self.1.lock().unwrap().push(format!("{workspace} {connector} {tool} {on_behalf_of} {delivery}"));
        std::future::ready(self.0.clone()).boxed()
    }
}

async fn performed(came: Result<Said, Trouble>, call: &ToolCall) -> (Result<ToolAnswer, Fault>, Vec<String>) {
    let (secrets, tools) = (secrets(), Answering(came, Mutex::default()));
    let (sealed, grant, plugin, workspace) = (sealed(&secrets), grant(), name("agent-run"), name("acme"));
    let permission = Permission {
        plugin: &plugin,
        workspace: &workspace,
        route: &workspace,
        grant: &grant,
        seals: &sealed.seals,
        delivery: "0badcafe-1",
        due_at: Timestamp::UNIX_EPOCH,
        on_behalf_of: "admin@example.com",
    };
    let answer = perform(&tools, call, &permission).await;
    (answer, tools.1.into_inner().unwrap())
}

fn said(text: &str) -> Said {
    let Value::Object(content) = json!({"content": [{"type": "text", "text": text}]}) else { unreachable!() };
    Said { is_error: false, content }
}

#[tokio::test]
async fn a_call_says_for_whom_it_is_made_and_what_is_denied_is_not_made() {
    let (answer, asked) = performed(Ok(said("done")), &call("{}")).await;
    let content = r#"{"content":[{"text":"done","type":"text"}]}"#;
    let answer = answer.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&answer.content).unwrap(),
        serde_json::from_str::<Value>(content).unwrap()
    );
    assert!(!answer.is_error && !answer.truncated);
    assert_eq!(asked, ["acme registrar restart admin@example.com 0badcafe-1"]);
    let (answer, asked) = performed(Ok(said("done")), &ToolCall { tool: "close".to_owned(), ..call("{}") }).await;
    assert_eq!((answer.unwrap_err().reach, asked.len()), (Reach::Denied, 0));
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_left_out_and_still_an_answer() {
    let around = json!({"content": [{"type": "text", "text": ""}]}).to_string().len();
    for (bytes, truncated) in [(CONTENT_BYTES_MAX, false), (CONTENT_BYTES_MAX + 1, true)] {
        let large = Said { is_error: true, ..said(&"x".repeat(bytes - around)) };
        let answer = performed(Ok(large), &call("{}")).await.0.unwrap();
        assert_eq!(
            (answer.is_error, answer.truncated, answer.content == "{}"),
            (true, truncated, truncated),
            "{bytes}"
        );
    }
}

#[tokio::test]
async fn trouble_is_told_with_how_far_the_call_got() {
    for (stage, reach) in
        [(Stage::Unsent, Reach::Unsent), (Stage::Refused, Reach::Refused), (Stage::Unanswered, Reach::Unanswered)]
    {
        let (code, message) = ("http-429".to_owned(), "asked too often".to_owned());
        let retry_after = Some(Duration::from_millis(1_001));
        let trouble = Trouble { stage, code, message, status: Some(429), retry_after };
        let fault = performed(Err(trouble), &call("{}")).await.0.unwrap_err();
        assert_eq!((fault.reach, fault.code.as_str(), fault.status), (reach, "http-429", Some(429)));
        assert_eq!((fault.message.as_str(), fault.after_seconds), ("asked too often", Some(2)));
    }
}
