//! What a new book of targets changes.

use jiff::Timestamp;

use switchbell::inbox::book::{QueueKey, Rule};
use switchbell::inbox::delivery::{Next, Outcome, State};
use switchbell::inbox::{Change, Claim, Paused, Want, Which};

use super::stage::{
    Place, Stage, at, dead, delivered, entries, entry, kept, name, owing, queue, retrying, rule, seqs, timed, want,
};
use super::timing::{after, collect, hold};

fn paused(claim: &Claim, until: Timestamp) -> Paused {
    Paused { kept: kept(claim, 0, 1), until, is_wait: true, resume: Change::Keep, lanes: Vec::new() }
}

fn blocked(target: &str) -> Rule {
    Rule { blocked: Some("its plugin is not loaded".to_owned()), ..rule(target) }
}

pub async fn what_lost_its_target_is_cancelled(place: Place) {
    let rules = vec![timed("s", after(15)), timed("c", collect(90, 50)), rule("p"), rule("d"), rule("f")];
    let mut stage = Stage::new(place, rules).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["s", "c", "p", "d"])]).await;
    let claims = stage.claims(at(0)).await;
    stage.finish(&claims[0], at(1), retrying(at(60))).await;
    stage.finish(&claims[1], at(1), delivered()).await;
    stage.accept(at(2), vec![owing(entry("e2"), &["f"])]).await;
    let flying = stage.claim_one(at(2)).await;
    let adopted = stage.adopt(vec![rule("other")], at(3)).await;
    let mut cancelled = adopted.cancelled;
    cancelled.sort();
    assert_eq!(cancelled, [(queue("c"), 1), (queue("p"), 1), (queue("s"), 1)]);
    let states = [State::Cancelled, State::Cancelled, State::Cancelled, State::Delivered, State::InFlight];
    assert_eq!(stage.states().await, states);
    assert!(stage.views().await[0].why.is_some());
    // An attempt that is under way ends as it ends.
    stage.finish(&flying, at(4), delivered()).await;
    assert_eq!(stage.states().await[4], State::Delivered);
    stage.adopt(vec![rule("s")], at(5)).await;
    assert!(stage.claims(at(100_000)).await.is_empty(), "what was cancelled does not come back");
}

pub async fn what_a_workspace_that_is_set_aside_is_owed_waits(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), timed("c", collect(5, 50))]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["t", "c"]), owing(entry("e2"), &["t"])]).await;
    let first = stage.claim_one_of("t", at(0)).await;
    let adopted = stage.set_aside(at(1)).await;
    assert_eq!((adopted.cancelled, adopted.due), (Vec::new(), Vec::new()));
    assert!(stage.claims(at(1_000)).await.is_empty(), "nothing of it is handed out");
    stage.finish(&first, at(2), retrying(at(60))).await;
    assert_eq!(stage.states().await, [State::Retrying, State::Collecting, State::Pending]);
    let rules = vec![rule("t"), timed("c", collect(5, 50))];
    let mut due = stage.adopt(rules, at(2_000)).await.due;
    due.sort();
    assert_eq!(due, [(queue("c"), at(300)), (queue("t"), at(0))]);
    assert_eq!(stage.deliver(at(2_000)).await, [vec![2], vec![1], vec![1]]);
}

pub async fn what_was_decided_before_its_target_went_is_cancelled_as_it_is_written(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), timed("c", collect(5, 50)), rule("u")]).await;
    stage.adopt(vec![rule("u")], at(1)).await;
    stage.news();
    stage.accept(at(2), vec![owing(entry("e1"), &["t", "c", "u"]), owing(entry("e2"), &["t"])]).await;
    let states = [State::Cancelled, State::Cancelled, State::Pending, State::Cancelled];
    assert_eq!(stage.states().await, states);
    assert_eq!(stage.news().cancelled, [(queue("c"), 1), (queue("t"), 2)]);
    assert!(stage.views().await[0].why.as_deref().is_some_and(|why| why.contains("not in the configuration")));
    assert_eq!(stage.deliver(at(3)).await, [[1]]);
}

pub async fn what_was_decided_before_its_target_moved_goes_where_it_stands_now(place: Place) {
    let mut stage = Stage::new(place, vec![timed("t", collect(5, 50))]).await;
    let renamed = |route: &str| {
        let queue = QueueKey { route: name(route), ..queue("t") };
        Rule { queue, ..timed("t", collect(5, 50)) }
    };
    stage.accept(at(0), entries(1, 1)).await;
    stage.adopt(vec![renamed("second")], at(1)).await;
    stage.accept(at(2), entries(2, 2)).await;
    stage.adopt(vec![renamed("news")], at(3)).await;
    let mut late = entry("e3");
    late.owed[0].route = name("second");
    stage.accept(at(4), vec![late]).await;
    assert_eq!(stage.deliver(at(300)).await, [[1, 2, 3]], "all of it is in the one digest");
    assert!(stage.news().cancelled.is_empty());
}

pub async fn a_target_that_moves_back_and_forth_keeps_what_it_is_owed(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let at_route = |route: &str| Rule { queue: QueueKey { route: name(route), ..queue("t") }, ..rule("t") };
    stage.accept(at(0), entries(1, 2)).await;
    let first = stage.claim_one_of("t", at(0)).await;
    stage.adopt(vec![at_route("second")], at(1)).await;
    // What was handed out, or is asked for, by the name before.
    stage.finish(&first, at(2), delivered()).await;
    stage.inbox().claim(at(2), vec![Want { most: 0, ..want(queue("t")) }]).await.unwrap();
    stage.adopt(vec![at_route("third")], at(3)).await;
    stage.accept(at(4), entries(3, 3)).await;
    let adopted = stage.adopt(vec![rule("t")], at(5)).await;
    assert!(adopted.cancelled.is_empty(), "{:?}", adopted.cancelled);
    assert_eq!(stage.deliver(at(6)).await, [[2], [3]]);
}

pub async fn what_would_go_on_after_its_target_went_is_cancelled(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), rule("p"), rule("b"), rule("g")]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["t", "p", "b", "g"])]).await;
    let claims = stage.claims(at(0)).await;
    stage.adopt(vec![rule("other")], at(1)).await;
    stage.finish(&claims[0], at(2), retrying(at(60))).await;
    stage.inbox().pause(paused(&claims[1], at(60))).await.unwrap();
    let blocked = (Outcome::Reconnect, Next { state: State::Blocked, next_at: None });
    stage.finish(&claims[2], at(2), blocked).await;
    let given_back = (Outcome::Interrupted, Next { state: State::Pending, next_at: Some(at(2)) });
    stage.finish(&claims[3], at(2), given_back).await;
    assert_eq!(stage.states().await, [State::Cancelled; 4]);
    assert_eq!(stage.news().cancelled.len(), 4);
    stage.adopt(vec![rule("t"), rule("p"), rule("b"), rule("g")], at(3)).await;
    assert!(stage.claims(at(100_000)).await.is_empty());
}

pub async fn a_target_under_another_route_keeps_its_deliveries(place: Place) {
    let mut stage = Stage::new(place, vec![timed("t", collect(5, 50)), timed("u", hold())]).await;
    stage.accept(at(0), entries(1, 2)).await;
    let there = QueueKey { route: name("renamed"), ..queue("t") };
    let moved = Rule { queue: there.clone(), ..timed("t", collect(5, 50)) };
    let adopted = stage.adopt(vec![moved.clone()], at(10)).await;
    assert!(adopted.cancelled.is_empty(), "{:?}", adopted.cancelled);
    assert_eq!(adopted.due, [(there.clone(), at(300))]);
    let mut later = entry("e3");
    later.owed[0].route = name("renamed");
    stage.accept(at(20), vec![later]).await;
    let claim = stage.claim_one(at(300)).await;
    assert_eq!((seqs(&claim), &claim.queue), (vec![1, 2, 3], &there), "the digest is still open");
    assert_eq!(stage.views().await[0].route, name("renamed"));
    stage.adopt(vec![Rule { queue: queue("t"), ..moved }], at(310)).await;
    stage.finish(&claim, at(311), delivered()).await;
    assert_eq!(stage.states().await, [State::Delivered], "what was in flight meanwhile ends all the same");
}

pub async fn a_target_of_the_same_settings_does_not_take_over_what_another_was_owed(place: Place) {
    let other = |route: &str| Rule { queue: QueueKey { route: name(route), ..queue("t") }, ..timed("t", after(15)) };
    let mut stage = Stage::new(place, vec![timed("t", after(15)), other("other")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    // Renamed: of the two that have these settings now, one is new.
    stage.adopt(vec![other("renamed"), other("other")], at(1)).await;
    assert_eq!(stage.views().await[0].route, name("renamed"));
    // Gone: the other was there before.
    let adopted = stage.adopt(vec![other("other")], at(2)).await;
    assert_eq!(adopted.cancelled.len(), 1);
    assert_eq!(stage.states().await, [State::Cancelled]);
}

pub async fn a_target_takes_a_name_that_was_used_long_ago(place: Place) {
    let at_route = |route: &str| Rule { queue: QueueKey { route: name(route), ..queue("t") }, ..timed("t", after(15)) };
    let mut stage = Stage::new(place, vec![timed("t", after(15)), at_route("old")]).await;
    stage.adopt(vec![timed("t", after(15))], at(0)).await;
    stage.accept(at(1), entries(1, 1)).await;
    let adopted = stage.adopt(vec![at_route("old")], at(2)).await;
    assert!(adopted.cancelled.is_empty(), "{:?}", adopted.cancelled);
    assert_eq!(stage.views().await[0].route, name("old"));
    assert_eq!(stage.deliver(at(1_000)).await, [[1]]);
}

pub async fn what_waits_alone_follows_what_its_target_says_now(place: Place) {
    let mut stage = Stage::new(place, vec![timed("t", after(15))]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let sooner = stage.adopt(vec![timed("t", after(1))], at(1)).await;
    assert_eq!(sooner.due, [(queue("t"), at(60))]);
    let at_once = stage.adopt(vec![rule("t")], at(2)).await;
    assert_eq!(at_once.due, [(queue("t"), at(2))]);
    assert_eq!(seqs(&stage.claim_one(at(2)).await), [1]);
}

pub async fn what_waited_for_its_plugin_is_due_again_when_it_is_there(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    stage.adopt(vec![blocked("t")], at(1)).await;
    let claimed = stage.claim(at(1)).await;
    assert!(claimed.claims.is_empty());
    assert_eq!(claimed.moved.iter().map(|moved| moved.state).collect::<Vec<_>>(), [State::Blocked]);
    stage.accept(at(2), entries(2, 2)).await;
    assert!(stage.claims(at(3)).await.is_empty());
    assert_eq!(stage.states().await, [State::Blocked, State::Blocked]);
    assert_eq!(stage.views().await[0].why.as_deref(), Some("its plugin is not loaded"));
    stage.reopen(at(4)).await;
    assert_eq!(stage.states().await, [State::Blocked, State::Blocked]);
    let adopted = stage.adopt(vec![rule("t")], at(5)).await;
    assert_eq!(adopted.due, [(queue("t"), at(5))]);
    let claims = stage.claims(at(5)).await;
    assert_eq!(claims.iter().map(seqs).collect::<Vec<_>>(), [[1], [2]]);
    assert!(claims.iter().all(|claim| claim.attempt.get() == 1));
}

pub async fn what_was_blocked_for_long_is_not_given_up_at_its_first_failure(place: Place) {
    let mut stage = Stage::new(place, vec![blocked("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let now = at(72 * 3_600);
    stage.adopt(vec![rule("t")], now).await;
    let claim = stage.claim_one(now).await;
    assert_eq!((claim.due_at, claim.since), (at(0), now), "giving up counts from when it could be tried");
}

pub async fn a_clock_that_was_ahead_delays_nothing_after_a_restart(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t"), rule("u"), rule("v")]).await;
    let ahead = at(1_000 * 86_400);
    let all = ["t", "u", "v"];
    stage.accept(ahead, vec![owing(entry("e1"), &all)]).await;
    let claims = stage.claims(ahead).await;
    stage.accept(ahead, vec![owing(entry("e2"), &["t"])]).await;
    stage.finish(&claims[0], ahead, delivered()).await;
    stage.finish(&claims[1], ahead, retrying(at(1_000 * 86_400 + 60))).await;
    stage.finish(&claims[2], ahead, retrying(at(90_000))).await;
    let adopted = stage.reopen(at(100)).await;
    let mut due = adopted.due;
    due.sort();
    assert_eq!(due, [(queue("t"), at(100)), (queue("u"), at(100)), (queue("v"), at(90_000))]);
    assert_eq!(stage.claims(at(100)).await.len(), 2);
}

pub async fn what_needs_a_person_waits_for_one(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    let claim = stage.claim_one(at(0)).await;
    let reconnect = (Outcome::Reconnect, Next { state: State::Blocked, next_at: None });
    stage.finish(&claim, at(1), reconnect).await;
    stage.accept(at(2), entries(2, 2)).await;
    stage.reopen(at(3)).await;
    assert!(stage.claims(at(4)).await.is_empty(), "a reload mends no credential, and the next one would fail, too");
    assert_eq!(stage.states().await, [State::Blocked, State::Blocked]);
    let handled = stage.inbox().retry(&name("acme"), Which::default(), at(5)).await.unwrap();
    assert_eq!(handled.done.len(), 2);
    stage.accept(at(6), entries(3, 3)).await;
    assert_eq!(stage.claims(at(6)).await.len(), 3, "what blocked the target is taken as mended");
}

pub async fn a_book_says_what_is_due_and_what_others_wait_for(place: Place) {
    let strict = |target| Rule { is_strict: true, ..rule(target) };
    let mut stage = Stage::new(place, vec![strict("t"), rule("u"), strict("v")]).await;
    stage.accept(at(0), vec![owing(entry("e1"), &["t", "u", "v"]), owing(entry("e2"), &["t", "u"])]).await;
    let all: Vec<_> = stage.views().await;
    for claim in stage.claims(at(0)).await {
        match claim.notifications[0].seq {
            1 if claim.queue == queue("v") => stage.finish(&claim, at(1), dead()).await,
            1 => stage.finish(&claim, at(1), retrying(at(60))).await,
            _ => stage.finish(&claim, at(1), retrying(at(30))).await,
        }
    }
    let adopted = stage.reopen(at(10)).await;
    let mut due = adopted.due;
    due.sort();
    assert_eq!(due, [(queue("t"), at(30)), (queue("u"), at(30))]);
    let first = all.iter().find(|view| view.target == "t").unwrap();
    assert_eq!(adopted.heads, [(queue("t"), first.id.number, at(60))], "its oldest that was begun, and until when");
}
