//! The Responses API of OpenAI.

use alloc::format;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::Answer;
use switchbell_kit::types::FailureKind::{Reject, Retry, Unknown};

use super::{KEY, after, answered, body, by_responses, failure, header, pause, receipt, request, response, text, with};

const BEGUN: &str = r#"{"protocol":"openai","run":"resp_1","attempt":1,"polls":1,"waited":2,"ended":0}"#;

fn said(status: &str, content: Value) -> Answer {
    let message = json!({ "type": "message", "role": "assistant", "content": content });
    let thought =
        json!({ "type": "reasoning", "summary": [], "content": [{ "type": "reasoning_text", "text": "hm" }] });
    answered(200, &json!({ "id": "resp_1", "object": "response", "status": status, "output": [thought, message] }))
}

#[test]
fn a_response_is_begun_in_the_background() {
    let request = request(after(&with(by_responses(), json!({ "max_tokens": 900 })), None, vec![]));
    assert_eq!((&*request.method, &*request.url), ("POST", "https://api.openai.com/v1/responses"));
    assert_eq!(header(&request, "idempotency-key"), Some("5f3a9c01-17"));
    assert_eq!((header(&request, "authorization"), header(&request, "x-api-key")), (Some(KEY), None));
    let body = body(&request);
    let flags = (&body["model"], &body["background"], &body["store"], &body["max_output_tokens"]);
    assert_eq!(flags, (&json!("gpt-5"), &json!(true), &json!(true), &json!(900)));
    assert_eq!(body["metadata"]["on_behalf_of"], "admin@example.com");
    assert!(text(&body["instructions"]).starts_with("Look into it.") && !text(&body["instructions"]).contains("1.50"));
    assert!(text(&body["input"]).contains(r#""data":{"b":1,"a":1.50}}"#), "{body}");
    let bare = super::body(&super::request(after(&by_responses(), None, vec![])));
    assert!(bare.get("max_output_tokens").is_none());
}

#[test]
fn a_response_is_asked_for_until_it_is_complete() {
    for status in ["queued", "in_progress"] {
        let waited = pause(after(&by_responses(), None, vec![said(status, json!([]))]));
        let request = request(after(&by_responses(), None, vec![Answer::Resumed(waited.resume)]));
        assert_eq!((&*request.method, &*request.url), ("GET", "https://api.openai.com/v1/responses/resp_1"));
        assert!(request.body.is_empty() && header(&request, "authorization") == Some(KEY));
        pause(after(&by_responses(), Some(BEGUN), vec![said(status, json!([]))]));
    }
    let settings = with(by_responses(), json!({ "report": true }));
    let content = json!([{ "type": "output_text", "text": "All" }, { "type": "output_text", "text": "is well." }]);
    for (resume, answer) in [(Some(BEGUN), said("completed", content.clone())), (None, said("completed", content))] {
        let receipt = receipt(after(&settings, resume, vec![answer]));
        assert_eq!((receipt.reference.as_deref(), receipt.note), (Some("resp_1"), None));
        let extras: Value = serde_json::from_str(&receipt.extras).unwrap();
        assert_eq!(extras["report"]["body"], "All\nis well.");
    }
}

#[test]
fn an_id_cannot_leave_its_place_in_the_url() {
    let begun = json!({ "protocol": "openai", "run": "../models?x=\u{e9}%", "ended": 0 });
    let request = request(after(&by_responses(), Some(&format!("{begun}")), vec![]));
    assert_eq!(request.url, "https://api.openai.com/v1/responses/%2E%2E%2Fmodels%3Fx%3D%C3%A9%25");
}

#[test]
fn a_response_that_ends_otherwise_is_told() {
    let object = |fields: Value| answered(200, &with(json!({ "id": "resp_1", "output": [] }), fields));
    let failed = json!({ "status": "failed", "error": { "code": "server_error", "message": "it broke" } });
    let filtered = json!({ "status": "incomplete", "incomplete_details": { "reason": "content_filter" } });
    let cases = [
        (object(failed), "response resp_1 failed: it broke"),
        (object(json!({ "status": "cancelled" })), "was cancelled"),
        (object(filtered), "incomplete: content_filter"),
        (said("completed", json!([{ "type": "refusal", "refusal": "I cannot." }])), "the model refused: I cannot."),
    ];
    for (answer, reason) in cases {
        let failure = failure(after(&by_responses(), Some(BEGUN), vec![answer]));
        assert_eq!((failure.kind, failure.resume.as_deref()), (Reject, Some(r#"{"ended":1}"#)));
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
    let cut = json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } });
    let receipt = receipt(after(&by_responses(), Some(BEGUN), vec![object(cut)]));
    assert_eq!(receipt.note.as_deref(), Some("resp_1: the answer was cut at the most tokens"));
}

#[test]
fn a_response_that_is_no_longer_known_may_have_been_made() {
    let gone = failure(after(&by_responses(), Some(BEGUN), vec![Answer::Http(Ok(response(404, "{}")))]));
    assert_eq!((gone.kind, gone.resume.as_deref()), (Unknown, Some(r#"{"ended":1}"#)));
    assert!(gone.reason.contains("run resp_1 was begun"), "{}", gone.reason);
    let busy = failure(after(&by_responses(), Some(BEGUN), vec![Answer::Http(Ok(response(500, "")))]));
    assert_eq!((busy.kind, busy.resume), (Retry, None));
}

#[test]
fn an_answer_that_was_cut_counts_by_what_stood_before_the_cut() {
    let mut cut =
        response(200, r#"{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"text":"lo"#);
    cut.truncated = true;
    assert_eq!(
        receipt(after(&by_responses(), Some(BEGUN), vec![Answer::Http(Ok(cut))])).reference.as_deref(),
        Some("resp_1")
    );
}
