//! Agent2Agent, in both revisions.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::Answer;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{FailureKind, Reach};

use super::{KEY, after, answered, body, by_a2a, failure, fault, header, pause, receipt, request, response, text};

/// What `resume` holds of a task that was asked for `polls` times.
fn begun(revision: &str) -> String {
    json!({ "protocol": "a2a", "revision": revision, "run": "task-1", "attempt": 1, "polls": 1, "waited": 2, "ended": 0 })
        .to_string()
}

use alloc::string::String;

fn task(state: &str) -> Value {
    json!({ "id": "task-1", "contextId": "c", "status": { "state": state } })
}

fn result(result: &Value) -> Answer {
    answered(200, &json!({ "jsonrpc": "2.0", "id": 1, "result": result }))
}

fn error(code: i64) -> Answer {
    answered(200, &json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": code, "message": "its words" } }))
}

#[test]
fn a_task_is_begun_without_waiting_for_it() {
    let request = request(after(&by_a2a(), None, vec![]));
    assert_eq!((&*request.method, &*request.url), ("POST", "https://agents.example/rpc"));
    assert_eq!((header(&request, "a2a-version"), header(&request, "authorization")), (Some("1.0"), Some(KEY)));
    assert_eq!(header(&request, "x-on-behalf-of"), Some("admin@example.com"));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    let body = body(&request);
    assert_eq!((&body["jsonrpc"], &body["method"]), (&json!("2.0"), &json!("SendMessage")));
    assert_eq!(body["params"]["configuration"], json!({ "returnImmediately": true }));
    let message = &body["params"]["message"];
    assert_eq!((&message["messageId"], &message["role"]), (&json!("5f3a9c01-17"), &json!("ROLE_USER")));
    let metadata = json!({ "onBehalfOf": "admin@example.com", "workspace": "acme", "route": "domain-news", "delivery": "5f3a9c01-17" });
    assert_eq!(message["metadata"], metadata);
    let parts = message["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert!(text(&parts[0]["text"]).starts_with("Look into it."));
    assert!(text(&parts[1]["text"]).contains(r#""data":{"b":1,"a":1.50}}"#), "{body}");
}

#[test]
fn a_server_that_does_not_know_1_0_is_asked_in_0_3() {
    for code in [-32601, -32009, -32600] {
        let request = request(after(&by_a2a(), None, vec![error(code)]));
        assert_eq!(header(&request, "a2a-version"), Some("0.3"));
        let body = body(&request);
        assert_eq!(
            (&body["method"], &body["params"]["configuration"]),
            (&json!("message/send"), &json!({ "blocking": false }))
        );
        let message = &body["params"]["message"];
        assert_eq!((&message["kind"], &message["role"]), (&json!("message"), &json!("user")));
        assert_eq!((&message["messageId"], &message["parts"][0]["kind"]), (&json!("5f3a9c01-17"), &json!("text")));
    }
    let both = failure(after(&by_a2a(), None, vec![error(-32601), error(-32601)]));
    assert_eq!(both.kind, Reject);
    assert!(
        both.reason.contains("neither A2A 1.0 nor 0.3") && both.reason.contains("its words (-32601)"),
        "{}",
        both.reason
    );
    let waited = pause(after(&by_a2a(), None, vec![error(-32601), result(&task("submitted"))]));
    let asked = request(after(&by_a2a(), None, vec![Answer::Resumed(waited.resume)]));
    assert_eq!((header(&asked, "a2a-version"), &body(&asked)["method"]), (Some("0.3"), &json!("tasks/get")));
}

#[test]
fn a_task_is_asked_for_until_it_ends() {
    for begun in [result(&json!({ "task": task("TASK_STATE_SUBMITTED") })), result(&task("working"))] {
        let waited = pause(after(&by_a2a(), None, vec![begun]));
        assert_eq!(waited.seconds, 2);
        let request = request(after(&by_a2a(), None, vec![Answer::Resumed(waited.resume)]));
        let body = body(&request);
        assert_eq!((&body["method"], &body["params"]["id"]), (&json!("GetTask"), &json!("task-1")));
    }
    for state in ["TASK_STATE_WORKING", "working", "unknown", "TASK_STATE_UNSPECIFIED", "one of the future"] {
        pause(after(&by_a2a(), Some(&begun("1.0")), vec![result(&task(state))]));
    }
}

#[test]
fn what_a_task_made_is_its_answer() {
    let artifacts = json!([
        { "artifactId": "a", "parts": [{ "text": "first" }, { "data": { "n": 1.50 } }] },
        { "artifactId": "b", "parts": [{ "kind": "text", "text": "second" }] },
    ]);
    let mut made = task("TASK_STATE_COMPLETED");
    made["artifacts"] = artifacts;
    let mut said = task("completed");
    said["status"]["message"] = json!({ "messageId": "m", "parts": [{ "text": "all is well" }] });
    let settings = super::with(by_a2a(), json!({ "report": true }));
    let cases = [(made, "first\n{\"n\":1.5}\nsecond"), (said, "all is well"), (task("completed"), "without a text")];
    for (task, expected) in cases {
        for answer in [result(&task), result(&json!({ "task": task }))] {
            for (resume, past) in [(Some(begun("1.0")), vec![answer.clone()]), (None, vec![answer])] {
                let receipt = receipt(after(&settings, resume.as_deref(), past));
                assert_eq!(receipt.reference.as_deref(), Some("task-1"));
                let extras: Value = serde_json::from_str(&receipt.extras).unwrap();
                assert!(text(&extras["report"]["body"]).contains(expected), "{extras}");
            }
        }
    }
}

#[test]
fn an_agent_may_answer_with_a_message_at_once() {
    let message = json!({ "messageId": "m-1", "role": "ROLE_AGENT", "parts": [{ "text": "done" }] });
    for answer in [json!({ "message": message }), message] {
        assert_eq!(receipt(after(&by_a2a(), None, vec![result(&answer)])).reference.as_deref(), Some("m-1"));
    }
}

#[test]
fn a_task_that_ends_without_success_is_over() {
    let mut failed = task("TASK_STATE_FAILED");
    failed["status"]["message"] = json!({ "parts": [{ "text": "no such host" }] });
    let cases = [
        (failed, "task task-1 failed: no such host"),
        (task("failed"), "task task-1 failed"),
        (task("TASK_STATE_REJECTED"), "refused task task-1"),
        (task("canceled"), "was canceled"),
    ];
    for (task, reason) in cases {
        let failure = failure(after(&by_a2a(), Some(&begun("1.0")), vec![result(&task)]));
        assert_eq!((failure.kind, failure.resume.as_deref()), (Reject, Some(r#"{"ended":1}"#)));
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn a_task_that_needs_a_person_is_kept_and_asked_for_again() {
    let cases = [
        ("TASK_STATE_INPUT_REQUIRED", Reject, "asks for input"),
        ("input-required", Reject, "asks for input"),
        ("TASK_STATE_AUTH_REQUIRED", Reconnect, "asks to be authorised"),
        ("auth-required", Reconnect, "asks to be authorised"),
    ];
    for (state, kind, reason) in cases {
        let mut task = task(state);
        task["status"]["message"] = json!({ "parts": [{ "text": "Which one?" }] });
        let failure = failure(after(&by_a2a(), None, vec![result(&task)]));
        assert_eq!(failure.kind, kind);
        assert!(failure.reason.contains(reason) && failure.reason.ends_with(": Which one?"), "{}", failure.reason);
        let again = request(after(&by_a2a(), failure.resume.as_deref(), vec![]));
        assert_eq!(body(&again)["method"], "GetTask");
    }
}

#[test]
fn errors_of_a_start_say_whether_a_run_may_have_begun() {
    let cases: [(i64, FailureKind); 9] = [
        (-32700, Reject),
        (-32602, Reject),
        (-32001, Reject),
        (-32004, Reject),
        (-32005, Reject),
        (-32008, Reject),
        (-32603, Unknown),
        (-32006, Unknown),
        (-32050, Unknown),
    ];
    for (code, kind) in cases {
        // In 0.3 nothing can be looked up.
        let failure = failure(after(&by_a2a(), None, vec![error(-32601), error(code)]));
        assert_eq!(failure.kind, kind, "{code}");
        assert!(failure.reason.contains(&format!("its words ({code})")), "{}", failure.reason);
    }
    let bare = failure(after(&by_a2a(), None, vec![error(-32601), answered(200, &json!({ "hello": "world" }))]));
    assert_eq!(bare.kind, Unknown);
}

#[test]
fn errors_of_an_error_status_count_too() {
    let words = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32601, "message": "its words" } });
    for status in [400, 404] {
        assert_eq!(body(&request(after(&by_a2a(), None, vec![answered(status, &words)])))["method"], "message/send");
    }
    assert_eq!(failure(after(&by_a2a(), None, vec![answered(401, &words)])).kind, Reconnect);
    assert_eq!(failure(after(&by_a2a(), None, vec![answered(429, &words)])).kind, Retry);
}

#[test]
fn errors_of_a_question_never_begin_another_run() {
    let cases: [(Answer, FailureKind, Option<&str>); 8] = [
        (error(-32001), Unknown, Some(r#"{"ended":1}"#)),
        (error(-32603), Retry, None),
        (error(-32601), Unknown, None),
        (Answer::Http(Ok(response(404, "gone"))), Unknown, Some(r#"{"ended":1}"#)),
        (Answer::Http(Ok(response(502, "bad gateway"))), Retry, None),
        (Answer::Http(Ok(response(403, "no"))), Reconnect, None),
        (Answer::Http(Err(fault(Reach::Unsent))), Retry, None),
        (Answer::Http(Err(fault(Reach::Denied))), Reconnect, None),
    ];
    for (answer, kind, resume) in cases {
        let context = format!("{answer:?}");
        let failure = failure(after(&by_a2a(), Some(&begun("1.0")), vec![answer]));
        assert_eq!((failure.kind, failure.resume.as_deref()), (kind, resume), "{context}");
    }
    let lost = Answer::Http(Err(fault(Reach::Unanswered)));
    let again = pause(after(&by_a2a(), Some(&begun("1.0")), vec![lost]));
    assert!(again.resume.unwrap().contains(r#""polls":2"#), "a question that was lost counts, and is asked again");
}

#[test]
fn a_start_that_nobody_answered_is_looked_up() {
    let lost =
        [Answer::Http(Err(fault(Reach::Unanswered))), Answer::Http(Ok(response(502, "bad gateway"))), error(-32603)];
    let ours = json!({ "tasks": [
        { "id": "task-8", "history": [{ "messageId": "5f3a9c01-16" }] },
        { "id": "task-9", "history": [{ "messageId": "other" }, { "messageId": "5f3a9c01-17" }] },
    ] });
    let none = json!({ "tasks": [{ "id": "task-8", "history": [] }, { "id": "task-7" }] });
    for lost in lost {
        let sought = request(after(&by_a2a(), None, vec![lost.clone()]));
        assert_eq!((header(&sought, "a2a-version"), &body(&sought)["method"]), (Some("1.0"), &json!("ListTasks")));
        let waited = pause(after(&by_a2a(), None, vec![lost.clone(), result(&ours)]));
        assert!(waited.resume.unwrap().contains(r#""run":"task-9""#));
        for answer in [result(&none), error(-32601), Answer::Http(Err(fault(Reach::Unsent)))] {
            let failure = failure(after(&by_a2a(), None, vec![lost.clone(), answer]));
            assert_eq!((failure.kind, failure.resume.as_deref()), (Unknown, Some(r#"{"perhaps":true,"ended":0}"#)));
        }
    }
}

#[test]
fn who_tries_an_unknown_start_again_has_it_looked_up_first() {
    let perhaps = Some(r#"{"perhaps":true,"ended":0}"#);
    assert_eq!(body(&request(after(&by_a2a(), perhaps, vec![])))["method"], "ListTasks");
    let ours = json!({ "tasks": [{ "id": "task-9", "history": [{ "messageId": "5f3a9c01-17" }] }] });
    pause(after(&by_a2a(), perhaps, vec![result(&ours)]));
    for looked in [result(&json!({ "tasks": [] })), result(&json!({})), error(-32601)] {
        let started = request(after(&by_a2a(), perhaps, vec![looked]));
        assert_eq!(body(&started)["method"], "SendMessage");
    }
    for (answer, kind) in [
        (Answer::Http(Err(fault(Reach::Unsent))), Retry),
        (Answer::Http(Ok(response(503, ""))), Retry),
        (Answer::Http(Ok(response(401, ""))), Reconnect),
    ] {
        let failure = failure(after(&by_a2a(), perhaps, vec![answer]));
        assert_eq!((failure.kind, failure.resume.as_deref()), (kind, perhaps));
    }
}
