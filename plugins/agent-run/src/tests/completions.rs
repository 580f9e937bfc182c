//! One request, one answer: Chat Completions and Messages.

use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::Answer;
use switchbell_kit::types::FailureKind::{Reject, Unknown};

use super::{
    KEY, after, answered, body, by_chat, by_messages, failure, header, receipt, request, response, text, with,
};

fn completion(fields: Value) -> Answer {
    let choice = with(json!({ "index": 0, "message": { "role": "assistant", "content": "All is well." } }), fields);
    answered(200, &json!({ "id": "chatcmpl-1", "object": "chat.completion", "choices": [choice] }))
}

fn message(fields: Value) -> Answer {
    let content = json!([{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "All is well." }]);
    answered(200, &with(json!({ "id": "msg_1", "type": "message", "content": content }), fields))
}

#[test]
fn a_completion_is_asked_for_with_the_instruction_apart() {
    let settings =
        with(by_chat(), json!({ "url": "http://localhost:11434/v1", "api_key_header": "Api-Key", "max_tokens": 9 }));
    let request = request(after(&settings, None, vec![]));
    assert_eq!(request.url, "http://localhost:11434/v1/chat/completions");
    assert_eq!((header(&request, "api-key"), header(&request, "authorization")), (Some(KEY), None));
    assert_eq!(header(&request, "idempotency-key"), Some("5f3a9c01-17"));
    assert_eq!(header(&request, "x-on-behalf-of"), Some("admin@example.com"));
    let body = body(&request);
    assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("gpt-5"), &json!(9)));
    let messages = body["messages"].as_array().unwrap();
    assert_eq!((&messages[0]["role"], &messages[1]["role"]), (&json!("system"), &json!("user")));
    assert!(
        text(&messages[0]["content"]).starts_with("Look into it.") && !text(&messages[0]["content"]).contains("1.50")
    );
    assert!(text(&messages[1]["content"]).contains(r#""data":{"b":1,"a":1.50}}"#));
}

#[test]
fn a_message_is_asked_for_with_the_version_of_the_api() {
    let request = request(after(&by_messages(), None, vec![]));
    assert_eq!(request.url, "https://api.anthropic.com/v1/messages");
    assert_eq!((header(&request, "x-api-key"), header(&request, "anthropic-version")), (Some(KEY), Some("2023-06-01")));
    assert_eq!((header(&request, "authorization"), header(&request, "idempotency-key")), (None, Some("5f3a9c01-17")));
    let body = body(&request);
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("claude-5"), &json!(1024)));
    assert!(text(&body["system"]).starts_with("Look into it."));
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    assert!(text(&body["messages"][0]["content"]).contains(r#""data":{"b":1,"a":1.50}}"#));
}

#[test]
fn a_key_that_is_written_out_is_a_bearer_token_where_that_is_usual() {
    let plain = json!({ "api_key": "sk-hunter2" });
    let key = |settings: Value, name: &str| {
        header(&request(after(&with(settings, plain.clone()), None, vec![])), name)
            .map(alloc::borrow::ToOwned::to_owned)
    };
    assert_eq!(key(by_chat(), "authorization").as_deref(), Some("Bearer sk-hunter2"));
    assert_eq!(key(by_messages(), "x-api-key").as_deref(), Some("sk-hunter2"));
    let none = with(by_chat(), json!({ "url": "http://localhost:1" }));
    let mut none = none.as_object().unwrap().clone();
    none.remove("api_key");
    assert_eq!(header(&request(after(&Value::Object(none), None, vec![])), "authorization"), None);
}

#[test]
fn an_answer_is_the_end() {
    let parts = json!([{ "type": "text", "text": "All is" }, { "type": "text", "text": "well." }]);
    let cases = [
        (by_chat(), completion(json!({ "finish_reason": "stop" })), "chatcmpl-1", "All is well."),
        (by_chat(), completion(json!({ "message": { "content": parts } })), "chatcmpl-1", "All is\nwell."),
        (by_messages(), message(json!({ "stop_reason": "end_turn" })), "msg_1", "All is well."),
    ];
    for (settings, answer, id, expected) in cases {
        let receipt = receipt(after(&with(settings, json!({ "report": true })), None, vec![answer]));
        assert_eq!((receipt.reference.as_deref(), receipt.note), (Some(id), None));
        let extras: Value = serde_json::from_str(&receipt.extras).unwrap();
        assert_eq!(extras["report"]["body"], expected);
    }
}

#[test]
fn an_answer_that_was_cut_short_is_an_answer_with_a_note() {
    let cases = [
        (by_chat(), completion(json!({ "finish_reason": "length" })), "chatcmpl-1: the answer was cut"),
        (by_chat(), completion(json!({ "finish_reason": "tool_calls" })), "asked for a tool"),
        (by_messages(), message(json!({ "stop_reason": "max_tokens" })), "msg_1: the answer was cut"),
        (by_messages(), message(json!({ "stop_reason": "tool_use" })), "asked for a tool"),
    ];
    for (settings, answer, note) in cases {
        let found = receipt(after(&settings, None, vec![answer])).note.unwrap();
        assert!(found.contains(note), "{found}");
    }
}

#[test]
fn a_refusal_of_the_model_is_told() {
    let refusing = json!({ "message": { "content": null, "refusal": "I cannot." } });
    let cases = [
        (by_chat(), completion(refusing), "the model refused: I cannot."),
        (by_chat(), completion(json!({ "finish_reason": "content_filter" })), "content filter"),
        (by_messages(), message(json!({ "stop_reason": "refusal", "content": [] })), "the model refused"),
    ];
    for (settings, answer, reason) in cases {
        let failure = failure(after(&settings, None, vec![answer]));
        assert_eq!(failure.kind, Reject);
        assert!(failure.reason.contains(reason), "{}", failure.reason);
    }
}

#[test]
fn what_is_no_answer_of_the_api_may_have_begun_a_run() {
    for settings in [by_chat(), by_messages(), super::by_responses()] {
        for body in ["", "OK", "<!DOCTYPE html>", "{}", r#"{"choices":[]}"#, r#"{"id":"x"}"#, "[]"] {
            let failure = failure(after(&settings, None, vec![Answer::Http(Ok(response(200, body)))]));
            assert_eq!(failure.kind, Unknown, "{body}");
        }
    }
}
