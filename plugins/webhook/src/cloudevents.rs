//! CloudEvents 1.0: the event as the connector made it, `data` verbatim, and what Switchbell knows of it as attributes.
//!
//! A digest is a batch of events (JSON Event Format, section 4), in binary mode, too, which has none.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::http::header;
use switchbell_kit::json::{Object, list};
use switchbell_kit::types::{Delivery, Notification};
use switchbell_kit::{level, text};

use crate::percent::encoded;
use crate::request::{Fitting, Payload, fitting};

/// The type of the event that stands for what a digest leaves out.
const OMITTED: &str = "switchbell.omitted";

/// The longest body as an attribute in a header, in bytes: all headers of a request have 16 KiB, and names, titles and
/// subjects of the longest kind take two thirds of that.
const BODY_BYTES_MAX: usize = 1_000;

/// The longest link as an attribute in a header, in bytes. A longer one is left out: cut, it would lead elsewhere.
const LINK_BYTES_MAX: usize = 2_048;

/// Structured mode: attributes and data in one JSON object, or a list of them.
#[inline(never)]
pub(crate) fn structured(delivery: &Delivery) -> Payload {
    match delivery.notifications.as_slice() {
        [only] if delivery.omitted == 0 => {
            let headers = vec![header("content-type", "application/cloudevents+json; charset=UTF-8")];
            Payload { headers, body: event(delivery, only) }
        }
        notifications => {
            let headers = vec![header("content-type", "application/cloudevents-batch+json; charset=UTF-8")];
            let all = notifications.iter().map(|notification| event(delivery, notification));
            let Fitting { mut items, omitted } = fitting(all, delivery.omitted);
            if omitted > 0 {
                items.push(omission(delivery, omitted));
            }
            Payload { headers, body: list(items) }
        }
    }
}

/// Binary mode: attributes in headers, data in the body. A digest is a batch.
pub(crate) fn binary(delivery: &Delivery) -> Payload {
    let [only] = delivery.notifications.as_slice() else { return structured(delivery) };
    if delivery.omitted > 0 {
        return structured(delivery);
    }
    let mut headers = vec![header("content-type", "application/json")];
    for (name, value) in attributes(delivery, only) {
        let bytes_max = if name == "body" { BODY_BYTES_MAX } else { usize::MAX };
        let value = encoded(&value, bytes_max);
        if name != "link" || value.len() <= LINK_BYTES_MAX {
            headers.push((format!("ce-{name}"), value));
        }
    }
    Payload { headers, body: data(only).to_owned() }
}

fn event(delivery: &Delivery, notification: &Notification) -> String {
    let mut object = Object::new();
    for (name, value) in attributes(delivery, notification) {
        object.text(name, &value);
    }
    object.text("datacontenttype", "application/json").raw("data", data(notification)).end()
}

fn data(notification: &Notification) -> &str {
    notification.data.as_deref().unwrap_or("null")
}

/// Required and optional attributes, then extensions, whose names are lower-case letters. An event's id is unique within its
/// source: both name the workspace and the connector, whose names hold no slash.
#[inline(never)]
fn attributes(delivery: &Delivery, notification: &Notification) -> Vec<(&'static str, String)> {
    let Notification { source, event_id, .. } = notification;
    let workspace = &delivery.workspace;
    let all = [
        ("specversion", Some("1.0".to_owned())),
        ("id", Some(legal(&format!("{workspace}/{source}/{event_id}")))),
        ("source", Some(format!("/switchbell/{workspace}/{source}"))),
        ("type", Some(legal(&notification.name))),
        ("time", Some(notification.timestamp.clone())),
        ("subject", notification.subject.as_deref().map(line)),
        ("level", Some(level::name(notification.level).to_owned())),
        ("title", Some(line(&notification.title))),
        ("body", notification.body.as_deref().map(line)),
        ("link", notification.link.as_deref().map(line)),
        ("workspaceid", Some(workspace.clone())),
        ("route", Some(delivery.route.clone())),
        ("receivedat", Some(notification.received_at.clone())),
        // A whole number has 32 bits there, so it is text.
        ("seq", Some(notification.seq.to_string())),
    ];
    let present =
        |(name, value): (&'static str, Option<String>)| Some((name, value.filter(|value| !value.is_empty())?));
    all.into_iter().filter_map(present).collect()
}

/// What a digest leaves out, as an event of its own: a batch has no other place to say so.
fn omission(delivery: &Delivery, omitted: u64) -> String {
    let workspace = &delivery.workspace;
    let data = Object::new().number("omitted", omitted).optional("inboxUrl", delivery.inbox_url.as_deref()).end();
    Object::new()
        .text("specversion", "1.0")
        .text("id", &format!("{workspace}/{}/omitted", delivery.id))
        .text("source", &format!("/switchbell/{workspace}"))
        .text("type", OMITTED)
        .text("time", &delivery.due_at)
        .text("workspaceid", workspace)
        .text("route", &delivery.route)
        .text("datacontenttype", "application/json")
        .raw("data", &data)
        .end()
}

/// Text for an attribute: one line.
fn line(text: &str) -> String {
    legal(&text::one_line(text))
}

/// Attributes hold no control characters and no code points that are no characters (CloudEvents 1.0, "String").
fn legal(text: &str) -> String {
    let is_none = |letter: char| {
        let code = u32::from(letter);
        letter.is_control() || code & 0xfffe == 0xfffe || (0xfdd0..=0xfdef).contains(&code)
    };
    text.chars().map(|letter| if is_none(letter) { char::REPLACEMENT_CHARACTER } else { letter }).collect()
}
