//! Pace: effects are counted, not attempts.

use super::*;
use crate::inbox::Adopted;
use crate::inbox::book::Admission;
use crate::send::queue::window::{ENTRIES_MAX, Window};

#[test]
fn a_pick_reserves_the_first_effect_and_an_unused_reservation_comes_back() {
    let mut world = World::new(vec![rule("a", &[paced("x", 3, 60)]), rule("b", &[paced("x", 3, 60)])]);
    world.due(&["a"]);
    let want = world.want();
    assert_eq!(want.most, 3);
    world.due(&["b"]);
    assert!(world.pick().is_empty());
    let claims = world.answer(&want, 2, None);
    let want = world.want();
    assert_eq!(want.most, 1, "the third was not needed");
    world.queues.failed(&want);
    assert_eq!(world.want().most, 1, "a claim that failed leaves the queue due");
    // An attempt that made no effect costs no pace; one that did does.
    assert!(world.effect_goes(&claims[0]));
    world.end(&claims[0]);
    world.end(&claims[1]);
    world.due(&["a"]);
    assert_eq!(world.want().most, 1);
}

#[test]
fn no_window_ever_sees_more_than_its_count() {
    let check = |count: u32, per_seconds: u64, step_ms: u64| {
        let per = seconds(per_seconds);
        let mut window = Window::new(count, per);
        let (mut now, mut made) = (Timestamp::UNIX_EPOCH, Vec::new());
        let mut random = fastrand::Rng::with_seed(u64::from(count));
        for _ in 0..5_000 {
            now = later(now, Duration::from_millis(random.u64(0..=step_ms)));
            if window.room(now, 0) > 0 {
                window.made_one(now);
                made.push(now);
            } else {
                let opens_at = window.opens_at(now, 0).unwrap();
                assert!(opens_at > now && opens_at <= later(now, per));
                let just_before = later(opens_at, Duration::ZERO).checked_sub(jiff::SignedDuration::from_nanos(1));
                assert_eq!(window.room(just_before.unwrap(), 0), 0);
            }
            assert!(window.effects(now).len() <= ENTRIES_MAX);
        }
        assert!(made.len() >= count as usize);
        for (oldest, newest) in made.iter().zip(made.iter().skip(count as usize)) {
            assert!(later(*oldest, per) <= *newest, "{count} in {per:?}: {oldest} {newest}");
        }
    };
    for (count, per_seconds) in [(1, 1), (5, 60), (64, 10), (65, 10), (1_000, 60)] {
        for step_ms in [3, 40, 900] {
            check(count, per_seconds, step_ms);
        }
    }
}

#[test]
fn a_small_count_is_exact_and_a_large_one_late_by_a_sixtieth_at_most() {
    let check = |count: u32, slack: Duration| {
        let mut window = Window::new(count, seconds(60));
        let mut now = Timestamp::UNIX_EPOCH;
        for _ in 0..count {
            window.made_one(now);
            now = later(now, Duration::from_millis(10));
        }
        let opens_at = window.opens_at(now, 0).unwrap();
        assert!(opens_at <= later(Timestamp::UNIX_EPOCH, seconds(60) + slack), "{count}: {opens_at}");
    };
    check(1, Duration::ZERO);
    check(64, Duration::ZERO);
    check(3_000, seconds(1));
}

#[test]
fn a_window_survives_a_restart() {
    let mut world = World::new(vec![rule("a", &[paced("x", 2, 60)])]);
    world.due(&["a"]);
    let claims = world.start_all();
    assert!(claims.iter().all(|claim| world.effect_goes(claim)));
    let records = world.queues.records(&claims[0], None);

    let again = World::new(vec![rule("a", &[paced("x", 2, 60)])]);
    again.clock.advance(seconds(59));
    let due = vec![(key("a"), again.now())];
    again.queues.restore(&Adopted { due, lanes: records.clone(), ..Adopted::default() });
    // Twice is once.
    again.queues.restore(&Adopted { lanes: records, ..Adopted::default() });
    let picked = again.queues.pick();
    assert!(picked.wants.is_empty());
    assert_eq!(picked.wake_at, Some(again.at(1)));
    again.clock.advance(seconds(1));
    assert_eq!(again.want().most, 2);
}

#[tokio::test]
async fn a_further_effect_waits_for_the_pace_and_goes_before_new_claims() {
    let mut world = World::new(vec![rule("a", &[paced("x", 1, 10)]), rule("b", &[paced("x", 1, 10)])]);
    world.due(&["a"]);
    let claim = world.start_one();
    world.queues.effect(&claim).await;
    world.due(&["b"]);
    assert!(world.pick().is_empty());
    let further = tokio::spawn({
        let (queues, claim) = (Arc::clone(&world.queues), claim.clone());
        async move { queues.effect(&claim).await }
    });
    tokio::task::yield_now().await;
    world.clock.advance(seconds(9));
    tokio::task::yield_now().await;
    assert!(!further.is_finished());
    world.clock.advance(seconds(1));
    // Even if the pick comes first.
    assert!(world.pick().is_empty());
    further.await.unwrap();
    world.end(&claim);
    assert!(world.pick().is_empty());
    world.clock.advance(seconds(10));
    assert_eq!(world.want().queue, key("b"));
}

#[tokio::test]
async fn effects_wait_for_a_pause_first_ones_too() {
    let mut world = World::new(vec![rule("a", &[limited("x", 2)])]);
    world.due(&["a"]);
    let claims = world.start_all();
    assert_eq!(world.queues.paused_until(&claims[1]), None);
    world.queues.records(&claims[0], Some(seconds(30)));
    assert_eq!(world.queues.paused_until(&claims[1]), Some(world.at(30)));
    let first = tokio::spawn({
        let (queues, claim) = (Arc::clone(&world.queues), claims[1].clone());
        async move { queues.effect(&claim).await }
    });
    tokio::task::yield_now().await;
    world.clock.advance(seconds(29));
    tokio::task::yield_now().await;
    assert!(!first.is_finished());
    world.clock.advance(seconds(1));
    first.await.unwrap();
}

#[tokio::test]
async fn an_effect_that_another_lane_keeps_keeps_nobody_in_this_one() {
    let bot = || paced("bot", 2, 1);
    let mut world = World::new(vec![rule("a", &[bot(), paced("chat", 1, 100)]), rule("b", &[bot()])]);
    world.due(&["a", "b"]);
    let claims = world.start_all();
    for claim in &claims {
        world.queues.effect(claim).await;
    }
    let waits = |claim: &Claim| {
        let (queues, claim) = (Arc::clone(&world.queues), claim.clone());
        tokio::spawn(async move { queues.effect(&claim).await })
    };
    let slow = waits(&claims[0]);
    tokio::task::yield_now().await;
    let quick = waits(&claims[1]);
    tokio::task::yield_now().await;
    world.clock.advance(seconds(1));
    quick.await.unwrap();
    assert!(!slow.is_finished());
    // Whoever stops waiting leaves the line.
    slow.abort();
    assert!(slow.await.unwrap_err().is_cancelled());
    world.end(&claims[0]);
    world.end(&claims[1]);
    world.assert_empty();
}

#[tokio::test]
async fn an_effect_that_waits_for_a_reservation_goes_when_it_is_given_back() {
    let mut world = World::new(vec![rule("a", &[paced("x", 2, 100)])]);
    world.due(&["a"]);
    let claims = world.start_all();
    world.queues.effect(&claims[0]).await;
    let further = tokio::spawn({
        let (queues, claim) = (Arc::clone(&world.queues), claims[0].clone());
        async move { queues.effect(&claim).await }
    });
    tokio::task::yield_now().await;
    assert!(!further.is_finished());
    world.end(&claims[1]);
    further.await.unwrap();
}

#[test]
fn who_waits_for_a_paced_lane_is_told_when_a_reservation_is_used_not_when_its_attempt_ends() {
    let mut world = World::new(vec![rule("a", &[paced("x", 1, 10)]), rule("b", &[paced("x", 1, 10)])]);
    world.due(&["a"]);
    let claim = world.start_one();
    world.due(&["b"]);
    assert_eq!(world.queues.pick().wake_at, None);
    assert!(world.effect_goes(&claim));
    assert_eq!(world.queues.pick().wake_at, Some(world.at(10)));
    world.clock.advance(seconds(10));
    assert_eq!(world.want().queue, key("b"));
}

#[test]
fn what_is_admitted_and_not_written_costs_no_pace() {
    let world = World::new(vec![rule("a", &[paced("x", 1, 60)])]);
    assert!(world.queues.admit(&key("a"), None));
    assert!(!world.queues.admit(&key("a"), None));
    world.queues.give_back(&key("a"), None);
    assert_eq!(world.want().most, 1, "what was refused meanwhile is due");
}

#[test]
fn a_pace_given_by_a_reload_counts_what_is_made_from_then_on() {
    let mut world = World::new(vec![rule("a", &[limited("x", 2)])]);
    world.due(&["a"]);
    let claims = world.start_all();
    assert!(world.effect_goes(&claims[0]));
    world.queues.take_up(&Book::new([rule("a", &[paced("x", 2, 60)])]));
    assert_eq!(world.want().most, 1, "the second attempt has its first effect before it");
    assert!(world.effect_goes(&claims[1]));
    assert!(!world.effect_goes(&claims[1]));
    world.end(&claims[0]);
    world.end(&claims[1]);
}
