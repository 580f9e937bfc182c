//! Lanes: limits, sharing, waiting, and what they have seen.

use super::*;
use crate::inbox::book::Admission;
use crate::inbox::delivery::DESTINATION_DELAY_MAX;
use crate::inbox::{Adopted, LaneRecord};

fn w(queue: &str, most: u32) -> (String, u32) {
    (queue.to_owned(), most)
}

#[test]
fn a_queue_needs_all_its_lanes_and_takes_as_much_as_the_narrowest_has() {
    let check = |lanes: &[LaneRule], expected: u32| {
        let world = World::new(vec![rule("a", lanes)]);
        world.due(&["a"]);
        assert_eq!(world.pick(), [w("a", expected)], "{lanes:?}");
    };
    check(&[], 64);
    check(&[lane("x")], 64);
    check(&[limited("x", 3)], 3);
    check(&[limited("x", 30), limited("y", 2)], 2);
    check(&[limited("x", 2), paced("y", 5, 60)], 2);
    check(&[paced("x", 5, 60)], 5);
    check(&[ordered("x"), limited("y", 9)], 1);
    // Zero of either is no limit.
    check(&[paced("x", 0, 60), paced("y", 5, 0), limited("z", 0)], 64);
}

#[test]
fn two_queues_share_one_lane_and_differ_in_another() {
    let mut world = World::new(vec![
        rule("a", &[limited("bot", 2), limited("chat-a", 1)]),
        rule("b", &[limited("bot", 2), limited("chat-b", 1)]),
        rule("c", &[limited("bot", 2), limited("chat-c", 1)]),
    ]);
    world.due(&["a", "b", "c"]);
    let claims = world.start_all();
    assert_eq!(claims.iter().map(|claim| claim.queue.route.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(world.pick().is_empty());
    // `a` has more, yet `c` has waited for the bot longer.
    world.end(&claims[0]);
    assert_eq!(world.pick(), [w("c", 1)]);
    assert!(world.pick().is_empty());
    world.end(&claims[1]);
    assert_eq!(world.pick(), [w("a", 1)]);
}

#[test]
fn a_lane_that_is_full_takes_nothing_from_the_other_lanes_of_its_queue() {
    let mut world = World::new(vec![
        rule("a", &[limited("bot", 1), limited("chat", 1)]),
        rule("b", &[limited("chat", 1)]),
        rule("c", &[limited("bot", 1)]),
    ]);
    world.due(&["b"]);
    let first = world.start_one();
    world.due(&["a"]);
    assert!(world.pick().is_empty());
    world.due(&["c"]);
    let other = world.start_one();
    assert_eq!(other.queue, key("c"));
    world.end(&first);
    assert!(world.pick().is_empty(), "the bot is taken");
    world.end(&other);
    assert_eq!(world.pick(), [w("a", 1)]);
}

#[test]
fn an_ordered_lane_lets_the_earliest_due_go_first_and_one_at_a_time() {
    let mut world = World::new(["a", "b", "c"].map(|queue| rule(queue, &[ordered("x")])).into());
    world.queues.due(&key("a"), world.at(3));
    world.queues.due(&key("b"), world.at(1));
    world.queues.due(&key("c"), world.at(2));
    world.clock.advance(seconds(5));
    let mut order = Vec::new();
    for _ in 0..3 {
        let claim = world.start_one();
        assert!(world.pick().is_empty());
        order.push(claim.queue.route.to_string());
        world.end(&claim);
    }
    assert_eq!(order, ["b", "c", "a"]);
    world.assert_empty();
}

#[test]
fn a_destinations_delay_pauses_every_lane_of_the_target_and_who_shares_one() {
    let rules = || {
        vec![
            rule("a", &[lane("bot"), lane("chat")]),
            rule("b", &[lane("bot")]),
            rule("c", &[lane("chat")]),
            rule("d", &[lane("other")]),
        ]
    };
    let mut world = World::new(rules());
    world.due(&["a"]);
    let claim = world.start_one();
    let records = world.queues.records(&claim, Some(seconds(30)));
    assert_eq!(records.len(), 2);
    world.fail(&claim, 30);
    world.due(&["b", "c", "d"]);
    let picked = world.queues.pick();
    assert_eq!(show(&picked.wants), [w("d", 64)]);
    assert_eq!(picked.wake_at, Some(world.at(30)));
    world.clock.advance(seconds(29));
    assert!(world.pick().is_empty());

    // The pause survives a restart.
    let again = World::new(rules());
    again.clock.advance(seconds(29));
    let due = ["a", "b", "c", "d"].map(|queue| (key(queue), again.now())).into();
    again.queues.restore(&Adopted { due, lanes: records, ..Adopted::default() });
    for world in [world, again] {
        assert!(names(&world.pick()).is_subset(&HashSet::from(["d"])));
        world.clock.advance(seconds(1));
        assert_eq!(names(&world.pick()), HashSet::from(["a", "b", "c"]));
    }
}

#[test]
fn a_delay_is_clamped_and_never_shortened_by_another() {
    let mut world = World::new(vec![rule("a", &[lane("x")])]);
    world.due(&["a"]);
    let claim = world.start_one();
    let pause = |delay: Option<Duration>| {
        let records = world.queues.records(&claim, delay);
        records.first().and_then(|record| record.paused_until)
    };
    assert_eq!(pause(None), None);
    assert_eq!(pause(Some(Duration::ZERO)), None);
    let now = Timestamp::from_second(1_000_000).unwrap();
    assert_eq!(pause(Some(seconds(30))), Some(later(now, seconds(30))));
    assert_eq!(pause(Some(seconds(5))), Some(later(now, seconds(30))));
    assert_eq!(pause(Some(Duration::MAX)), Some(later(now, DESTINATION_DELAY_MAX)));
}

#[test]
fn what_a_restart_restores_is_clamped_too() {
    let world = World::new(vec![rule("a", &[lane("x")])]);
    let record = LaneRecord { lane: lane_key("x"), paused_until: Some(Timestamp::MAX), effects: Vec::new() };
    let due = vec![(key("a"), world.now())];
    world.queues.restore(&Adopted { due, lanes: vec![record], ..Adopted::default() });
    assert!(world.pick().is_empty());
    world.clock.advance(DESTINATION_DELAY_MAX);
    assert_eq!(world.pick(), [w("a", 64)]);
}

#[test]
fn only_lanes_with_a_pace_or_a_pause_have_a_record() {
    let lanes = [lane("free"), limited("full", 3), paced("paced", 5, 60)];
    let mut world = World::new(vec![rule("a", &lanes), rule("b", &[])]);
    world.due(&["a"]);
    let claim = world.start_one();
    assert!(world.effect_goes(&claim));
    let records = world.queues.records(&claim, None);
    let expected = LaneRecord { lane: lane_key("paced"), paused_until: None, effects: vec![(world.now(), 1)] };
    assert_eq!(records, [expected]);
    world.clock.advance(seconds(60));
    assert!(world.queues.records(&claim, None)[0].effects.is_empty(), "it left the window");
    world.end(&claim);

    // A queue without lanes has nothing to keep, and yet is paused.
    world.due(&["b"]);
    let claim = world.start_one();
    assert!(world.queues.records(&claim, Some(seconds(9))).is_empty());
    world.fail(&claim, 1);
    world.clock.advance(seconds(8));
    assert!(world.pick().is_empty());
    world.clock.advance(seconds(1));
    assert_eq!(world.pick(), [w("b", 64)]);
}

#[test]
fn a_reload_keeps_what_remains_and_forgets_what_is_gone_once_it_ends() {
    let mut world = World::new(vec![rule("a", &[limited("x", 1)]), rule("b", &[limited("x", 1), paced("y", 1, 60)])]);
    world.due(&["a"]);
    let claim = world.start_one();
    world.due(&["b"]);
    assert!(world.pick().is_empty());
    world.queues.take_up(&Book::new([rule("b", &[limited("x", 1), paced("y", 1, 60)])]));
    assert!(world.pick().is_empty(), "the attempt of a queue that is gone still holds the lane");
    assert!(!world.queues.admit(&key("a"), None));
    world.queues.with(|state, now| state.due(&key("b"), now, now));
    world.end(&claim);
    let second = world.start_one();
    assert_eq!(second.queue, key("b"));
    assert!(world.effect_goes(&second));
    world.end(&second);

    // A wider lane is taken up at once; the pace stays.
    world.due(&["b"]);
    assert!(world.pick().is_empty());
    world.queues.take_up(&Book::new([rule("b", &[limited("x", 1), paced("y", 3, 60)])]));
    let third = world.start_one();
    world.queues.take_up(&Book::new([]));
    world.end(&third);
    world.assert_empty();
    world.clock.advance(seconds(60));
    world.queues.take_up(&Book::new([]));
    world.queues.with(|state, _| {
        assert!(state.queues.keys().next().is_none() || state.queues.values().all(|queue| queue.key == key("a")));
        assert!(state.lanes.is_empty(), "{:?}", state.lanes);
    });
}

#[test]
fn a_lane_that_two_targets_describe_differently_is_as_narrow_as_both() {
    let mut wide = LaneRule { in_flight: 9, ..paced("x", 100, 60) };
    let world = World::new(vec![rule("a", &[wide.clone()]), rule("b", &[LaneRule { in_flight: 4, ..wide.clone() }])]);
    world.due(&["a"]);
    assert_eq!(world.pick(), [w("a", 4)]);
    wide.in_flight = 0;
    let world = World::new(vec![rule("a", &[wide]), rule("b", &[paced("x", 3, 1_000)])]);
    world.due(&["a"]);
    assert_eq!(world.pick(), [w("a", 3)]);
}

#[test]
fn a_clock_that_is_set_back_stalls_no_lane() {
    let mut world = World::new(vec![rule("a", &[paced("x", 1, 10)]), rule("b", &[limited("y", 1)])]);
    world.due(&["a", "b"]);
    let claims = world.start_all();
    for claim in &claims {
        assert!(world.effect_goes(claim));
        world.queues.records(claim, (claim.queue == key("b")).then_some(seconds(10)));
        world.queues.ended(claim, &DONE, None);
    }
    assert!(world.pick().is_empty());
    // An hour back: pace and pause last as long as they would have, not an hour more.
    let back = later(world.now(), Duration::ZERO).checked_sub(jiff::SignedDuration::from_hours(1)).unwrap();
    world.queues.with(|state, now| {
        assert!(state.pick(back).wants.is_empty());
        state.due(&key("a"), back, back);
        state.due(&key("b"), back, back);
        assert!(state.pick(later(back, seconds(9))).wants.is_empty());
        let after = later(back, seconds(10));
        assert_eq!(state.pick(after).wants.len(), 2, "{now}");
    });
}

#[test]
fn lanes_are_shown_with_what_they_allow_and_what_keeps_them() {
    let world = World::new(vec![rule("a", &[paced("x", 2, 60), ordered("y")]), rule("b", &[])]);
    let lanes = world.queues.lanes(&key("a"));
    let shown: Vec<_> = lanes.iter().map(|lane| (lane.key.as_deref(), lane.count, lane.is_ordered)).collect();
    assert_eq!(shown, [(Some("x"), 2, false), (Some("y"), 0, true)]);
    assert!(lanes.iter().all(|lane| lane.opens_at.is_none() && lane.in_flight == 0));
    assert_eq!(world.queues.lanes(&key("b"))[0].key, None, "it has one to itself");
    assert_eq!(world.queues.lanes(&key("unknown")), []);
    let effects = vec![(world.now(), 2)];
    let paused_until = Some(world.at(30));
    let record = LaneRecord { lane: lane_key("x"), paused_until, effects };
    world.queues.restore(&Adopted { lanes: vec![record], ..Adopted::default() });
    let lanes = world.queues.lanes(&key("a"));
    assert_eq!((lanes[0].asked_until, lanes[0].opens_at), (paused_until, Some(world.at(60))));
    assert_eq!(lanes[1].opens_at, None);
}
