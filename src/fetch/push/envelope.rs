//! The rules of an event of a push queue (push-notifications seed, "Event envelope"): one pure function from its JSON to an
//! event that is accepted, or the reason why it is refused.
//!
//! `data` and `content` are carried as the text they came as. Earlier drafts of the extension had `payload` in place of both:
//! it stands in for data that is missing.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::media::{self, Fitted};
use crate::fetch::event::{
    BODY_CHARS_MAX, DATA_DEPTH_MAX, EVENT_BYTES_MAX, EVENT_ID_CHARS_MAX, Field, LINE_CHARS_MAX, NAME_CHARS_MAX, Reason,
    link_to, moment_of, named, optional, payload, required, string, title_from,
};
use crate::fetch::json::{self, Kind, elements, fields, kind};
use crate::notification::{Event, Level};
use crate::text;

/// Judges one event by its JSON text; `levels` gives the level of each name that has one of its own.
///
/// # Errors
/// The first rule it breaks.
pub fn judge(event: &RawValue, levels: &BTreeMap<String, Level>) -> Result<Event, Reason> {
    let not_an_object = |_| Reason::NotAnObject { found: kind(event) };
    let keys = ["eventId", "sourceId", "type", "createdAt", "content", "data", "payload"];
    let [event_id, source_id, name, created_at, content, data, old] =
        fields(event.get(), keys).map_err(not_an_object)?;

    let event_id = named(Field::EventId, required(Field::EventId, event_id)?, EVENT_ID_CHARS_MAX)?;
    let name = name_of(required(Field::Type, name)?)?;
    let timestamp = moment_of(Field::CreatedAt, created_at)?;
    let subject = optional(source_id).map(subject_of).transpose()?.filter(|subject| !subject.is_empty());
    let data = optional(data).or(optional(old)).map(payload).transpose()?.unwrap_or("{}").to_owned();
    let bytes = event.get().len();
    let blocks = optional(content).map(blocks_of).transpose()?.unwrap_or_default();
    let content = content.filter(|_| !blocks.is_empty()).map(|content| content.get().to_owned());
    let Said { title, body, link } = said(&blocks);
    let content = match content {
        Some(content) if bytes > EVENT_BYTES_MAX => {
            let room = EVENT_BYTES_MAX.saturating_sub(bytes.saturating_sub(content.len()));
            match media::fit(&blocks, room) {
                Fitted::Fits(content) => Some(content),
                Fitted::TooLarge => return Err(Reason::TooLarge { bytes }),
            }
        }
        _ if bytes > EVENT_BYTES_MAX => return Err(Reason::TooLarge { bytes }),
        content => content,
    };
    let level = levels.get(&name).copied().unwrap_or(Level::Info);
    let title = Some(title).filter(|title| !title.is_empty()).unwrap_or_else(|| title_from(&name));
    Ok(Event { event_id, name, timestamp, level, subject, title, body, link, data, content })
}

/// The `eventId` of an event, whatever else is wrong with it: what it is acknowledged by. None where it has none that
/// could be sent back.
pub fn acknowledged_by(event: &RawValue) -> Option<String> {
    let [event_id] = fields(event.get(), ["eventId"]).ok()?;
    json::string(event_id?).map(String::from).filter(|id| !id.is_empty())
}

/// A type as a name: each run of white space and control characters becomes `_`.
fn name_of(value: &RawValue) -> Result<String, Reason> {
    let written = string(Field::Type, value)?;
    let mut name = String::with_capacity(written.len());
    let mut in_run = false;
    for next in written.chars() {
        let is_gap = next.is_whitespace() || next.is_control();
        match (is_gap, in_run) {
            (true, true) => {}
            (true, false) => name.push('_'),
            (false, _) => name.push(next),
        }
        in_run = is_gap;
    }
    match name.chars().count() {
        0 => Err(Reason::Empty(Field::Type)),
        chars if chars > NAME_CHARS_MAX => {
            Err(Reason::TooLong { field: Field::Type, chars, chars_max: NAME_CHARS_MAX })
        }
        _ => Ok(name),
    }
}

fn subject_of(value: &RawValue) -> Result<String, Reason> {
    let found = kind(value);
    let shown = json::text(value).ok_or(Reason::WrongType { field: Field::SourceId, found })?;
    Ok(text::line(&shown, LINE_CHARS_MAX))
}

fn blocks_of(value: &RawValue) -> Result<Vec<&RawValue>, Reason> {
    let wrong = |_| Reason::WrongType { field: Field::Content, found: kind(value) };
    let (blocks, _) = elements(value.get(), usize::MAX).map_err(wrong)?;
    match json::depth(value) {
        levels if levels > DATA_DEPTH_MAX => Err(Reason::TooDeep { field: Field::Content, levels }),
        _ => Ok(blocks),
    }
}

/// What content blocks say to people.
#[derive(Debug, Default)]
struct Said {
    title: String,
    body: Option<String>,
    link: Option<String>,
}

fn said(blocks: &[&RawValue]) -> Said {
    let mut said = Said::default();
    let mut paragraphs: Vec<String> = Vec::new();
    let mut is_first = true;
    for block in blocks.iter().filter(|block| kind(block) == Kind::Object) {
        let Ok([kind, text, uri]) = fields(block.get(), ["type", "text", "uri"]) else { continue };
        match kind.and_then(json::string).as_deref() {
            Some("text") => {
                let Some(words) = text.and_then(json::text) else { continue };
                if std::mem::take(&mut is_first) {
                    let (line, rest) = words.split_once(['\n', '\r']).unwrap_or((&words, ""));
                    said.title = text::line(line, LINE_CHARS_MAX);
                    paragraphs.push(rest.to_owned());
                } else {
                    paragraphs.push(words.into_owned());
                }
            }
            // A link that may not stand is none; the block itself stays in the content.
            Some("resource_link") if said.link.is_none() => said.link = uri.and_then(|uri| link_to(uri).ok()),
            _ => {}
        }
    }
    let paragraphs: Vec<&str> = paragraphs.iter().map(|words| words.trim()).filter(|words| !words.is_empty()).collect();
    let body = text::lines(&paragraphs.join("\n\n"), BODY_CHARS_MAX);
    said.body = Some(body).filter(|body| !body.is_empty());
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Result<Event, Reason> {
        let levels =
            BTreeMap::from([("process.exited".to_owned(), Level::Attention), ("a_b".to_owned(), Level::Urgent)]);
        judge(&RawValue::from_string(text.to_owned()).unwrap(), &levels)
    }

    fn with(rest: &str) -> String {
        format!(r#"{{"eventId":"e1","type":"process.exited","createdAt":"2026-07-20T10:30:00.000Z"{rest}}}"#)
    }

    fn accepted(text: &str) -> Event {
        judged(text).unwrap_or_else(|reason| panic!("{text}: {reason}"))
    }

    fn refused(text: &str, expected: &str) {
        let reason = judged(text).expect_err(text).to_string();
        assert!(reason.contains(expected), "{text}: {reason}");
    }

    #[test]
    fn every_field_finds_its_place() {
        let content = r#"[{"type":"text","text":"exited with 1\nand more"}, {"text":"last","type":"text"},{"type":"resource_link","uri":"file:///x"},{"type":"resource_link","uri":"acme://log/1","name":"log"},{"type":"resource_link","uri":"acme://2"}]"#;
        let data = r#"{ "b":1.0,"a":1e400, "n":123456789012345678901234567890, "a":"\u0041" }"#;
        let event = accepted(&with(&format!(r#","sourceId":"computer:local","content": {content} ,"data": {data}"#)));
        assert_eq!((event.event_id.as_str(), event.name.as_str()), ("e1", "process.exited"));
        assert_eq!((event.subject.as_deref(), event.level), (Some("computer:local"), Level::Attention));
        assert_eq!((event.title.as_str(), event.body.as_deref()), ("exited with 1", Some("and more\n\nlast")));
        assert_eq!(event.link.as_deref(), Some("acme://log/1"));
        assert_eq!(event.timestamp.to_string(), "2026-07-20T10:30:00Z");
        assert_eq!((event.data.as_str(), event.content.as_deref()), (data, Some(content)));
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        for rest in ["", r#","content":[],"data":null,"sourceId":null"#, r#","content":null,"sourceId":" \u0000 ""#] {
            let event = accepted(&with(rest));
            assert_eq!(
                (event.data.as_str(), event.content, event.subject, event.body),
                ("{}", None, None, None),
                "{rest}"
            );
            assert_eq!((event.title.as_str(), event.link), ("process.exited", None), "{rest}");
        }
        let empty = accepted(&with(r#","content":[{"type":"text","text":"\nbelow"}]"#));
        assert_eq!((empty.title.as_str(), empty.body.as_deref()), ("process.exited", Some("below")));
    }

    #[test]
    fn a_type_is_never_refused_for_its_white_space() {
        let named =
            |kind: &str| accepted(&format!(r#"{{"eventId":"e","type":"{kind}","createdAt":"2026-07-20T10:30:00Z"}}"#));
        for (kind, name) in
            [("a b", "a_b"), ("a \\t\\n b", "a_b"), (" ", "_"), ("a\\u0000b ", "a_b_"), ("ä\\u00a0b", "ä_b")]
        {
            assert_eq!(named(kind).name, name, "{kind:?}");
        }
        assert_eq!((named("a b").level, named("b").level), (Level::Urgent, Level::Info));
    }

    #[test]
    fn earlier_drafts_are_read() {
        let event = accepted(&with(r#","payload":{"z":1},"cursor":"c-7""#));
        assert_eq!((event.data.as_str(), event.content), (r#"{"z":1}"#, None));
        assert_eq!(accepted(&with(r#","payload":{"z":1},"data":{}"#)).data, "{}");
    }

    #[test]
    fn each_rule_has_its_reason() {
        refused("[]", "the event is an array; it must be an object");
        refused(r#"{"type":"a","createdAt":"2026-07-20T10:30:00Z"}"#, "eventId is missing");
        refused(&with(r#","eventId":"""#), "eventId is empty");
        refused(&with(r#","eventId":7"#), "eventId is a number");
        refused(&with(&format!(r#","eventId":"{}""#, "x".repeat(201))), "eventId has 201 characters");
        refused(&with(r#","eventId":"a\u0007""#), "U+0007");
        refused(&with(r#","type":"""#), "type is empty");
        refused(&with(r#","type":null"#), "type is null");
        refused(&with(&format!(r#","type":"{}""#, "x".repeat(201))), "type has 201 characters");
        refused(&with(r#","createdAt":"yesterday""#), "createdAt is \"yesterday\"");
        refused(r#"{"eventId":"a","type":"a"}"#, "createdAt is missing");
        refused(&with(r#","sourceId":7"#), "sourceId is a number");
        refused(&with(r#","content":{}"#), "content is an object");
        refused(&with(r#","data":[]"#), "data is an array");
        refused(&with(&format!(r#","content":[{}{}]"#, "[".repeat(128), "]".repeat(128))), "content nests 129");
        refused(
            &with(&format!(r#","data":{{"a":"{}"}}"#, "x".repeat(EVENT_BYTES_MAX))),
            "one event may have at most 65536",
        );
    }

    #[test]
    fn strange_blocks_stay_and_say_nothing() {
        let content = r#"[7,null,{"type":"later","x":1.0},{"type":"text"},{"type":"text","text":"said"}]"#;
        let event = accepted(&with(&format!(r#","content":{content}"#)));
        assert_eq!((event.title.as_str(), event.content.as_deref()), ("said", Some(content)));
    }

    #[test]
    fn inline_media_gives_way_and_the_rest_stays_as_it_came() {
        let image =
            |bytes: usize| format!(r#"{{"type":"image","mimeType":"image/png","data":"{}"}}"#, "A".repeat(bytes));
        let text = r#"{"type":"text", "text":"see"}"#;
        let small = image(1_000);
        let event = accepted(&with(&format!(r#","content":[{text},{},{small}],"data":{{"a":1.0}}"#, image(80_000))));
        let content = event.content.unwrap();
        assert!(content.starts_with(&format!("[{text},{{")) && content.ends_with(&format!(",{small}]")), "{content}");
        assert!(content.contains("[image/png, 59 KiB, left out by Switchbell: "), "{content}");
        assert_eq!((event.title.as_str(), event.data.as_str()), ("see", r#"{"a":1.0}"#));
        refused(
            &with(&format!(r#","content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(70_000))),
            "may have at most",
        );
    }

    #[test]
    fn an_event_is_acknowledged_by_its_id_whatever_else_is_wrong() {
        let id = |text: &str| acknowledged_by(&RawValue::from_string(text.to_owned()).unwrap());
        let long = "x".repeat(300);
        assert_eq!(id(&format!(r#"{{"eventId":"{long}","type":7}}"#)), Some(long));
        assert_eq!(id(r#"{"eventId":"a\u0007"}"#).as_deref(), Some("a\u{7}"));
        assert_eq!((id("[]"), id("{}"), id(r#"{"eventId":""}"#), id(r#"{"eventId":1}"#)), (None, None, None, None));
    }

    #[test]
    fn no_event_whatever_its_bytes_makes_the_host_fail() {
        let whole =
            with(r#","sourceId":"s","content":[{"type":"image","data":"AAAA","mimeType":"a/b"}],"data":{"a":1}"#);
        let mut random = fastrand::Rng::with_seed(5);
        for _ in 0..20_000 {
            let mut bytes = whole.clone().into_bytes();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..bytes.len());
                bytes[at] = *random.choice(b"\"\\{}[]:,0u ").unwrap();
            }
            if let Ok(event) = RawValue::from_string(String::from_utf8_lossy(&bytes).into_owned()) {
                let _ = (judge(&event, &BTreeMap::new()), acknowledged_by(&event));
            }
        }
    }
}
