//! Moments. The server writes UTC; our script writes the same in the reader's zone, in the same place.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maud::{Markup, html};

use crate::clock::until;
use crate::telemetry::rounded;

/// A moment: exact in UTC where the pointer rests.
pub(in super::super) fn moment(at: Timestamp) -> Markup {
    written(at, "%Y-%m-%d %H:%M UTC")
}

/// The same in a list, where there is little room.
pub(in super::super) fn brief_moment(at: Timestamp) -> Markup {
    written(at, "%-d %b %H:%M UTC")
}

fn written(at: Timestamp, form: &str) -> Markup {
    let utc = at.to_zoned_datetime(TimeZone::UTC);
    let exact = utc.strftime("%Y-%m-%d %H:%M:%S UTC");
    html! { time datetime=(at) title=(exact) { (utc.strftime(form)) } }
}

/// The same of a moment as JSON spells it; the text itself where it is none.
pub(in super::super) fn moment_of(text: &str) -> Markup {
    match text.parse() {
        Ok(at) => moment(at),
        Err(_) => html! { (text) },
    }
}

/// How long something took.
pub(in super::super) fn took(from: Timestamp, to: Timestamp) -> String {
    rounded(until(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_exact_in_utc() {
        let at = "2026-09-01T20:42:10.5+02:00".parse().unwrap();
        assert_eq!(
            moment(at).into_string(),
            "<time datetime=\"2026-09-01T18:42:10.5Z\" title=\"2026-09-01 18:42:10 UTC\">2026-09-01 18:42 UTC</time>"
        );
        assert_eq!(moment_of("<b>").into_string(), "&lt;b&gt;");
    }
}
