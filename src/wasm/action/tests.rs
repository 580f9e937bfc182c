//! What just fits, and what does not.

use super::*;
use crate::wasm::bindings::switchbell::delivery::types::{FailureKind, Lane};

fn request() -> Request {
    Request {
        method: "POST".into(),
        url: "https://hooks.example.com/".into(),
        headers: vec![],
        body: vec![],
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    }
}

fn signature() -> Signature {
    let (marker, algorithm, encoding) = ("@@".into(), "hmac-sha256".into(), "hex".into());
    Signature { marker, algorithm, encoding, key: "k".into(), derive: vec![], message: vec![Part::Body] }
}

fn message() -> Message {
    let (subject, text) = ("s".into(), "t".into());
    Message { to: vec!["ops@example.com".into()], subject, text, thread: None, extras: "{}".into() }
}

fn call() -> ToolCall {
    let (connector, tool) = ("registrar".into(), "restart".into());
    ToolCall { connector, tool, arguments: "{}".into(), timeout_ms: None, extras: "{}".into() }
}

fn receipt() -> Receipt {
    Receipt { reference: None, note: None, remember: None, extras: "{}".into() }
}

fn failure() -> Failure {
    let (kind, reason) = (FailureKind::Retry, "busy".into());
    Failure { kind, reason, after_seconds: None, resume: None, extras: "{}".into() }
}

/// A JSON text of exactly so many bytes.
fn json_text(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

/// A JSON object of exactly so many bytes.
fn json_object(bytes: usize) -> String {
    format!("{{\"a\":{}}}", json_text(bytes - 6))
}

fn largest_signature() -> Signature {
    let part = || Part::Bytes(vec![0; PIECE_BYTES_MAX]);
    Signature {
        marker: "m".repeat(WORD_BYTES_MAX),
        derive: vec![vec![0; PIECE_BYTES_MAX]; SIGNATURES_MAX],
        message: vec![part(), Part::Secret("k".repeat(PIECE_BYTES_MAX))],
        ..signature()
    }
}

#[test]
fn what_just_fits_passes_as_it_is() {
    let header = ("n".repeat(HEADER_BYTES_MAX - 1), "v".into());
    for action in [
        Action::Http(Request { url: "u".repeat(URL_BYTES_MAX), ..request() }),
        Action::Http(Request { headers: vec![header; HEADERS_MAX], ..request() }),
        Action::Http(Request { body: vec![0; BODY_BYTES_MAX], ..request() }),
        Action::Http(Request { sign: vec![signature(); SIGNATURES_MAX], ..request() }),
        Action::Http(Request { extras: r#" {"later": 1} "#.into(), ..request() }),
        Action::Mail(Message { to: vec!["ops@example.com".into(); RECIPIENTS_MAX], ..message() }),
        Action::Tool(ToolCall { arguments: r#"{"a":1}"#.into(), ..call() }),
        Action::Wait(Pause { seconds: u32::MAX, resume: Some("null".into()) }),
        Action::Done(Receipt { remember: Some("1".into()), note: Some("n".repeat(NOTE_LENGTH_MAX)), ..receipt() }),
        Action::Failed(Failure { resume: Some("[]".into()), ..failure() }),
        Action::Other(Extension { kind: "k".repeat(WORD_BYTES_MAX), payload: "null".into() }),
        Action::Mail(Message {
            subject: "s".repeat(LINE_BYTES_MAX),
            thread: Some("t".repeat(LINE_BYTES_MAX)),
            ..message()
        }),
        Action::Mail(Message { text: "t".repeat(BODY_BYTES_MAX), ..message() }),
        Action::Tool(ToolCall {
            arguments: json_object(BODY_BYTES_MAX),
            extras: json_object(EXTRAS_BYTES_MAX),
            ..call()
        }),
        Action::Done(Receipt { remember: Some(json_text(KEPT_BYTES_MAX)), ..receipt() }),
        Action::Failed(Failure { resume: Some(json_text(KEPT_BYTES_MAX)), ..failure() }),
        Action::Http(Request { sign: vec![largest_signature()], ..request() }),
    ] {
        assert_eq!(checked(action.clone()), Ok(action));
    }
}

#[test]
fn what_does_not_fit_is_named_with_the_most() {
    let header = ("n".repeat(HEADER_BYTES_MAX), "v".into());
    let long = format!("\"{}\"", "x".repeat(KEPT_BYTES_MAX));
    let unmarked = Signature { marker: String::new(), ..signature() };
    let in_parts = Signature { message: vec![Part::Url; PARTS_MAX + 1], ..signature() };
    let derived = Signature { derive: vec![vec![]; SIGNATURES_MAX + 1], ..signature() };
    for (action, expected) in [
        (
            Action::Http(Request { url: "u".repeat(URL_BYTES_MAX + 1), ..request() }),
            "http.url has 8193 bytes; at most 8 KiB",
        ),
        (
            Action::Http(Request { headers: vec![header], ..request() }),
            "a header of http.headers has 16385 bytes; at most 16 KiB",
        ),
        (Action::Http(Request { sign: vec![signature(); 9], ..request() }), "http.sign has 9 entries; at most 8"),
        (
            Action::Http(Request { sign: vec![unmarked], ..request() }),
            "a signature of http.sign has an empty marker; choose a text that occurs nowhere else",
        ),
        (Action::Http(Request { sign: vec![in_parts], ..request() }), "http.sign[].message has 65 entries; at most 64"),
        (Action::Http(Request { sign: vec![derived], ..request() }), "http.sign[].derive has 9 entries; at most 8"),
        (
            Action::Http(Request { extras: String::new(), ..request() }),
            "http.extras is no JSON: EOF while parsing a value at line 1 column 0",
        ),
        (Action::Mail(Message { to: vec![], ..message() }), "mail.to is empty; name at least one address"),
        (Action::Mail(Message { to: vec![String::new(); 101], ..message() }), "mail.to has 101 entries; at most 100"),
        (
            Action::Mail(Message { text: "t".repeat(BODY_BYTES_MAX + 1), ..message() }),
            "mail.text has 1048577 bytes; at most 1 MiB",
        ),
        (
            Action::Tool(ToolCall { arguments: "[]".into(), ..call() }),
            "tool.arguments is no JSON object; write {} for none",
        ),
        (Action::Wait(Pause { seconds: 1, resume: Some(long) }), "wait.resume has 65538 bytes; at most 64 KiB"),
        (
            Action::Done(Receipt { remember: Some("{".into()), ..receipt() }),
            "done.remember is no JSON: EOF while parsing an object at line 1 column 1",
        ),
        (
            Action::Failed(Failure { extras: "1".into(), ..failure() }),
            "failed.extras is no JSON object; write {} for none",
        ),
        (
            Action::Other(Extension { kind: "x".into(), payload: "?".into() }),
            "other.payload is no JSON: expected value at line 1 column 1",
        ),
    ] {
        assert_eq!(checked(action), Err(expected.to_owned()));
    }
}

#[test]
fn words_lines_and_pieces_have_their_limits() {
    for (action, expected) in [
        (
            Action::Http(Request { method: "M".repeat(501), ..request() }),
            "http.method has 501 bytes; at most 500 bytes",
        ),
        (
            Action::Http(Request { sign: vec![Signature { key: "k".repeat(501), ..signature() }], ..request() }),
            "http.sign[].key has 501 bytes; at most 500 bytes",
        ),
        (
            Action::Http(Request {
                sign: vec![Signature { message: vec![Part::Bytes(vec![0; (64 << 10) + 1])], ..signature() }],
                ..request()
            }),
            "a part of http.sign[].message has 65537 bytes; at most 64 KiB",
        ),
        (
            Action::Http(Request {
                sign: vec![Signature { derive: vec![vec![0; (64 << 10) + 1]], ..signature() }],
                ..request()
            }),
            "a step of http.sign[].derive has 65537 bytes; at most 64 KiB",
        ),
        (
            Action::Http(Request { extras: json_object((64 << 10) + 1), ..request() }),
            "http.extras has 65537 bytes; at most 64 KiB",
        ),
        (
            Action::Mail(Message { subject: "s".repeat(2049), ..message() }),
            "mail.subject has 2049 bytes; at most 2 KiB",
        ),
        (
            Action::Mail(Message { thread: Some("s".repeat(2049)), ..message() }),
            "mail.thread has 2049 bytes; at most 2 KiB",
        ),
        (
            Action::Mail(Message { to: vec!["s".repeat(2049)], ..message() }),
            "an address of mail.to has 2049 bytes; at most 2 KiB",
        ),
        (
            Action::Tool(ToolCall { arguments: json_object((1 << 20) + 1), ..call() }),
            "tool.arguments has 1048577 bytes; at most 1 MiB",
        ),
        (Action::Tool(ToolCall { tool: "t".repeat(501), ..call() }), "tool.tool has 501 bytes; at most 500 bytes"),
        (
            Action::Done(Receipt { remember: Some(json_text((64 << 10) + 1)), ..receipt() }),
            "done.remember has 65537 bytes; at most 64 KiB",
        ),
        (
            Action::Failed(Failure { resume: Some(json_text((64 << 10) + 1)), ..failure() }),
            "failed.resume has 65537 bytes; at most 64 KiB",
        ),
        (
            Action::Other(Extension { kind: "k".repeat(501), payload: "{}".into() }),
            "other.kind has 501 bytes; at most 500 bytes",
        ),
    ] {
        assert_eq!(checked(action), Err(expected.to_owned()));
    }
}

#[test]
fn texts_for_people_are_cut_and_cleaned() {
    let noted = Receipt { note: Some("a\nb\u{1b}".into()), reference: Some("r".repeat(3_000)), ..receipt() };
    let Ok(Action::Done(seen)) = checked(Action::Done(noted)) else { panic!("refused") };
    assert_eq!(seen.note.as_deref(), Some("a b"));
    assert_eq!(seen.reference.map(|reference| reference.chars().count()), Some(NOTE_LENGTH_MAX));
    let Ok(Action::Failed(seen)) = checked(Action::Failed(Failure { reason: "a\nb\r".into(), ..failure() })) else {
        panic!("refused")
    };
    assert_eq!(seen.reason, "a\nb ");
}

#[test]
fn a_destination_has_its_limits_too() {
    let lane = |key: &str| Lane { key: key.into(), count: 0, per_seconds: 0, in_flight: 0, ordered: false };
    let destination = |lanes, extras: &str| Destination { label: "a\nb".into(), lanes, extras: extras.into() };
    let labelled = checked_destination(Ok(destination(vec![lane("k"); LANES_MAX], "{}"))).unwrap().unwrap();
    assert_eq!(labelled.label, "a b");
    for (answer, expected) in [
        (Ok(destination(vec![lane("k"); 9], "{}")), "destination.lanes has 9 entries; at most 8"),
        (Ok(destination(vec![lane(&"k".repeat(201))], "{}")), "the key of a lane has 201 bytes; at most 200 bytes"),
        (Ok(destination(vec![], "[]")), "destination.extras is no JSON object; write {} for none"),
        (Err(vec![]), "check refused the settings without naming a problem"),
    ] {
        assert_eq!(checked_destination(answer), Err(expected.to_owned()));
    }
    let problem = Problem { path: String::new(), message: "no".into() };
    let problems = checked_destination(Err(vec![problem; PROBLEMS_MAX + 1])).unwrap().unwrap_err();
    assert_eq!(problems.len(), PROBLEMS_MAX);
}
