//! Durations such as `1h30m` and sizes such as `32MiB`.

use std::time::Duration;

use super::super::read::FromText;
use super::super::schema::Form;

/// A duration: whole numbers with the units d, h, m, s, ms, longest first, each at most once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Span(pub Duration);

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl FromText for Span {
    const WANTED: &'static str = "a duration such as `15m` or `1h30m`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(format!("{quoted} has no unit: write `{text}s` for seconds, `{text}m` for minutes"));
        }
        let milliseconds = milliseconds(text).ok_or_else(|| {
            format!(
                "{quoted} is no duration: write whole numbers with the units d, h, m, s, ms, longest first, as in `15m`, \
                 `1h30m`, `90d`"
            )
        })?;
        Ok(Self(Duration::from_millis(milliseconds)))
    }

    fn form() -> Form {
        Form::pattern(pattern(), &["15m", "1h30m", "90d"])
    }
}

/// The pattern of a duration, for editors.
pub(super) fn pattern() -> String {
    let parts: String = UNITS.iter().map(|(unit, _)| format!(r"(?:\d+{unit})?")).collect();
    format!(r"(?=\d){parts}")
}

/// A duration outside of a file.
pub(in crate::config) fn duration(text: &str) -> Result<Duration, String> {
    Span::from_text(text, &format!("{text:?}")).map(|Span(duration)| duration)
}

fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0_u64;
    let mut units = UNITS.as_slice();
    while !rest.is_empty() || total == 0 && units.len() == UNITS.len() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let position = units.iter().position(|(name, _)| *name == unit)?;
        let (_, worth) = units.get(position)?;
        total = number.parse::<u64>().ok()?.checked_mul(*worth)?.checked_add(total)?;
        units = units.get(position + 1..)?;
        rest = after;
    }
    Some(total)
}

/// A duration as it would be written in a file.
pub(in crate::config) fn show(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if left == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, worth) in UNITS {
        if left >= worth {
            text.push_str(&format!("{}{unit}", left / worth));
            left %= worth;
        }
    }
    text
}

/// A size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) struct Bytes(pub u64);

impl FromText for Bytes {
    const WANTED: &'static str = "a size such as `32MiB`";
    const SEES_NUMBERS: bool = true;

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let worth = match unit {
            "KiB" => Some(1_u64 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            _ => None,
        };
        let value = worth.and_then(|worth| number.parse::<u64>().ok()?.checked_mul(worth));
        value.map(Self).ok_or_else(|| {
            format!("{quoted} is no size: write a whole number with the unit KiB, MiB or GiB, as in `32MiB`")
        })
    }

    fn form() -> Form {
        Form::pattern(r"\d+(?:KiB|MiB|GiB)", &["32MiB"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_units_longest_first() {
        for (text, expected) in [
            ("15m", 900_000),
            ("1h30m", 5_400_000),
            ("90d", 7_776_000_000),
            ("250ms", 250),
            ("1s250ms", 1250),
            ("0s", 0),
            ("1d2h3m4s5ms", 93_784_005),
        ] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
            assert_eq!(show(Duration::from_millis(expected)), text);
        }
        for text in
            ["", "m", "1", "1.5h", "15 m", "30m1h", "1m1m", "-1s", "1w", "1min", "1M", "99999999999999999999d", "1s "]
        {
            assert_eq!(milliseconds(text), None, "{text}");
        }
        assert_eq!(milliseconds(&format!("{}d", u64::MAX)), None);
    }

    #[test]
    fn sizes_have_a_binary_unit() {
        assert_eq!(Bytes::from_text("32MiB", ""), Ok(Bytes(32 << 20)));
        for text in ["32", "32MB", "32 MiB", "MiB", "1.5GiB", "99999999999999GiB"] {
            assert!(Bytes::from_text(text, "").is_err(), "{text}");
        }
    }
}
