//! Answers what no plugin may answer, or what makes no sense.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::Asked;
use crate::answers::{done, failure, receipt, rejected, reported, request};
use crate::bindings::switchbell::delivery::types::{
    Action, Destination, Extension, Failure, FailureKind, Lane, Message, Pause, Problem, Receipt, Request, Signature,
    ToolCall,
};

/// How many steps this instance was asked: state that must not outlive its attempt.
static STEPS: AtomicU32 = AtomicU32::new(0);

const MEBIBYTE: usize = 1 << 20;

pub(crate) fn act(asked: &Asked<'_>) -> Option<Action> {
    let at = asked.settings.text("at");
    let calls = STEPS.fetch_add(1, Ordering::Relaxed) + 1;
    Some(match (asked.does, asked.past.len()) {
        ("trap", _) => std::process::abort(),
        ("panic", _) => complain_and_panic(),
        ("exit", _) => std::process::exit(0),
        ("bad-text", _) => Action::Done(Receipt { note: Some(no_text()), ..receipt("") }),
        ("bad-extras", _) => Action::Http(Request { extras: "nothing".into(), ..request(at) }),
        ("bad-resume", _) => Action::Wait(Pause { seconds: 1, resume: Some("{".into()) }),
        ("deep-extras", _) => Action::Http(Request { extras: "[".repeat(60_000), ..request(at) }),
        ("absurd-numbers", 0) => {
            Action::Http(Request { timeout_ms: Some(u32::MAX), response_max: Some(u32::MAX), ..request(at) })
        }
        ("absurd-numbers", _) => {
            let kind = FailureKind::Retry;
            Action::Failed(Failure { kind, after_seconds: Some(u32::MAX), ..failure("come back in 136 years") })
        }
        ("no-time", 0) => Action::Http(Request { timeout_ms: Some(0), ..request(at) }),
        ("absurd-lanes", _) => done("through absurd lanes"),
        ("many-headers", _) => {
            Action::Http(Request { headers: vec![("x-a".into(), "b".into()); 5_000], ..request(at) })
        }
        ("long-url", _) => Action::Http(Request { url: format!("{at}/{}", "x".repeat(MEBIBYTE)), ..request(at) }),
        ("huge-body", _) => Action::Http(Request { body: vec![0; MEBIBYTE + 1], ..request(at) }),
        ("huge-answer", _) => Action::Http(Request { body: vec![0; 8 * MEBIBYTE], ..request(at) }),
        ("huge-note", _) => done(&"n".repeat(MEBIBYTE)),
        ("huge-remember", _) => Action::Done(Receipt { remember: Some(json_text(MEBIBYTE)), ..receipt("") }),
        ("huge-resume", _) => Action::Wait(Pause { seconds: 1, resume: Some(json_text(MEBIBYTE)) }),
        ("escapes", _) => rejected("\u{1b}[2J\u{202e}gone\r\nroute=another-route delivered"),
        ("nobody-to-mail", _) => Action::Mail(Message { to: vec![], ..message("s") }),
        ("empty-marker", _) => Action::Http(Request { sign: vec![signature()], ..request(at) }),
        ("unknown-action", 0) => Action::Other(Extension { kind: "x".repeat(100), payload: "{}".into() }),
        ("unknown-action" | "no-time" | "tool", 1) => reported(asked.past),
        ("tool", _) => Action::Tool(ToolCall {
            connector: "registrar".into(),
            tool: "restart_everything".into(),
            arguments: "{}".into(),
            timeout_ms: None,
            extras: "{}".into(),
        }),
        ("count", 0) => Action::Http(request(at)),
        ("count", _) => done(&format!("asked {calls} times, reminded of {:?}", asked.delivery.memory)),
        ("change-its-mind", 0) => Action::Http(request(&format!("{at}/held"))),
        ("change-its-mind", 1) => Action::Http(request(&format!("{at}/asked/{calls}"))),
        ("change-its-mind", 2) => Action::Http(request(&format!("{at}/never"))),
        ("change-its-mind", _) => done("made up its mind"),
        _ => return None,
    })
}

pub(crate) fn destination(lanes: usize, key: &str) -> Destination {
    let lane = |number| Lane {
        key: format!("{key}{number}"),
        count: u32::MAX,
        per_seconds: u32::MAX,
        in_flight: u32::MAX,
        ordered: true,
    };
    Destination { label: "nowhere".into(), lanes: (0..lanes).map(lane).collect(), extras: "{}".into() }
}

pub(crate) fn problems(count: usize) -> Vec<Problem> {
    vec![Problem { path: "/does".into(), message: "no".into() }; count]
}

pub(crate) fn message(subject: &str) -> Message {
    Message {
        to: vec!["ops@example.com".into()],
        subject: subject.into(),
        text: "t".into(),
        thread: None,
        extras: "{}".into(),
    }
}

fn signature() -> Signature {
    Signature {
        marker: String::new(),
        algorithm: "hmac-sha256".into(),
        encoding: "hex".into(),
        key: "k".into(),
        derive: vec![],
        message: vec![],
    }
}

/// A JSON text of so many bytes and two.
fn json_text(bytes: usize) -> String {
    format!("\"{}\"", "m".repeat(bytes))
}

/// Bytes that are no UTF-8, where a text is wanted.
#[expect(unsafe_code, reason = "a plugin in another language could hand over any bytes")]
fn no_text() -> String {
    // SAFETY: nothing reads it as a text before it has left the plugin.
    unsafe { String::from_utf8_unchecked(vec![0xff, 0xfe, b'x']) }
}

#[expect(clippy::panic, reason = "that is the point")]
fn complain_and_panic() -> ! {
    panic!("the channel\nis on fire")
}
