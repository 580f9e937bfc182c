//! A destination that seems dead is tried seldom, one attempt at a time, and costs nobody else anything.

use super::*;
use crate::send::queue::lane::{BREAKER_FIRST, BREAKER_MOST, FAILURES_MAX};

/// Two queues of one lane, the first of which has failed so often that the breaker is open.
fn dead() -> World {
    let mut world = World::new(vec![rule("a", &[lane("x")]), rule("b", &[lane("x")])]);
    world.due(&["a", "b"]);
    let claims = world.start_all();
    for claim in claims.iter().take(FAILURES_MAX as usize) {
        world.fail(claim, 3_600);
    }
    for claim in claims.iter().skip(FAILURES_MAX as usize) {
        world.queues.ended(claim, &retrying(world.at(3_600)), Some(Outcome::Interrupted));
    }
    world
}

#[test]
fn five_failures_in_a_row_let_one_attempt_at_a_time_through_with_doubling_waits() {
    let mut world = dead();
    let mut wait = BREAKER_FIRST;
    for _ in 0..9 {
        assert!(world.queues.pick().wants.is_empty());
        world.clock.advance(wait - Duration::from_millis(1));
        assert!(world.queues.pick().wants.is_empty(), "{wait:?}");
        world.clock.advance(Duration::from_millis(1));
        let want = world.want();
        assert_eq!(want.most, 1);
        let now = world.now();
        let claim = world.answer(&want, 1, Some(now)).remove(0);
        assert!(world.queues.pick().wants.is_empty(), "one at a time");
        world.fail(&claim, 3_600);
        wait = (wait * 2).min(BREAKER_MOST);
    }
    assert_eq!(wait, BREAKER_MOST);
}

#[test]
fn an_answer_of_the_destination_closes_it() {
    for outcome in [Outcome::Delivered, Outcome::Reject, Outcome::Reconnect] {
        let mut world = dead();
        world.clock.advance(BREAKER_FIRST);
        let want = world.want();
        let now = world.now();
        let claim = world.answer(&want, 1, Some(now)).remove(0);
        world.queues.ended(&claim, &DONE, Some(outcome));
        assert_eq!(world.pick().len(), 2, "{outcome}");
    }
}

#[test]
fn an_unknown_end_or_an_interruption_does_not_close_it() {
    for outcome in [Outcome::Unknown, Outcome::Interrupted] {
        let mut world = dead();
        world.clock.advance(BREAKER_FIRST);
        let want = world.want();
        let now = world.now();
        let claim = world.answer(&want, 1, Some(now)).remove(0);
        world.queues.ended(&claim, &retrying(world.at(3_600)), Some(outcome));
        world.clock.advance(BREAKER_FIRST * 2);
        assert_eq!(world.want().most, 1, "{outcome}");
    }
}

#[test]
fn failures_with_another_end_between_do_not_open_it() {
    let mut world = World::new(vec![rule("a", &[lane("x")])]);
    for _ in 0..3 {
        world.due(&["a"]);
        let claims = world.start_all();
        let (failing, others) = claims.split_at(FAILURES_MAX as usize - 1);
        for claim in failing {
            world.fail(claim, 3_600);
        }
        for claim in others {
            // Which says nothing of the destination.
            world.queues.ended(claim, &retrying(world.at(3_600)), Some(Outcome::Interrupted));
        }
        world.due(&["a"]);
        for claim in world.start_all() {
            world.end(&claim);
        }
    }
    world.due(&["a"]);
    assert!(world.want().most > 1);
}

#[test]
fn many_that_fail_at_once_open_it_for_the_first_wait_only() {
    let mut world = World::new(vec![rule("a", &[lane("x")])]);
    world.due(&["a"]);
    let claims = world.start_all();
    assert_eq!(claims.len(), 64);
    for claim in &claims {
        world.fail(claim, 3_600);
    }
    assert_eq!(world.queues.pick().wake_at, Some(later(world.now(), BREAKER_FIRST)));
}

#[test]
fn a_delivery_that_is_alone_waits_no_longer_than_its_own_retry_time() {
    for lanes in [vec![lane("x")], Vec::new()] {
        let mut world = World::new(vec![rule("a", &lanes)]);
        world.due(&["a"]);
        for _ in 0..30 {
            let claim = world.start_one();
            world.fail(&claim, 2);
            assert_eq!(world.queues.pick().wake_at, Some(world.at(2)));
            world.clock.advance(seconds(2));
        }
    }
}

#[test]
fn a_queue_without_lanes_has_a_breaker_of_its_own() {
    let mut world = World::new(vec![rule("a", &[]), rule("b", &[])]);
    world.due(&["a"]);
    for claim in world.start_all().iter().take(FAILURES_MAX as usize) {
        world.fail(claim, 3_600);
    }
    world.due(&["a", "b"]);
    assert_eq!(names(&world.pick()), HashSet::from(["b"]));
}
