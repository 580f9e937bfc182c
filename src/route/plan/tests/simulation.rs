//! Weeks of traffic through targets with every option, over the days on which clocks are changed, and with a clock that is
//! set forward by days and back by an hour.

use fastrand::Rng;

use super::target::{Place, Target};
use super::*;

const HOUR: Duration = Duration::from_secs(3_600);
const DAYS: u32 = 38;

/// Every option at once, with and without exceptions, in several places.
fn targets() -> Vec<Timing> {
    let places =
        ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "UTC", "Antarctica/Troll"];
    let target = |(number, zone): (usize, &str)| {
        let except = if number % 2 == 0 { Except::Nothing } else { Except::Urgent };
        let unless = [None, Some(Unless::AcknowledgedByPerson), Some(Unless::AcknowledgedByAnyone)][number % 3];
        let by = if number < 3 { By::Subject } else { By::None };
        let zone = TimeZone::get(zone).unwrap();
        Timing {
            after: Some(After { wait: 15 * MINUTE, except }),
            unless,
            hold: Some(Hold { from: time(22, 0, 0, 0), to: time(2, 30, 0, 0), zone, except }),
            collect: Some(Collect { by, wait: 10 * MINUTE, most: 20, except }),
            at_most: Some(AtMost { count: 4, per: HOUR, except: Except::Urgent }),
        }
    };
    places.into_iter().enumerate().map(target).collect()
}

/// What the clock does besides going on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Even,
    Jumps,
}

fn simulate(timing: &Timing, start: &str, clock: Clock, seed: u64) {
    let start: Timestamp = start.parse().unwrap();
    let mut random = Rng::with_seed(seed);
    let mut target = Target::new(timing.clone(), start);
    let end = later(start, DAYS * 24 * HOUR);
    while target.now < end {
        if clock == Clock::Jumps && random.u32(..400) == 0 {
            let hour = jiff::SignedDuration::from_hours(1);
            let to = if random.bool() { later(target.now, random.u32(1..4) * 24 * HOUR) } else { target.now - hour };
            target.set_clock(to);
        }
        // Bursts, and hours with nothing.
        let gap = if random.u32(..30) == 0 { random.u32(..300) } else { random.u32(..12) };
        target.run_until(later(target.now, gap * MINUTE));
        target.road = (random.u32(..8) * MINUTE, random.u32(..10) > 0);
        let recent = target.items.len().saturating_sub(random.usize(1..20));
        if random.bool()
            && let Some(item) = target.items.get_mut(recent)
        {
            item.acknowledged = item.acknowledged.max(if random.bool() { ByAgent } else { ByPerson });
        }
        let level = Level::ALL[random.usize(..3).min(random.usize(..3))];
        if random.u32(..100) == 0 {
            target.check_places();
        }
        target.arrive(level, [None, Some("a"), Some("b"), Some("c")][random.usize(..4)]);
    }
    target.run_until(later(target.now, 7 * 24 * HOUR));
    target.check_places();
    assert!(target.is_idle(), "something waits for ever");
    if clock == Clock::Even {
        target.check_limit();
    }
    let gone = target.items.iter().filter(|item| matches!(item.place, Place::Gone { .. })).count();
    let suppressed = target.items.iter().filter(|item| item.place == Place::Suppressed).count();
    assert_eq!(gone + suppressed, target.items.len(), "something was lost");
    assert!(
        target.items.len() > 1_000 && target.gone.len() < target.items.len(),
        "too little happened to show anything"
    );
    assert_eq!(suppressed > 20, timing.unless.is_some(), "{suppressed} suppressed of {timing:?}");
}

#[test]
fn weeks_of_traffic_over_changes_of_the_clock_lose_nothing() {
    for (seed, timing) in (1..).zip(targets()) {
        for start in ["2026-03-05T00:00:00Z", "2026-09-26T00:00:00Z"] {
            simulate(&timing, start, Clock::Even, seed);
        }
    }
}

#[test]
fn weeks_of_traffic_with_a_clock_that_is_set_lose_nothing() {
    for (seed, timing) in (1..).zip(targets()) {
        for start in ["2026-03-05T00:00:00Z", "2026-09-26T00:00:00Z"] {
            simulate(&timing, start, Clock::Jumps, seed);
        }
    }
}
