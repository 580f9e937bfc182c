//! The values of a target's timing and repetition: times of day, and words with a meaning.

use jiff::civil;

use super::super::node::{Kind, Node};
use super::super::raw::{RawAfter, RawUnless};
use super::super::read::{FromText, Placed, Read, Whole, placed};
use super::super::scalar::Typed;
use super::super::schema::{File, Form, Schema, Words, word};
use super::super::source::Report;
use super::Span;
use crate::route::timing::{DIGEST_MOST, Except, Unless};

/// `after: 15m`, or `after: { wait: 15m, except: urgent }`.
#[derive(Debug)]
pub(in crate::config) struct AfterEntry {
    /// None when it is unusable and was reported.
    pub wait: Option<Placed<Span>>,
    pub except: Except,
}

impl Read for AfterEntry {
    const WANTED: &'static str = "a duration such as `15m`, or a mapping with `wait`";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if !matches!(node.kind, Kind::Mapping(_)) {
            return Some(Self { wait: placed(node, report), except: Except::Nothing });
        }
        let raw = RawAfter::read(node, report)?;
        Some(Self { wait: raw.wait, except: raw.except.map(|except| except.value).unwrap_or_default() })
    }

    fn schema(file: File) -> Schema {
        Schema::either(Self::WANTED, Span::schema(file), RawAfter::schema(file))
    }
}

/// `unless: acknowledged`, or `unless: { acknowledged: anyone }`.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct UnlessEntry(pub Unless);

impl Read for UnlessEntry {
    const WANTED: &'static str = "`acknowledged`, or a mapping with `acknowledged`";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(node.kind, Kind::Mapping(_)) {
            return Some(Self(RawUnless::read(node, report)?.acknowledged?.0));
        }
        placed(node, report).map(|_: Placed<Acknowledged>| Self(Unless::AcknowledgedByPerson))
    }

    fn schema(file: File) -> Schema {
        Schema::either(Self::WANTED, Acknowledged::schema(file), RawUnless::schema(file))
    }
}

/// The one condition that can stand as a word of its own.
#[derive(Debug, Clone, Copy)]
struct Acknowledged;

impl FromText for Acknowledged {
    const WANTED: &'static str = "`acknowledged`";
    const REMEDY: &'static str = "write `unless: acknowledged`, or `unless: { acknowledged: anyone }`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| match text {
            "person" | "anyone" => format!("write `unless: {{ acknowledged: {text} }}`"),
            _ => format!(
                "{quoted} is no condition: the only one is acknowledged, as in `unless: acknowledged` (by a person) or \
                 `unless: {{ acknowledged: anyone }}` (by a person or an agent)"
            ),
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

/// Whose acknowledgement counts.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct AcknowledgedBy(pub Unless);

impl FromText for AcknowledgedBy {
    const WANTED: &'static str = "`person` or `anyone`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| {
            format!(
                "{quoted} is nobody whose acknowledgement can count: write person, or anyone (a person or an agent)"
            )
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for Acknowledged {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![("acknowledged", Self, "A person acknowledged it.")]
    }
}

impl Words for AcknowledgedBy {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        vec![
            ("person", Self(Unless::AcknowledgedByPerson), "A person's acknowledgement counts."),
            ("anyone", Self(Unless::AcknowledgedByAnyone), "That of a person or an agent counts."),
        ]
    }
}

/// A time of day to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct TimeOfDay(pub civil::Time);

impl FromText for TimeOfDay {
    const WANTED: &'static str = "a time of day such as `\"22:00\"`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        if let Some(time) = hours_and_minutes(text) {
            return Ok(Self(time));
        }
        Err(match meant(text) {
            Some((24, 0)) => format!("{quoted} is \"00:00\" of the next day: write that"),
            Some((hour, minute)) if hour < 24 => {
                format!("{quoted} is no time of day as it is written here: write \"{hour:02}:{minute:02}\"")
            }
            _ => format!(
                "{quoted} is no time of day: write hours and minutes from \"00:00\" to \"23:59\", as in \"22:00\""
            ),
        })
    }

    fn form() -> Form {
        Form::pattern(r"(?:[01]\d|2[0-3]):[0-5]\d", &["22:00", "07:00"])
    }
}

fn hours_and_minutes(text: &str) -> Option<civil::Time> {
    let (hour, minute) = text.split_once(':')?;
    let number = |digits: &str| -> Option<i8> {
        let fits = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        fits.then(|| digits.parse().ok()).flatten()
    };
    civil::Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

/// The hour, perhaps 24, and the minute that were probably meant by such as `7:00`, `22.00`, `22h` and `10pm`.
fn meant(text: &str) -> Option<(u8, u8)> {
    let text = text.to_ascii_lowercase().replace("a.m.", "am").replace("p.m.", "pm");
    let (clock, half) = match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(0)),
        (_, Some(clock)) => (clock, Some(12)),
        _ => (text.as_str(), None),
    };
    let mut parts = clock.trim().trim_end_matches('h').split([':', '.', 'h', ' ']);
    let is_number = |part: &str| part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let number = |part: &str| part.parse::<u8>().ok().filter(|_| is_number(part));
    let hour = number(parts.next()?)?;
    let minute = parts.next().map_or(Some(0), number).filter(|minute| *minute < 60)?;
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    (hour <= 24).then_some((hour, minute))
}

/// Notifications that close a digest early.
#[derive(Debug, Clone, Copy)]
pub(in crate::config) struct DigestSize(pub u32);

impl Read for DigestSize {
    const WANTED: &'static str = "a whole number";

    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if matches!(&node.kind, Kind::Scalar(scalar) if scalar.typed() == Typed::Integer(Some(1))) {
            report.mistake(&node.at, "a digest of one is no digest: write 2 or more, or remove `collect`");
            return None;
        }
        let number: Whole<2, DIGEST_MOST> = Whole::read(node, report)?;
        Some(Self(number.0))
    }

    fn schema(file: File) -> Schema {
        Whole::<2, DIGEST_MOST>::schema(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_day_has_two_digits_for_hours_and_minutes() {
        for (text, hour, minute) in [("00:00", 0, 0), ("07:05", 7, 5), ("22:00", 22, 0), ("23:59", 23, 59)] {
            assert_eq!(TimeOfDay::from_text(text, ""), Ok(TimeOfDay(civil::time(hour, minute, 0, 0))), "{text}");
        }
    }

    #[test]
    fn a_time_of_day_that_is_written_otherwise_is_refused_and_what_was_meant_is_said() {
        for (text, says) in [
            ("7:00", "write \"07:00\""),
            ("22.00", "write \"22:00\""),
            ("22", "write \"22:00\""),
            ("22h", "write \"22:00\""),
            ("22h30", "write \"22:30\""),
            ("10pm", "write \"22:00\""),
            ("10:30 p.m.", "write \"22:30\""),
            ("12am", "write \"00:00\""),
            ("12 PM", "write \"12:00\""),
            ("07:00:00", "write \"07:00\""),
            ("24:00", "is \"00:00\" of the next day"),
            ("24", "is \"00:00\" of the next day"),
            ("24:01", "from \"00:00\" to \"23:59\""),
            ("25:00", "from \"00:00\" to \"23:59\""),
            ("22:60", "from \"00:00\" to \"23:59\""),
            ("13pm", "from \"00:00\" to \"23:59\""),
            ("0am", "from \"00:00\" to \"23:59\""),
            ("+7:00", "from \"00:00\" to \"23:59\""),
            ("-1:00", "from \"00:00\" to \"23:59\""),
            ("007:00", "from \"00:00\" to \"23:59\""),
            ("", "from \"00:00\" to \"23:59\""),
            ("pm", "from \"00:00\" to \"23:59\""),
            ("midnight", "from \"00:00\" to \"23:59\""),
            ("२२:००", "from \"00:00\" to \"23:59\""),
        ] {
            let message = TimeOfDay::from_text(text, "").unwrap_err();
            assert!(message.contains(says), "{text}: {message}");
        }
    }
}
