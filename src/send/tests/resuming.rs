//! Attempts that rest, are cut off, and go on.

use std::time::Duration;

use super::memory::Write;
use super::*;
use crate::clock::later;
use crate::inbox::Change;
use crate::inbox::delivery::Outcome;

const THREE: &str = "post AT/200/1|post AT/200/2|post AT/200/3|report";

#[tokio::test]
async fn the_past_is_kept_before_a_second_effect() {
    let stand = Stand::new("post AT/200/1|done").await;
    stand.ended(&claim()).await;
    assert!(stand.store.written().is_empty(), "one effect alone needs no keeping");
    let stand = Stand::new("post AT/200/1|post AT/404/2|post AT/200/3|done").await;
    stand.ended(&claim()).await;
    let kept: Vec<(usize, usize, bool, u32)> = stand
        .store
        .written()
        .into_iter()
        .map(|written| match written {
            Write::Kept(kept) => (kept.kept_before, kept.effects.len(), kept.progress.touched, kept.progress.steps),
            Write::Paused(_) => panic!("nothing asked to rest"),
        })
        .collect();
    // The steps are made again when it is resumed, so that none counts before its wait.
    assert_eq!(kept, [(0, 1, true, 0), (1, 1, true, 0)]);
}

/// Runs until the sink was asked `times` times, and drops everything, as a crash does.
async fn crash_after(stand: &Stand, claim: &Claim, times: usize) {
    let stop = Stop::default();
    tokio::select! {
        came = stand.attempt(claim, &stop) => panic!("it came to its end: {came:?}"),
        () = stand.sink.asked_times(times) => {}
    }
}

#[tokio::test]
async fn an_effect_cut_off_by_a_crash_is_answered_and_not_repeated() {
    let stand = Stand::new("post AT/never/1|report").await;
    crash_after(&stand, &claim(), 1).await;
    let claim = stand.store.reopened(&claim());
    let ended = stand.ended(&claim).await;
    assert_eq!(ended.outcome, Outcome::Reject);
    assert!(ended.reason.unwrap().starts_with("Reach::Unanswered cut-off: "));
    assert!(ended.reached);
    assert_eq!(stand.sink.asked(), ["/never/1"]);
}

#[tokio::test]
async fn an_attempt_goes_on_behind_what_is_kept_of_it() {
    let stand = Stand::new("post AT/200/1|post AT/404/2|post AT/never/3|post AT/200/4|report").await;
    crash_after(&stand, &claim(), 3).await;
    let claim = stand.store.reopened(&claim());
    assert_eq!(claim.begun.as_ref().unwrap().past.len(), 2);
    let ended = stand.ended(&claim).await;
    assert!(ended.reason.unwrap().starts_with("200"), "what came after the cut is reported");
    assert_eq!(stand.sink.asked(), ["/200/1", "/404/2", "/never/3", "/200/4"]);
    assert_eq!(ended.steps, 5, "steps that are made again count once");
    let Some(Write::Kept(kept)) = stand.store.written().pop() else { panic!("nothing was kept") };
    assert_eq!((kept.kept_before, kept.effects.len()), (2, 1), "the cut-off effect is kept before the next");
}

#[tokio::test]
async fn what_ends_a_cut_off_attempt_is_taken_as_it_is() {
    for (script, outcome) in [("done", Outcome::Delivered), ("reject x", Outcome::Reject), ("trap", Outcome::Unknown)] {
        let stand = Stand::new(script).await;
        let ended = stand.ended(&stand.store.reopened(&claim())).await;
        assert_eq!(ended.outcome, outcome, "{script}");
    }
}

#[tokio::test]
async fn a_plugin_that_asks_for_something_else_is_at_fault() {
    let otherwise = async |script: &str, then: &str| {
        let before = Stand::new(script).await;
        crash_after(&before, &claim(), 2).await;
        let claim = before.store.reopened(&claim());
        let at = format!("http://{}", before.sink.address);
        let after = Stand::new(&then.replace("AT", &at)).await;
        after.ended(&claim).await
    };
    let same = otherwise("post AT/200|post AT/never|done", "post AT/200|post AT/never|done").await;
    assert_eq!(same.outcome, Outcome::Delivered);
    for then in ["post AT/201|post AT/never|done", "done", "wait 1"] {
        let ended = otherwise("post AT/200|post AT/never|done", then).await;
        assert_eq!(ended.outcome, Outcome::Unknown, "{then}");
        assert!(ended.reason.unwrap().contains("asked for something else when the attempt was resumed"), "{then}");
    }
}

#[tokio::test]
async fn a_mismatch_where_nothing_can_have_happened_is_tried_again() {
    let stand = Stand::new("post AT/404|post AT/404|done").await;
    stand.ended(&claim()).await;
    let mut claim = stand.store.reopened(&claim());
    let begun = claim.begun.as_mut().unwrap();
    begun.cut_off = false;
    begun.past[0].action_digest = "0".repeat(64);
    assert_eq!(stand.ended(&claim).await.outcome, Outcome::Retry);
}

#[tokio::test]
async fn a_wait_forgets_the_past_and_the_same_attempt_goes_on() {
    let stand = Stand::new("post AT/202/start|wait 60 1 ; told").await;
    let rest = stand.rests(&claim(), &Stop::default()).await;
    assert!(rest.is_wait && rest.kept.effects.is_empty());
    assert_eq!((rest.until, &rest.resume), (later(start(), Duration::from_secs(60)), &set("1")));
    assert_eq!((rest.kept.progress.steps, rest.kept.progress.touched), (2, true));
    stand.store.pause(paused(rest)).await.unwrap();
    let claim = stand.store.reopened(&claim());
    stand.clock.advance(Duration::from_secs(61));
    let ended = stand.ended(&claim).await;
    assert_eq!(ended.reason.as_deref(), Some(r#"2026-03-01T12:00:00.123Z of Some("2026-03-01T12:01:01.123Z")"#));
    assert_eq!((ended.steps, ended.reached), (3, true));
    assert_eq!(stand.sink.asked(), ["/202/start"]);
}

fn paused(rest: Rest) -> crate::inbox::Paused {
    let Rest { kept, until, is_wait, resume } = rest;
    crate::inbox::Paused { kept, until, is_wait, resume, lanes: Vec::new() }
}

#[tokio::test]
async fn the_moment_a_wait_ended_stays_the_same_after_a_crash() {
    let stand = Stand::new("wait 60 1 ; post AT/200/1|post AT/never/2|told").await;
    let rest = stand.rests(&claim(), &Stop::default()).await;
    stand.store.pause(paused(rest)).await.unwrap();
    let claim = stand.store.reopened(&claim());
    stand.clock.advance(Duration::from_secs(60));
    crash_after(&stand, &claim, 2).await;
    let claim = stand.store.reopened(&claim);
    stand.clock.advance(Duration::from_secs(3_600));
    let ended = stand.ended(&claim).await;
    assert_eq!(ended.reason.as_deref(), Some(r#"2026-03-01T12:00:00.123Z of Some("2026-03-01T12:01:00.123Z")"#));
    assert_eq!((ended.steps, stand.sink.asked()), (4, vec!["/200/1".to_owned(), "/never/2".to_owned()]));
}

#[tokio::test]
async fn steps_and_time_are_limited_over_waits() {
    let stand = Stand::new("wait 1").await;
    let mut claim = claim();
    for _ in 0..8 {
        let rest = stand.rests(&claim, &Stop::default()).await;
        stand.store.pause(paused(rest)).await.unwrap();
        claim = stand.store.reopened(&claim);
    }
    let ended = stand.ended(&claim).await;
    assert!(ended.reason.unwrap().contains("more than 8 steps"));

    let too_long = Stand::new(&format!("wait {}", 24 * 3_600 + 1)).await;
    let ended = too_long.ended(&super::claim()).await;
    assert_eq!(ended.outcome, Outcome::Retry);
    assert!(ended.reason.unwrap().contains("plugins.limits.attempt_time"));

    let just = Stand::new(&format!("wait {}", 24 * 3_600)).await;
    let rest = just.rests(&super::claim(), &Stop::default()).await;
    just.store.pause(paused(rest)).await.unwrap();
    just.clock.advance(Duration::from_secs(24 * 3_600 + 1));
    let ended = just.ended(&just.store.reopened(&super::claim())).await;
    assert!(ended.reason.unwrap().contains("longer than its limit of 24.0 h"));
}

#[tokio::test]
async fn a_stop_before_any_effect_gives_the_number_back() {
    let stop = Stop::default();
    stop.soon.cancel();
    let stand = Stand::new(THREE).await;
    let Came::Ended(ended) = stand.attempt(&claim(), &stop).await else { panic!("it rests") };
    assert_eq!((ended.outcome, ended.steps), (Outcome::Interrupted, 0));
    assert!(stand.sink.asked().is_empty());
}

#[tokio::test]
async fn a_stop_during_an_effect_lets_the_attempt_rest_with_its_past() {
    let stand = Stand::new("post AT/200/1|post AT/never/2|post AT/200/3|report").await;
    let stop = Stop::default();
    let cut = async {
        stand.sink.asked_times(2).await;
        stop.soon.cancel();
        stop.now.cancel();
    };
    let claim = claim();
    let (rest, ()) = tokio::join!(stand.rests(&claim, &stop), cut);
    assert!(!rest.is_wait);
    assert_eq!(
        (rest.until, &rest.resume, rest.kept.kept_before, rest.kept.effects.len()),
        (start(), &Change::Keep, 1, 1)
    );
    stand.store.pause(paused(rest)).await.unwrap();
    let claim = stand.store.reopened(&claim);
    assert!(!claim.begun.as_ref().unwrap().cut_off);
    let ended = stand.ended(&claim).await;
    assert!(ended.reason.unwrap().starts_with("200"));
    assert_eq!(stand.sink.asked(), ["/200/1", "/never/2", "/200/3"]);
}

#[tokio::test]
async fn a_stop_while_the_store_refuses_lets_the_attempt_rest_unkept() {
    let stand = Stand::new(THREE).await;
    stand.store.refuse(1);
    let stop = Stop::default();
    let cut = async {
        stand.store.until(|store| store.refused_left() == 0).await;
        stop.soon.cancel();
    };
    let claim = claim();
    let (rest, ()) = tokio::join!(stand.rests(&claim, &stop), cut);
    assert_eq!((rest.kept.kept_before, rest.kept.effects.len()), (0, 1));
    assert_eq!(stand.sink.asked(), ["/200/1"], "no second effect without its past being kept");
}

#[tokio::test]
async fn a_claim_that_goes_on_is_given_back_as_it_was() {
    let stop = Stop::default();
    stop.soon.cancel();
    let stand = Stand::new("post AT/200/1|post AT/200/2|post AT/never/3|report").await;
    crash_after(&stand, &claim(), 3).await;
    let cut_off = stand.store.reopened(&claim());
    // What may have begun must not be lost: only the store's word says so.
    assert!(matches!(stand.attempt(&cut_off, &stop).await, Came::Left));
    let begun = cut_off.begun.clone().map(|begun| crate::inbox::Begun { cut_off: false, ..begun });
    let rest = stand.rests(&Claim { begun, ..cut_off }, &stop).await;
    assert_eq!((rest.kept.kept_before, rest.kept.effects.len(), rest.is_wait), (2, 0, false));
}

#[tokio::test]
async fn an_effect_takes_no_longer_than_the_delivery_is_held() {
    let stand = Stand::new("post AT/never|report").await;
    let until = Some(later(start(), Duration::from_secs(30)));
    let held = Claim { fence: Fence { epoch: 1, until }, ..claim() };
    let over = async {
        stand.sink.asked_times(1).await;
        stand.clock.advance(Duration::from_secs(30));
    };
    let (ended, ()) = tokio::join!(stand.ended(&held), over);
    assert!(ended.reason.unwrap().starts_with("Reach::Unanswered held-too-long"));
    let ended = stand.ended(&held).await;
    assert!(ended.reason.unwrap().starts_with("Reach::Unsent held-too-long"));
    assert_eq!(stand.sink.asked().len(), 1);
}
