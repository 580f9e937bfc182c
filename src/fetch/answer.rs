//! The poll result (notifications seed, "Serve the outbox"): from the text of the resource to events not yet judged.

use std::fmt;
use std::time::Duration;

use serde_json::value::RawValue;

use super::event::CURSOR_CHARS_MAX;
use super::json::{self, Kind, elements, fields, kind};

/// Events taken from one answer: five times the most a read may ask for. An outbox that sends more does not heed
/// `maxEvents`.
pub const EVENTS_MAX: usize = 5_000;

/// A poll result.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The events as they came, oldest first, at most [`EVENTS_MAX`].
    pub events: Vec<&'a RawValue>,
    /// How many more there were: these must be read again, so that [`Answer::cursor`] is not the position.
    pub events_left: usize,
    /// The position after the last event of the answer.
    pub cursor: Option<String>,
    /// Whether the outbox skipped events.
    pub truncated: bool,
    /// Whether the outbox has more events right now.
    pub has_more: bool,
    /// When the outbox would like to be read next.
    pub next_poll: Option<Duration>,
}

/// Why a text is no poll result. The whole read has failed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnAnswer {
    /// It is not JSON.
    NotJson(String),
    /// It is JSON, but no object.
    NotAnObject(Kind),
    /// `events` is not there.
    NoEvents,
    /// A field holds something else.
    WrongType {
        /// Which.
        field: &'static str,
        /// What it holds.
        found: Kind,
        /// What it must be.
        wanted: &'static str,
    },
    /// The cursor is empty, too long, or no text.
    Cursor,
    /// `nextPollMs` is not above zero, or beyond every number.
    NextPoll,
}

impl fmt::Display for NotAnAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape = "the outbox must answer {\"events\": […], \"cursor\": \"…\"}";
        match self {
            Self::NotJson(why) => write!(out, "the answer is not JSON ({why}); {shape}"),
            Self::NotAnObject(found) => write!(out, "the answer is {found}; {shape}"),
            Self::NoEvents => write!(out, "the answer has no \"events\"; {shape}"),
            Self::WrongType { field, found, wanted } => {
                write!(out, "\"{field}\" of the answer is {found}; it must be {wanted}")
            }
            Self::Cursor => write!(
                out,
                "\"cursor\" of the answer must be a string of 1 to {CURSOR_CHARS_MAX} characters, or left out"
            ),
            Self::NextPoll => {
                out.write_str("\"nextPollMs\" of the answer must be a number of milliseconds above 0, or left out")
            }
        }
    }
}

impl std::error::Error for NotAnAnswer {}

/// Reads a poll result. The events in it are split, not judged. `null` in a field that may be left out means that it
/// is.
///
/// # Errors
/// Says what is wrong with it and what it should be.
pub fn parse(text: &str) -> Result<Answer<'_>, NotAnAnswer> {
    parse_up_to(EVENTS_MAX, text)
}

/// Events taken from an answer that says nowhere how to go on in its midst: as many as a text of 8 MiB holds of the
/// smallest that are any use.
pub const WHOLE_EVENTS_MAX: usize = 50_000;

/// Reads a poll result with up to [`WHOLE_EVENTS_MAX`] events in it: for an answer that says nowhere how to go on in its
/// midst.
///
/// # Errors
/// As [`parse`].
pub fn parse_whole(text: &str) -> Result<Answer<'_>, NotAnAnswer> {
    parse_up_to(WHOLE_EVENTS_MAX, text)
}

fn parse_up_to(events_max: usize, text: &str) -> Result<Answer<'_>, NotAnAnswer> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| NotAnAnswer::NotJson(error.to_string()))?;
    let not_an_object = |_| NotAnAnswer::NotAnObject(kind(whole));
    let [events, cursor, truncated, has_more, next_poll] =
        fields(whole.get(), ["events", "cursor", "truncated", "hasMore", "nextPollMs"]).map_err(not_an_object)?;
    let events = events.ok_or(NotAnAnswer::NoEvents)?;
    let not_an_array = |_| NotAnAnswer::WrongType { field: "events", found: kind(events), wanted: "an array" };
    let (events, count) = elements(events.get(), events_max).map_err(not_an_array)?;
    Ok(Answer {
        events_left: count.saturating_sub(events.len()),
        events,
        cursor: given(cursor).map(cursor_of).transpose()?,
        truncated: flag("truncated", truncated)?,
        has_more: flag("hasMore", has_more)?,
        next_poll: given(next_poll).map(delay).transpose()?,
    })
}

fn given(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| kind(value) != Kind::Null)
}

fn cursor_of(value: &RawValue) -> Result<String, NotAnAnswer> {
    if kind(value) != Kind::String {
        return Err(NotAnAnswer::WrongType { field: "cursor", found: kind(value), wanted: "a string, or left out" });
    }
    let cursor = json::string(value).ok_or(NotAnAnswer::Cursor)?;
    let fits = (1..=CURSOR_CHARS_MAX).contains(&cursor.chars().count());
    if fits { Ok(cursor.into_owned()) } else { Err(NotAnAnswer::Cursor) }
}

fn flag(field: &'static str, value: Option<&RawValue>) -> Result<bool, NotAnAnswer> {
    match given(value).map(|value| (value.get(), kind(value))) {
        None | Some(("false", _)) => Ok(false),
        Some(("true", _)) => Ok(true),
        Some((_, found)) => Err(NotAnAnswer::WrongType { field, found, wanted: "true or false, or left out" }),
    }
}

fn delay(value: &RawValue) -> Result<Duration, NotAnAnswer> {
    if kind(value) != Kind::Number {
        let wanted = "a number of milliseconds, or left out";
        return Err(NotAnAnswer::WrongType { field: "nextPollMs", found: kind(value), wanted });
    }
    let milliseconds: f64 = value.get().parse().map_err(|_| NotAnAnswer::NextPoll)?;
    if !milliseconds.is_finite() || milliseconds <= 0.0 {
        return Err(NotAnAnswer::NextPoll);
    }
    // More than a duration can hold is clamped to the ceiling later, like every wait.
    Ok(Duration::try_from_secs_f64(milliseconds / 1_000.0).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expected: &str) {
        let reason = parse(text).map(|_| ()).unwrap_err().to_string();
        assert!(reason.contains(expected), "{text}: {reason}");
    }

    #[test]
    fn the_least_correct_answer_is_events_and_a_cursor() {
        let answer = parse(r#"{"events": [], "cursor": "p:1"}"#).unwrap();
        assert_eq!(answer.cursor.as_deref(), Some("p:1"));
        assert!(answer.events.is_empty() && !answer.truncated && !answer.has_more && answer.next_poll.is_none());
    }

    #[test]
    fn every_field_is_read_and_strangers_are_skipped() {
        let text = "\u{feff} {\"x\":1e999,\"events\":[{\"a\" : \"\\ud800\"}, 1e400],\"cursor\":\"a\",\"cursor\":\"b\",\
                    \"truncated\":true,\"hasMore\":true,\"nextPollMs\":1500.5} ";
        let answer = parse(text).unwrap();
        assert_eq!(
            answer.events.iter().map(|event| event.get()).collect::<Vec<_>>(),
            ["{\"a\" : \"\\ud800\"}", "1e400"]
        );
        assert_eq!((answer.cursor.as_deref(), answer.truncated, answer.has_more), (Some("b"), true, true));
        assert_eq!(answer.next_poll, Some(Duration::from_micros(1_500_500)));
    }

    #[test]
    fn null_in_an_optional_field_means_absent() {
        let answer = parse(r#"{"events":[],"cursor":null,"truncated":null,"hasMore":null,"nextPollMs":null}"#).unwrap();
        assert_eq!((answer.cursor, answer.truncated, answer.has_more, answer.next_poll), (None, false, false, None));
    }

    #[test]
    fn more_events_than_are_taken_are_counted() {
        let text = |count| format!("{{\"events\":[{}]}}", vec!["{}"; count].join(","));
        let counts = |count| parse(&text(count)).map(|answer| (answer.events.len(), answer.events_left)).unwrap();
        assert_eq!(counts(EVENTS_MAX), (EVENTS_MAX, 0));
        assert_eq!(counts(EVENTS_MAX + 2), (EVENTS_MAX, 2));
        assert_eq!(parse_whole(&text(EVENTS_MAX + 2)).unwrap().events.len(), EVENTS_MAX + 2);
    }

    #[test]
    fn a_wait_beyond_all_time_is_still_a_wait() {
        let next_poll = |number| parse(&format!("{{\"events\":[],\"nextPollMs\":{number}}}")).unwrap().next_poll;
        assert_eq!(next_poll("1e300"), Some(Duration::MAX));
        assert_eq!(next_poll("0.001"), Some(Duration::from_micros(1)));
    }

    #[test]
    fn what_is_no_poll_result_says_what_it_should_be() {
        refused("", "is not JSON (EOF");
        refused("<html>", "is not JSON (expected value at line 1 column 1)");
        refused("{\"events\":[]} x", "is not JSON (trailing characters");
        refused("[]", "is an array; the outbox must answer");
        refused("null", "is null");
        refused("{}", "has no \"events\"");
        refused("{\"events\":null}", "\"events\" of the answer is null; it must be an array");
        refused("{\"events\":{}}", "\"events\" of the answer is an object");
        refused("{\"events\":[],\"cursor\":1}", "\"cursor\" of the answer is a number");
        refused("{\"events\":[],\"cursor\":\"\"}", "1 to 1024 characters");
        refused("{\"events\":[],\"cursor\":\"\\ud800\"}", "1 to 1024 characters");
        refused(&format!("{{\"events\":[],\"cursor\":\"{}\"}}", "ä".repeat(1_025)), "1 to 1024 characters");
        refused("{\"events\":[],\"truncated\":1}", "\"truncated\" of the answer is a number; it must be true or false");
        refused("{\"events\":[],\"hasMore\":\"true\"}", "\"hasMore\" of the answer is a string");
        refused("{\"events\":[],\"nextPollMs\":\"60000\"}", "\"nextPollMs\" of the answer is a string");
        for number in ["0", "-1", "1e400", "-0"] {
            refused(&format!("{{\"events\":[],\"nextPollMs\":{number}}}"), "above 0");
        }
        assert!(parse(&format!("{{\"events\":[],\"cursor\":\"{}\"}}", "ä".repeat(1_024))).is_ok());
    }
}
