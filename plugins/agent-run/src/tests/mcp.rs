//! A tool of a connector.

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use alloc::vec;

use serde_json::{Value, json};
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Action, Answer, Fault, Reach, ToolAnswer, ToolCall};

use super::{after, by_tool, failure, fault, receipt, text, with};

fn call(settings: &Value, resume: Option<&str>) -> ToolCall {
    match after(settings, resume, vec![]) {
        Action::Tool(call) => call,
        other => panic!("not a call: {other:?}"),
    }
}

fn answer(is_error: bool, content: &Value) -> Answer {
    Answer::Tool(Ok(ToolAnswer { is_error, content: content.to_string(), truncated: false }))
}

#[test]
fn prompt_and_notification_stand_under_the_names_of_the_settings() {
    let arguments = json!({
        "task": "{prompt}", "deep": [{ "context": "{notification}" }], "all": "{input}", "for": "{on_behalf_of}",
        "key": "{id}", "mode": "fast", "n": 1, "text": "a {prompt} in a text", "{prompt}": null,
    });
    let call = call(&with(by_tool(), json!({ "arguments": arguments })), None);
    assert_eq!((&*call.connector, &*call.tool), ("desk", "start_agent"));
    let filled: Value = serde_json::from_str(&call.arguments).unwrap();
    let (prompt, notification) = (text(&filled["task"]), text(&filled["deep"][0]["context"]));
    assert!(prompt.starts_with("Look into it.") && !prompt.contains("1.50"), "{prompt}");
    assert!(notification.contains(r#""data":{"b":1,"a":1.50}}"#), "{notification}");
    assert_eq!(text(&filled["all"]), [prompt, notification].join("\n\n"));
    let rest = (&filled["for"], &filled["key"], &filled["mode"], &filled["n"], &filled["text"], &filled["{prompt}"]);
    let expected = (
        &json!("admin@example.com"),
        &json!("5f3a9c01-17"),
        &json!("fast"),
        &json!(1),
        &json!("a {prompt} in a text"),
        &Value::Null,
    );
    assert_eq!(rest, expected);
}

#[test]
fn what_the_tool_says_is_the_answer() {
    let settings = with(by_tool(), json!({ "report": true }));
    let texts = json!({ "content": [{ "type": "text", "text": "All" }, { "type": "text", "text": "is well." }] });
    let structured = json!({ "content": [], "structuredContent": { "id": "run-5", "n": 1 } });
    let cases = [(texts, None, "All\nis well."), (structured, Some("run-5"), r#"{"id":"run-5","n":1}"#)];
    for (content, reference, expected) in cases {
        let receipt = receipt(after(&settings, None, vec![answer(false, &content)]));
        assert_eq!(receipt.reference.as_deref(), reference);
        let extras: Value = serde_json::from_str(&receipt.extras).unwrap();
        assert_eq!(extras["report"]["body"], expected);
    }
    let cut = Answer::Tool(Ok(ToolAnswer { is_error: false, content: "{}".to_owned(), truncated: true }));
    assert_eq!(
        receipt(after(&settings, None, vec![cut])).note.as_deref(),
        Some("the tool's answer was too large to keep")
    );
}

#[test]
fn a_tool_that_failed_is_not_called_again() {
    let content = json!({ "content": [{ "type": "text", "text": "no such domain" }] });
    let failure = failure(after(&by_tool(), None, vec![answer(true, &content)]));
    assert_eq!((failure.kind, failure.resume.as_deref()), (Reject, Some(r#"{"ended":1}"#)));
    assert_eq!(failure.reason, "the tool says that it failed: no such domain");
    let again =
        call(&with(by_tool(), json!({ "arguments": { "all": "{input}", "key": "{id}" } })), Some(r#"{"ended":1}"#));
    assert!(again.arguments.contains(r#""key":"5f3a9c01-17.2""#), "{}", again.arguments);
}

#[test]
fn how_far_a_call_got_decides() {
    let refused = |status| Fault { status: Some(status), ..fault(Reach::Refused) };
    let cases = [
        (fault(Reach::Denied), Reject),
        (fault(Reach::Unsent), Retry),
        (fault(Reach::Unanswered), Unknown),
        (fault(Reach::Refused), Reject),
        (refused(401), Reconnect),
        (refused(429), Retry),
        (refused(503), Retry),
        (Fault { after_seconds: Some(9), ..fault(Reach::Refused) }, Retry),
    ];
    for (fault, kind) in cases {
        let after_seconds = fault.after_seconds;
        let failure = failure(after(&by_tool(), None, vec![Answer::Tool(Err(fault))]));
        assert_eq!((failure.kind, failure.after_seconds, &*failure.reason), (kind, after_seconds, "what happened"));
    }
}
