//! The steps of an attempt.

use alloc::borrow::ToOwned;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, FailureKind};

use super::{WEBHOOK, by_token, by_webhook, delivery, effect, failure, notification, request, response};
use crate::Slack;

#[test]
fn the_first_step_posts_json_to_the_webhook() {
    let request = request(delivery(&by_webhook(), vec![notification("title")]));
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", WEBHOOK));
    assert_eq!(request.headers, [("content-type".to_owned(), "application/json; charset=utf-8".to_owned())]);
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(message.get("channel"), None);
    assert_eq!(message["mrkdwn"], false);
    assert_eq!(message["unfurl_links"], false);
    assert_eq!(message["unfurl_media"], false);
    assert_eq!(message.get("link_names"), None);
}

#[test]
fn the_first_step_posts_to_the_channel_with_the_token() {
    let cases = [
        (by_token(), "https://slack.com/api/chat.postMessage", "switchbell-secret.slack-bot.fedcba9876543210"),
        (
            json!({ "token": "xoxb-1", "channel": "#ops", "api": "http://127.0.0.1:1/api/" }),
            "http://127.0.0.1:1/api/chat.postMessage",
            "Bearer xoxb-1",
        ),
    ];
    for (settings, url, authorization) in cases {
        let request = request(delivery(&settings, vec![notification("title")]));
        assert_eq!(request.url, url);
        assert!(request.headers.contains(&("authorization".to_owned(), authorization.to_owned())));
        let message: Value = serde_json::from_slice(&request.body).unwrap();
        assert_eq!(message["channel"], "#ops");
    }
}

#[test]
fn the_same_input_gives_the_same_action() {
    let delivery = || delivery(&by_token(), vec![notification("one"), notification("two")]);
    assert_eq!(Slack::step(delivery(), vec![]), Slack::step(delivery(), vec![]));
}

#[test]
fn an_impossible_input_is_refused_with_a_reason() {
    let ok = || effect(Answer::Http(Ok(response(200, "ok"))));
    let good = || delivery(&by_webhook(), vec![notification("title")]);
    let cases = [
        (good(), vec![ok(), ok()], "several effects"),
        (good(), vec![effect(Answer::Resumed(None))], "something else"),
        (good(), vec![effect(Answer::Other(Ok("{}".to_owned())))], "something else"),
        (delivery(&by_webhook(), vec![]), vec![], "no notification"),
        (delivery(&json!({}), vec![notification("title")]), vec![], "settings are not valid"),
        (delivery(&json!({}), vec![notification("title")]), vec![ok()], "settings are not valid"),
    ];
    for (delivery, past, reason) in cases {
        let failure = failure(Slack::step(delivery, past));
        assert_eq!(failure.kind, FailureKind::Reject);
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn an_accepted_message_ends_the_attempt() {
    let step = |settings: &Value, body: &str| {
        let past = vec![effect(Answer::Http(Ok(response(200, body))))];
        match Slack::step(delivery(settings, vec![notification("title")]), past) {
            Action::Done(receipt) => receipt.reference,
            other => panic!("not done: {other:?}"),
        }
    };
    assert_eq!(step(&by_webhook(), "ok"), None);
    assert_eq!(step(&by_webhook(), "ok\n"), None);
    let posted = r#"{"ok":true,"channel":"C1","ts":"1503435956.000247","message":{"text":"title"}}"#;
    assert_eq!(step(&by_token(), posted), Some("C1:1503435956.000247".to_owned()));
    assert_eq!(step(&by_token(), r#"{"ok":true}"#), None);
}
