//! What each answer means, as data.

use alloc::borrow::ToOwned;
use alloc::format;

use serde_json::{Value, json};
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Action, Answer, FailureKind, Fault, Reach, Response};

use super::{by_token, by_webhook, ended, failure, response};

fn check(settings: &Value, response: Response, kind: FailureKind, reason: &str) {
    let context = format!("{response:?}");
    let failure = failure(ended(settings, Answer::Http(Ok(response))));
    assert_eq!(failure.kind, kind, "{context}: {}", failure.reason);
    assert!(failure.reason.contains(reason), "{context}: {}", failure.reason);
    assert!(failure.reason.chars().count() <= 500 && !failure.reason.contains(char::is_control));
}

#[test]
fn a_webhooks_word_decides_whatever_the_status() {
    let cases = [
        (404, "no_service", Reconnect),
        (403, "no_service", Reconnect),
        (404, "no_service_id", Reconnect),
        (404, "no_active_hooks", Reconnect),
        (410, "channel_is_archived", Reconnect),
        (404, "channel_is_archived\n", Reconnect),
        (403, "team_disabled", Reconnect),
        (403, "invalid_token", Reconnect),
        (200, "invalid_token", Reconnect),
        (404, "no_team", Reconnect),
        (404, "channel_not_found", Reconnect),
        (400, "user_not_found", Reconnect),
        (403, "posting_to_general_channel_denied", Reconnect),
        (403, "action_prohibited", Reconnect),
        (500, "no_service", Reconnect),
        (400, "invalid_payload", Reject),
        (400, "no_text", Reject),
        (400, "too_many_attachments", Reject),
        (400, "invalid_blocks", Reject),
        (500, "invalid_blocks", Reject),
        (400, "something_new", Reject),
        (500, "rollup_error", Retry),
        (400, "rollup_error", Retry),
        (429, "rate_limited", Retry),
        (200, "ratelimited", Retry),
    ];
    for (status, body, kind) in cases {
        check(&by_webhook(), response(status, body), kind, &format!("{} (HTTP {status})", body.trim()));
    }
}

#[test]
fn without_a_known_word_the_status_decides() {
    let page = "<!DOCTYPE html>\n<title>Blocked</title>";
    let cases = [
        (100, "", Unknown, "HTTP 100 without a body"),
        (200, "", Unknown, "not an answer of Slack's"),
        (200, page, Unknown, "<!DOCTYPE html> <title>Blocked</title>"),
        (200, "OK, go ahead", Unknown, "OK, go ahead"),
        (202, "ok", Unknown, "ok (HTTP 202)"),
        (204, "", Unknown, "HTTP 204"),
        (301, page, Reject, "the URL redirects (HTTP 301)"),
        (302, "", Reject, "the URL redirects (HTTP 302)"),
        (308, "", Reject, "put the final URL into the settings"),
        (400, page, Reject, "HTTP 400: <!DOCTYPE"),
        (401, "", Reject, "HTTP 401 without a body"),
        (403, page, Reject, "HTTP 403"),
        (404, "", Reject, "HTTP 404"),
        (408, "", Retry, "HTTP 408"),
        (413, "", Reject, "HTTP 413"),
        (429, "", Retry, "HTTP 429"),
        (429, page, Retry, "HTTP 429"),
        (500, page, Retry, "HTTP 500"),
        (502, page, Unknown, "HTTP 502"),
        (503, "", Retry, "HTTP 503"),
        (504, "", Unknown, "HTTP 504"),
        (599, "", Retry, "HTTP 599"),
        (999, "", Unknown, "HTTP 999"),
    ];
    for (status, body, kind, reason) in cases {
        check(&by_webhook(), response(status, body), kind, reason);
        check(&by_token(), response(status, body), kind, reason);
    }
}

#[test]
fn the_api_refuses_with_http_200() {
    let cases = [
        ("ratelimited", Retry),
        ("rate_limited", Retry),
        ("message_limit_exceeded", Retry),
        ("team_added_to_org", Retry),
        ("not_authed", Reconnect),
        ("invalid_auth", Reconnect),
        ("account_inactive", Reconnect),
        ("token_revoked", Reconnect),
        ("token_expired", Reconnect),
        ("not_allowed_token_type", Reconnect),
        ("missing_scope", Reconnect),
        ("no_permission", Reconnect),
        ("channel_not_found", Reconnect),
        ("not_in_channel", Reconnect),
        ("is_archived", Reconnect),
        ("restricted_action", Reconnect),
        ("restricted_action_read_only_channel", Reconnect),
        ("restricted_action_thread_only_channel", Reconnect),
        ("ekm_access_denied", Reconnect),
        ("team_access_not_granted", Reconnect),
        ("msg_too_long", Reject),
        ("msg_blocks_too_long", Reject),
        ("no_text", Reject),
        ("invalid_blocks", Reject),
        ("invalid_blocks_format", Reject),
        ("a_word_from_the_future", Reject),
        ("internal_error", Unknown),
        ("fatal_error", Unknown),
        ("service_unavailable", Unknown),
        ("request_timeout", Unknown),
    ];
    for (error, kind) in cases {
        let body = json!({ "ok": false, "error": error });
        check(&by_token(), response(200, &format!("{body}")), kind, &format!("Slack said {error} (HTTP 200)"));
    }
}

#[test]
fn an_api_answer_of_another_shape_is_never_taken_for_success() {
    let cases = [
        (200, "ok", Unknown),
        (200, r#"{"ok":true"#, Unknown),
        (200, r#"{"ok":"true"}"#, Unknown),
        (200, r#"{"ok":1}"#, Unknown),
        (200, r#"["ok"]"#, Unknown),
        (200, "{}", Unknown),
        (200, r#"{"ok":false}"#, Reject),
        (200, r#"{"ok":false,"error":null}"#, Reject),
        (200, r#"{"ok":false,"error":"Not A Word"}"#, Reject),
        (201, r#"{"ok":true}"#, Unknown),
        (500, r#"{"ok":false,"error":"internal_error"}"#, Unknown),
        (503, r#"{"ok":false,"error":"service_unavailable"}"#, Unknown),
        (403, r#"{"ok":false,"error":"invalid_auth"}"#, Reconnect),
        (429, r#"{"ok":false,"error":"invalid_auth"}"#, Retry),
    ];
    for (status, body, kind) in cases {
        check(&by_token(), response(status, body), kind, &format!("HTTP {status}"));
    }
    check(&by_webhook(), response(200, r#"{"ok":true}"#), Unknown, "not an answer of Slack's");
}

#[test]
fn an_api_answer_cut_inside_the_echo_counts_by_its_beginning() {
    let cut = |body: &str| Response { truncated: true, ..response(200, body) };
    let done = ended(&by_token(), Answer::Http(Ok(cut(r#"{"ok":true,"channel":"C1","ts":"1.2","mess"#))));
    assert!(matches!(done, Action::Done(_)), "{done:?}");
    check(&by_token(), cut(r#"{"message":{"text":"{\"ok\":true,"#), Unknown, "HTTP 200");
}

#[test]
fn the_wait_that_slack_asks_for_is_handed_on() {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let cases = [
        (Some(header("retry-after", "30")), "", Some(30)),
        (Some(header("Retry-After", " 1 ")), "", Some(1)),
        (Some(header("retry-after", "0")), "", None),
        (Some(header("retry-after", "-5")), "", None),
        (Some(header("retry-after", "1.5")), "", None),
        (Some(header("retry-after", "99999999999")), "", Some(u32::MAX)),
        (Some(header("retry-after", "Sun, 01 Mar 2026 12:01:00 GMT")), "", Some(53)),
        (None, r#"{"retry_after":1,"ok":false,"error":"rate_limited"}"#, Some(1)),
        (None, r#"{"retry_after":1.2,"ok":false,"error":"rate_limited"}"#, Some(2)),
        (None, r#"{"retry_after":0}"#, None),
        (None, r#"{"retry_after":-1}"#, None),
        (None, r#"{"retry_after":"5"}"#, None),
        (None, r#"{"retry_after":1e300}"#, Some(u32::MAX)),
        (Some(header("retry-after", "7")), r#"{"retry_after":1}"#, Some(7)),
        (None, "", None),
    ];
    for (extra, body, after_seconds) in cases {
        for settings in [by_webhook(), by_token()] {
            let limited = Response { headers: extra.clone().into_iter().collect(), ..response(429, body) };
            let failure = failure(ended(&settings, Answer::Http(Ok(limited))));
            assert_eq!((failure.kind, failure.after_seconds), (Retry, after_seconds), "{extra:?} {body}");
        }
    }
}

#[test]
fn a_request_without_a_complete_answer_is_judged_by_how_far_it_got() {
    let cases =
        [(Reach::Denied, Reject), (Reach::Unsent, Retry), (Reach::Refused, Retry), (Reach::Unanswered, Unknown)];
    for (reach, kind) in cases {
        let fault = Fault {
            reach,
            code: "not-granted".to_owned(),
            message: "grant slack the host hooks.slack.com".to_owned(),
            status: None,
            after_seconds: None,
        };
        let failure = failure(ended(&by_webhook(), Answer::Http(Err(fault))));
        assert_eq!((failure.kind, failure.reason.as_str()), (kind, "grant slack the host hooks.slack.com"));
    }
}

#[test]
fn a_reason_is_short_printable_and_never_shows_the_credential() {
    let url = "https://hooks.slack.com/services/T0/B0/hunter2";
    let settings = [json!({ "webhook": url }), json!({ "token": "xoxb-hunter2", "channel": "#ops" })];
    let echo = format!("cannot\u{0}POST\r\n{url} as xoxb-hunter2 {}", "x".repeat(10_000));
    for settings in settings {
        for status in [200, 400, 500] {
            let reason = failure(ended(&settings, Answer::Http(Ok(response(status, &echo))))).reason;
            let secret = settings.get("webhook").or(settings.get("token")).unwrap().as_str().unwrap();
            assert!(!reason.contains(secret) && reason.contains("[hidden]"), "{reason}");
            assert!(reason.chars().count() <= 500 && !reason.contains(char::is_control), "{reason}");
        }
    }
}

#[test]
fn a_credential_is_hidden_even_where_the_reason_is_cut() {
    let url = "https://hooks.slack.com/services/T0/B0/hunter2";
    for before in 0..200 {
        let echo = format!("{} {url}", "x".repeat(before));
        let reason = failure(ended(&json!({ "webhook": url }), Answer::Http(Ok(response(400, &echo))))).reason;
        assert!(!reason.contains("hooks.slack.com"), "{reason}");
    }
}

#[test]
fn an_api_answer_broken_off_anywhere_is_unknown() {
    let posted = r#"{"ok":true,"channel":"C1","ts":"1503435956.000247","message":{"text":"größe \ud83d\udd14"}}"#;
    for end in 0..posted.len() {
        let broken = Response { body: posted.as_bytes()[..end].into(), ..response(200, "") };
        check(&by_token(), broken, Unknown, "HTTP 200");
    }
}

#[test]
fn an_answer_of_any_depth_is_read() {
    let nested = ["{\"x\":[".repeat(100_000), "]}".repeat(100_000)].concat();
    let posted = format!(r#"{{"message":{nested},"ok":true,"channel":"C1","ts":"1.2"}}"#);
    let done = ended(&by_token(), Answer::Http(Ok(response(200, &posted))));
    assert!(matches!(done, Action::Done(_)), "{done:?}");
}

#[test]
fn a_body_that_is_not_text_is_quoted_as_far_as_it_is() {
    let body = Response { body: alloc::vec![b'n', b'o', 0xff, 0xfe, 0x00, b'!'], ..response(400, "") };
    check(&by_webhook(), body, Reject, "HTTP 400: no\u{fffd}\u{fffd} !");
}
