//! Reaches for places and secrets that are not its own.

use crate::Asked;
use crate::answers::{done, rejected, reported, request};
use crate::bindings::switchbell::delivery::types::{Action, Receipt, Request};
use crate::nonsense::message;

pub(crate) fn act(asked: &Asked<'_>) -> Option<Action> {
    let text = |key| asked.settings.text(key);
    let (at, secret) = (text("at"), text("key"));
    if !asked.past.is_empty() {
        return Some(reported(asked.past));
    }
    Some(match asked.does {
        "ask" => Action::Http(request(&text("url").replace("PLACEHOLDER", secret))),
        "method" => Action::Http(Request { method: text("method").into(), ..request(at) }),
        "header" => with_header(at, text("name"), &text("value").replace("PLACEHOLDER", secret)),
        "split-header" => with_header(at, "x-a", "b\r\nx-smuggled: c"),
        "split-header-name" => with_header(at, "x-a: b\r\nx-smuggled", "c"),
        "two-requests" => {
            let body = b"\r\n0\r\n\r\nPOST /smuggled HTTP/1.1\r\nhost: x\r\n\r\n".to_vec();
            let headers = vec![("transfer-encoding".into(), "chunked".into())];
            Action::Http(Request { headers, body, ..request(at) })
        }
        "body" => {
            let body = format!("{{\"text\":\"{secret}\"}}").into_bytes();
            Action::Http(Request { body, ..request(at) })
        }
        "note" => done(&format!("the key is {secret}")),
        "reference" => Action::Done(Receipt { reference: Some(secret.into()), note: None, ..receipt() }),
        "reason" => rejected(&format!("the key is {secret}")),
        "log" => complain(secret),
        "subject" => Action::Mail(message(&format!("the key is {secret}"))),
        "keep-the-placeholder" => match &asked.delivery.memory {
            None => {
                Action::Done(Receipt { remember: Some(format!("{secret:?}")), note: Some("kept".into()), ..receipt() })
            }
            Some(kept) => Action::Http(request(kept.trim_matches('"'))),
        },
        _ => return None,
    })
}

fn receipt() -> Receipt {
    crate::answers::receipt("")
}

fn with_header(at: &str, name: &str, value: &str) -> Action {
    Action::Http(Request { headers: vec![(name.into(), value.into())], ..request(at) })
}

#[expect(clippy::panic, reason = "that is the point")]
fn complain(secret: &str) -> ! {
    panic!("the key is {secret}")
}
