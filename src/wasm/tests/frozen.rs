//! Components that were built against earlier versions of the contract, on the host of today (`tests/cases/contract`).

use std::path::{Path, PathBuf};

use super::*;
use crate::wasm::contract::is_patch_of;
use crate::wasm::{Extension, FailureKind, Fault, Mailed, Pause, Reach, Recipient, Request, ToolAnswer};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folders of frozen versions.
fn versions() -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(root().join("tests/cases/contract")).unwrap().map(|entry| entry.unwrap().path());
    let folders = entries.filter(|path| path.is_dir());
    folders.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect()
}

fn frozen(version: &str) -> Vec<u8> {
    std::fs::read(root().join(format!("tests/cases/contract/{version}/plugin.wasm"))).unwrap()
}

async fn plugin(version: &str) -> Plugin {
    sandbox().load(frozen(version)).await.unwrap()
}

/// The component as if it had been built for another version.
fn built_for(version: &str) -> Vec<u8> {
    let (from, to) = (b"switchbell:delivery/", b"@0.1.0");
    let mut bytes = frozen("0.1.0");
    let names: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    assert!(!names.is_empty());
    for name in names {
        let end = name + bytes[name..].iter().position(|byte| *byte == b'@').unwrap();
        if bytes[end..].starts_with(to) {
            bytes[end + 1..end + to.len()].copy_from_slice(version.as_bytes());
        }
    }
    bytes
}

/// The lines of a contract without what is said about them.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    words.filter(|line| !line.is_empty()).collect()
}

/// The version in `package switchbell:delivery@…;`.
fn version_of(wit: &str) -> &str {
    let package = wit.split_once("\npackage switchbell:delivery@").and_then(|(_, rest)| rest.split_once(';'));
    package.map(|(version, _)| version).unwrap()
}

#[test]
fn within_a_line_the_contract_does_not_change() {
    let current = std::fs::read_to_string(root().join("wit/delivery.wit")).unwrap();
    let version = version_of(&current);
    let line = version.rsplit_once('.').unwrap().0;
    let frozen = versions().into_iter().find(|(name, _)| is_patch_of(line, name));
    let Some((name, folder)) = frozen else {
        panic!("no version of line {line} is frozen: tests/cases/contract/README.md says how it is done");
    };
    let frozen = std::fs::read_to_string(folder.join("delivery.wit")).unwrap();
    let unversioned = |words: Vec<String>, version: &str| words.join("\n").replace(&format!("@{version}"), "");
    assert!(
        unversioned(words(&current), version) == unversioned(words(&frozen), version_of(&frozen)),
        "wit/delivery.wit is {version}, but says something else than {name} of tests/cases/contract. Types are closed: \
         plugins that were built before would not load any more. Take the change back, use a key of `extras` or a kind of \
         `extension` instead, or make it a new line of the contract: tests/cases/contract/README.md says how"
    );
}

#[test]
fn what_is_said_about_the_contract_may_change() {
    let text = "/// A remark.\npackage a:b@0.1.0;\n\ninterface types {\n  // Another.\n  type json = string; // here, too\n}\n";
    let same = "package  a:b@0.1.0;\ninterface types {\ntype json = string;\n}";
    assert_eq!(words(text), words(same));
    assert_ne!(words(text), words("package a:b@0.1.0;\ninterface types {\ntype json = u8;\n}"));
}

#[tokio::test]
async fn every_frozen_component_loads_and_checks_settings() {
    assert!(!versions().is_empty());
    for (version, _) in versions() {
        let plugin = plugin(&version).await;
        let manifest = plugin.manifest();
        assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("scripted", "1.0.0"));
        assert!(manifest.needs_memory && !manifest.needs_data);
        assert_eq!(plugin.interface(), format!("switchbell:delivery/plugin@{version}"));
        let destination = plugin.check(r#""@bot,#ops done""#.into()).await.unwrap();
        let keys: Vec<(&str, u32)> = destination.lanes.iter().map(|lane| (&*lane.key, lane.per_seconds)).collect();
        assert_eq!((destination.label.as_str(), keys), ("the script", vec![("bot", 1), ("#ops", 1)]));
        let refused = plugin.check(r#""refuse""#.into()).await.unwrap_err();
        assert_eq!(refused.to_string(), "settings: it is refused");
    }
}

/// A script that asks for everything there is, the answers to it, and what it asks for after each.
fn story() -> (&'static str, Vec<(Answer, Action)>, Action) {
    let fault =
        |reach| Fault { reach, code: "code".into(), message: "words".into(), status: Some(7), after_seconds: Some(9) };
    let response = Response {
        status: 201,
        headers: vec![("a".into(), "b".into())],
        body: b"made".into(),
        truncated: false,
        extras: "{}".into(),
    };
    let recipient = |address: &str, outcome| Recipient { address: address.into(), outcome };
    let recipients =
        vec![recipient("ops@example.com", Ok(())), recipient("two@example.com", Err(fault(Reach::Refused)))];
    let mailed = Mailed { message_id: "<1@example.com>".into(), recipients };
    let tool_answer = ToolAnswer { is_error: false, content: "{}".into(), truncated: true };
    let script = r#""post https://a.example/x|mail|tool-in 500 crm/note key=7|other dance|report""#;
    let request = Request {
        method: "POST".into(),
        url: "https://a.example/x".into(),
        headers: vec![],
        body: b"{}".into(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    };
    let mail = crate::wasm::Message {
        to: vec!["ops@example.com".into()],
        subject: "s".into(),
        text: "t".into(),
        thread: None,
        extras: "{}".into(),
    };
    let call = crate::wasm::ToolCall {
        connector: "crm".into(),
        tool: "note".into(),
        arguments: r#"{"key":7}"#.into(),
        timeout_ms: Some(500),
        extras: "{}".into(),
    };
    let reported = crate::wasm::Failure {
        kind: FailureKind::Reject,
        reason: "Reach::Denied code: words".into(),
        after_seconds: Some(7),
        resume: None,
        extras: "{}".into(),
    };
    let steps = vec![
        (Answer::Http(Ok(response)), Action::Http(request)),
        (Answer::Mail(Ok(mailed)), Action::Mail(mail)),
        (Answer::Tool(Ok(tool_answer)), Action::Tool(call)),
        (
            Answer::Other(Err(fault(Reach::Denied))),
            Action::Other(Extension { kind: "dance".into(), payload: "{}".into() }),
        ),
    ];
    (script, steps, Action::Failed(reported))
}

#[tokio::test]
async fn the_component_of_0_1_0_asks_what_it_always_asked() {
    let plugin = plugin("0.1.0").await;
    let (script, steps, end) = story();
    let mut attempt = plugin.attempt(Delivery { settings: script.into(), ..delivery("") });
    for (answer, expected) in steps {
        assert_eq!(attempt.step().await.unwrap(), expected);
        attempt.answer(Effect { at: "2026-01-02T03:04:07Z".into(), answer });
    }
    assert_eq!(attempt.step().await.unwrap(), end);
}

#[tokio::test]
async fn the_component_of_0_1_0_replays_its_past_in_fresh_instances() {
    let plugin = plugin("0.1.0").await;
    let (script, steps, end) = story();
    for known in 0..=steps.len() {
        let mut attempt = plugin.attempt(Delivery { settings: script.into(), ..delivery("") });
        for (answer, _) in steps.iter().take(known) {
            attempt.answer(Effect { at: "2026-01-02T03:04:07Z".into(), answer: answer.clone() });
        }
        let expected = steps.get(known).map_or(&end, |(_, action)| action);
        assert_eq!(attempt.step().await.as_ref(), Ok(expected), "after {known} effects");
    }
}

#[tokio::test]
async fn the_component_of_0_1_0_waits_remembers_and_goes_on() {
    let plugin = plugin("0.1.0").await;
    let given = |memory: Option<&str>, resume: Option<&str>| Delivery {
        settings: r#""wait 60 1 ; memory ; remember 7 ; digest ; cause""#.into(),
        memory: memory.map(Into::into),
        resume: resume.map(Into::into),
        ..delivery("")
    };
    let mut attempt = plugin.attempt(given(None, None));
    assert_eq!(attempt.step().await, Ok(Action::Wait(Pause { seconds: 60, resume: Some("1".into()) })));
    let note = async |delivery| noted(plugin.attempt(delivery).step().await);
    assert_eq!(note(given(Some(r#"{"thread":1}"#), Some("1"))).await, r#"{"thread":1}"#);
    assert_eq!(note(given(None, Some("3"))).await, "1 and 0");
    assert_eq!(note(given(None, Some("4"))).await, "first 1 0badcafe-1");
    let answer = plugin.attempt(given(None, Some("2"))).step().await;
    let Ok(Action::Done(Receipt { remember: Some(remember), .. })) = answer else { panic!("{answer:?}") };
    assert_eq!(remember, "7");
}

#[tokio::test]
async fn a_component_of_another_line_is_refused_and_one_of_another_patch_is_not() {
    let refused = async |version| sandbox().load(built_for(version)).await.unwrap_err().to_string();
    assert_eq!(
        refused("0.0.9").await,
        "exports switchbell:delivery/plugin@0.0.9, not switchbell:delivery/plugin@0.1.0: it was built for an older \
         contract, 0.0.9, and this host speaks 0.1; build it again, against this host's wit/delivery.wit"
    );
    assert_eq!(
        refused("0.2.0").await,
        "exports switchbell:delivery/plugin@0.2.0, not switchbell:delivery/plugin@0.1.0: it was built for a newer \
         contract, 0.2.0, and this host speaks 0.1; update this host, or build it against this host's wit/delivery.wit"
    );
    assert_eq!(sandbox().load(built_for("0.1.9")).await.unwrap().interface(), "switchbell:delivery/plugin@0.1.9");
}
