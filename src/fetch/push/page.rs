//! A page of pending events (push-notifications seed, "Retrieving pending events"): from the text of the result to events
//! not yet judged.

use std::fmt;

use serde_json::value::RawValue;

use crate::fetch::json::{Kind, elements, fields, kind};
use crate::notification::HANDED_ON;

/// Events taken from one page. What a server sends beyond is still pending, and comes again.
pub const EVENTS_MAX: usize = 5_000;

/// A page.
#[derive(Clone, Debug)]
pub struct Page<'a> {
    /// The events as they came, at most [`EVENTS_MAX`].
    pub events: Vec<&'a RawValue>,
    /// Whether there is more to get once these are acknowledged.
    pub has_more: bool,
    /// Whether a Switchbell hands them on ([`HANDED_ON`]).
    pub is_handed_on: bool,
}

/// Why a text is no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAPage {
    /// It is not JSON.
    NotJson(String),
    /// It is no object.
    NotAnObject(Kind),
    /// A field is missing or holds something else.
    Wrong {
        /// Which.
        field: &'static str,
        /// What it holds; none when it is missing.
        found: Option<Kind>,
        /// What it must be.
        wanted: &'static str,
    },
}

impl fmt::Display for NotAPage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = "the server must answer {\"events\": […], \"hasMore\": false}";
        match self {
            Self::NotJson(why) => write!(out, "the page of pending events is not JSON ({why}); {shape}"),
            Self::NotAnObject(found) => write!(out, "the page of pending events is {found}; {shape}"),
            Self::Wrong { field, found: None, wanted } => {
                write!(out, "the page of pending events has no {field:?}, which must be {wanted}; {shape}")
            }
            Self::Wrong { field, found: Some(found), wanted } => {
                write!(out, "{field:?} of the page of pending events is {found}; it must be {wanted}")
            }
        }
    }
}

impl std::error::Error for NotAPage {}

/// Reads a page. The events in it are split, not judged; everything else in it is passed over.
///
/// # Errors
/// Says what is wrong with it and what it should be.
pub fn parse(text: &str) -> Result<Page<'_>, NotAPage> {
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| NotAPage::NotJson(error.to_string()))?;
    let [events, has_more] =
        fields(whole.get(), ["events", "hasMore"]).map_err(|_| NotAPage::NotAnObject(kind(whole)))?;
    let wrong = |found| NotAPage::Wrong { field: "events", found, wanted: "an array" };
    let events = events.ok_or_else(|| wrong(None))?;
    let (events, count) = elements(events.get(), EVENTS_MAX).map_err(|_| wrong(Some(kind(events))))?;
    let has_more = match has_more.map(|value| (value.get(), kind(value))) {
        None | Some(("false", _) | (_, Kind::Null)) => false,
        Some(("true", _)) => true,
        Some((_, found)) => {
            return Err(NotAPage::Wrong { field: "hasMore", found: Some(found), wanted: "true or false" });
        }
    };
    Ok(Page { has_more: has_more || count > events.len(), events, is_handed_on: is_handed_on(text) })
}

/// Whether a result, or the `params` of a notification, says that a Switchbell hands on what it holds.
pub fn is_handed_on(text: &str) -> bool {
    let Ok([Some(meta)]) = fields(text, ["_meta"]) else { return false };
    matches!(fields(meta.get(), [HANDED_ON]), Ok([Some(said)]) if said.get() == "true")
}

/// The event in the `params` of a live notification; none where there is none.
pub fn live(params: &str) -> Option<&RawValue> {
    let [event] = fields(params, ["event"]).ok()?;
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_split_and_nothing_else_of_it_is_looked_at() {
        let page =
            parse(r#" {"events":[ {"a":1e400}, 7],"hasMore":true,"nextCursor":"c","resultType":"complete"} "#).unwrap();
        assert_eq!(page.events.iter().map(|event| event.get()).collect::<Vec<_>>(), [r#"{"a":1e400}"#, "7"]);
        assert!(page.has_more);
        assert!(parse(r#"{"events":[]}"#).is_ok_and(|page| !page.has_more && page.events.is_empty()));
        assert!(parse(r#"{"events":[],"hasMore":null}"#).is_ok_and(|page| !page.has_more));
    }

    #[test]
    fn more_events_than_are_taken_are_left_for_the_next_page() {
        let text = format!(r#"{{"events":[{}1],"hasMore":false}}"#, "1,".repeat(EVENTS_MAX));
        let page = parse(&text).unwrap();
        assert_eq!((page.events.len(), page.has_more), (EVENTS_MAX, true));
    }

    #[test]
    fn what_is_no_page_says_why() {
        for (text, expected) in [
            ("", "is not JSON"),
            ("[]", "is an array"),
            ("{}", "has no \"events\""),
            (r#"{"events":{}}"#, "\"events\" of the page of pending events is an object"),
            (r#"{"events":[],"hasMore":"no"}"#, "\"hasMore\" of the page of pending events is a string"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_switchbell_hands_on_says_so() {
        for (text, expected) in [
            (r#"{"events":[],"_meta":{"switchbell/handed-on":true}}"#, true),
            (r#"{"event":{},"_meta":{"other":1,"switchbell/handed-on":true}}"#, true),
            (r#"{"events":[],"_meta":{"switchbell/handed-on":false}}"#, false),
            (r#"{"events":[],"switchbell/handed-on":true}"#, false),
            (r#"{"events":[],"_meta":7}"#, false),
            (r#"{"events":[]}"#, false),
            ("", false),
        ] {
            assert_eq!(is_handed_on(text), expected, "{text}");
        }
    }

    #[test]
    fn a_live_notification_holds_one_event() {
        assert_eq!(live(r#"{"_meta":{},"event":{"a":1.0}}"#).map(RawValue::get), Some(r#"{"a":1.0}"#));
        assert!(live("{}").is_none() && live("[]").is_none());
    }
}
