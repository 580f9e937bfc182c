//! The steps of an attempt.

use alloc::borrow::ToOwned;
use alloc::vec;

use serde_json::json;
use switchbell_kit::Guest;
use switchbell_kit::types::{Action, Answer, Delivery, FailureKind, Notification};

use super::{delivery, effect, failure, full, header, notification, request, response, settings};
use crate::Webhook;

#[test]
fn the_same_input_gives_the_same_action() {
    for format in ["standard", "cloudevents", "cloudevents-binary"] {
        let delivery = || delivery(&settings(format), vec![full(), notification("two")]);
        assert_eq!(Webhook::step(delivery(), vec![]), Webhook::step(delivery(), vec![]));
    }
}

#[test]
fn headers_of_the_settings_are_added() {
    let secret = "switchbell-secret.token.0123456789abcdef";
    let mut more = settings("standard");
    more["headers"] = json!({ "Authorization": secret, "X-Tag": "a b" });
    let request = request(delivery(&more, vec![full()]));
    assert_eq!((header(&request, "authorization"), header(&request, "x-tag")), (Some(secret), Some("a b")));
}

#[test]
fn an_impossible_input_is_refused_with_a_reason() {
    let ok = || effect(Answer::Http(Ok(response(200, ""))));
    let good = || delivery(&settings("standard"), vec![notification("title")]);
    let huge = Notification { data: Some(["\"", &"x".repeat(2_000_000), "\""].concat()), ..notification("title") };
    let cases = [
        (good(), vec![ok(), ok()], "several effects"),
        (good(), vec![effect(Answer::Resumed(None))], "something else"),
        (good(), vec![effect(Answer::Other(Ok("{}".to_owned())))], "something else"),
        (delivery(&settings("standard"), vec![]), vec![], "no notification"),
        (delivery(&settings("standard"), vec![huge]), vec![], "the body would have 2000"),
        (Delivery { now: "now".to_owned(), ..good() }, vec![], "when the attempt began"),
        (delivery(&json!({}), vec![notification("title")]), vec![], "settings are not valid"),
    ];
    for (delivery, past, reason) in cases {
        let failure = failure(Webhook::step(delivery, past));
        assert_eq!(failure.kind, FailureKind::Reject);
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn an_accepted_request_ends_the_attempt() {
    for status in [200, 201, 202, 204, 299] {
        let past = vec![effect(Answer::Http(Ok(response(status, "whatever"))))];
        let done = Webhook::step(delivery(&settings("standard"), vec![notification("title")]), past);
        assert!(matches!(done, Action::Done(_)), "{status}: {done:?}");
    }
}
