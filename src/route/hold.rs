//! Quiet hours: whether a moment lies in them, and when they end.

use jiff::Timestamp;
use jiff::civil;
use jiff::tz::TimeZone;

use super::timing::Hold;

impl Hold {
    /// When the quiet hours end that `now` lies in; none when it lies in none.
    ///
    /// They begin at `from` and end at `to` by the clock on the wall. A time of day that the clock skips is the moment it
    /// skips; one that it shows twice counts the first time for the beginning and the second time for the end, so that
    /// quiet hours are never cut short.
    pub fn ends_at(&self, now: Timestamp) -> Option<Timestamp> {
        let today = self.zone.to_datetime(now).date();
        // The hours that `now` lies in began today or, over midnight, yesterday; around a change of the clock, a day off.
        let days = [today.yesterday().ok(), Some(today), today.tomorrow().ok()];
        days.into_iter().flatten().find_map(|day| {
            let last = if self.to > self.from { Some(day) } else { day.tomorrow().ok() };
            let begins = first(day, self.from, &self.zone)?;
            let ends = self::last(last?, self.to, &self.zone)?;
            (begins <= now && now < ends).then_some(ends)
        })
    }
}

fn first(day: civil::Date, time: civil::Time, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(day.to_datetime(time)).earlier().ok()
}

fn last(day: civil::Date, time: civil::Time, zone: &TimeZone) -> Option<Timestamp> {
    zone.to_ambiguous_timestamp(day.to_datetime(time)).later().ok()
}
