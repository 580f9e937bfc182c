//! One thread for each subject.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, Effect, FailureKind, Notification, Receipt};

use super::{by_token, delivery, effect, failure, notification, response};
use crate::Slack;

fn about(subject: &str) -> Notification {
    Notification { subject: Some(subject.to_owned()), ..notification("title") }
}

fn follow_up(memory: Option<&Value>, notifications: Vec<Notification>) -> Delivery {
    let mut settings = by_token();
    settings["thread"] = json!("subject");
    Delivery { memory: memory.map(Value::to_string), ..delivery(&settings, notifications) }
}

fn remembered() -> Value {
    json!({ "ts": "1503435956.000247", "channel": "C1", "to": "#ops" })
}

fn answered(body: &Value) -> Effect {
    effect(Answer::Http(Ok(response(200, &body.to_string()))))
}

/// The `thread_ts` of the request that comes next.
fn thread_ts(delivery: Delivery, past: Vec<Effect>) -> Option<String> {
    let request = match Slack::step(delivery, past) {
        Action::Http(request) => request,
        other => panic!("not a request: {other:?}"),
    };
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!((&message["channel"], message.get("reply_broadcast")), (&json!("#ops"), None));
    message.get("thread_ts").map(|ts| ts.as_str().unwrap().to_owned())
}

fn receipt(delivery: Delivery, past: Vec<Effect>) -> Receipt {
    match Slack::step(delivery, past) {
        Action::Done(receipt) => receipt,
        other => panic!("not done: {other:?}"),
    }
}

/// What is remembered after the last answer.
fn remember(delivery: Delivery, past: Vec<Effect>) -> Option<Value> {
    receipt(delivery, past).remember.map(|memory| serde_json::from_str(&memory).unwrap())
}

#[test]
fn the_first_message_of_a_subject_begins_a_thread_and_is_remembered() {
    let first = || follow_up(None, vec![about("example.com")]);
    assert_eq!(thread_ts(first(), vec![]), None);
    let posted = json!({ "ok": true, "channel": "C1", "ts": "1503435956.000247", "message": { "text": "x" } });
    assert_eq!(remember(first(), vec![answered(&posted)]), Some(remembered()));
    assert_eq!(receipt(first(), vec![answered(&posted)]).reference.as_deref(), Some("C1:1503435956.000247"));
}

#[test]
fn a_follow_up_is_a_reply_and_the_thread_stays_what_it_is() {
    let reply = || follow_up(Some(&remembered()), vec![about("example.com")]);
    assert_eq!(thread_ts(reply(), vec![]).as_deref(), Some("1503435956.000247"));
    let message = json!({ "thread_ts": "1503435956.000247", "text": "x" });
    for posted in [
        json!({ "ok": true, "channel": "C1", "ts": "1503435957.000001", "message": message }),
        json!({ "ok": true, "channel": "C1", "ts": "1503435957.000001" }),
        json!({ "ok": true }),
    ] {
        assert_eq!(remember(reply(), vec![answered(&posted)]), None, "{posted}");
    }
}

#[test]
fn a_reply_that_slack_posted_in_the_channel_begins_the_thread_anew() {
    let reply = || follow_up(Some(&remembered()), vec![about("example.com")]);
    let posted = json!({ "ok": true, "channel": "C1", "ts": "1603435957.000001", "message": { "text": "x" } });
    let expected = json!({ "ts": "1603435957.000001", "channel": "C1", "to": "#ops" });
    assert_eq!(remember(reply(), vec![answered(&posted)]), Some(expected));
}

#[test]
fn a_thread_that_is_gone_is_begun_anew_in_the_same_attempt() {
    let words = ["thread_not_found", "cannot_reply_to_message", "restricted_action_thread_locked", "message_not_found"];
    for word in words {
        let reply = || follow_up(Some(&remembered()), vec![about("example.com")]);
        let gone = || answered(&json!({ "ok": false, "error": word }));
        assert_eq!(thread_ts(reply(), vec![gone()]), None, "{word}");
        let posted = json!({ "ok": true, "channel": "C1", "ts": "1603435957.000001", "message": { "text": "x" } });
        let expected = json!({ "ts": "1603435957.000001", "channel": "C1", "to": "#ops" });
        assert_eq!(remember(reply(), vec![gone(), answered(&posted)]), Some(expected));
        let again = failure(Slack::step(reply(), vec![gone(), gone()]));
        assert!(again.reason.contains(word), "{}", again.reason);
        let third = failure(Slack::step(reply(), vec![gone(), gone(), gone()]));
        assert_eq!(third.kind, FailureKind::Reject);
    }
}

#[test]
fn a_message_that_was_no_reply_is_not_posted_a_second_time() {
    let gone = answered(&json!({ "ok": false, "error": "cannot_reply_to_message" }));
    let first = failure(Slack::step(follow_up(None, vec![about("example.com")]), vec![gone]));
    assert_eq!(first.kind, FailureKind::Reject);
}

#[test]
fn what_else_went_wrong_with_a_reply_is_judged_as_ever() {
    let cases = [
        ("ratelimited", FailureKind::Retry),
        ("channel_not_found", FailureKind::Reconnect),
        ("restricted_action", FailureKind::Reconnect),
        ("fatal_error", FailureKind::Unknown),
    ];
    for (error, kind) in cases {
        let reply = follow_up(Some(&remembered()), vec![about("example.com")]);
        let failure = failure(Slack::step(reply, vec![answered(&json!({ "ok": false, "error": error }))]));
        assert_eq!(failure.kind, kind, "{error}");
    }
}

#[test]
fn a_digest_of_one_subject_goes_into_its_thread_and_one_of_several_into_none() {
    let digest = |subjects: &[&str]| {
        let notifications = subjects.iter().map(|subject| about(subject)).collect();
        follow_up(Some(&remembered()), notifications)
    };
    assert!(thread_ts(digest(&["a", "a", "a"]), vec![]).is_some());
    assert_eq!(thread_ts(digest(&["a", "b"]), vec![]), None);
    let mixed = follow_up(Some(&remembered()), vec![about("a"), notification("of no subject")]);
    assert_eq!(thread_ts(mixed, vec![]), None);
    let posted = json!({ "ok": true, "channel": "C1", "ts": "1.2" });
    assert_eq!(remember(digest(&["a", "b"]), vec![answered(&posted)]), None);
}

#[test]
fn only_memory_of_this_channel_counts() {
    let memories = [
        json!({ "ts": "1.2", "channel": "C1", "to": "#dev" }),
        json!({ "ts": "1.2", "channel": "C1" }),
        json!({ "ts": "", "channel": "C1", "to": "#ops" }),
        json!({ "ts": "1".repeat(41), "channel": "C1", "to": "#ops" }),
        json!({ "ts": 1.2, "channel": "C1", "to": "#ops" }),
        json!({}),
        json!([]),
        json!(null),
    ];
    for memory in memories {
        assert_eq!(thread_ts(follow_up(Some(&memory), vec![about("a")]), vec![]), None, "{memory}");
    }
}

#[test]
fn without_the_setting_nothing_is_remembered() {
    let plain = || Delivery { memory: Some(remembered().to_string()), ..delivery(&by_token(), vec![about("a")]) };
    assert_eq!(thread_ts(plain(), vec![]), None);
    let posted = json!({ "ok": true, "channel": "C1", "ts": "1.2" });
    assert_eq!(remember(plain(), vec![answered(&posted)]), None);
}
