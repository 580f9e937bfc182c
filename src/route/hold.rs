//! Quiet hours: whether a moment lies in them, and when they end.

use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp, civil};

use super::timing::Hold;

/// Windows of consecutive days that may touch, around a change of the clock. More can only be a mistake.
const TOUCHING_MAX: usize = 8;

impl Hold {
    /// When the quiet hours end that `now` lies in; none when it lies in none. What it returns is later than `now`, and is
    /// itself not in quiet hours.
    ///
    /// They begin at `from` and end at `to`, by the clock on the wall in [`Hold::zone`], which may be changed:
    ///
    /// - A time of day that the clock skips is the moment of the jump. Quiet hours that lie wholly in what is skipped are
    ///   empty on that day, also where a whole day is skipped (Pacific/Apia left out 30 December 2011).
    /// - A time of day that the clock shows twice counts the first time as a beginning and the second time as an end, so
    ///   that quiet hours are never cut short.
    ///
    /// Where that makes the windows of two days touch or overlap, they are one.
    pub fn ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        let further = |&end: &Timestamp| self.window_end(end);
        std::iter::successors(self.window_end(now), further).take(TOUCHING_MAX).last()
    }

    /// The latest end of those days' windows that `now` lies in.
    fn window_end(&self, now: Timestamp) -> Option<Timestamp> {
        let today = self.zone.to_datetime(now).date();
        // A window over midnight began yesterday. Where the clock is set back over midnight, it is one day more off.
        let days = (-2..=1).filter_map(|days| today.checked_add(Span::new().days(days)).ok());
        let windows = days.filter_map(|day| self.window_of(day));
        windows.filter(|&(begins, ends)| begins <= now && now < ends).map(|(_, ends)| ends).max()
    }

    /// Beginning and end of the window that begins on this day; none at the end of the calendar.
    fn window_of(&self, day: civil::Date) -> Option<(Timestamp, Timestamp)> {
        let last_day = if self.to > self.from { day } else { day.tomorrow().ok()? };
        let begins = shown(&self.zone, day.to_datetime(self.from))?.0;
        let ends = shown(&self.zone, last_day.to_datetime(self.to))?.1;
        Some((begins, ends))
    }
}

/// The first and the last moment at which the clock shows this, or for both the moment at which it jumps over it.
fn shown(zone: &TimeZone, wall: civil::DateTime) -> Option<(Timestamp, Timestamp)> {
    let ambiguous = zone.to_ambiguous_timestamp(wall);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall).ok().map(|moment| (moment, moment)),
        AmbiguousOffset::Fold { before, after } => {
            Some((before.to_timestamp(wall).ok()?, after.to_timestamp(wall).ok()?))
        }
        AmbiguousOffset::Gap { after, .. } => {
            // By the clock as it is after the jump, a time that is skipped would have been before it.
            let before_the_jump = after.to_timestamp(wall).ok()?;
            let jump = zone.following(before_the_jump).find(|transition| transition.offset() == after)?;
            Some((jump.timestamp(), jump.timestamp()))
        }
    }
}

#[cfg(test)]
mod tests;
