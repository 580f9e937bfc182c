//! What may go before what: admission, strict order, subjects, news that come at the wrong moment.

use super::*;
use crate::inbox::Adopted;
use crate::inbox::book::Admission;
use crate::send::queue::SUBJECTS_MAX;

fn strict(queue: &str, lanes: &[LaneRule]) -> Rule {
    Rule { is_strict: true, ..rule(queue, lanes) }
}

fn by_subject(queue: &str) -> Rule {
    Rule { by_subject: true, ..rule(queue, &[]) }
}

#[test]
fn news_that_comes_while_the_store_is_asked_is_not_lost() {
    let mut world = World::new(vec![rule("a", &[])]);
    world.due(&["a"]);
    let want = world.want();
    assert!(world.pick().is_empty(), "it is asked once at a time");
    world.due(&["a"]);
    world.answer(&want, 1, None);
    assert_eq!(world.want().most, 64);
}

#[test]
fn what_a_claim_says_is_due_next_replaces_what_was_known() {
    let mut world = World::new(vec![rule("a", &[])]);
    world.due(&["a"]);
    let want = world.want();
    let next = world.at(7);
    world.answer(&want, 1, Some(next));
    let picked = world.queues.pick();
    assert!(picked.wants.is_empty());
    assert_eq!(picked.wake_at, Some(next));
    world.clock.advance(seconds(7));
    let want = world.want();
    world.answer(&want, 0, None);
    assert_eq!(world.queues.pick().wake_at, None);
}

#[test]
fn a_store_that_says_due_and_hands_out_nothing_is_not_asked_without_end() {
    let mut world = World::new(vec![rule("a", &[])]);
    world.due(&["a"]);
    let mut asked = 0;
    while let Some(want) = world.queues.pick().wants.pop() {
        asked += 1;
        assert!(asked < 10);
        let now = world.now();
        world.answer(&want, 0, Some(now));
    }
    world.clock.advance(seconds(1));
    assert_eq!(world.want().most, 64);
}

#[tokio::test]
async fn whoever_waits_for_a_change_hears_of_each() {
    let mut world = World::new(vec![rule("a", &[limited("x", 1)]), rule("b", &[limited("x", 1)])]);
    world.due(&["a"]);
    world.queues.changed().await;
    let claim = world.start_one();
    world.due(&["b"]);
    world.queues.changed().await;
    assert!(world.pick().is_empty());
    world.end(&claim);
    world.queues.changed().await;
    assert_eq!(world.want().queue, key("b"));
    // A time before the one that was promised.
    world.queues.due(&key("a"), world.at(60));
    world.queues.changed().await;
    assert_eq!(world.queues.pick().wake_at, Some(world.at(60)));
    world.queues.due(&key("a"), world.at(30));
    world.queues.changed().await;
}

#[test]
fn nothing_starts_once_it_is_closed() {
    let world = World::new(vec![rule("a", &[])]);
    world.due(&["a"]);
    world.queues.close();
    assert!(world.pick().is_empty());
    assert!(!world.queues.admit(&key("a"), None));
}

#[test]
fn an_admission_takes_what_a_pick_of_one_would() {
    let mut world = World::new(vec![rule("a", &[limited("x", 1)]), rule("b", &[limited("x", 1)])]);
    assert!(world.queues.admit(&key("a"), None));
    assert_eq!(world.queues.in_flight(), 1);
    assert!(!world.queues.admit(&key("b"), None));
    assert!(world.pick().is_empty());
    let claim = world.claim(&key("a"), &[None]);
    world.end(&claim);
    assert_eq!(world.queues.in_flight(), 0);
    let claim = world.start_one();
    assert_eq!(claim.queue, key("b"));
    world.end(&claim);
    world.assert_empty();
}

#[test]
fn nothing_is_admitted_before_what_is_due() {
    let admits = |world: &World| world.queues.admit(&key("a"), None);
    let mut world = World::new(vec![rule("a", &[limited("x", 9)])]);
    world.queues.due(&key("a"), world.at(5));
    assert!(admits(&world), "later is no backlog");
    world.queues.give_back(&key("a"), None);
    world.clock.advance(seconds(5));
    assert!(!admits(&world), "due");
    let want = world.want();
    assert!(!admits(&world), "asked");
    world.answer(&want, 1, None);
    // What was refused in the meantime is due before anything later.
    assert!(!admits(&world));
    let want = world.want();
    world.answer(&want, 1, None);
    assert!(admits(&world));
    // Unknown queues, those without a plugin.
    assert!(!world.queues.admit(&key("b"), None));
    let world = World::new(vec![Rule { blocked: Some("no plugin".into()), ..rule("a", &[]) }]);
    assert!(!admits(&world));
}

#[test]
fn what_is_refused_goes_before_what_comes_later() {
    let mut world = World::new(vec![strict("a", &[limited("x", 1)]), rule("b", &[limited("x", 1)])]);
    world.due(&["b"]);
    let other = world.start_one();
    assert!(!world.queues.admit(&key("a"), None));
    world.end(&other);
    assert!(!world.queues.admit(&key("a"), None), "the first one is written, though nobody said so yet");
}

#[test]
fn what_a_blocked_target_is_owed_is_picked_without_a_lane() {
    let mut world = World::new(vec![rule("a", &[limited("x", 1)])]);
    world.due(&["a"]);
    let claim = world.start_one();
    let blocked = Rule { blocked: Some("its plugin is not loaded".into()), ..rule("a", &[]) };
    world.queues.take_up(&Book::new([blocked]));
    world.due(&["a"]);
    let want = world.want();
    assert_eq!((want.most, want.only), (64, None));
    world.answer(&want, 0, None);
    // Its lane is the same when the plugin is back.
    world.queues.take_up(&Book::new([rule("a", &[limited("x", 1)])]));
    world.due(&["a"]);
    assert!(world.pick().is_empty());
    world.end(&claim);
    assert_eq!(world.want().most, 1);
}

#[test]
fn a_strict_queue_makes_one_attempt_at_a_time_and_its_head_goes_first() {
    let mut world = World::new(vec![strict("a", &[])]);
    world.due(&["a"]);
    let want = world.want();
    assert_eq!((want.most, want.only), (1, None));
    let now = world.now();
    let claim = world.answer(&want, 1, Some(now)).remove(0);
    assert!(world.pick().is_empty());
    world.fail(&claim, 10);
    // Others are due and wait.
    let picked = world.queues.pick();
    assert!(picked.wants.is_empty());
    assert_eq!(picked.wake_at, Some(world.at(10)));
    assert!(!world.queues.admit(&key("a"), None));
    // News may mean that a person moved the head: the store is asked for it alone.
    let want = world.want();
    assert_eq!(want.only, Some(claim.id.number));
    let now = world.now();
    world.answer(&want, 0, Some(now));
    assert!(world.pick().is_empty());
    world.clock.advance(seconds(10));
    let want = world.want();
    assert_eq!((want.most, want.only), (1, Some(claim.id.number)));
    world.queues.claimed(&want, std::slice::from_ref(&claim), Some(now));
    world.queues.ended(&claim, &Next { state: State::Waiting, next_at: Some(world.at(5)) }, None);
    assert!(world.pick().is_empty());
    world.clock.advance(seconds(5));
    let want = world.want();
    assert_eq!(want.only, Some(claim.id.number));
    world.queues.claimed(&want, std::slice::from_ref(&claim), Some(now));
    world.end(&claim);
    assert_eq!(world.want().only, None);
}

#[test]
fn a_strict_queue_goes_on_when_its_head_is_taken_away() {
    let prepare = || {
        let mut world = World::new(vec![strict("a", &[])]);
        world.due(&["a"]);
        let want = world.want();
        let now = world.now();
        let claim = world.answer(&want, 1, Some(now)).remove(0);
        world.fail(&claim, 3_600);
        assert!(world.pick().is_empty());
        (world, claim)
    };
    let (world, claim) = prepare();
    world.queues.left(&key("a"), &claim.id);
    assert_eq!(world.want().only, None);
    // Or when it is not there at its time.
    let (mut world, claim) = prepare();
    world.clock.advance(seconds(3_600));
    let want = world.want();
    assert_eq!(want.only, Some(claim.id.number));
    let now = world.now();
    world.answer(&want, 0, Some(now));
    assert_eq!(world.want().only, None);
}

#[test]
fn the_head_of_a_strict_queue_survives_a_restart() {
    let world = World::new(vec![strict("a", &[])]);
    let adopted =
        Adopted { due: vec![(key("a"), world.now())], heads: vec![(key("a"), 7, world.at(30))], ..Adopted::default() };
    world.queues.restore(&adopted);
    assert!(world.pick().is_empty());
    world.clock.advance(seconds(30));
    assert_eq!(world.want().only, Some(7));
}

#[test]
fn subjects_under_way_are_named_and_free_again_at_the_end() {
    let mut world = World::new(vec![by_subject("a")]);
    world.due(&["a"]);
    let want = world.want();
    assert!(want.busy.is_empty());
    let queue = key("a");
    let claims = [
        world.claim(&queue, &[Some("one"), Some("one")]),
        world.claim(&queue, &[Some("two"), Some("three")]),
        world.claim(&queue, &[None]),
    ];
    let now = world.now();
    world.queues.claimed(&want, &claims, Some(now));
    // The rest is of subjects under way: the store is asked again when one ends or something is new.
    assert!(world.pick().is_empty());
    assert!(!world.queues.admit(&queue, Some("one")));
    let want = world.want();
    assert_eq!(want.busy, ["one"]);
    world.answer(&want, 0, None);
    assert!(world.queues.admit(&queue, Some("four")));
    world.queues.give_back(&queue, Some("four"));
    world.end(&claims[0]);
    assert!(world.queues.admit(&queue, Some("one")));
    let claim = world.claim(&queue, &[Some("one")]);
    for claim in [&claim, &claims[1], &claims[2]] {
        world.end(claim);
    }
    world.assert_empty();
    assert!(world.queues.admit(&queue, Some("one")));
}

#[test]
fn a_subject_that_hangs_does_not_keep_others_that_come_due_later() {
    let mut world = World::new(vec![by_subject("a")]);
    world.due(&["a"]);
    let want = world.want();
    let hangs = world.claim(&key("a"), &[Some("one")]);
    let now = world.now();
    world.queues.claimed(&want, std::slice::from_ref(&hangs), Some(now));
    assert!(world.pick().is_empty(), "the rest is of the same subject");
    assert_eq!(world.queues.pick().wake_at, Some(world.at(1)));
    world.clock.advance(seconds(1));
    let want = world.want();
    world.answer(&want, 1, None);
}

#[test]
fn a_queue_with_too_many_subjects_under_way_waits_for_an_end() {
    let mut world = World::new(vec![by_subject("a")]);
    let mut claims = Vec::new();
    for number in 0..SUBJECTS_MAX {
        let subject = format!("s{number}");
        assert!(world.queues.admit(&key("a"), Some(&subject)));
        claims.push(world.claim(&key("a"), &[Some(&subject)]));
    }
    assert!(!world.queues.admit(&key("a"), Some("one more")));
    assert!(world.pick().is_empty());
    world.end(&claims[0]);
    let want = world.want();
    assert_eq!((want.most, want.busy.len()), (1, SUBJECTS_MAX - 1));
}

#[test]
fn a_target_that_moves_to_another_route_keeps_its_order_and_what_is_under_way() {
    let mut world = World::new(vec![strict("a", &[])]);
    world.due(&["a"]);
    let claim = world.start_one();
    let moved = Rule { queue: QueueKey { route: name("renamed"), ..key("a") }, ..strict("a", &[]) };
    let there = moved.queue.clone();
    world.queues.take_up(&Book::new([moved]));
    world.queues.due(&there, world.now());
    assert!(world.pick().is_empty(), "one attempt at a time, whatever its route is called");
    world.end(&claim);
    assert_eq!(world.start_one().queue, there);
}

#[test]
fn what_is_left_of_a_target_that_is_gone_is_not_started() {
    let world = World::new(vec![rule("a", &[limited("x", 1)])]);
    world.queues.take_up(&Book::new([]));
    world.due(&["a"]);
    assert!(world.pick().is_empty());
}
