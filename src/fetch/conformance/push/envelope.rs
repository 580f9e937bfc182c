//! One event, on whichever way it came: its envelope and its content.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::client::said;
use super::rules as is;
use crate::fetch::conformance::report::Ledger;
use crate::fetch::conformance::rules::Rule;
use crate::fetch::event::moment;

/// Decoded media of one block that is taken for bounded, in bytes.
const MEDIA_BYTES_MAX: usize = 1 << 20;

/// What an envelope may hold.
const FIELDS: [&str; 6] = ["eventId", "sourceId", "type", "createdAt", "content", "data"];

/// The id of an event, where it has one.
pub(super) fn id_of(event: &Value) -> Option<&str> {
    event.get("eventId").and_then(Value::as_str).filter(|id| !id.is_empty())
}

/// Judges an event.
pub(super) fn judge(event: &Value, ledger: &mut Ledger) {
    let Value::Object(fields) = event else {
        ledger.fail(&is::EVENT_ID, format!("an event is no object: {}", said(&event.to_string())));
        return;
    };
    let id = said(id_of(event).unwrap_or("an event"));
    for (rule, field) in [(&is::EVENT_ID, "eventId"), (&is::EVENT_SOURCE, "sourceId"), (&is::EVENT_TYPE, "type")] {
        match fields.get(field) {
            Some(Value::String(text)) if !text.is_empty() => ledger.pass(rule, "every event that came"),
            found => ledger.fail(rule, format!("{id}: {field} is {}", shown(found))),
        }
    }
    judge_moment(&id, fields.get("createdAt"), ledger);
    match fields.get("content") {
        Some(Value::Array(blocks)) => judge_blocks(&id, blocks, ledger),
        found => ledger.fail(&is::EVENT_CONTENT, format!("{id}: content is {}", shown(found))),
    }
    match fields.get("data") {
        None | Some(Value::Object(_)) => ledger.pass(&is::EVENT_DATA, "every event that came"),
        found => ledger.fail(&is::EVENT_DATA, format!("{id}: data is {}", shown(found))),
    }
    match fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        None => ledger.pass(&is::EVENT_FIELDS, "no other field"),
        Some(other) => ledger.fail(&is::EVENT_FIELDS, format!("{id}: there is a field {:?}", said(other))),
    }
}

/// Judges the events of one page together.
pub(super) fn judge_ids(events: &[Value], ledger: &mut Ledger) {
    let mut seen = BTreeSet::new();
    for id in events.iter().filter_map(id_of) {
        if !seen.insert(id) {
            ledger.fail(&is::EVENT_ID, format!("{} is there twice in one page", said(id)));
        }
    }
}

fn judge_moment(id: &str, found: Option<&Value>, ledger: &mut Ledger) {
    let Some(text) = found.and_then(Value::as_str).filter(|text| moment::parse(text).is_some()) else {
        ledger.fail(&is::EVENT_CREATED, format!("{id}: createdAt is {}", shown(found)));
        return;
    };
    ledger.pass(&is::EVENT_CREATED, "every event that came");
    match text.ends_with('Z') && text.contains('T') {
        true => ledger.pass(&is::EVENT_ZONE, "every event that came"),
        false => ledger.fail(&is::EVENT_ZONE, format!("{id}: createdAt is {:?}", said(text))),
    }
}

fn judge_blocks(id: &str, blocks: &[Value], ledger: &mut Ledger) {
    ledger.pass(&is::EVENT_CONTENT, "every block is one of MCP's");
    ledger.pass(&is::EVENT_MEDIA, "none is too large");
    for (block, number) in blocks.iter().zip(0_usize..) {
        if let Err(wrong) = judge_block(block) {
            let (rule, why) = match wrong {
                Wrong::Form(why) => (&is::EVENT_CONTENT, why),
                Wrong::Large(bytes) => (&is::EVENT_MEDIA, format!("inline media of {bytes} bytes")),
            };
            let rule: &'static Rule = rule;
            ledger.fail(rule, format!("{id}: content[{number}]: {why}"));
        }
    }
}

enum Wrong {
    Form(String),
    Large(usize),
}

fn judge_block(block: &Value) -> Result<(), Wrong> {
    let Value::Object(fields) = block else {
        return Err(Wrong::Form(format!("{} is no object", said(&block.to_string()))));
    };
    let (needed, allowed): (&[&str], &[&str]) = match fields.get("type").and_then(Value::as_str) {
        Some("text") => (&["text"], &[]),
        Some("image" | "audio") => (&["data", "mimeType"], &[]),
        Some("resource_link") => (&["uri", "name"], &["title", "description", "mimeType", "size", "icons"]),
        Some("resource") => (&[], &["resource"]),
        _ => return Err(Wrong::Form(format!("type is {}", shown(fields.get("type"))))),
    };
    are_texts(fields, needed)?;
    let known =
        |key: &str| ["type", "annotations", "_meta"].contains(&key) || needed.contains(&key) || allowed.contains(&key);
    if let Some(other) = fields.keys().find(|key| !known(key)) {
        return Err(Wrong::Form(format!("there is a field {:?}", said(other))));
    }
    match fields.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => judge_media(fields, "data"),
        Some("resource") => judge_resource(fields.get("resource")),
        _ => Ok(()),
    }
}

fn judge_resource(resource: Option<&Value>) -> Result<(), Wrong> {
    let Some(Value::Object(fields)) = resource else {
        return Err(Wrong::Form(format!("resource is {}", shown(resource))));
    };
    are_texts(fields, &["uri"])?;
    match (fields.get("text"), fields.get("blob")) {
        (Some(Value::String(_)), None) => Ok(()),
        (None, Some(_)) => {
            are_texts(fields, &["blob"])?;
            judge_media(fields, "blob")
        }
        _ => Err(Wrong::Form("a resource wants either `text` or `blob`, a text".to_owned())),
    }
}

fn judge_media(fields: &Map<String, Value>, field: &str) -> Result<(), Wrong> {
    let text = fields.get(field).and_then(Value::as_str).unwrap_or_default();
    match STANDARD.decode(text) {
        Ok(bytes) if bytes.len() > MEDIA_BYTES_MAX => Err(Wrong::Large(bytes.len())),
        Ok(_) => Ok(()),
        Err(_) => Err(Wrong::Form(format!("{field} is not base64"))),
    }
}

fn are_texts(fields: &Map<String, Value>, needed: &[&str]) -> Result<(), Wrong> {
    match needed.iter().find(|field| !fields.get(**field).is_some_and(Value::is_string)) {
        Some(field) => Err(Wrong::Form(format!("{field} is {}", shown(fields.get(*field))))),
        None => Ok(()),
    }
}

fn shown(found: Option<&Value>) -> String {
    found.map_or_else(|| "missing".to_owned(), |found| said(&found.to_string()))
}
