//! What refusals mean: whether a run may have begun decides.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec;

use serde_json::json;
use switchbell_kit::Guest;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Action, Answer, FailureKind, Reach, Response};

use super::{
    after, by_a2a, by_chat, by_messages, by_responses, by_tool, delivery, effect, failure, fault, notification,
    response, usual, with,
};
use crate::AgentRun;

/// What a start ends with after this answer. A2A would look further, so it is not among them.
fn check(response: &Response, kind: FailureKind, reason: &str) {
    for settings in [by_chat(), by_messages(), by_responses()] {
        let failure = failure(after(&settings, None, vec![Answer::Http(Ok(response.clone()))]));
        assert_eq!(failure.kind, kind, "{response:?}: {}", failure.reason);
        assert!(failure.reason.contains(reason), "{response:?}: {}", failure.reason);
        assert_eq!(failure.resume, None);
    }
}

fn with_header(response: Response, name: &str, value: &str) -> Response {
    Response { headers: vec![(name.to_owned(), value.to_owned())], ..response }
}

#[test]
fn the_status_of_a_start_says_whether_a_run_may_have_begun() {
    let words = r#"{"error":{"type":"some_error","message":"its words","code":null}}"#;
    let page = "<!DOCTYPE html>\n<title>Oops</title>";
    let cases = [
        (301, page, Reject, "redirects"),
        (400, words, Reject, "some_error: its words (HTTP 400)"),
        (400, r#"{"detail":"its words"}"#, Reject, "its words (HTTP 400)"),
        (400, r#"{"error":"its words"}"#, Reject, "its words (HTTP 400)"),
        (400, page, Reject, "<!DOCTYPE html> <title>Oops"),
        (401, words, Reconnect, "put a good one into the secret: some_error: its words"),
        (402, "", Reconnect, "billing"),
        (403, "", Reconnect, "give it the permission"),
        (404, words, Reject, "its words"),
        (408, "", Retry, "HTTP 408"),
        (409, words, Unknown, "a run may have begun"),
        (413, "", Reject, "HTTP 413"),
        (422, words, Reject, "its words"),
        (429, words, Retry, "its words"),
        (500, words, Unknown, "a run may have begun: some_error: its words"),
        (502, page, Unknown, "a run may have begun"),
        (503, words, Retry, "not available"),
        (503, page, Unknown, "a run may have begun"),
        (504, "", Unknown, "HTTP 504 without a body"),
        (529, words, Retry, "its words"),
        (100, "", Unknown, "not an answer of an agent"),
        (999, "", Unknown, "not an answer of an agent"),
    ];
    for (status, body, kind, reason) in cases {
        check(&response(status, body), kind, reason);
    }
}

#[test]
fn the_api_may_say_that_asking_again_is_safe() {
    for status in [409, 500, 502, 503] {
        check(&with_header(response(status, ""), "x-should-retry", "true"), Retry, "HTTP");
    }
    check(&with_header(response(500, ""), "x-should-retry", "false"), Unknown, "HTTP 500");
    check(&with_header(response(400, ""), "x-should-retry", "true"), Reject, "HTTP 400");
    check(&with_header(response(503, ""), "retry-after", "5"), Retry, "HTTP 503");
}

#[test]
fn an_account_without_money_needs_a_person() {
    let body = |fields| format!("{}", json!({ "error": with(json!({ "message": "its words" }), fields) }));
    check(&response(429, &body(json!({ "code": "insufficient_quota" }))), Reconnect, "billing");
    check(&response(403, &body(json!({ "type": "billing_error" }))), Reconnect, "billing");
    check(&response(429, &body(json!({ "code": "rate_limit_exceeded" }))), Retry, "rate_limit_exceeded: its words");
}

#[test]
fn the_wait_that_is_asked_for_is_handed_on() {
    let cases = [
        ("retry-after", "30", Some(30)),
        ("Retry-After", " 1 ", Some(1)),
        ("retry-after-ms", "1200", Some(2)),
        ("retry-after-ms", "1", Some(1)),
        ("retry-after", "0", None),
        ("retry-after", "99999999999", Some(u32::MAX)),
        ("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("retry-after", "-5", None),
    ];
    for (name, value, after_seconds) in cases {
        let limited = Answer::Http(Ok(with_header(response(429, ""), name, value)));
        for settings in [by_a2a(), by_chat(), by_messages(), by_responses()] {
            let failure = failure(after(&settings, None, vec![limited.clone()]));
            assert_eq!((failure.kind, failure.after_seconds), (Retry, after_seconds), "{name}: {value}");
        }
    }
    let mut both = with_header(response(429, ""), "retry-after", "9");
    both.headers.push(("retry-after-ms".to_owned(), "2500".to_owned()));
    let failure = failure(after(&by_chat(), None, vec![Answer::Http(Ok(both))]));
    assert_eq!(failure.after_seconds, Some(3), "the finer one counts");
}

#[test]
fn how_far_a_start_got_decides_whether_it_is_repeated() {
    let cases =
        [(Reach::Denied, Reject), (Reach::Unsent, Retry), (Reach::Refused, Retry), (Reach::Unanswered, Unknown)];
    for (reach, kind) in cases {
        for settings in [by_chat(), by_messages(), by_responses()] {
            let failure = failure(after(&settings, None, vec![Answer::Http(Err(fault(reach)))]));
            assert_eq!((failure.kind, &*failure.reason), (kind, "what happened"));
        }
    }
}

#[test]
fn a_key_that_is_written_out_is_never_shown() {
    let settings = with(by_chat(), json!({ "api_key": "sk-hunter2", "report": true }));
    let echo = format!("{} sk-hunter2 \r\n\u{0} {}", "x".repeat(150), "y".repeat(1_000));
    let reason = failure(after(&settings, None, vec![Answer::Http(Ok(response(400, &echo)))])).reason;
    assert!(!reason.contains("hunter2") && reason.contains("[hidden]"), "{reason}");
    assert!(reason.chars().count() <= 500 && !reason.contains(char::is_control), "{reason}");
    let answer = json!({ "id": "sk-hunter2", "choices": [{ "message": { "content": "sk-hunter2" } }] });
    let done = after(&settings, None, vec![super::answered(200, &answer)]);
    assert!(!format!("{done:?}").contains("hunter2"), "{done:?}");
}

#[test]
fn an_answer_of_another_kind_is_the_hosts_fault() {
    for settings in [by_a2a(), by_chat(), by_messages(), by_responses(), by_tool()] {
        let failure = failure(after(&settings, None, vec![Answer::Other(Ok("{}".to_owned()))]));
        assert!(failure.kind == Reject && failure.reason.contains("something else"), "{}", failure.reason);
    }
}

#[test]
fn settings_that_passed_no_check_and_deliveries_of_nothing_are_refused() {
    let step = |delivery| match AgentRun::step(delivery, vec![]) {
        Action::Failed(failure) => failure,
        other => panic!("{other:?}"),
    };
    let invalid = step(usual(&json!({ "protocol": "a2a", "prompt": "x" }), None));
    assert_eq!((invalid.kind, invalid.reason.contains("/url: missing")), (Reject, true), "{}", invalid.reason);
    assert_eq!(step(delivery(&by_a2a(), vec![])).kind, Reject);
    let several = delivery(&by_a2a(), vec![notification("one"), notification("two")]);
    assert!(matches!(AgentRun::step(several, vec![]), Action::Http(_)), "a burst is one run");
    let strange = AgentRun::step(usual(&by_chat(), None), vec![effect(Answer::Resumed(None))]);
    assert!(matches!(strange, Action::Http(_)));
}
