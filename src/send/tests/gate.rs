//! New versions of a plugin, before the gate: real components, and deliveries that were really made.

use std::time::Duration;

use tokio::time::Instant;

use super::dry::recorded;
use super::*;
use crate::config::GateMode;
use crate::inbox::Recording;
use crate::send::record::Recorded;
use crate::send::replay::Class;
use crate::send::upgrade::gate::{Candidate, RECORDINGS_MAX, Verdict, examine, examine_until};
use crate::send::upgrade::report::{Report, Standing};
use crate::send::versions::{Compared, compare};
use crate::wasm::Plugin;
use crate::wasm::guests::{puppet_describing, versioned, versioned_with};

async fn loaded(bytes: Vec<u8>) -> Plugin {
    static SANDBOX: OnceCell<Sandbox> = OnceCell::const_new();
    let sandbox = SANDBOX.get_or_init(async || Sandbox::new(Settings::new(Limits::default())).unwrap()).await;
    sandbox.load(bytes).await.unwrap()
}

/// The plugin `versioned` of this version that does what its guest calls by this word.
async fn version(version: &str, behaviour: &str) -> Plugin {
    loaded(versioned("versioned", version, behaviour)).await
}

/// A stand whose only target has these settings, and is delivered to by a plugin `versioned` of this behaviour.
async fn stand(behaviour: &str, settings: impl FnOnce(&str) -> Value) -> Stand {
    let stand = Stand::with("versioned", settings).await;
    let current = stand.means.live.get();
    let catalog = current.catalog.with(version("1.0.0", behaviour).await);
    stand.means.live.set(Current { catalog, ..(*current).clone() });
    stand
}

/// A stand, and the recording of a delivery that was answered with this status.
async fn delivered(behaviour: &str, status: &str) -> (Stand, Recording) {
    let stand = stand(behaviour, |at| json!({"url": format!("{at}/{status}"), "wait": 5})).await;
    let recording = recorded(&stand, &claim()).await.unwrap();
    (stand, recording)
}

/// How the new version compares with the old one by a recording.
async fn compared(recording: &Recording, old: Option<&Plugin>, new: &Plugin) -> Compared {
    compare(Recorded::from_json(&recording.content).unwrap(), old, new).await.unwrap()
}

/// The class alone; none where they are the same.
async fn class(recording: &Recording, old: &Plugin, new: &Plugin) -> Option<Class> {
    match compared(recording, Some(old), new).await {
        Compared::Same => None,
        Compared::Differs { divergence, .. } => Some(divergence.class),
        Compared::Limit => panic!("a limit was passed"),
    }
}

/// What is said of a version, with the recordings that are handed in.
async fn examined(stand: &Stand, new: &Plugin, old: Option<&Plugin>, recordings: &[Recording]) -> Report {
    let current = stand.means.live.get();
    examine(Candidate { new, old, recordings, config: &current.config }).await
}

#[tokio::test]
async fn what_a_version_does_otherwise_is_classed() {
    let (_, plain) = delivered("plain", "200").await;
    let old = version("1.0.0", "plain").await;
    for (behaviour, expected) in [
        ("plain", None),
        ("content", Some(Class::Content)),
        ("target", Some(Class::Target)),
        ("steps", Some(Class::Steps)),
        ("rejects", Some(Class::Steps)),
        ("waits", Some(Class::Steps)),
        ("traps", Some(Class::Failed)),
        ("traps-after", Some(Class::Failed)),
        ("invalid", Some(Class::Failed)),
    ] {
        assert_eq!(class(&plain, &old, &version("1.1.0", behaviour).await).await, expected, "{behaviour}");
    }
    let (_, failed) = delivered("retries", "200").await;
    let (retries, rejects) = (version("1.0.0", "retries").await, version("1.1.0", "rejects").await);
    assert_eq!(class(&failed, &retries, &rejects).await, Some(Class::Outcome));
    let (_, random) = delivered("fickle", "200").await;
    let rebuilt = [("name", "versioned"), ("version", "1.0.0"), ("behaviour", "fickle"), ("repeat", "harmless")];
    let (old, rebuilt) = (version("1.0.0", "fickle").await, loaded(versioned_with(&rebuilt)).await);
    assert_eq!(class(&random, &old, &rebuilt).await, None, "chance is the same for both");
    let (_, waits) = delivered("waits", "200").await;
    let (old, new) = (version("1.0.0", "waits").await, version("1.1.0", "waits").await);
    assert_eq!(class(&waits, &old, &new).await, Some(Class::Content), "it keeps something else while it waits");
}

#[tokio::test]
async fn versions_are_compared_with_each_other_where_neither_does_what_is_recorded() {
    let (_, recording) = delivered("plain", "200").await;
    let (old, rebuilt) = (version("1.1.0", "target").await, version("1.2.0", "target").await);
    assert_eq!(class(&recording, &old, &rebuilt).await, None);
    assert_eq!(class(&recording, &old, &version("1.2.0", "plain").await).await, Some(Class::Target));
    assert_eq!(class(&recording, &old, &version("1.2.0", "traps").await).await, Some(Class::Failed));
    let (steps, plain) = (version("1.1.0", "steps").await, version("1.2.0", "plain").await);
    assert_eq!(class(&recording, &steps, &plain).await, Some(Class::Steps));
    assert_eq!(class(&recording, &steps, &version("1.2.0", "steps").await).await, None);
    // What is said after the second request of its own cannot be compared: there is no answer to it.
    assert_eq!(class(&recording, &version("1.1.0", "rejects").await, &plain).await, Some(Class::Steps));
}

#[tokio::test]
async fn where_the_old_version_fails_the_recording_is_what_counts() {
    let (_, recording) = delivered("plain", "200").await;
    for old in ["traps", "traps-after", "invalid"] {
        let old = version("1.1.0", old).await;
        assert_eq!(class(&recording, &old, &version("1.2.0", "plain").await).await, None);
        let Compared::Differs { divergence, old_failed } =
            compared(&recording, Some(&old), &version("1.2.0", "traps").await).await
        else {
            panic!("both fail")
        };
        assert_eq!((divergence.class, old_failed), (Class::Failed, true));
    }
    let alone = compared(&recording, None, &version("1.2.0", "target").await).await;
    let Compared::Differs { divergence, old_failed: false } = alone else { panic!("{alone:?}") };
    assert_eq!((divergence.class, divergence.step), (Class::Target, 1));
}

#[tokio::test]
async fn what_ends_at_a_limit_tells_nothing() {
    let (stand, recording) = delivered("plain", "200").await;
    let plain = version("1.0.0", "plain").await;
    for behaviour in ["loops", "hogs"] {
        let other = version("1.1.0", behaviour).await;
        assert_eq!(compared(&recording, Some(&plain), &other).await, Compared::Limit, "{behaviour}");
        assert_eq!(compared(&recording, Some(&other), &plain).await, Compared::Limit, "{behaviour}");
    }
    let new = version("1.1.0", "hogs").await;
    let report = examined(&stand, &new, Some(&plain), std::slice::from_ref(&recording)).await;
    assert_eq!((report.replays.at_limits, report.replays.same, report.replays.different.len()), (1, 0, 0));
    assert_eq!(report.verdict(GateMode::Report), Verdict::Pass);
    assert!(matches!(report.verdict(GateMode::Strict), Verdict::Hold(why) if why.contains("each passed a limit")));
}

#[tokio::test]
async fn placeholders_are_compared_by_the_names_of_their_secrets() {
    let stand = stand("plain", |_| json!({"url": {"secret": "hook"}})).await;
    let (first, second) = (claim(), Claim { id: DeliveryId { number: 2, ..claim().id }, ..claim() });
    let recordings = [recorded(&stand, &first).await.unwrap(), recorded(&stand, &second).await.unwrap()];
    let (old, same) = (version("1.0.0", "plain").await, version("1.1.0", "plain").await);
    let report = examined(&stand, &same, Some(&old), &recordings).await;
    assert_eq!((report.replays.same, report.replays.different.len()), (2, 0));
    let elsewhere = version("1.1.0", "target").await;
    let report = examined(&stand, &elsewhere, Some(&old), &recordings).await;
    assert_eq!(report.replays.count(Class::Target), 2, "a path after a URL that is a secret leads elsewhere");
    let shown = report.to_json().to_string() + &report.told();
    assert!(shown.contains("switchbell-secret.hook.0000000000000000/elsewhere"), "{shown}");
    assert!(!shown.contains("value-that-nobody-sees"), "{shown}");
}

#[tokio::test]
async fn a_version_sees_only_what_it_says_it_needs() {
    let stand = Stand::new("memory").await;
    let memory = Some(crate::inbox::Memory { written: written("\"kept\""), version: 1 });
    let recording = recorded(&stand, &Claim { memory, ..claim() }).await.unwrap();
    let old = loaded(guest("scripted")).await;
    let new = loaded(changed(&guest("scripted"), r#""needs":["memory"]"#, r#""needs":[        ]"#)).await;
    let Compared::Differs { divergence, .. } = compared(&recording, Some(&old), &new).await else { panic!("no") };
    assert!(divergence.recorded.contains("kept"), "{divergence:?}");
    assert!(divergence.now.unwrap().contains("none"), "it was shown the memory");
}

#[tokio::test]
async fn a_version_is_judged_by_its_last_deliveries() {
    let (stand, recording) = delivered("plain", "200").await;
    let recordings = [recording];
    let old = version("1.0.0", "plain").await;
    for (behaviour, refused, held) in [
        ("plain", None, None),
        ("content", None, None),
        ("target", None, Some("does something else with 1 recorded delivery")),
        ("steps", None, Some("does something else with 1 recorded delivery")),
        ("rejects", None, Some("does something else")),
        (
            "traps",
            Some("versioned 1.1.0 fails at 1 recorded delivery where 1.0.0 does not: the plugin stopped itself"),
            None,
        ),
        ("refuses", Some("does not take the settings of 1 target that 1.0.0 takes: acme.yaml: routes[0]"), None),
    ] {
        let new = version("1.1.0", behaviour).await;
        let report = examined(&stand, &new, Some(&old), &recordings).await;
        let (lenient, strict) = (report.verdict(GateMode::Report), report.verdict(GateMode::Strict));
        match (refused, held) {
            (Some(refused), _) => {
                assert!(matches!(&lenient, Verdict::Refuse(why) if why.contains(refused)), "{behaviour}: {lenient:?}");
                assert_eq!(lenient, strict, "{behaviour}");
            }
            (None, Some(held)) => {
                assert_eq!(lenient, Verdict::Pass, "{behaviour}");
                assert!(matches!(&strict, Verdict::Hold(why) if why.contains(held)), "{behaviour}: {strict:?}");
            }
            (None, None) => assert_eq!((lenient, strict), (Verdict::Pass, Verdict::Pass), "{behaviour}"),
        }
    }
}

#[tokio::test]
async fn settings_that_the_old_version_refuses_too_do_not_count_against_the_new_one() {
    let (stand, _) = delivered("plain", "200").await;
    let (old, new) = (version("1.0.0", "refuses").await, version("1.1.0", "refuses").await);
    for old in [Some(&old), None] {
        let report = examined(&stand, &new, old, &[]).await;
        assert_eq!((report.settings.targets, report.settings.mistakes.len()), (1, 1));
        assert!(report.settings.mistakes[0].said.contains("routes[0].deliver[0].with.url"), "{report:?}");
        assert_eq!(report.verdict(GateMode::Strict), Verdict::Pass);
    }
    assert_eq!(examined(&stand, &version("1.1.0", "plain").await, Some(&old), &[]).await.settings.mistakes, []);
}

#[tokio::test]
async fn a_version_that_nothing_runs_before_is_never_refused() {
    let (stand, recording) = delivered("plain", "200").await;
    let report = examined(&stand, &version("1.1.0", "traps").await, None, &[recording]).await;
    assert_eq!((report.standing, report.replays.count(Class::Failed)), (Standing::First, 1));
    assert_eq!(report.verdict(GateMode::Report), Verdict::Pass);
    assert!(matches!(report.verdict(GateMode::Strict), Verdict::Hold(_)));
}

#[tokio::test]
async fn a_version_that_does_not_go_forward_is_told() {
    let (stand, recording) = delivered("plain", "200").await;
    for (from, to, behaviour, standing, told) in [
        ("1.2.0", "1.3.0", "plain", Standing::Forward, None),
        ("1.9.0", "1.10.0", "plain", Standing::Forward, None),
        ("1.3.0", "1.2.0", "plain", Standing::Back, Some("version goes back from 1.3.0 to 1.2.0")),
        ("1.0.0", "1.0.0-rc.1", "plain", Standing::Back, Some("version goes back from 1.0.0 to 1.0.0-rc.1")),
        ("1.0.0", "1.0.0", "content", Standing::Rebuilt, Some("version 1.0.0 is another file than the one that runs")),
        ("1.0.0+a", "1.0.0+b", "plain", Standing::Rebuilt, Some("version 1.0.0+b is not newer than 1.0.0+a")),
        ("1.0.0", "1.0.0", "plain", Standing::Identical, None),
    ] {
        let (old, new) = (version(from, "plain").await, version(to, behaviour).await);
        let report = examined(&stand, &new, Some(&old), std::slice::from_ref(&recording)).await;
        assert_eq!((report.standing, report.standing_told().as_deref()), (standing, told), "{from} {to}");
        assert_eq!(report.verdict(GateMode::Report), Verdict::Pass);
        let expected = told.map_or(Verdict::Pass, |told| Verdict::Hold(told.to_owned()));
        assert_eq!(report.verdict(GateMode::Strict), expected);
        assert_eq!(told.is_some_and(|told| report.told().contains(told)), told.is_some(), "{}", report.told());
    }
}

#[tokio::test]
async fn what_it_wants_anew_and_is_not_granted_is_told_and_no_obstacle() {
    let (stand, recording) = delivered("plain", "200").await;
    let describing = async |version: &str, more: &str| {
        let text = format!(r#"{{"name":"versioned","version":"{version}",{more}}}"#);
        loaded(puppet_describing(&text)).await
    };
    let old = describing("1.0.0", r#""wants":{"http":["old.example"]}"#).await;
    let wants = r#""wants":{"http":["old.example","http://127.0.0.1:9","new.example"],"mail":true},"needs":["data"]"#;
    let new = describing("1.1.0", wants).await;
    let report = examined(&stand, &new, Some(&old), &[recording]).await;
    assert_eq!((report.missing.http.as_slice(), report.missing.mail), (&["new.example".to_owned()][..], true));
    assert!(report.reads_data_first);
    let told = report.told();
    assert!(told.contains("wants what is not granted: http: new.example; mail\nreads payloads"), "{told}");
    assert_eq!(report.verdict(GateMode::Strict), Verdict::Pass);
}

#[tokio::test]
async fn an_examination_is_bounded_and_says_what_it_left_out() {
    let (stand, recording) = delivered("plain", "200").await;
    let unreadable = Recording { content: "{}".to_owned(), ..recording.clone() };
    let mut recordings = vec![recording; RECORDINGS_MAX + 5];
    recordings[3] = unreadable;
    let (old, new) = (version("1.0.0", "plain").await, version("1.1.0", "plain").await);
    let report = examined(&stand, &new, Some(&old), &recordings).await;
    assert_eq!((report.replays.same, report.replays.unreadable), (RECORDINGS_MAX - 1, 1));
    let (config, late_at) = (&stand.means.live.get().config, Instant::now() - Duration::from_secs(1));
    let candidate = Candidate { new: &new, old: Some(&old), recordings: &recordings, config };
    let report = examine_until(candidate, late_at).await;
    assert_eq!((report.settings.unchecked, report.replays.not_in_time), (1, RECORDINGS_MAX - 1));
    assert_eq!(report.verdict(GateMode::Report), Verdict::Pass);
    let Verdict::Hold(why) = report.verdict(GateMode::Strict) else { panic!("{report:?}") };
    assert!(why.contains("the settings of 1 target could not be checked in time"), "{why}");
    assert!(why.contains("29 recorded deliveries could not be compared in time"), "{why}");
    assert!(report.told().contains("30 recorded deliveries made again: 29 not compared in time, 1 unreadable"));
}
