//! What one attempt comes to.

use std::time::Duration;

use super::*;
use crate::inbox::delivery::{OnUnknown, Outcome};
use crate::inbox::{Change, Memory as Remembered};

async fn check(script: &str, outcome: Outcome, says: &str) -> Ended {
    let ended = Stand::new(script).await.ended(&claim()).await;
    assert_eq!(ended.outcome, outcome, "{script}: {ended:?}");
    let reason = ended.reason.clone().unwrap_or_default();
    assert!(reason.contains(says), "{script}: {reason:?} does not say {says:?}");
    ended
}

#[tokio::test]
async fn what_the_plugin_answers_is_the_outcome() {
    check("done well", Outcome::Delivered, "well").await;
    check("retry later", Outcome::Retry, "later").await;
    check("reject never", Outcome::Reject, "never").await;
    check("reconnect the token", Outcome::Reconnect, "the token").await;
    check("unknown who knows", Outcome::Unknown, "who knows").await;
    let ended = check("post AT/200|done 2", Outcome::Delivered, "2").await;
    assert_eq!((ended.steps, ended.plugin.unwrap().0.as_str()), (2, "1.0.0"));
    assert_eq!(check("retry x", Outcome::Retry, "x").await.destination_delay, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_plugin_at_fault_is_repeated_unless_something_may_have_happened() {
    check("trap", Outcome::Retry, "stopped itself").await;
    check("post AT/500|trap", Outcome::Retry, "").await;
    check("post AT/204|trap", Outcome::Unknown, "").await;
    check("post http://127.0.0.1:9/|trap", Outcome::Retry, "").await;
    check("post AT/200", Outcome::Unknown, "more than 8 steps").await;
    check("post AT/404", Outcome::Retry, "more than 8 steps").await;
}

#[tokio::test]
async fn what_reached_the_destination_is_told_from_what_did_not() {
    for (script, reached) in [
        ("done", false),
        ("post AT/500|retry x", true),
        ("post AT/200|done", true),
        ("post http://127.0.0.1:9/|retry x", false),
        ("post https://other.example/|reject x", false),
        ("mail|reject x", false),
    ] {
        assert_eq!(Stand::new(script).await.ended(&claim()).await.reached, reached, "{script}");
    }
}

#[tokio::test]
async fn effects_that_are_refused_or_fail_are_answers() {
    check("post https://other.example/|report", Outcome::Reject, "plugins.grants.scripted.http").await;
    check("post http://127.0.0.1:9/|report", Outcome::Reject, "Reach::Unsent connect: no connection").await;
    check("post AT/redirect|report", Outcome::Reject, "302").await;
    check("mail|report", Outcome::Reject, "Reach::Denied not-configured").await;
    check("tool|report", Outcome::Reject, "Reach::Denied not-supported").await;
    check("other telepathy|report", Outcome::Reject, "telepathy").await;
}

#[tokio::test]
async fn an_answer_is_kept_up_to_its_limit() {
    let ended = check("post AT/large|report", Outcome::Reject, "200").await;
    assert!(ended.reason.unwrap().ends_with('…'), "a reason is cut");
}

#[tokio::test]
async fn no_secret_is_in_what_is_kept() {
    // The settings are the placeholder alone, and a word that the plugin does not know is its note.
    let ended = Stand::with("scripted", |_| json!({"secret": "hook"})).await.ended(&claim()).await;
    assert_eq!((ended.outcome, ended.reason.as_deref()), (Outcome::Delivered, Some("[secret hook]")));
}

#[tokio::test]
async fn the_plugin_is_told_why_it_is_asked_and_of_what() {
    let told = async |script: &str, claim: Claim| Stand::new(script).await.ended(&claim).await.reason.unwrap();
    let asked = |cause, attempt| Claim { cause, attempt: NonZeroU32::new(attempt).unwrap(), ..claim() };
    for (cause, attempt, expected) in [
        (Cause::First, 1, "first 1 0badcafe-1"),
        (Cause::Retry, 2, "retry 2 0badcafe-1"),
        (Cause::Repeat, 3, "repeat 3 0badcafe-1"),
        (Cause::Manual, 4, "manual 4 0badcafe-1"),
        (Cause::Escalation, 1, "escalation 1 0badcafe-1"),
    ] {
        assert_eq!(told("cause", asked(cause, attempt)).await, expected);
    }
    let digest = Claim { notifications: vec![notification("registrar"); 3], omitted: 37, ..claim() };
    assert_eq!(told("digest", digest).await, "3 and 37");
    let memory = Some(Remembered { written: written(r#"{"thread":1}"#), version: 4 });
    assert_eq!(told("memory", Claim { memory, ..claim() }).await, r#"{"thread":1}"#);
    assert_eq!(told("told", claim()).await, format!("{START} of None"));
}

#[tokio::test]
async fn what_a_plugin_keeps_is_set_left_or_forgotten() {
    let remembered = async |script: &str| Stand::new(script).await.ended(&claim()).await.remember;
    assert_eq!(remembered("remember 7").await, set("7"));
    assert_eq!(remembered("remember null").await, Change::Forget);
    assert_eq!(remembered("done").await, Change::Keep);
    let resume = async |script: &str| Stand::new(script).await.ended(&claim()).await.resume;
    assert_eq!(resume("carry-on 3").await, set("3"));
    assert_eq!(resume("carry-on null").await, Change::Forget);
    assert_eq!(resume("retry x").await, Change::Keep);
}

#[tokio::test]
async fn a_message_of_five_parts_goes_on_at_the_fourth() {
    let script =
        "post AT/200/1|post AT/200/2|post AT/200/3|post AT/503/4|carry-on 1 ; post AT/200/4|post AT/200/5|done all";
    let stand = Stand::new(script).await;
    let first = stand.ended(&claim()).await;
    assert_eq!((first.outcome, &first.resume), (Outcome::Retry, &set("1")));
    let second = Claim { resume: memory::changed(None, first.resume), attempt: NonZeroU32::new(2).unwrap(), ..claim() };
    assert_eq!(stand.ended(&second).await.reason.as_deref(), Some("done all"));
    assert_eq!(stand.sink.asked(), ["/200/1", "/200/2", "/200/3", "/503/4", "/200/4", "/200/5"]);
}

#[tokio::test]
async fn what_is_not_there_any_more_ends_or_waits() {
    let stand = Stand::new("done").await;
    let elsewhere = |route, target| Claim { queue: queue(route, target), ..claim() };
    assert_eq!(stand.ended(&elsewhere("news", "other")).await.outcome, Outcome::Reject);
    assert_eq!(stand.ended(&elsewhere("other", "other")).await.outcome, Outcome::Reject);
    let renamed = stand.ended(&elsewhere("other", "target")).await;
    assert_eq!(renamed.outcome, Outcome::Delivered, "the only target of this identity is the same under another route");
    let without = Stand::with("missing", |_| json!("done")).await;
    let ended = without.ended(&claim()).await;
    assert_eq!(ended.outcome, Outcome::Retry, "a plugin that is not loaded may be loaded later");
    let without = Stand::with("scripted", |_| json!({"secret": "other"})).await;
    assert_eq!(without.ended(&claim()).await.outcome, Outcome::Reconnect);
}

#[tokio::test]
async fn what_an_unknown_outcome_means_is_the_targets_word_else_the_plugins() {
    let policy = async |plugin: &str, on_unknown| {
        let routes = |_: &str| {
            let target = Target { on_unknown, ..target("target", plugin, json!("done")) };
            vec![route("news", "domain.*", vec![target])]
        };
        Stand::routing(routes).await.means.policy(&claim(), None).on_unknown
    };
    assert_eq!(policy("scripted", None).await, OnUnknown::Retry);
    assert_eq!(policy("riskyone", None).await, OnUnknown::Stop);
    assert_eq!(policy("riskyone", Some(OnUnknown::Retry)).await, OnUnknown::Retry);
    assert_eq!(policy("scripted", Some(OnUnknown::Stop)).await, OnUnknown::Stop);
}
