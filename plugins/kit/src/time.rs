//! Moments as seconds since 1970 (UTC), read from the two forms that they come in.

/// Names of months as HTTP spells them, in order.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment as the host writes it: RFC 3339 in UTC, such as `2026-03-01T12:00:00Z`, with or without a fraction. A
/// fraction is left out.
///
/// ```
/// assert_eq!(switchbell_kit::time::seconds("2026-03-01T12:00:06.5Z"), Some(1_772_366_406));
/// ```
#[inline(never)]
pub fn seconds(text: &str) -> Option<u64> {
    let text = text.strip_suffix('Z')?;
    let (date, time) = text.split_once('T')?;
    let time = time.split('.').next()?;
    let mut date = date.split('-');
    let (year, month, day) = (number(date.next()?)?, number(date.next()?)?, number(date.next()?)?);
    let mut time = time.split(':');
    let (hour, minute, second) = (number(time.next()?)?, number(time.next()?)?, number(time.next()?)?);
    if date.next().is_some() || time.next().is_some() {
        return None;
    }
    moment(year, month, day, [hour, minute, second])
}

/// A date in an HTTP header, in any of its three forms (RFC 9110 section 5.6.7).
///
/// ```
/// assert_eq!(switchbell_kit::time::http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
/// ```
#[inline(never)]
pub fn http_date(text: &str) -> Option<u64> {
    let mut words = text.split([' ', ',', '-', ':']).filter(|word| !word.is_empty()).skip(1);
    let mut next = || words.next();
    let first = next()?;
    let second = next()?;
    if let Some(month) = month(first) {
        // The C library's asctime: the year comes last.
        let (day, time) = (number(second)?, [number(next()?)?, number(next()?)?, number(next()?)?]);
        return moment(number(next()?)?, month, day, time);
    }
    let (day, month, year) = (number(first)?, month(second)?, next()?);
    // RFC 850 has two digits; what would be far in the future is in the past.
    let year = match number(year)? {
        short @ 0..70 => 2_000 + short,
        short @ 70..100 => 1_900 + short,
        whole => whole,
    };
    moment(year, month, day, [number(next()?)?, number(next()?)?, number(next()?)?])
}

fn month(word: &str) -> Option<u64> {
    let at = MONTHS.iter().position(|month| word.eq_ignore_ascii_case(month))?;
    u64::try_from(at + 1).ok()
}

/// A number of at most four digits.
fn number(word: &str) -> Option<u64> {
    let digits = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    if digits { word.parse().ok() } else { None }
}

fn moment(year: u64, month: u64, day: u64, [hour, minute, second]: [u64; 3]) -> Option<u64> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days since 1970 in the Gregorian calendar. A year counts from March, so that a leap day is its last.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719,468 days lie between March of year 0 and 1970. No month of the year counted so needs a table.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::{http_date, seconds};

    #[test]
    fn moments_of_the_host_are_read() {
        let cases = [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-02-29T23:59:59Z", Some(951_868_799)),
            ("2026-03-01T12:00:06.123456789Z", Some(1_772_366_406)),
            ("2100-03-01T00:00:00Z", Some(4_107_542_400)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799)),
            ("1969-12-31T23:59:59Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-03-01T24:00:00Z", None),
            ("2026-03-01T12:00:00+01:00", None),
            ("2026-03-01", None),
            ("2026-03-01T12:00Z", None),
            ("2026-03-01-01T12:00:00Z", None),
            ("-026-03-01T12:00:00Z", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn all_forms_of_http_dates_are_read() {
        let cases = [
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777)),
            ("Sun Nov  6 08:49:37 1994", Some(784_111_777)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(1_792_567_680)),
            ("Wed, 21 Okt 2026 07:28:00 GMT", None),
            ("Wed, 21 Oct 2026", None),
            ("120", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(http_date(text), expected, "{text}");
        }
    }
}
