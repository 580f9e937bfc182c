//! One answer, and what it alone shows about the rules.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::report::Ledger;
use super::rules as is;
use super::rules::Rule;
use crate::fetch::answer::{self, Answer, NotAnAnswer};
use crate::fetch::event::{self, Reason};
use crate::fetch::json::{Kind, fields, kind, string};
use crate::text;

/// Longest piece of a server's words that a report repeats, in characters.
const SAID_CHARS_MAX: usize = 60;

/// Wishes outside of this look as if another unit had been meant.
const NEXT_POLL_LIKELY: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// An answer of an outbox.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// What was asked, as a report repeats it.
    pub uri: String,
    pub events: Vec<Told>,
    pub cursor: Option<String>,
    pub truncated: bool,
    pub has_more: bool,
}

/// One event of an answer.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// Its `eventId`, else its text.
    pub id: String,
    /// Its name, timestamp and payload, as they were spelled.
    pub content: String,
    pub moment: Option<Timestamp>,
    pub cursor: Option<String>,
}

/// How an event is known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// By its id.
    ById,
    /// By what it says, where ids are minted anew for each read.
    ByContent,
}

impl Told {
    /// What it is known again by.
    pub(super) fn key(&self, known: Known) -> &str {
        match known {
            Known::ById => &self.id,
            Known::ByContent => &self.content,
        }
    }

    fn of(raw: &RawValue) -> Self {
        let found = fields(raw.get(), ["eventId", "name", "timestamp", "data", "cursor"]).unwrap_or_default();
        let [id, name, timestamp, data, cursor] = found;
        Self {
            id: id.and_then(string).map_or_else(|| raw.get().to_owned(), Into::into),
            content: [name, timestamp, data].map(|value| value.map(RawValue::get).unwrap_or_default()).join(" "),
            moment: event::judge(raw).ok().map(|judged| judged.event.timestamp),
            cursor: cursor.and_then(string).map(Into::into).filter(|cursor: &String| !cursor.is_empty()),
        }
    }
}

/// Reads an answer and judges what it alone shows. None when it is no answer.
pub(super) fn judge(uri: &str, text: &str, ledger: &mut Ledger) -> Option<Page> {
    let Answer { events, events_left, cursor, truncated, has_more, next_poll } = match answer::parse(text) {
        Ok(answer) => answer,
        Err(wrong) => {
            judge_no_answer(uri, &wrong, ledger);
            return None;
        }
    };
    ledger.pass(&is::ANSWER_JSON, "the text is JSON");
    ledger.pass(&is::ANSWER_EVENTS, "\"events\" is an array");
    ledger.pass(&is::ANSWER_FLAGS, "both are booleans, or left out");
    if events_left > 0 {
        let most = answer::EVENTS_MAX;
        ledger.fail(&is::MAX_EVENTS, format!("{uri} brought more than {most} events"));
    }
    if let Some(cursor) = &cursor {
        ledger.pass(&is::CURSOR_VALID, format!("a string, {} long", cursor.chars().count()));
    }
    if let Some(next_poll) = next_poll {
        judge_next_poll(next_poll, ledger);
    }
    for raw in &events {
        judge_event(raw, ledger);
    }
    let events: Vec<Told> = events.into_iter().map(Told::of).collect();
    judge_ids(uri, &events, ledger);
    Some(Page { uri: uri.to_owned(), events, cursor, truncated, has_more })
}

fn judge_no_answer(uri: &str, wrong: &NotAnAnswer, ledger: &mut Ledger) {
    ledger.fail(rule_of(wrong), format!("{uri}: {wrong}"));
}

fn rule_of(wrong: &NotAnAnswer) -> &'static Rule {
    match wrong {
        NotAnAnswer::NotJson(_) => &is::ANSWER_JSON,
        NotAnAnswer::NotAnObject(_) | NotAnAnswer::NoEvents | NotAnAnswer::WrongType { field: "events", .. } => {
            &is::ANSWER_EVENTS
        }
        NotAnAnswer::WrongType { field: "truncated" | "hasMore", .. } => &is::ANSWER_FLAGS,
        NotAnAnswer::WrongType { field: "nextPollMs", .. } | NotAnAnswer::NextPoll => &is::NEXT_POLL,
        NotAnAnswer::WrongType { .. } | NotAnAnswer::Cursor => &is::CURSOR_VALID,
    }
}

fn judge_next_poll(wish: Duration, ledger: &mut Ledger) {
    let said = format!("nextPollMs is {}", wish.as_millis());
    if NEXT_POLL_LIKELY.contains(&wish) {
        ledger.pass(&is::NEXT_POLL, said);
    } else {
        ledger.warn(&is::NEXT_POLL, format!("{said}; is it in another unit than milliseconds?"));
    }
}

fn judge_event(raw: &RawValue, ledger: &mut Ledger) {
    let id = event::id_of(raw).unwrap_or_else(|| shortened(raw.get()));
    match event::judge(raw) {
        Err(reason @ Reason::TooLarge { .. }) => ledger.fail(&is::EVENT_SIZE, format!("{id}: {reason}")),
        Err(reason) => ledger.fail(&is::EVENT_VALID, format!("{id}: {reason}")),
        Ok(judged) => {
            ledger.pass(&is::EVENT_VALID, "every event that came");
            ledger.pass(&is::EVENT_SIZE, "every event that came");
            judge_name(&id, &judged.event.name, ledger);
            judge_envelope(&id, raw, ledger);
        }
    }
}

fn judge_name(id: &str, name: &str, ledger: &mut Ledger) {
    let is_dotted = name.split('.').count() > 1 && name.split('.').all(|part| !part.is_empty());
    if is_dotted && !name.chars().any(char::is_uppercase) {
        ledger.pass(&is::EVENT_NAME, format!("dotted, in lower case: {}", shortened(name)));
    } else {
        ledger.fail(&is::EVENT_NAME, format!("{id}: name is {:?}", shortened(name)));
    }
}

fn judge_envelope(id: &str, raw: &RawValue, ledger: &mut Ledger) {
    let Ok([timestamp, meta]) = fields(raw.get(), ["timestamp", "_meta"]) else { return };
    let timestamp = timestamp.and_then(string).unwrap_or_default();
    // What follows the date: `Z` in either case, or an offset.
    if timestamp.get(10..).is_some_and(|time| time.contains(['Z', 'z', '+', '-'])) {
        ledger.pass(&is::EVENT_TIMESTAMP, "each has Z or an offset");
    } else {
        ledger.fail(&is::EVENT_TIMESTAMP, format!("{id}: {timestamp:?} has no offset, and is read as UTC"));
    }
    let mut ignored: Vec<&str> = present(OUTSIDE, fields(raw.get(), OUTSIDE).unwrap_or_default()).collect();
    let block =
        meta.and_then(|meta| fields(meta.get(), ["ai.nimblebrain/notification"]).ok()).and_then(|[block]| block);
    if let Some(block) = block.filter(|block| kind(block) == Kind::Object) {
        ignored.extend(present(UNDEFINED, fields(block.get(), UNDEFINED).unwrap_or_default()));
        judge_texts(id, block, ledger);
        let link = fields(block.get(), ["link"]).ok().and_then(|[link]| link);
        if link.and_then(|link| fields(link.get(), ["tool"]).ok()).is_some_and(|[tool]| tool.is_some()) {
            ignored.push("link.tool");
        }
    }
    if ignored.is_empty() {
        ledger.pass(&is::EVENT_FIELDS, "no field that a host drops");
    } else {
        ledger.fail(&is::EVENT_FIELDS, format!("{id}: {} is dropped", ignored.join(", ")));
    }
}

/// Fields that are the host's, or belong into the block, and are often put beside the data.
const OUTSIDE: [&str; 10] =
    ["source", "workspaceId", "receivedAt", "seq", "effectiveLevel", "level", "title", "subject", "body", "link"];

/// Fields that are often put into the block and are not of it.
const UNDEFINED: [&str; 8] = ["actions", "tool", "url", "source", "workspaceId", "receivedAt", "seq", "effectiveLevel"];

fn present<const COUNT: usize>(
    names: [&'static str; COUNT],
    found: [Option<&RawValue>; COUNT],
) -> impl Iterator<Item = &'static str> {
    let found = found.map(|value| value.is_some());
    names.into_iter().zip(found).filter(|(_, is_there)| *is_there).map(|(name, _)| name)
}

/// What a host would change before it shows it.
fn judge_texts(id: &str, block: &RawValue, ledger: &mut Ledger) {
    let Ok(found) = fields(block.get(), ["title", "subject", "body"]) else { return };
    let [title, subject, body] = found.map(|value| value.and_then(string));
    let lines = [("title", title, event::LINE_CHARS_MAX), ("subject", subject, event::LINE_CHARS_MAX)];
    let body = ("body", body, event::BODY_CHARS_MAX);
    for (field, found, chars_max) in lines.into_iter().chain([body]) {
        let Some(found) = found else { continue };
        let shown = match field {
            "body" => text::lines(&found, chars_max),
            _ => text::line(&found, chars_max),
        };
        let chars = found.chars().count();
        if chars > chars_max {
            ledger.fail(&is::EVENT_TEXT, format!("{id}: {field} has {chars} characters and is cut to {chars_max}"));
        } else if shown != found.trim() {
            ledger.fail(&is::EVENT_TEXT, format!("{id}: {field} has characters that no text has, and loses them"));
        } else {
            ledger.pass(&is::EVENT_TEXT, "shown as they are");
        }
    }
}

fn judge_ids(uri: &str, events: &[Told], ledger: &mut Ledger) {
    let mut seen = BTreeSet::new();
    for told in events {
        if !seen.insert(told.id.as_str()) {
            ledger.fail(&is::EVENT_ID_UNIQUE, format!("{uri} brought {} twice in one answer", shortened(&told.id)));
        }
    }
    if events.len() > 1 {
        ledger.pass(&is::EVENT_ID_UNIQUE, format!("{} events, {} ids", events.len(), seen.len()));
    }
}

/// The beginning of `text`, in one line.
pub(super) fn shortened(said: &str) -> String {
    text::line(said, SAID_CHARS_MAX)
}
