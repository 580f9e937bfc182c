//! The guest of any version does what its words say, so that what is tested with it is what it seems.

use super::*;
use crate::wasm::guests::{versioned, versioned_with};
use crate::wasm::{CheckError, LimitKind, LoadError, Repeat, Request};

const SETTINGS: &str = r#"{"url":"http://127.0.0.1:9/hook","wait":7}"#;

async fn version(behaviour: &str) -> Plugin {
    sandbox().load(versioned("pager", "1.2.3", behaviour)).await.unwrap()
}

async fn begun(behaviour: &str) -> Attempt {
    version(behaviour).await.attempt(Delivery { settings: SETTINGS.into(), ..delivery("") })
}

/// What it asks for, in this attempt, when every request is answered by 200.
async fn asked(mut attempt: Attempt) -> Vec<String> {
    let mut asked = Vec::new();
    loop {
        let (text, answer) = match attempt.step().await {
            Ok(Action::Http(Request { url, body, .. })) => {
                (format!("{url} {}", String::from_utf8(body).unwrap()), Some(http(200, "")))
            }
            Ok(Action::Wait(pause)) => (format!("wait {} {:?}", pause.seconds, pause.resume), None),
            Ok(Action::Done(receipt)) => (format!("done {:?}", receipt.remember), None),
            Ok(Action::Failed(failure)) => (format!("{:?} {}", failure.kind, failure.reason), None),
            Ok(other) => panic!("{other:?}"),
            Err(StepFault::Trap { .. }) => ("trap".into(), None),
            Err(StepFault::Limit { which, .. }) => (which.to_string(), None),
            Err(StepFault::Invalid { .. }) => ("invalid".into(), None),
            Err(fault) => panic!("{fault}"),
        };
        asked.push(text);
        match answer {
            Some(answer) => attempt.answer(answer),
            None => return asked,
        }
    }
}

#[tokio::test]
async fn a_version_is_made_by_writing_into_the_file() {
    let name = "a".repeat(63);
    let version = "10.20.30-rc.1+build";
    let fields = [("name", name.as_str()), ("version", version), ("repeat", "harmful")];
    let plugin = sandbox().load(versioned_with(&fields)).await.unwrap();
    let manifest = plugin.manifest();
    assert_eq!(
        (manifest.name.as_str(), manifest.version.as_str(), manifest.repeat),
        (&*name, version, Repeat::Harmful)
    );
    assert!(!manifest.needs_memory && self::version("remembers").await.manifest().needs_memory);
    assert_ne!(plugin.digest(), self::version("plain").await.digest());
}

#[tokio::test]
async fn each_behaviour_asks_for_what_it_says() {
    let (url, title) = ("http://127.0.0.1:9/hook", "a.example is active");
    for (behaviour, expected) in [
        ("plain", vec![format!("{url} {title}"), "done None".into()]),
        ("content", vec![format!("{url} {title}\n1.2.3"), "done None".into()]),
        ("target", vec![format!("{url}/elsewhere {title}"), "done None".into()]),
        ("steps", vec![format!("{url} {title}"), format!("{url}/second {title}"), "done None".into()]),
        ("rejects", vec!["FailureKind::Reject this version rejects".into()]),
        ("retries", vec!["FailureKind::Retry this version retries".into()]),
        ("traps", vec!["trap".into()]),
        ("traps-after", vec![format!("{url} {title}"), "trap".into()]),
        ("loops", vec![LimitKind::Cpu.to_string()]),
        ("hogs", vec![LimitKind::Memory.to_string()]),
        ("invalid", vec!["invalid".into()]),
        ("waits", vec![format!("{url} {title}"), r#"wait 7 Some("{\"version\":\"1.2.3\"}")"#.into()]),
        (
            "remembers",
            vec![format!("{url} {title}\n1.2.3 remembers nothing"), r#"done Some("{\"version\":\"1.2.3\"}")"#.into()],
        ),
        ("juggles", vec!["FailureKind::Reject no such behaviour: juggles".into()]),
    ] {
        assert_eq!(asked(begun(behaviour).await).await, expected, "{behaviour}");
    }
}

#[tokio::test]
async fn after_its_wait_it_tells_who_left_what() {
    let mut attempt = begun("waits").await;
    let resume = Some(r#"{"version":"0.9.0"}"#.to_owned());
    attempt.answer(Effect { at: "2026-01-02T03:04:07Z".into(), answer: Answer::Resumed(resume) });
    let expected = r#"http://127.0.0.1:9/hook/after a.example is active
1.2.3 resumes {"version":"0.9.0"}"#;
    assert_eq!(asked(attempt).await, [expected, "done None"]);
}

#[tokio::test]
async fn it_differs_by_given_randomness_alone() {
    let plugin = version("fickle").await;
    let told = async |id: &str| {
        asked(plugin.attempt(Delivery { id: id.into(), settings: SETTINGS.into(), ..delivery("") })).await
    };
    assert_eq!(told("0badcafe-1").await, told("0badcafe-1").await);
    assert_ne!(told("0badcafe-1").await, told("0badcafe-2").await);
}

#[tokio::test]
async fn a_version_may_fail_before_any_delivery() {
    for (behaviour, expected) in [("describe-traps", "stopped itself"), ("describe-loops", "CPU time limit")] {
        let refused = sandbox().load(versioned("pager", "1.2.3", behaviour)).await.unwrap_err();
        assert!(matches!(&refused, LoadError::Describe(fault) if fault.to_string().contains(expected)), "{refused}");
    }
    let (refuses, plain) = (version("refuses").await, version("plain").await);
    assert!(matches!(refuses.check(SETTINGS.into()).await, Err(CheckError::Problems(_))));
    assert!(matches!(plain.check("{}".into()).await, Err(CheckError::Problems(_))));
    assert_eq!(plain.check(SETTINGS.into()).await.unwrap().label, "http://127.0.0.1:9/hook");
}
