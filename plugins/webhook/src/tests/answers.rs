//! What each answer means, as data.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::Guest;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Answer, Failure, FailureKind, Fault, Reach, Response};

use super::{delivery, effect, failure, notification, response, settings};
use crate::Webhook;

fn ended(settings: &Value, answer: Answer) -> Failure {
    failure(Webhook::step(delivery(settings, vec![notification("title")]), vec![effect(answer)]))
}

#[test]
fn the_status_decides() {
    let cases = [
        (100, Unknown, "not an answer of HTTP's"),
        (301, Reject, "put the final URL into the settings"),
        (302, Reject, "no redirect is followed"),
        (308, Reject, "no redirect is followed"),
        (400, Reject, "HTTP 400: no"),
        (401, Reconnect, "mend its secret"),
        (403, Reconnect, "mend the credential"),
        (404, Reconnect, "mend the URL"),
        (405, Reconnect, "mend the URL"),
        (407, Reconnect, "mend its secret"),
        (408, Retry, "HTTP 408: no"),
        (409, Reject, "HTTP 409: no"),
        (410, Reconnect, "was taken away"),
        (413, Reject, "HTTP 413: no"),
        (415, Reject, "HTTP 415: no"),
        (422, Reject, "HTTP 422: no"),
        (425, Retry, "HTTP 425: no"),
        (429, Retry, "HTTP 429: no"),
        (500, Retry, "HTTP 500: no"),
        (502, Retry, "HTTP 502: no"),
        (503, Retry, "HTTP 503: no"),
        (504, Retry, "HTTP 504: no"),
        (599, Retry, "HTTP 599: no"),
        (999, Unknown, "HTTP 999: no"),
    ];
    for (status, kind, reason) in cases {
        let failure = ended(&settings("standard"), Answer::Http(Ok(response(status, "no\n"))));
        assert_eq!(failure.kind, kind, "{status}");
        assert!(failure.reason.contains(reason), "{}", failure.reason);
        let silent = ended(&settings("cloudevents"), Answer::Http(Ok(response(status, ""))));
        assert!(silent.reason.starts_with(&format!("HTTP {status}")), "{}", silent.reason);
    }
}

#[test]
fn the_wait_that_the_endpoint_asks_for_is_handed_on() {
    let cases = [
        (429, "120", Some(120)),
        (503, "120", Some(120)),
        (500, "7", Some(7)),
        (429, "Sun, 01 Mar 2026 12:01:07 GMT", Some(60)),
        (503, "Sun, 01 Mar 2026 11:00:00 GMT", None),
        (429, "soon", None),
        (400, "120", None),
        (404, "120", None),
    ];
    for (status, value, after_seconds) in cases {
        let headers = vec![("retry-after".to_owned(), value.to_owned())];
        let failure = ended(&settings("standard"), Answer::Http(Ok(Response { headers, ..response(status, "") })));
        assert_eq!(failure.after_seconds, after_seconds, "{status} {value}");
    }
}

#[test]
fn a_request_without_a_complete_answer_is_judged_by_how_far_it_got() {
    let cases: [(Reach, FailureKind); 4] =
        [(Reach::Denied, Reject), (Reach::Unsent, Retry), (Reach::Refused, Retry), (Reach::Unanswered, Unknown)];
    for (reach, kind) in cases {
        let fault = Fault {
            reach,
            code: "not-granted".to_owned(),
            message: "grant webhook the host hooks.example.com".to_owned(),
            status: None,
            after_seconds: None,
        };
        let failure = ended(&settings("standard"), Answer::Http(Err(fault)));
        assert_eq!((failure.kind, failure.reason.as_str()), (kind, "grant webhook the host hooks.example.com"));
    }
}

#[test]
fn a_reason_is_short_printable_and_never_shows_a_credential() {
    let settings = json!({
        "url": "https://hooks.example.com/T0/hunter2-hunter2", "format": "standard",
        "headers": { "authorization": "Bearer hunter2-hunter2", "x-tag": "short" },
    });
    for before in 0..220 {
        let echo = format!(
            "{}\u{0}\r\nPOST /T0/hunter2-hunter2 with Bearer hunter2-hunter2 short {}",
            "x".repeat(before),
            "y".repeat(10_000)
        );
        let reason = ended(&settings, Answer::Http(Ok(response(400, &echo)))).reason;
        assert!(!reason.contains("hunter2"), "{reason}");
        assert!(reason.chars().count() <= 500 && !reason.contains(char::is_control), "{reason}");
    }
    let whole = ended(&settings, Answer::Http(Ok(response(400, "at https://hooks.example.com/T0/hunter2-hunter2"))));
    assert_eq!(whole.reason, "HTTP 400: at [hidden]");
}

#[test]
fn a_body_that_is_not_text_is_quoted_as_far_as_it_is() {
    let body = Response { body: vec![b'n', b'o', 0xff, 0x00, b'!'], ..response(400, "") };
    let expected = String::from("HTTP 400: no\u{fffd} !");
    assert_eq!(ended(&settings("standard"), Answer::Http(Ok(body))).reason, expected);
}
