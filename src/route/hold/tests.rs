use std::collections::BTreeSet;
use std::time::Duration;

use jiff::civil::{Time, date, time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::clock::later;
use crate::route::timing::Except;

const MINUTE: Duration = Duration::from_secs(60);

fn hold(from: &str, to: &str, zone: &str) -> Hold {
    let time = |text: &str| text.parse::<Time>().unwrap();
    Hold { from: time(from), to: time(to), zone: TimeZone::get(zone).unwrap(), except: Except::Nothing }
}

/// `moments` are RFC 3339 with an offset; each is given with the end of the quiet hours it lies in.
fn check(from: &str, to: &str, zone: &str, moments: &[(&str, Option<&str>)]) {
    let hold = hold(from, to, zone);
    for (moment, expected) in moments {
        let seen = hold.ends_at(moment.parse().unwrap());
        assert_eq!(seen, expected.map(|end| end.parse().unwrap()), "{from}-{to} in {zone} at {moment}");
    }
}

#[test]
fn quiet_hours_go_from_one_time_of_day_to_another() {
    let end = Some("2026-06-01T13:00:00+02:00");
    check(
        "12:00",
        "13:00",
        "Europe/Berlin",
        &[
            ("2026-06-01T11:59:59.999+02:00", None),
            ("2026-06-01T12:00:00+02:00", end),
            ("2026-06-01T12:59:59.999+02:00", end),
            ("2026-06-01T13:00:00+02:00", None),
        ],
    );
}

#[test]
fn quiet_hours_over_midnight_belong_to_the_day_they_began() {
    let end = Some("2026-06-02T07:00:00+02:00");
    check(
        "22:00",
        "07:00",
        "Europe/Berlin",
        &[
            ("2026-06-01T21:59:59+02:00", None),
            ("2026-06-01T22:00:00+02:00", end),
            ("2026-06-02T00:00:00+02:00", end),
            ("2026-06-02T06:59:59+02:00", end),
            ("2026-06-02T07:00:00+02:00", None),
        ],
    );
    check("22:00", "00:00", "UTC", &[("2026-06-01T23:59:59Z", Some("2026-06-02T00:00:00Z"))]);
    check(
        "00:00",
        "07:00",
        "UTC",
        &[("2026-06-01T23:59:59Z", None), ("2026-06-02T00:00:00Z", Some("2026-06-02T07:00:00Z"))],
    );
}

#[test]
fn zones_are_offset_by_what_they_like() {
    check(
        "22:00",
        "07:00",
        "Asia/Kathmandu",
        &[("2026-06-01T16:14:59Z", None), ("2026-06-01T16:15:00Z", Some("2026-06-02T01:15:00Z"))],
    );
}

// Berlin, 29 March 2026: 01:59:59+01:00 is followed by 03:00:00+02:00.
#[test]
fn a_beginning_that_the_clock_skips_is_the_moment_of_the_jump() {
    let end = Some("2026-03-29T07:00:00+02:00");
    check(
        "02:30",
        "07:00",
        "Europe/Berlin",
        &[("2026-03-29T01:59:59+01:00", None), ("2026-03-29T03:00:00+02:00", end), ("2026-03-29T03:15:00+02:00", end)],
    );
}

#[test]
fn an_end_that_the_clock_skips_is_the_moment_of_the_jump() {
    check(
        "22:00",
        "02:30",
        "Europe/Berlin",
        &[
            ("2026-03-29T01:59:59+01:00", Some("2026-03-29T03:00:00+02:00")),
            ("2026-03-29T03:00:00+02:00", None),
            ("2026-03-29T03:29:59+02:00", None),
        ],
    );
}

#[test]
fn quiet_hours_that_are_skipped_whole_are_empty_on_that_day() {
    check(
        "02:15",
        "02:45",
        "Europe/Berlin",
        &[
            ("2026-03-29T01:30:00+01:00", None),
            ("2026-03-29T01:59:59+01:00", None),
            ("2026-03-29T03:00:00+02:00", None),
            ("2026-03-29T03:30:00+02:00", None),
            ("2026-03-30T02:30:00+02:00", Some("2026-03-30T02:45:00+02:00")),
        ],
    );
}

// Berlin, 25 October 2026: 02:59:59+02:00 is followed by 02:00:00+01:00.
#[test]
fn what_the_clock_shows_twice_begins_the_first_time_and_ends_the_second_time() {
    let end = Some("2026-10-25T02:45:00+01:00");
    check(
        "02:15",
        "02:45",
        "Europe/Berlin",
        &[
            ("2026-10-25T02:14:59+02:00", None),
            ("2026-10-25T02:15:00+02:00", end),
            ("2026-10-25T02:50:00+02:00", end),
            ("2026-10-25T02:05:00+01:00", end),
            ("2026-10-25T02:44:59+01:00", end),
            ("2026-10-25T02:45:00+01:00", None),
        ],
    );
    check("22:00", "02:00", "Europe/Berlin", &[("2026-10-25T02:00:00+02:00", Some("2026-10-25T02:00:00+01:00"))]);
    check("02:59", "03:00", "Europe/Berlin", &[("2026-10-25T02:00:00+01:00", Some("2026-10-25T03:00:00+01:00"))]);
    check("03:00", "04:00", "Europe/Berlin", &[("2026-10-25T02:59:59+02:00", None)]);
}

#[test]
fn windows_that_touch_around_a_change_of_the_clock_are_one() {
    // Ten loud minutes a day, skipped on this one.
    check("02:30", "02:20", "Europe/Berlin", &[("2026-03-29T01:00:00+01:00", Some("2026-03-30T02:20:00+02:00"))]);
    // The night to the 25th ends at the second 02:20, when the next one has begun.
    check(
        "02:30",
        "02:20",
        "Europe/Berlin",
        &[
            ("2026-10-25T02:25:00+02:00", Some("2026-10-26T02:20:00+01:00")),
            ("2026-10-25T02:25:00+01:00", Some("2026-10-26T02:20:00+01:00")),
        ],
    );
}

#[test]
fn a_change_by_half_an_hour_is_no_different() {
    // 4 October 2026: 01:59:59+10:30 is followed by 02:30:00+11:00.
    check(
        "02:10",
        "02:40",
        "Australia/Lord_Howe",
        &[
            ("2026-10-04T01:59:59+10:30", None),
            ("2026-10-04T02:30:00+11:00", Some("2026-10-04T02:40:00+11:00")),
            ("2026-10-04T02:40:00+11:00", None),
        ],
    );
    // 5 April 2026: 01:59:59+11:00 is followed by 01:30:00+10:30.
    let end = Some("2026-04-05T01:50:00+10:30");
    check(
        "01:40",
        "01:50",
        "Australia/Lord_Howe",
        &[("2026-04-05T01:40:00+11:00", end), ("2026-04-05T01:55:00+11:00", end), ("2026-04-05T01:30:00+10:30", end)],
    );
}

#[test]
fn a_change_by_two_hours_is_no_different() {
    // 29 March 2026: 00:59:59+00:00 is followed by 03:00:00+02:00.
    check(
        "22:00",
        "02:00",
        "Antarctica/Troll",
        &[("2026-03-29T00:59:59Z", Some("2026-03-29T01:00:00Z")), ("2026-03-29T01:00:00Z", None)],
    );
    // 25 October 2026: 02:59:59+02:00 is followed by 01:00:00+00:00.
    check("22:00", "02:00", "Antarctica/Troll", &[("2026-10-25T02:00:00+02:00", Some("2026-10-25T02:00:00+00:00"))]);
}

#[test]
fn a_day_that_is_left_out_joins_the_nights_around_it() {
    let end = Some("2011-12-31T07:00:00+14:00");
    check(
        "22:00",
        "07:00",
        "Pacific/Apia",
        &[
            ("2011-12-29T21:59:59-10:00", None),
            ("2011-12-29T22:00:00-10:00", end),
            ("2011-12-29T23:59:59-10:00", end),
            ("2011-12-31T00:00:00+14:00", end),
            ("2011-12-31T07:00:00+14:00", None),
        ],
    );
    // Its noon does not come.
    check(
        "12:00",
        "13:00",
        "Pacific/Apia",
        &[("2011-12-29T23:59:59-10:00", None), ("2011-12-31T00:00:00+14:00", None)],
    );
}

#[test]
fn a_clock_that_is_set_back_over_midnight_shows_two_evenings() {
    // 29 October 2006: 00:00:59-02:30 is followed by 23:01:00-03:30 of the day before.
    let end = Some("2006-10-28T23:30:00-03:30");
    check(
        "22:00",
        "23:30",
        "America/St_Johns",
        &[
            ("2006-10-28T23:59:59-02:30", end),
            ("2006-10-29T00:00:30-02:30", end),
            ("2006-10-28T23:01:00-03:30", end),
            ("2006-10-28T23:30:00-03:30", None),
        ],
    );
}

#[test]
fn the_ends_of_time_are_survived() {
    for moment in [Timestamp::MIN, Timestamp::MAX] {
        for zone in ["UTC", "Pacific/Apia", "America/New_York"] {
            let _ = hold("22:00", "07:00", zone).ends_at(moment);
        }
    }
}

/// What is quiet from `first` to `last`, minute by minute, from nothing but what the clock shows: from the first minute
/// that shows `from`, or the jump over it, up to the last minute that shows `to`, or the jump over it.
fn quiet_minutes(hold: &Hold, first: Timestamp, last: Timestamp) -> BTreeSet<Timestamp> {
    let margin = Duration::from_secs(3 * 86_400);
    let start = first - SignedDuration::try_from(margin).unwrap();
    let minutes: Vec<(Timestamp, civil::DateTime)> =
        std::iter::successors(Some(start), |&minute| Some(later(minute, MINUTE)))
            .take_while(|&minute| minute <= later(last, margin))
            .map(|minute| (minute, hold.zone.to_datetime(minute)))
            .collect();
    let first_day = minutes[0].1.date();
    let last_day = minutes[minutes.len() - 1].1.date();
    let mut quiet = BTreeSet::new();
    let days = std::iter::successors(Some(first_day.tomorrow().unwrap()), |day| day.tomorrow().ok());
    for day in days.take_while(|&day| day.tomorrow().unwrap() < last_day) {
        let from = day.to_datetime(hold.from);
        let to_day = if hold.to > hold.from { day } else { day.tomorrow().unwrap() };
        let to = to_day.to_datetime(hold.to);
        let begins = minutes.iter().position(|&(_, wall)| wall >= from).unwrap();
        let shows_to = minutes.iter().rposition(|&(_, wall)| wall == to);
        let ends = shows_to.unwrap_or_else(|| minutes.iter().position(|&(_, wall)| wall > to).unwrap());
        quiet.extend(minutes[begins.min(ends)..ends].iter().map(|&(minute, _)| minute));
    }
    quiet
}

fn agrees_with_the_model(hold: &Hold, first: Timestamp, last: Timestamp) {
    let quiet = quiet_minutes(hold, first, last);
    let mut minute = first;
    while minute <= last {
        let ends_at = hold.ends_at(minute);
        assert_eq!(ends_at.is_some(), quiet.contains(&minute), "{hold:?} at {minute}");
        if let Some(end) = ends_at {
            assert!(minute < end && hold.ends_at(end).is_none(), "{hold:?} at {minute} ends at {end}");
            let between = later(minute, MINUTE);
            assert!(
                between >= end || quiet.contains(&between) && hold.ends_at(between) == Some(end),
                "{hold:?} {minute}"
            );
        }
        minute = later(minute, MINUTE);
    }
}

/// Places and days with something odd about them, and one ordinary one.
const ODD_DAYS: [(&str, (i16, i8, i8)); 16] = [
    ("Europe/Berlin", (2026, 3, 29)),
    ("Europe/Berlin", (2026, 10, 25)),
    ("Europe/Berlin", (2026, 6, 1)),
    ("America/New_York", (2026, 3, 8)),
    ("America/New_York", (2026, 11, 1)),
    ("America/St_Johns", (2006, 10, 29)),
    ("America/St_Johns", (2006, 4, 2)),
    ("America/Sao_Paulo", (2018, 2, 18)),
    ("America/Sao_Paulo", (2018, 11, 4)),
    ("Pacific/Apia", (2011, 12, 30)),
    ("Pacific/Kwajalein", (1993, 8, 21)),
    ("Australia/Lord_Howe", (2026, 4, 5)),
    ("Australia/Lord_Howe", (2026, 10, 4)),
    ("Antarctica/Troll", (2026, 3, 29)),
    ("Antarctica/Troll", (2026, 10, 25)),
    ("Asia/Kathmandu", (2026, 1, 1)),
];

fn around(zone: &TimeZone, day: (i16, i8, i8)) -> (Timestamp, Timestamp) {
    let noon = date(day.0, day.1, day.2).to_datetime(time(12, 0, 0, 0));
    let noon = zone.to_timestamp(noon).unwrap();
    let minute = noon.as_second() / 60 * 60;
    let at = |second| Timestamp::from_second(second).unwrap();
    (at(minute - 30 * 3_600), at(minute + 30 * 3_600))
}

/// Quiet hours from a minute of the day, for so many minutes.
fn window(from: i16, length: i16, zone: TimeZone) -> Hold {
    let clock = |minute: i16| time((minute / 60 % 24) as i8, (minute % 60) as i8, 0, 0);
    Hold { from: clock(from), to: clock(from + length), zone, except: Except::Nothing }
}

fn configuration(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(configuration(64))]

    #[test]
    fn a_moment_is_quiet_as_the_clock_on_the_wall_says_on_odd_days(
        odd in 0..ODD_DAYS.len(), from in 0..1440_i16, length in 1..1440_i16, near_the_jump: bool,
    ) {
        let (zone, day) = ODD_DAYS[odd];
        // Half of the windows lie within the hours in which clocks are changed.
        let (from, length) = if near_the_jump { (from % 200, length % 200 + 1) } else { (from, length) };
        let zone = TimeZone::get(zone).unwrap();
        let (first, last) = around(&zone, day);
        agrees_with_the_model(&window(from, length, zone), first, last);
    }

    #[test]
    fn a_moment_is_quiet_as_the_clock_on_the_wall_says_over_the_years(
        zone in prop::sample::select(vec![
            "UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Africa/Casablanca", "Africa/Cairo",
            "Asia/Tehran", "Asia/Gaza", "Asia/Kathmandu", "Asia/Pyongyang", "Australia/Lord_Howe", "Antarctica/Troll",
            "Antarctica/Casey", "Pacific/Apia", "Pacific/Chatham", "America/Caracas", "America/Scoresbysund",
        ]),
        year in 1995..2036_i16, month in 1..=12_i8, day in 1..=28_i8, from in 0..1440_i16, length in 1..1440_i16,
    ) {
        let zone = TimeZone::get(zone).unwrap();
        let (first, last) = around(&zone, (year, month, day));
        agrees_with_the_model(&window(from, length, zone), first, last);
    }
}
