//! What holds for any timing and any traffic while the clock goes on evenly.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::target::{Place, Target};
use super::*;

fn configuration() -> ProptestConfig {
    ProptestConfig { cases: 150, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

fn except() -> impl Strategy<Value = Except> {
    prop_oneof![Just(Except::Nothing), Just(Except::Urgent)]
}

pub(in crate::route) fn any_timing() -> impl Strategy<Value = Timing> {
    let after = (1..300_u32, except()).prop_map(|(minutes, except)| After { wait: minutes * MINUTE, except });
    let unless = prop_oneof![Just(Unless::AcknowledgedByPerson), Just(Unless::AcknowledgedByAnyone)];
    let clock = |minute: i16| time((minute / 60 % 24) as i8, (minute % 60) as i8, 0, 0);
    let zones = prop::sample::select(vec!["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"]);
    let hold = (0..1440_i16, 1..1440_i16, zones, except()).prop_map(move |(from, length, zone, except)| Hold {
        from: clock(from),
        to: clock(from + length),
        zone: TimeZone::get(zone).unwrap(),
        except,
    });
    let by = prop_oneof![Just(By::Subject), Just(By::None)];
    let collect = (by, 1..200_u32, 1..10_u32, except()).prop_map(|(by, minutes, most, except)| Collect {
        by,
        wait: minutes * MINUTE,
        most,
        except,
    });
    let at_most = (1..5_u32, 1..3_000_u32, except()).prop_map(|(count, minutes, except)| AtMost {
        count,
        per: minutes * MINUTE,
        except,
    });
    let parts = (
        prop::option::of(after),
        prop::option::of(unless),
        prop::option::of(hold),
        prop::option::of(collect),
        prop::option::of(at_most),
    );
    parts.prop_map(|(after, unless, hold, collect, at_most)| Timing { after, unless, hold, collect, at_most })
}

/// One thing that happens, so many minutes after the one before.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) gap_minutes: u32,
    pub(super) level: Level,
    pub(super) subject: Option<&'static str>,
    /// Minutes until what goes now reaches the destination or ends.
    pub(super) road_minutes: u32,
    pub(super) reaches: bool,
    /// Who acknowledges a notification before it, and which.
    pub(super) acknowledged: Option<(usize, Acknowledged)>,
}

pub(super) fn traffic(most: usize) -> impl Strategy<Value = Vec<Arrival>> {
    let acknowledged = (0..50_usize, prop_oneof![Just(ByAgent), Just(ByPerson)]);
    let gap = prop_oneof![4 => 0..10_u32, 1 => 0..700_u32];
    let arrival = (
        gap,
        prop::sample::select(Level::ALL.to_vec()),
        prop::sample::select(vec![None, Some("a"), Some("b")]),
        prop_oneof![Just(0), 0..90_u32],
        prop::bool::weighted(0.8),
        prop::option::weighted(0.3, acknowledged),
    );
    let arrival = arrival.prop_map(|(gap_minutes, level, subject, road_minutes, reaches, acknowledged)| Arrival {
        gap_minutes,
        level,
        subject,
        road_minutes,
        reaches,
        acknowledged,
    });
    prop::collection::vec(arrival, 1..most)
}

pub(super) fn acknowledge(target: &mut Target, arrival: &Arrival) {
    let Some((back, by)) = arrival.acknowledged else { return };
    let number = target.items.len().checked_sub(back + 1);
    if let Some(item) = number.and_then(|number| target.items.get_mut(number)) {
        item.acknowledged = item.acknowledged.max(by);
    }
}

fn days_later(moment: Timestamp, days: u32) -> Timestamp {
    later(moment, days * 24 * 60 * MINUTE)
}

/// Before both changes of the clock in Berlin and New York, on which half of the cases begin.
fn beginning() -> impl Strategy<Value = Timestamp> {
    let text = prop::sample::select(vec!["2026-03-07T12:00:00Z", "2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z"]);
    text.prop_map(|text| text.parse().unwrap())
}

fn run(timing: &Timing, start: Timestamp, traffic: &[Arrival]) -> Target {
    let mut target = Target::new(timing.clone(), start);
    for arrival in traffic {
        target.run_until(later(target.now, arrival.gap_minutes * MINUTE));
        target.road = (arrival.road_minutes * MINUTE, arrival.reaches);
        acknowledge(&mut target, arrival);
        target.arrive(arrival.level, arrival.subject);
        target.check_places();
    }
    target
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn everything_ends_once_and_never_in_quiet_hours_or_above_the_limit(
        timing in any_timing(), start in beginning(), traffic in traffic(60),
    ) {
        let mut target = run(&timing, start, &traffic);
        // Whatever waits moves on by time alone, and no chain of stages is longer than this.
        target.run_until(days_later(target.now, 30));
        prop_assert!(target.is_idle(), "something waits for ever: {target:?}");
        target.check_limit();
        target.check_places();
        for item in &target.items {
            match item.place {
                Place::Gone { .. } => {}
                Place::Suppressed => prop_assert!(timing.unless.is_some_and(|unless| unless.is_met(item.acknowledged))),
                other => prop_assert!(false, "it is still {other:?}"),
            }
        }
    }

    #[test]
    fn what_is_urgent_never_waits_behind_a_limit(
        at_most in (1..5_u32, 1..3_000_u32), traffic in traffic(60),
    ) {
        let (count, minutes) = at_most;
        let at_most = Some(AtMost { count, per: minutes * MINUTE, except: Except::Urgent });
        let target = run(&Timing { at_most, ..Timing::default() }, moment("1 12:00"), &traffic);
        for item in target.items.iter().filter(|item| item.level == Urgent) {
            prop_assert_eq!(item.place, Place::Gone { at: item.received_at });
        }
    }

    #[test]
    fn what_is_urgent_goes_at_once_where_every_stage_lets_it_pass(timing in any_timing(), traffic in traffic(60)) {
        let urgent = Except::Urgent;
        let timing = Timing {
            after: timing.after.map(|after| After { except: urgent, ..after }),
            unless: None,
            hold: timing.hold.map(|hold| Hold { except: urgent, ..hold }),
            collect: timing.collect.map(|collect| Collect { except: urgent, ..collect }),
            at_most: timing.at_most.map(|at_most| AtMost { except: urgent, ..at_most }),
        };
        let target = run(&timing, moment("1 12:00"), &traffic);
        for item in target.items.iter().filter(|item| item.level == Urgent) {
            prop_assert_eq!(item.place, Place::Gone { at: item.received_at });
        }
    }

    #[test]
    fn nothing_overtakes_what_came_before_it(timing in any_timing(), traffic in traffic(60)) {
        // Of one level and one group, and with every attempt reaching the destination.
        let collect = timing.collect.map(|collect| Collect { by: By::None, ..collect });
        let timing = Timing { collect, unless: None, ..timing };
        let alike = |arrival: &Arrival| Arrival { level: Info, reaches: true, ..arrival.clone() };
        let mut target = run(&timing, moment("1 12:00"), &traffic.iter().map(alike).collect::<Vec<_>>());
        target.run_until(days_later(target.now, 30));
        let order: Vec<usize> = target.gone.iter().flat_map(|items| {
            let mut items = items.clone();
            items.sort_unstable();
            items
        }).collect();
        prop_assert_eq!(order, (0..target.items.len()).collect::<Vec<_>>());
    }
}
