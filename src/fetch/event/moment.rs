//! The timestamps of events: RFC 3339, and the extended format of ISO 8601 with a date and a time.

use jiff::tz::Offset;
use jiff::{Timestamp, civil};

/// Digits of a fraction that are kept; a finer one is cut to nanoseconds.
const FRACTION_DIGITS_MAX: usize = 9;

/// The moment that `text` names: a date, `T`, `t` or a space, a time of hours and minutes with or without seconds and
/// their fraction, then `Z`, `z`, an offset, or nothing, which is UTC. A leap second is the second before it.
///
/// A date alone is no moment, nor are the basic format (without hyphens and colons), weeks, days of the year, and the
/// zone names of RFC 9557.
pub(in crate::fetch) fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at_checked(zone_at)?;
    if !is_date(date) {
        return None;
    }
    let (clock, fraction) = match time.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    let time = match (is_shape(clock, "00:00"), is_shape(clock, "00:00:00"), fraction) {
        (true, _, None) => format!("{clock}:00"),
        (_, true, None) => clock.to_owned(),
        (_, true, Some(fraction)) if is_digits(fraction) => {
            format!("{clock}.{}", fraction.get(..FRACTION_DIGITS_MAX).unwrap_or(fraction))
        }
        _ => return None,
    };
    let local: civil::DateTime = format!("{date}T{time}").parse().ok()?;
    let moment = offset(zone)?.to_timestamp(local);
    // The last hours of year 9999, which stand for "never", are beyond what a moment can be; so are the first of -9999.
    Some(moment.unwrap_or(if local.year() > 0 { Timestamp::MAX } else { Timestamp::MIN }))
}

/// `2026-09-01`, or with the six digits and sign that ISO 8601 and JavaScript have for years beyond four digits.
fn is_date(date: &str) -> bool {
    is_shape(date, "0000-00-00")
        || date.strip_prefix(['+', '-']).is_some_and(|unsigned| is_shape(unsigned, "000000-00-00"))
}

fn offset(zone: &str) -> Option<Offset> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(Offset::UTC);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    // Python writes seconds for zones of old, and ISO 8601 lets the minutes go.
    if !["00", "00:00", "00:00:00"].iter().any(|shape| is_shape(digits, shape)) {
        return None;
    }
    let mut parts = digits.split(':').map(|part| part.parse::<i32>().ok());
    let hours = parts.next()??;
    let minutes = parts.next().unwrap_or(Some(0))?;
    let seconds = parts.next().unwrap_or(Some(0))?;
    if hours > 23 || minutes > 59 || seconds > 59 {
        return None;
    }
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60 + seconds)).ok()
}

/// Whether `text` has a digit for each `0` of `shape`, and its other characters where they stand.
fn is_shape(text: &str, shape: &str) -> bool {
    let fits = |(found, wanted): (u8, u8)| if wanted == b'0' { found.is_ascii_digit() } else { found == wanted };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(parse(text).map(|moment| moment.to_string()).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn every_legal_form_is_read() {
        for text in [
            "2026-09-01T18:42:10Z",
            "2026-09-01t18:42:10z",
            "2026-09-01 18:42:10Z",
            "2026-09-01T18:42:10",
            "2026-09-01T18:42:10+00:00",
            "2026-09-01T18:42:10-00:00",
            "2026-09-01T20:42:10+02:00",
            "2026-09-01T20:42:10+02",
            "2026-09-01T13:12:10-05:30",
            "2026-09-01T19:35:38+00:53:28",
            "2026-09-01T18:42:10.000Z",
            "2026-09-01T18:42:10.0000000000Z",
            "+002026-09-01T18:42:10Z",
        ] {
            check(text, "2026-09-01T18:42:10Z");
        }
    }

    #[test]
    fn fractions_are_kept_to_the_nanosecond() {
        check("2026-09-01T18:42:10.5Z", "2026-09-01T18:42:10.5Z");
        check("2026-09-01T18:42:10,5Z", "2026-09-01T18:42:10.5Z");
        check("2026-09-01T18:42:10.123456+00:00", "2026-09-01T18:42:10.123456Z");
        check("2026-09-01T18:42:10.1234567899Z", "2026-09-01T18:42:10.123456789Z");
    }

    #[test]
    fn edges_of_the_calendar_hold() {
        check("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z");
        check("2024-02-29T00:00Z", "2024-02-29T00:00:00Z");
        check("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00Z");
        check("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z");
        check("-000001-01-01T00:00:00Z", "-000001-01-01T00:00:00Z");
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "now",
            "2026-09-01",
            "2026-09-01T",
            "2026-09-01T18",
            "2026-09-01T18Z",
            "20260901T184210Z",
            "2026-09-01T184210Z",
            "2026-09-01T18:42:10+0200",
            "2026-09-01T18:42:10+2:00",
            "2026-09-01T18:42:10+24:00",
            "2026-09-01T18:42:10+02:60",
            "2026-09-01T18:42:10Z+02:00",
            "2026-09-01T18:42:10ZZ",
            "2026-09-01T18:42:10.Z",
            "2026-09-01T18:42.5Z",
            "2026-09-01T18:42:10Z[Europe/Berlin]",
            "2026-09-01T18:42:10 Z",
            " 2026-09-01T18:42:10Z",
            "2026-09-01T18:42:10Z\n",
            "2026-09-01T24:00:00Z",
            "2026-09-01T18:60:00Z",
            "2026-09-01T18:42:61Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-9-1T18:42:10Z",
            "26-09-01T18:42:10Z",
            "+275760-09-13T00:00:00Z",
            "2026-W36-2T18:42:10Z",
            "2026-244T18:42:10Z",
            "Tue, 01 Sep 2026 18:42:10 GMT",
            "1788288130",
            "２026-09-01T18:42:10Z",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
