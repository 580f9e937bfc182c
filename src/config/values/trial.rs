//! What stands in tests of routes only.

use std::time::Duration;

use jiff::Timestamp;

use super::super::read::FromText;
use super::super::schema::{Form, Words, word};
use super::time::{self, Span};
use crate::route::Acknowledged;

/// A moment: how long after the start of its test, or by the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Moment {
    After(Duration),
    At(Timestamp),
}

impl FromText for Moment {
    const WANTED: &'static str = "a duration such as `15m` or a moment such as `2026-06-01T22:00:00+02:00`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        if let Ok(at) = text.parse() {
            return Ok(Self::At(at));
        }
        let looks_like_a_date = text.len() > 4 && text.bytes().take(4).all(|byte| byte.is_ascii_digit());
        if looks_like_a_date && text.contains('-') {
            return Err(format!(
                "{quoted} is no moment: write date, time and offset, as in `2026-06-01T22:00:00+02:00`"
            ));
        }
        Span::from_text(text, quoted)
            .map(|span| Self::After(span.0))
            .map_err(|message| format!("{message}; or a moment, as in `2026-06-01T22:00:00+02:00`"))
    }

    fn form() -> Form {
        let moment = r"\d{4}-\d\d-\d\d[Tt ]\d\d:?\d\d\S*";
        Form::pattern(format!("(?:{moment}|{})", time::pattern()), &["15m", "2026-06-01T22:00:00+02:00"])
    }
}

/// An event's dotted name.
#[derive(Debug, Clone)]
pub(in crate::config) struct EventName(pub String);

/// Longest name of an event, in characters (notifications seed).
const EVENT_NAME_CHARS_MAX: usize = 200;

impl FromText for EventName {
    const WANTED: &'static str = "the name of an event such as `domain.active`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let fits = (1..=EVENT_NAME_CHARS_MAX).contains(&text.chars().count())
            && !text.chars().any(|c| c.is_whitespace() || c.is_control());
        if text.contains('*') {
            return Err(format!("{quoted} is a pattern: an event has one name, such as `domain.active`"));
        }
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            let most = EVENT_NAME_CHARS_MAX;
            Err(format!(
                "{quoted} is no name of an event: 1 to {most} characters without white space, as in `domain.active`"
            ))
        }
    }

    fn form() -> Form {
        Form::pattern(r"[^\s\u0000-\u001f\u007f-\u009f*]{1,200}", &["domain.active"])
    }
}

/// Who acknowledges.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct MarkedBy(pub Acknowledged);

impl FromText for MarkedBy {
    const WANTED: &'static str = "`person` or `agent`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| format!("{quoted} is nobody who acknowledges: write person or agent"))
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for MarkedBy {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("person", Self(Acknowledged::ByPerson), "A person, in the inbox."),
            ("agent", Self(Acknowledged::ByAgent), "An agent, as a consumer."),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<Moment, &str>) {
        match (Moment::from_text(text, &format!("{text:?}")), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn a_moment_is_a_duration_or_a_time_with_its_offset() {
        check("15m", Ok(Moment::After(Duration::from_secs(900))));
        check("0s", Ok(Moment::After(Duration::ZERO)));
        check("2026-06-01T22:00:00+02:00", Ok(Moment::At("2026-06-01T20:00:00Z".parse().unwrap())));
        check("2026-06-01T22:00:00", Err("offset"));
        check("2026-06-01", Err("offset"));
        check("15", Err("has no unit"));
        check("soon", Err("or a moment"));
    }

    #[test]
    fn an_event_has_one_name() {
        assert!(EventName::from_text("domain.active", "").is_ok());
        for (text, says) in [("domain.*", "is a pattern"), ("a b", "without white space"), ("", "1 to 200")] {
            assert!(EventName::from_text(text, "").unwrap_err().contains(says), "{text}");
        }
    }
}
