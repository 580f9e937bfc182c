//! What a plugin may answer: limits of the contract (`wit/delivery.wit`) and of sense. What an action may reach is not
//! decided here but by the guard.
//!
//! Texts for people are cut and cleaned, never refused: an attempt that succeeded must not fail for a long note.

use serde_json::Value;

use super::bindings::switchbell::delivery::types::{
    Action, Destination, Extension, Failure, Message, Pause, Problem, Receipt, Request, ToolCall,
};
use super::text::{bytes, lines, one_line};

/// Characters of a note, reason or reference.
const NOTE_LENGTH_MAX: usize = 2_000;

/// Bytes of a request's URL.
const URL_BYTES_MAX: usize = 8 << 10;

/// Headers of a request.
const HEADERS_MAX: usize = 64;

/// Bytes of a header's name and value.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// Signatures of a request, and steps in deriving the key of one.
const SIGNATURES_MAX: usize = 8;

/// Pieces of a signed message.
const PARTS_MAX: usize = 64;

/// Recipients of a mail.
const RECIPIENTS_MAX: usize = 100;

/// Bytes of what is kept between attempts or deliveries.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Problems of settings that are shown.
const PROBLEMS_MAX: usize = 100;

/// Characters of a destination's label, and bytes of a lane's key.
const LABEL_LENGTH_MAX: usize = 200;

/// Lanes of a destination.
const LANES_MAX: usize = 8;

/// The action, with texts for people cut to size.
///
/// # Errors
/// What is wrong with it, and what the contract wants.
pub(super) fn checked(action: Action) -> Result<Action, String> {
    match action {
        Action::Http(request) => check_request(&request).map(|()| Action::Http(request)),
        Action::Mail(message) => check_message(&message).map(|()| Action::Mail(message)),
        Action::Tool(call) => check_call(&call).map(|()| Action::Tool(call)),
        Action::Wait(pause) => check_pause(&pause).map(|()| Action::Wait(pause)),
        Action::Done(receipt) => checked_receipt(receipt).map(Action::Done),
        Action::Failed(failure) => checked_failure(failure).map(Action::Failed),
        Action::Other(extension) => check_extension(&extension).map(|()| Action::Other(extension)),
    }
}

/// The answer of `check`, with texts for people cut to size.
///
/// # Errors
/// What is wrong with it.
pub(super) fn checked_destination(
    answer: Result<Destination, Vec<Problem>>,
) -> Result<Result<Destination, Vec<Problem>>, String> {
    match answer {
        Err(problems) if problems.is_empty() => Err("check refused the settings without naming a problem".into()),
        Err(problems) => Ok(Err(problems.into_iter().take(PROBLEMS_MAX).map(checked_problem).collect())),
        Ok(mut destination) => {
            most("destination.lanes", destination.lanes.len(), LANES_MAX)?;
            for lane in &destination.lanes {
                size("the key of a lane", lane.key.len(), LABEL_LENGTH_MAX)?;
            }
            object("destination.extras", &destination.extras)?;
            destination.label = one_line(&destination.label, LABEL_LENGTH_MAX);
            Ok(Ok(destination))
        }
    }
}

fn checked_problem(problem: Problem) -> Problem {
    Problem { path: one_line(&problem.path, NOTE_LENGTH_MAX), message: one_line(&problem.message, NOTE_LENGTH_MAX) }
}

fn check_request(request: &Request) -> Result<(), String> {
    size("http.url", request.url.len(), URL_BYTES_MAX)?;
    most("http.headers", request.headers.len(), HEADERS_MAX)?;
    for (name, value) in &request.headers {
        size("a header of http.headers", name.len() + value.len(), HEADER_BYTES_MAX)?;
    }
    size("http.body", request.body.len(), BODY_BYTES_MAX)?;
    most("http.sign", request.sign.len(), SIGNATURES_MAX)?;
    for signature in &request.sign {
        if signature.marker.is_empty() {
            return Err("a signature of http.sign has an empty marker; choose a text that occurs nowhere else".into());
        }
        most("http.sign[].derive", signature.derive.len(), SIGNATURES_MAX)?;
        most("http.sign[].message", signature.message.len(), PARTS_MAX)?;
    }
    object("http.extras", &request.extras)
}

fn check_message(message: &Message) -> Result<(), String> {
    if message.to.is_empty() {
        return Err("mail.to is empty; name at least one address".into());
    }
    most("mail.to", message.to.len(), RECIPIENTS_MAX)?;
    size("mail.text", message.text.len(), BODY_BYTES_MAX)?;
    object("mail.extras", &message.extras)
}

fn check_call(call: &ToolCall) -> Result<(), String> {
    size("tool.arguments", call.arguments.len(), BODY_BYTES_MAX)?;
    object("tool.arguments", &call.arguments)?;
    object("tool.extras", &call.extras)
}

fn check_pause(pause: &Pause) -> Result<(), String> {
    kept("wait.resume", pause.resume.as_deref())
}

fn checked_receipt(receipt: Receipt) -> Result<Receipt, String> {
    kept("done.remember", receipt.remember.as_deref())?;
    object("done.extras", &receipt.extras)?;
    let line = |text: Option<String>| text.map(|text| one_line(&text, NOTE_LENGTH_MAX));
    Ok(Receipt { reference: line(receipt.reference), note: line(receipt.note), ..receipt })
}

fn checked_failure(failure: Failure) -> Result<Failure, String> {
    kept("failed.resume", failure.resume.as_deref())?;
    object("failed.extras", &failure.extras)?;
    Ok(Failure { reason: lines(&failure.reason, NOTE_LENGTH_MAX), ..failure })
}

fn check_extension(extension: &Extension) -> Result<(), String> {
    size("other.payload", extension.payload.len(), BODY_BYTES_MAX)?;
    json("other.payload", &extension.payload).map(|_| ())
}

fn kept(place: &str, text: Option<&str>) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    size(place, text.len(), KEPT_BYTES_MAX)?;
    json(place, text).map(|_| ())
}

fn object(place: &str, text: &str) -> Result<(), String> {
    // Nearly every answer has this one.
    if text == "{}" {
        return Ok(());
    }
    if json(place, text)?.is_object() { Ok(()) } else { Err(format!("{place} is no JSON object; write {{}} for none")) }
}

fn json(place: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{place} is no JSON: {error}"))
}

fn size(place: &str, found: usize, most: usize) -> Result<(), String> {
    if found <= most { Ok(()) } else { Err(format!("{place} has {found} bytes; at most {}", bytes(most))) }
}

fn most(place: &str, found: usize, most: usize) -> Result<(), String> {
    if found <= most { Ok(()) } else { Err(format!("{place} has {found} entries; at most {most}")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wasm::bindings::switchbell::delivery::types::{FailureKind, Lane, Part, Signature};

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
            Action::Other(Extension { kind: "later".into(), payload: "null".into() }),
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
            (
                Action::Http(Request { sign: vec![in_parts], ..request() }),
                "http.sign[].message has 65 entries; at most 64",
            ),
            (Action::Http(Request { sign: vec![derived], ..request() }), "http.sign[].derive has 9 entries; at most 8"),
            (
                Action::Http(Request { extras: String::new(), ..request() }),
                "http.extras is no JSON: EOF while parsing a value at line 1 column 0",
            ),
            (Action::Mail(Message { to: vec![], ..message() }), "mail.to is empty; name at least one address"),
            (
                Action::Mail(Message { to: vec![String::new(); 101], ..message() }),
                "mail.to has 101 entries; at most 100",
            ),
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
}
