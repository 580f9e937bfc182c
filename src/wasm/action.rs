//! What a plugin may answer: limits of the contract (`wit/delivery.wit`) and of sense. What an action may reach is not
//! decided here but by the guard.
//!
//! Texts for people are cut and cleaned, never refused: an attempt that succeeded must not fail for a long note.

use serde_json::Value;

use super::bindings::switchbell::delivery::types::{
    Action, Destination, Extension, Failure, Message, Part, Pause, Problem, Receipt, Request, Signature, ToolCall,
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

/// Bytes of a word that names something: a method, a connector, a tool, a kind, a placeholder, a marker.
const WORD_BYTES_MAX: usize = 500;

/// Bytes of one line of a mail: its subject, its thread, and each address, of which RFC 5321 allows 256.
const LINE_BYTES_MAX: usize = 2 << 10;

/// Bytes of an object with room to grow.
const EXTRAS_BYTES_MAX: usize = 64 << 10;

/// Bytes of one piece of a signed message, and of one step in deriving a key.
const PIECE_BYTES_MAX: usize = 64 << 10;

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
            extras("destination.extras", &destination.extras)?;
            destination.label = one_line(&destination.label, LABEL_LENGTH_MAX);
            Ok(Ok(destination))
        }
    }
}

fn checked_problem(problem: Problem) -> Problem {
    Problem { path: one_line(&problem.path, NOTE_LENGTH_MAX), message: one_line(&problem.message, NOTE_LENGTH_MAX) }
}

fn check_request(request: &Request) -> Result<(), String> {
    size("http.method", request.method.len(), WORD_BYTES_MAX)?;
    size("http.url", request.url.len(), URL_BYTES_MAX)?;
    most("http.headers", request.headers.len(), HEADERS_MAX)?;
    for (name, value) in &request.headers {
        size("a header of http.headers", name.len() + value.len(), HEADER_BYTES_MAX)?;
    }
    size("http.body", request.body.len(), BODY_BYTES_MAX)?;
    most("http.sign", request.sign.len(), SIGNATURES_MAX)?;
    request.sign.iter().try_for_each(check_signature)?;
    extras("http.extras", &request.extras)
}

fn check_signature(signature: &Signature) -> Result<(), String> {
    if signature.marker.is_empty() {
        return Err("a signature of http.sign has an empty marker; choose a text that occurs nowhere else".into());
    }
    for (place, word) in [
        ("http.sign[].marker", &signature.marker),
        ("http.sign[].algorithm", &signature.algorithm),
        ("http.sign[].encoding", &signature.encoding),
        ("http.sign[].key", &signature.key),
    ] {
        size(place, word.len(), WORD_BYTES_MAX)?;
    }
    most("http.sign[].derive", signature.derive.len(), SIGNATURES_MAX)?;
    most("http.sign[].message", signature.message.len(), PARTS_MAX)?;
    let derive = signature.derive.iter().map(|step| ("a step of http.sign[].derive", step.len()));
    let message = signature.message.iter().map(|part| ("a part of http.sign[].message", part_bytes(part)));
    derive.chain(message).try_for_each(|(place, bytes)| size(place, bytes, PIECE_BYTES_MAX))
}

fn part_bytes(part: &Part) -> usize {
    match part {
        Part::Bytes(bytes) => bytes.len(),
        Part::Secret(word) | Part::BodyHash(word) | Part::Header(word) => word.len(),
        Part::Url | Part::Body => 0,
    }
}

fn check_message(message: &Message) -> Result<(), String> {
    if message.to.is_empty() {
        return Err("mail.to is empty; name at least one address".into());
    }
    most("mail.to", message.to.len(), RECIPIENTS_MAX)?;
    message.to.iter().try_for_each(|address| size("an address of mail.to", address.len(), LINE_BYTES_MAX))?;
    size("mail.subject", message.subject.len(), LINE_BYTES_MAX)?;
    size("mail.thread", message.thread.as_ref().map_or(0, String::len), LINE_BYTES_MAX)?;
    size("mail.text", message.text.len(), BODY_BYTES_MAX)?;
    extras("mail.extras", &message.extras)
}

fn check_call(call: &ToolCall) -> Result<(), String> {
    size("tool.connector", call.connector.len(), WORD_BYTES_MAX)?;
    size("tool.tool", call.tool.len(), WORD_BYTES_MAX)?;
    size("tool.arguments", call.arguments.len(), BODY_BYTES_MAX)?;
    object("tool.arguments", &call.arguments)?;
    extras("tool.extras", &call.extras)
}

fn check_pause(pause: &Pause) -> Result<(), String> {
    kept("wait.resume", pause.resume.as_deref())
}

fn checked_receipt(receipt: Receipt) -> Result<Receipt, String> {
    kept("done.remember", receipt.remember.as_deref())?;
    extras("done.extras", &receipt.extras)?;
    let line = |text: Option<String>| text.map(|text| one_line(&text, NOTE_LENGTH_MAX));
    Ok(Receipt { reference: line(receipt.reference), note: line(receipt.note), ..receipt })
}

fn checked_failure(failure: Failure) -> Result<Failure, String> {
    kept("failed.resume", failure.resume.as_deref())?;
    extras("failed.extras", &failure.extras)?;
    Ok(Failure { reason: lines(&failure.reason, NOTE_LENGTH_MAX), ..failure })
}

fn check_extension(extension: &Extension) -> Result<(), String> {
    size("other.kind", extension.kind.len(), WORD_BYTES_MAX)?;
    size("other.payload", extension.payload.len(), BODY_BYTES_MAX)?;
    json("other.payload", &extension.payload).map(|_| ())
}

fn kept(place: &str, text: Option<&str>) -> Result<(), String> {
    let Some(text) = text else { return Ok(()) };
    size(place, text.len(), KEPT_BYTES_MAX)?;
    json(place, text).map(|_| ())
}

fn extras(place: &str, text: &str) -> Result<(), String> {
    size(place, text.len(), EXTRAS_BYTES_MAX)?;
    object(place, text)
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
mod tests;
