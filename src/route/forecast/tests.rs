use std::time::Duration;

use jiff::civil::time;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;
use crate::clock::later;
use crate::route::plan::{Acknowledged, SURPLUS};
use crate::route::timing::{After, AtMost, By, Collect, Hold, Unless};

const MINUTE: Duration = Duration::from_secs(60);

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn new(level: Level) -> Waiting {
    Waiting {
        number: Waiting::NEW,
        at: Timestamp::MIN,
        place: Place::New,
        received_at: moment("2026-10-24T22:30:00Z"),
        level,
        source: "registrar".to_owned(),
        name: "domain.active".to_owned(),
        subject: Some("a.example".to_owned()),
        acknowledged: Acknowledged::No,
        items: 1,
        bytes: 300,
    }
}

/// Every option at once; quiet hours from 01:00 to 03:30 in Berlin.
fn everything() -> Timing {
    let zone = TimeZone::get("Europe/Berlin").unwrap();
    let except = Except::Urgent;
    Timing {
        after: Some(After { wait: 15 * MINUTE, except }),
        unless: Some(Unless::AcknowledgedByPerson),
        hold: Some(Hold { from: time(1, 0, 0, 0), to: time(3, 30, 0, 0), zone, except: Except::Nothing }),
        collect: Some(Collect { by: By::Subject, wait: 10 * MINUTE, most: 20, except }),
        at_most: Some(AtMost { count: 1, per: 60 * MINUTE, except }),
    }
}

fn of_new(timing: &Timing, reached: &[Timestamp], waiting: &[Waiting], one: Waiting, now: Timestamp) -> Forecast {
    forecast(Scene { timing, reached, going: 0, waiting }, Followed::New(Box::new(one)), now)
}

/// What was said, one word for each part, and what came of it.
fn told(one: &Move) -> String {
    let word = |said: &Said| {
        let word = match said.word {
            Word::Passes => "passes".to_owned(),
            Word::Excepts => "excepts".to_owned(),
            Word::Keeps { until } => until.to_string(),
            Word::Suppresses => "suppresses".to_owned(),
        };
        format!("{} {word}", said.part.as_str())
    };
    format!("{}: {}", one.at, one.said.iter().map(word).collect::<Vec<_>>().join(", "))
}

#[test]
fn every_stage_is_passed_in_its_order_with_what_it_says() {
    // The night in which the clock shows 02:00 to 03:00 twice: quiet hours are an hour longer.
    let now = moment("2026-10-24T22:30:00Z");
    let seen = of_new(&everything(), &[moment("2026-10-25T02:20:00Z")], &[], new(Level::Info), now);
    assert_eq!(
        seen.moves.iter().map(told).collect::<Vec<_>>(),
        [
            "2026-10-24T22:30:00Z: unless passes, after 2026-10-24T22:45:00Z",
            "2026-10-24T22:45:00Z: unless passes, after passes, hold passes, collect 2026-10-24T22:55:00Z",
            "2026-10-24T22:55:00Z: unless passes, after passes, hold passes, collect passes, at_most passes",
        ]
    );
    assert_eq!(seen.end, End::Goes { at: moment("2026-10-24T22:55:00Z") });
    let later = moment("2026-10-24T23:00:00Z");
    let seen = of_new(&everything(), &[moment("2026-10-25T02:20:00Z")], &[], new(Level::Urgent), later);
    assert_eq!(
        seen.moves.iter().map(told).collect::<Vec<_>>(),
        [
            "2026-10-24T23:00:00Z: unless passes, after passes, hold 2026-10-25T02:30:00Z",
            "2026-10-25T02:30:00Z: unless passes, after passes, hold passes, collect passes, at_most excepts",
        ]
    );
}

#[test]
fn what_joins_an_open_digest_goes_when_that_closes() {
    let timing = Timing { collect: everything().collect, ..Timing::default() };
    let now = moment("2026-06-01T12:00:00Z");
    let key = "subject a.example".to_owned();
    let open =
        Waiting { number: 7, at: later(now, 3 * MINUTE), place: Place::Digest { key }, items: 18, ..new(Level::Info) };
    let seen = of_new(&timing, &[], std::slice::from_ref(&open), new(Level::Info), now);
    let joins = Joined { number: 7, closes_at: open.at, is_counted: false };
    assert_eq!((seen.moves[0].joins.as_ref(), seen.end), (Some(&joins), End::Goes { at: open.at }));
    let nearly_full = Waiting { items: 19, ..open.clone() };
    let seen = of_new(&timing, &[], &[nearly_full], new(Level::Info), now);
    assert_eq!(seen.end, End::Goes { at: now }, "the twentieth closes it");
    let elsewhere = Waiting { subject: Some("b".to_owned()), ..new(Level::Info) };
    let seen = of_new(&timing, &[], &[open], elsewhere, now);
    assert_eq!(seen.end, End::Goes { at: later(now, 10 * MINUTE) });
}

#[test]
fn what_others_take_of_a_limit_is_not_left_for_this_one() {
    let timing = Timing { at_most: everything().at_most, ..Timing::default() };
    let now = moment("2026-06-01T12:00:00Z");
    let place = Place::Digest { key: SURPLUS.to_owned() };
    let surplus = Waiting { number: 3, at: later(now, 5 * MINUTE), place, ..new(Level::Info) };
    let reached = [later(now, 5 * MINUTE) - jiff::SignedDuration::from_hours(1)];
    let seen = of_new(&timing, &reached, &[surplus], new(Level::Info), now);
    assert_eq!(seen.end, End::Goes { at: later(now, 5 * MINUTE) }, "it joins the surplus");
    let scene = Scene { timing: &timing, reached: &[], going: 1, waiting: &[] };
    let seen = forecast(scene, Followed::New(Box::new(new(Level::Info))), now);
    assert_eq!(seen.end, End::Goes { at: later(now, 60 * MINUTE) }, "what is on its way counts");
}

#[test]
fn an_acknowledged_one_is_needless_and_one_that_is_not_there_has_no_end() {
    let now = moment("2026-06-01T12:00:00Z");
    let one = Waiting { acknowledged: Acknowledged::ByPerson, ..new(Level::Info) };
    assert_eq!(of_new(&everything(), &[], &[], one.clone(), now).end, End::Suppressed { at: now });
    let scheduled = Waiting { number: 5, place: Place::Alone, at: later(now, MINUTE), ..one };
    let waiting = [scheduled];
    let timing = everything();
    let scene = Scene { timing: &timing, reached: &[], going: 0, waiting: &waiting };
    assert_eq!(forecast(scene, Followed::Waiting(5), now).end, End::Suppressed { at: later(now, MINUTE) });
    assert_eq!(forecast(scene, Followed::Waiting(6), now).end, End::Open);
}

fn configuration() -> ProptestConfig {
    ProptestConfig { cases: 500, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(Level::ALL.to_vec())
}

proptest! {
    #![proptest_config(configuration())]

    #[test]
    fn a_forecast_says_what_the_plan_says_and_each_part_agrees(
        timing in crate::route::plan::any_timing(), level in level(), minutes in 0..200_000_u32, reached in 0..4_usize,
    ) {
        let now = later(moment("2026-03-01T00:00:00Z"), minutes * MINUTE);
        let reached = vec![now; reached];
        let one = Waiting { received_at: now, ..new(level) };
        let seen = of_new(&timing, &reached, &[], one.clone(), now);
        let mut stage = Stage::Matched;
        for (number, one_move) in seen.moves.iter().enumerate() {
            prop_assert_eq!(one_move.stage, stage);
            let standing = Standing { reached: &reached, going: 0, surplus_until: None };
            let step = plan(&timing, stage, &one.facts(), &standing, one_move.at);
            prop_assert_eq!(&one_move.step, &step);
            let decides = one_move.said.last().map(|said| said.word);
            let next_at = seen.moves.get(number + 1).map(|next| next.at);
            match step {
                Step::Wait { until } => {
                    prop_assert_eq!((decides, next_at), (Some(Word::Keeps { until }), Some(until)));
                    stage = Stage::Waited;
                }
                Step::Gather { why, until, .. } => {
                    prop_assert_eq!(decides, Some(Word::Keeps { until }));
                    let is_full = why == Why::Collect && timing.collect.as_ref().is_some_and(|collect| collect.most == 1);
                    prop_assert_eq!(next_at, Some(if is_full { one_move.at } else { until }));
                    stage = Stage::Closed;
                }
                Step::Suppress => prop_assert!(false, "nobody acknowledged it"),
                Step::Go => {
                    let passes = matches!(decides, None | Some(Word::Passes | Word::Excepts));
                    prop_assert!(passes, "{seen:?}");
                    prop_assert_eq!(seen.end, End::Goes { at: one_move.at });
                }
            }
        }
    }
}
