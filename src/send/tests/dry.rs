//! Attempts that do nothing: previews, recordings and replays.

use std::time::Duration;

use super::*;
use crate::inbox::delivery::Outcome;
use crate::inbox::{RECORDING_BYTES_MAX, Recording};
use crate::send::attempt::Watch;
use crate::send::dry::sampling::Samples;
use crate::send::preview::{Answers, End, Previewed, Previewer, Step, Supposed};
use crate::send::record::{Recorded, answer_from_json};
use crate::send::replay::{Class, Divergence, Replayed, replay};
use crate::send::upgrade::probation::Probation;
use crate::wasm::Plugin;

/// Makes an attempt and records it, unless it is not to be recorded.
pub(super) async fn recorded(stand: &Stand, claim: &Claim) -> Option<Recording> {
    let (began, stop, samples) = (in_milliseconds(stand.clock.now()), Stop::default(), Samples::default());
    let began = claim.begun.as_ref().map_or(began, |begun| begun.started_at);
    let probation = Probation::new(stand.clock.clone());
    let watch = Watch { samples: &samples, probation: &probation };
    let (came, seen) = stand.means.watched(claim, began, &stop, watch).await;
    let outcome = match came {
        Came::Ended(ended) => Some(ended.outcome),
        Came::Rests(_) => None,
        Came::Left => panic!("it was cut off"),
    };
    seen.sampled?.recording(claim, outcome, stand.clock.now()).await
}

async fn plugin(name: &str) -> Plugin {
    catalog().await.get(&name.parse().unwrap()).unwrap()
}

/// What is recorded of a script is the same when it is made again.
async fn check_same(plugin_name: &str, script: &str) {
    let stand = Stand::with(plugin_name, |at| json!(script.replace("AT", at))).await;
    let recording = recorded(&stand, &claim()).await.unwrap_or_else(|| panic!("{script} is not recorded"));
    let replayed = replay(&recording, &plugin(plugin_name).await).await.unwrap();
    assert_eq!(replayed, Replayed::Same, "{script}: {}", recording.content);
}

#[tokio::test]
async fn what_was_recorded_is_the_same_when_it_is_made_again() {
    for script in [
        "done well",
        "retry later",
        "reject never",
        "reconnect the token",
        "unknown who knows",
        "post AT/200|done 2",
        "post AT/404|post AT/200|done 3",
        "send AT/200|judge",
        "send AT/503|judge",
        "post http://127.0.0.1:9/|report",
        "post https://other.example/|report",
        "mail|report",
        "tool|report",
        "other telepathy|report",
        "wait 60 1 ; done",
        "post AT/200|wait 60 1 ; done",
        "carry-on 3",
        "remember 7",
        "memory",
        "told",
        "cause",
        "digest",
    ] {
        check_same("scripted", script).await;
    }
}

#[tokio::test]
async fn whatever_a_plugin_does_within_its_rights_is_the_same_when_it_is_made_again() {
    for behaviour in [
        "deliver",
        "count",
        "wait",
        "environment",
        "stdin",
        "time",
        "random",
        "much-random",
        "hash",
        "flood",
        "allocate-politely",
        "long-reason",
        "unheard-of",
    ] {
        check_same("puppet", behaviour).await;
    }
}

#[tokio::test]
async fn a_plugin_at_fault_is_not_recorded() {
    for (name, script) in [("scripted", "trap"), ("scripted", "post AT/200"), ("puppet", "loop"), ("puppet", "recurse")]
    {
        let stand = Stand::with(name, |at| json!(script.replace("AT", at))).await;
        assert!(recorded(&stand, &claim()).await.is_none(), "{script}");
    }
}

#[tokio::test]
async fn what_is_recorded_holds_stand_ins_and_no_secret() {
    let settings = |at: &str| json!({"script": format!("post {at}/200|done"), "hook": {"secret": "hook"}});
    let stand = Stand::with("scripted", settings).await;
    let recording = recorded(&stand, &claim()).await.unwrap();
    assert!(recording.content.contains("switchbell-secret.hook.0000000000000000"), "{}", recording.content);
    assert!(!recording.content.contains("value-that-nobody-sees"), "{}", recording.content);
    // The settings are the placeholder alone, and what it does not know is the plugin's note.
    let stand = Stand::with("scripted", |_| json!({"secret": "hook"})).await;
    let recording = recorded(&stand, &claim()).await.unwrap();
    let note = r#""end":{"done":{"note":"switchbell-secret.hook.0000000000000000"}}"#;
    assert!(recording.content.contains(note), "{}", recording.content);
    assert_eq!(replay(&recording, &plugin("scripted").await).await.unwrap(), Replayed::Same);
}

#[tokio::test]
async fn the_part_of_an_attempt_behind_a_wait_is_recorded_with_what_it_resumed() {
    let stand = Stand::new("wait 60 1 ; post AT/200|told").await;
    let rest = stand.rests(&claim(), &Stop::default()).await;
    stand.clock.advance(Duration::from_secs(60));
    stand
        .means
        .inbox
        .pause(crate::inbox::Paused {
            kept: rest.kept,
            until: rest.until,
            is_wait: true,
            resume: rest.resume,
            lanes: Vec::new(),
        })
        .await
        .unwrap();
    let again = stand.store.reopened(&claim());
    stand.clock.advance(Duration::from_secs(5));
    let recording = recorded(&stand, &again).await.unwrap();
    assert_eq!(recording.outcome, Some(Outcome::Delivered));
    assert!(recording.content.contains(r#""answer":{"resumed":{"resume":1}}"#), "{}", recording.content);
    assert_eq!(replay(&recording, &plugin("scripted").await).await.unwrap(), Replayed::Same);
}

#[tokio::test]
async fn what_is_too_large_is_not_recorded() {
    let stand = Stand::new("post AT/large|done").await;
    assert!(recorded(&stand, &claim()).await.is_none());
    let long = "x".repeat(RECORDING_BYTES_MAX);
    let mut big = claim();
    big.notifications[0].event.title = long;
    assert!(recorded(&Stand::new("done").await, &big).await.is_none());
}

#[tokio::test]
async fn one_end_of_each_outcome_is_recorded_in_a_second() {
    let stand = Stand::new("done").await;
    let samples = Samples::default();
    let ended = Came::Ended(stand.ended(&claim()).await);
    let other = Came::Ended(Stand::new("reject x").await.ended(&claim()).await);
    let at = |milliseconds: u64| crate::clock::later(start(), Duration::from_millis(milliseconds));
    let taken = |plugin: &str, came: &Came, milliseconds| samples.take(&name(plugin), came, at(milliseconds));
    assert!(taken("one", &ended, 0));
    assert!(!taken("one", &ended, 999));
    assert!(taken("one", &other, 999));
    assert!(taken("two", &ended, 999));
    assert!(taken("one", &ended, 1_000));
    assert!(samples.take(&name("one"), &ended, Timestamp::UNIX_EPOCH), "a clock that was set back");
    assert!(!samples.take(&name("one"), &Came::Left, at(9_000)));
}

#[tokio::test]
async fn an_attempt_is_recorded_once_its_end_is_durable() {
    let (stand, stop) = (Stand::new("post AT/200|done well").await, Stop::default());
    let dispatcher = dispatcher(&stand.means).await;
    let running = tokio::spawn(dispatcher.run(stop.clone()));
    stand.store.hand_out(claim());
    stand.store.until(|store| store.recordings() == 1).await;
    assert_eq!(stand.store.finished().len(), 1);
    let recording = stand.means.inbox.recordings(&name("scripted")).await.unwrap().remove(0);
    assert_eq!((recording.seqs, recording.outcome), (vec![1], Some(Outcome::Delivered)));
    assert_eq!((recording.plugin_version.as_str(), recording.attempt), ("1.0.0", NonZeroU32::MIN));
    stop.soon.cancel();
    running.await.unwrap();
}

/// A recording of one script, made again with another: as if a new version of the plugin did otherwise.
async fn diverged(script: &str, otherwise: &str) -> Divergence {
    let stand = Stand::new(script).await;
    let recording = recorded(&stand, &claim()).await.unwrap();
    let mut changed = Recorded::from_json(&recording.content).unwrap();
    changed.delivery.settings = json!(otherwise.replace("AT", &format!("http://{}", stand.sink.address))).to_string();
    let recording = Recording { content: changed.to_json(), ..recording };
    match replay(&recording, &plugin("scripted").await).await.unwrap() {
        Replayed::Diverged(divergence) => divergence,
        Replayed::Same => panic!("{script} and {otherwise} are the same"),
    }
}

#[tokio::test]
async fn a_plugin_that_does_otherwise_is_found_at_its_first_divergence() {
    for (otherwise, class, step) in [
        ("post AT/200|done other", Class::Content, 2),
        ("post AT/200/elsewhere|done well", Class::Target, 1),
        ("mail|done well", Class::Target, 1),
        ("done well", Class::Steps, 1),
        ("wait 60", Class::Steps, 1),
        ("post AT/200|post AT/200|done well", Class::Steps, 2),
        ("post AT/200|reject well", Class::Outcome, 2),
        ("post AT/200|trap", Class::Failed, 2),
        ("trap", Class::Failed, 1),
    ] {
        let found = diverged("post AT/200|done well", otherwise).await;
        assert_eq!((found.class, found.step, found.is_limit), (class, step, false), "{otherwise}: {found:?}");
        assert_eq!(found.now.is_none(), class == Class::Failed, "{found:?}");
        assert_eq!(found.reason.is_some(), class == Class::Failed, "{found:?}");
    }
    let found = diverged("reject x", "retry x").await;
    assert_eq!((found.class, found.recorded.contains("reject")), (Class::Outcome, true));
}

#[tokio::test]
async fn another_component_of_the_same_name_is_compared_by_what_it_asks_for() {
    let changed = changed(&guest("scripted"), "ops@example.com", "dev@example.com");
    let sandbox = Sandbox::new(Settings::new(Limits::default())).unwrap();
    let changed = sandbox.load(changed).await.unwrap();
    let check = async |script: &str, expected: Option<Class>| {
        let recording = recorded(&Stand::new(script).await, &claim()).await.unwrap();
        let class = match replay(&recording, &changed).await.unwrap() {
            Replayed::Same => None,
            Replayed::Diverged(divergence) => Some(divergence.class),
        };
        assert_eq!(class, expected, "{script}");
    };
    check("mail|report", Some(Class::Target)).await;
    check("post AT/200|done", None).await;
}

#[tokio::test]
async fn what_is_no_recording_is_refused() {
    let recording = recorded(&Stand::new("done").await, &claim()).await.unwrap();
    let plugin = plugin("scripted").await;
    let spoiled = recording.content.replace(r#""attempt":1"#, r#""attempt":0"#);
    for content in ["", "{}", &spoiled] {
        let recording = Recording { content: content.to_owned(), ..recording.clone() };
        assert!(replay(&recording, &plugin).await.is_err(), "{content}");
    }
}

/// What the one target of a stand would do.
async fn previewed(stand: &Stand, answers: &[&str]) -> Previewed {
    let answers = answers.iter().map(|answer| answer_from_json(answer).unwrap()).collect();
    previewed_with(stand, Answers::These(answers)).await
}

async fn previewed_with(stand: &Stand, answers: Answers) -> Previewed {
    let Current { config, catalog, .. } = &*stand.means.live.get();
    let route = &config.workspaces[&name("acme")].routes[0];
    let effects = &stand.means.effects;
    let previewer = Previewer { config, catalog, effects, keys: &Keys::of_nothing() };
    let Claim { id, due_at, mut notifications, .. } = claim();
    let (target, notification, now) = (&route.deliver[0], notifications.remove(0), stand.clock.now());
    previewer.preview(Supposed { route, target, notification, id, due_at, now, answers }).await
}

/// The actions of the effects, as JSON.
fn actions(previewed: &Previewed) -> Vec<Value> {
    let json = |step: &Step| match step {
        Step::Effect(asked) => serde_json::from_str(&asked.action).unwrap(),
        Step::Wait(wait) => serde_json::from_str(wait).unwrap(),
    };
    previewed.steps.iter().map(json).collect()
}

const OK: &str = r#"{"http":{"ok":{"status":200}}}"#;

#[tokio::test]
async fn a_preview_shows_what_an_attempt_then_sends_and_sends_nothing() {
    let stand = Stand::new("send AT/200/one|post AT/200/two?x=1|done well").await;
    let shown = previewed(&stand, &[OK, OK]).await;
    assert!(stand.sink.requests().is_empty(), "a preview reached somebody");
    assert_eq!((shown.outcome, shown.reason.as_deref()), (Some(Outcome::Delivered), Some("done well")));
    let ended = stand.ended(&claim()).await;
    assert_eq!(ended.outcome, Outcome::Delivered);
    let sent = stand.sink.requests();
    let shown = actions(&shown);
    assert_eq!((sent.len(), shown.len()), (2, 2));
    for (sent, shown) in sent.iter().zip(&shown) {
        let shown = &shown["http"];
        let url = format!("http://{}{}", stand.sink.address, sent["uri"].as_str().unwrap());
        assert_eq!((&shown["method"], &shown["url"]), (&sent["method"], &json!(url)));
        assert_eq!(shown["body"], sent["body"]);
        for header in shown["headers"].as_array().into_iter().flatten() {
            assert!(sent["headers"].as_array().unwrap().contains(header), "{header} in {sent}");
        }
    }
}

#[tokio::test]
async fn a_preview_ends_where_what_follows_depends_on_an_answer() {
    let stand = Stand::new("post AT/200|post AT/200|done").await;
    let none = previewed(&stand, &[]).await;
    assert_eq!((none.steps.len(), none.end, none.outcome), (1, End::NeedsAnswer, None));
    let one = previewed(&stand, &[OK]).await;
    assert_eq!((one.steps.len(), one.end), (2, End::NeedsAnswer));
    let wrong = previewed(&stand, &[r#"{"mail":{"fault":{"reach":"denied","code":"x"}}}"#]).await;
    assert_eq!((wrong.steps.len(), wrong.end), (1, End::WrongAnswer));
    assert!(stand.sink.requests().is_empty());
}

#[tokio::test]
async fn a_plain_success_of_every_kind_leads_to_the_end_where_the_plugin_takes_it() {
    let stand = Stand::new("send AT/200|mail|judge").await;
    let shown = previewed_with(&stand, Answers::Success).await;
    assert_eq!((shown.steps.len(), shown.outcome), (2, Some(Outcome::Retry)), "mail is not granted: {shown:?}");
    let stand = Stand::new("send AT/200|post AT/200|done well").await;
    let shown = previewed_with(&stand, Answers::Success).await;
    assert_eq!((shown.steps.len(), shown.outcome), (2, Some(Outcome::Delivered)));
    // What the plugin takes for no success is left open.
    let stand = Stand::new("post AT/200|reject no").await;
    let shown = previewed_with(&stand, Answers::Success).await;
    assert_eq!((shown.steps.len(), shown.end, shown.outcome), (1, End::NeedsAnswer, None));
    assert!(stand.sink.requests().is_empty());
}

#[tokio::test]
async fn a_refusal_is_told_the_plugin_as_it_would_be() {
    let stand = Stand::new("post https://other.example/|report").await;
    let shown = previewed(&stand, &[]).await;
    let ended = stand.ended(&claim()).await;
    assert_eq!((shown.outcome, shown.reason), (Some(ended.outcome), ended.reason));
    let Step::Effect(asked) = &shown.steps[0] else { panic!("no effect") };
    assert_eq!(asked.refused.as_ref().unwrap().code, "not-granted");
}

#[tokio::test]
async fn a_preview_goes_on_behind_a_wait_without_waiting() {
    let stand = Stand::new("wait 3600 1 ; told").await;
    let shown = previewed(&stand, &[]).await;
    assert_eq!(actions(&shown), [json!({"wait": {"seconds": 3600, "resume": 1}})]);
    assert!(shown.reason.unwrap().contains("2026-03-01T13:00:00.123Z"), "the plugin is told that an hour passed");
    let endless = previewed(&Stand::new("wait 1").await, &[]).await;
    assert!(matches!(endless.end, End::Fault { is_limit: true, .. }), "{endless:?}");
}

#[tokio::test]
async fn a_preview_shows_secrets_by_name_and_judges_them_as_they_are() {
    let shown = previewed(&Stand::with("scripted", |_| json!({"secret": "hook"})).await, &[]).await;
    assert_eq!(shown.reason.as_deref(), Some("[secret hook]"));
    let End::Said(end) = shown.end else { panic!("it has not ended") };
    assert_eq!(end, r#"{"done":{"note":"[secret hook]"}}"#);
}
