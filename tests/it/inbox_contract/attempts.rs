//! Attempts go on, are cut off, and end.

use switchbell::inbox::book::LaneKey;
use switchbell::inbox::delivery::{Cause, Next, Outcome, State};
use switchbell::inbox::{Change, Claim, Finished, Kept, LaneRecord, Paused, Progress};

use super::stage::{
    MINUTE, Place, Stage, at, delivered, effect, entries, entry, finished, kept, name, older, retrying, rule, written,
};

pub async fn with_one_claim(place: Place) -> (Stage, Claim) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 1)).await;
    let claim = stage.claim_one(at(10)).await;
    (stage, claim)
}

pub fn paused(kept: Kept, until: u64, is_wait: bool, resume: Change) -> Paused {
    Paused { kept, until: at(until), is_wait, resume, lanes: Vec::new() }
}

/// A write that is refused changes nothing of the delivery in flight.
async fn check_refused(stage: &Stage, claim: &Claim) {
    let before = format!("{:?}", stage.views().await);
    let end = finished(claim, at(20), delivered());
    assert!(stage.inbox().finish(end).await.is_err());
    assert!(stage.inbox().keep(kept(claim, 0, 1)).await.is_err());
    assert!(stage.inbox().pause(paused(kept(claim, 0, 1), 30, true, Change::Set(written("1")))).await.is_err());
    assert_eq!(format!("{:?}", stage.views().await), before);
}

pub async fn an_outcome_from_an_older_opening_is_refused(place: Place) {
    let (mut stage, old) = with_one_claim(place).await;
    stage.reopen(at(15)).await;
    check_refused(&stage, &old).await;
    let new = stage.claim_one(at(16)).await;
    assert_ne!(new.fence, old.fence);
    check_refused(&stage, &old).await;
    assert!(new.begun.as_ref().is_some_and(|begun| begun.past.is_empty()), "nothing was kept by who was refused");
    stage.finish(&new, at(20), delivered()).await;
    check_refused(&stage, &old).await;
    assert_eq!(stage.states().await, [State::Delivered]);
}

pub async fn an_outcome_is_recorded_once(place: Place) {
    let (stage, claim) = with_one_claim(place).await;
    stage.finish(&claim, at(11), retrying(at(12))).await;
    check_refused(&stage, &claim).await;
    assert!(
        stage
            .inbox()
            .finish(finished(&Claim { fence: older(claim.fence), ..claim }, at(12), delivered()))
            .await
            .is_err()
    );
    assert_eq!(stage.states().await, [State::Retrying]);
}

pub async fn an_attempt_in_flight_goes_on_after_a_crash(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.inbox().keep(kept(&claim, 0, 2)).await.unwrap();
    stage.inbox().keep(kept(&claim, 2, 3)).await.unwrap();
    let adopted = stage.reopen(at(50)).await;
    assert_eq!(adopted.due, [(claim.queue.clone(), at(50))], "it is due at once");
    assert_eq!(stage.states().await, [State::Waiting]);
    let again = stage.claim_one(at(50)).await;
    assert_eq!((again.id, again.attempt, again.due_at, again.since), (claim.id, claim.attempt, at(1), at(10)));
    assert_eq!(again.cause, Cause::First, "it is still the first attempt");
    assert_eq!(again.notifications, claim.notifications);
    let begun = again.begun.unwrap();
    assert_eq!(begun.started_at, at(10));
    assert_eq!(begun.past, [effect(0), effect(1), effect(2)]);
    assert_eq!(begun.progress, Progress { steps: 3, touched: true, reached: true });
    assert!(begun.cut_off && !begun.waited);
    assert!(stage.views().await[0].attempts.is_empty(), "it has not ended");
}

pub async fn an_attempt_with_nothing_kept_is_taken_to_have_begun_its_first_effect(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.reopen(at(50)).await;
    let begun = stage.claim_one(at(50)).await.begun.unwrap();
    assert!(begun.cut_off && !begun.waited && begun.past.is_empty());
    assert_eq!((begun.started_at, begun.progress), (at(10), Progress::default()));
    // And once more, with no effect in between.
    stage.reopen(at(60)).await;
    let again = stage.claim_one(at(60)).await;
    assert_eq!((again.attempt, again.begun), (claim.attempt, Some(begun)));
}

pub async fn what_was_let_in_as_it_was_written_goes_on_after_a_crash_too(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.let_in(super::stage::Gate::with_room_for(1)).await;
    stage.accept(at(1), entries(1, 1)).await;
    stage.reopen(at(50)).await;
    let claim = stage.claim_one(at(50)).await;
    assert_eq!(claim.attempt.get(), 1);
    assert!(claim.begun.is_some_and(|begun| begun.cut_off && begun.started_at == at(1)));
}

pub async fn an_interrupted_attempt_gets_its_number_back(place: Place) {
    let (stage, claim) = with_one_claim(place).await;
    let back = (Outcome::Interrupted, Next { state: State::Pending, next_at: Some(at(11)) });
    stage.inbox().finish(Finished { reached: false, ..finished(&claim, at(11), back) }).await.unwrap();
    let view = stage.views().await.remove(0);
    assert_eq!((view.state, view.attempts.len()), (State::Pending, 0));
    let again = stage.claim_one(at(11)).await;
    assert_eq!((again.attempt.get(), again.cause, again.begun.clone()), (1, Cause::First, None));
    stage.finish(&again, at(12), retrying(at(13))).await;
    let second = stage.claim_one(at(13)).await;
    let back = (Outcome::Interrupted, Next { state: State::Retrying, next_at: Some(at(14)) });
    stage.finish(&second, at(14), back).await;
    let again = stage.claim_one(at(14)).await;
    assert_eq!((again.attempt.get(), again.cause), (2, Cause::Retry), "it is the retry it was before");
}

pub async fn what_is_given_back_keeps_its_place(place: Place) {
    let (stage, claim) = with_one_claim(place).await;
    stage.accept(at(11), super::stage::entries(100, 100)).await;
    let back = (Outcome::Interrupted, Next { state: State::Pending, next_at: Some(at(50)) });
    stage.inbox().finish(Finished { reached: false, ..finished(&claim, at(50), back) }).await.unwrap();
    let order: Vec<_> = stage.claims(at(50)).await.iter().map(|claim| claim.id.number).collect();
    assert_eq!(order, [claim.id.number, claim.id.number + 1], "it came due first");
}

pub async fn a_stop_between_two_steps_keeps_the_past(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.inbox().keep(kept(&claim, 0, 1)).await.unwrap();
    stage.inbox().pause(paused(kept(&claim, 1, 2), 20, false, Change::Keep)).await.unwrap();
    stage.reopen(at(15)).await;
    assert!(stage.claims(at(19)).await.is_empty());
    let again = stage.claim_one(at(20)).await;
    assert_eq!(again.attempt, claim.attempt);
    let begun = again.begun.unwrap();
    assert_eq!((begun.started_at, begun.past), (at(10), vec![effect(0), effect(1)]));
    assert!(!begun.cut_off && !begun.waited, "nothing was under way");
    assert_eq!(begun.progress, Progress { steps: 2, touched: true, reached: true });
}

pub async fn a_wait_forgets_the_past_and_keeps_what_to_carry_on_with(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.news();
    stage.inbox().keep(kept(&claim, 0, 2)).await.unwrap();
    let wait = paused(kept(&claim, 2, 2), 10 + 30 * MINUTE, true, Change::Set(written(r#"{"run":7}"#)));
    stage.inbox().pause(wait).await.unwrap();
    assert_eq!(stage.inbox().news().await.due, [(claim.queue.clone(), at(10 + 30 * MINUTE))]);
    assert_eq!(stage.states().await, [State::Waiting]);
    stage.reopen(at(20)).await;
    assert!(stage.claims(at(9 + 30 * MINUTE)).await.is_empty());
    let again = stage.claim_one(at(10 + 30 * MINUTE)).await;
    assert_eq!((again.attempt, again.resume.clone()), (claim.attempt, Some(written(r#"{"run":7}"#))));
    let begun = again.begun.clone().unwrap();
    assert!(begun.waited && !begun.cut_off && begun.past.is_empty());
    assert_eq!(begun.started_at, at(10));
    assert!(begun.progress.touched, "what was done before the wait was done");

    // What is kept after the wait is all there is, should it be cut off.
    stage.inbox().keep(kept(&again, 0, 1)).await.unwrap();
    stage.reopen(at(20 + 30 * MINUTE)).await;
    let again = stage.claim_one(at(20 + 30 * MINUTE)).await;
    let begun = again.begun.clone().unwrap();
    assert_eq!((begun.past, begun.waited, begun.cut_off), (vec![effect(0)], true, true));

    // A wait without a new `resume` keeps the one that is there.
    stage.inbox().pause(paused(kept(&again, 1, 1), 3_000, true, Change::Keep)).await.unwrap();
    let again = stage.claim_one(at(3_000)).await;
    assert_eq!(again.resume, Some(written(r#"{"run":7}"#)), "and who wrote it");
    stage.inbox().pause(paused(kept(&again, 0, 0), 4_000, true, Change::Forget)).await.unwrap();
    assert_eq!(stage.claim_one(at(4_000)).await.resume, None);
}

pub async fn the_next_attempt_begins_anew_but_for_what_it_carries_on_with(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    stage.inbox().keep(kept(&claim, 0, 2)).await.unwrap();
    let end = Finished { resume: Change::Set(written("4")), ..finished(&claim, at(20), retrying(at(30))) };
    stage.inbox().finish(end).await.unwrap();
    stage.reopen(at(25)).await;
    let second = stage.claim_one(at(30)).await;
    assert_eq!((second.attempt.get(), second.cause, second.begun.clone()), (2, Cause::Retry, None));
    assert_eq!((second.resume.clone(), second.due_at, second.since), (Some(written("4")), at(1), at(10)));
    let unknown = (Outcome::Unknown, Next { state: State::Retrying, next_at: Some(at(40)) });
    stage.finish(&second, at(35), unknown).await;
    let third = stage.claim_one(at(40)).await;
    assert_eq!((third.attempt.get(), third.cause, third.resume.clone()), (3, Cause::Repeat, Some(written("4"))));
    let end = Finished { resume: Change::Forget, ..finished(&third, at(45), retrying(at(50))) };
    stage.inbox().finish(end).await.unwrap();
    assert_eq!(stage.claim_one(at(50)).await.resume, None);
}

pub async fn attempts_are_listed_as_they_went(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    let first = finished(&claim, at(20), retrying(at(30)));
    stage.inbox().finish(first.clone()).await.unwrap();
    let second = finished(&stage.claim_one(at(30)).await, at(31), delivered());
    stage.inbox().finish(second.clone()).await.unwrap();
    stage.reopen(at(40)).await;
    let view = stage.views().await.remove(0);
    assert_eq!((view.state, view.next_at, view.due_at), (State::Delivered, None, at(1)));
    assert_eq!(view.attempts, [first.attempt, second.attempt]);
}

pub async fn a_retry_is_told_of(place: Place) {
    let (stage, claim) = with_one_claim(place).await;
    stage.news();
    stage.finish(&claim, at(20), retrying(at(300))).await;
    assert_eq!(stage.inbox().news().await.due, [(claim.queue.clone(), at(300))]);
}

pub async fn notices_are_written_with_the_end_that_they_tell_of(place: Place) {
    let (stage, claim) = with_one_claim(place).await;
    let end = |notice| Finished { notices: vec![entry(notice)], ..finished(&claim, at(20), super::stage::dead()) };
    assert_eq!(stage.inbox().finish(end("died")).await.unwrap(), [Some(2)]);
    let notice = stage.inbox().notification(&name("acme"), 2).await.unwrap().unwrap();
    assert_eq!((notice.source.as_str(), notice.received_at), ("switchbell", at(20)));
    assert_eq!(stage.states().await, [State::Dead, State::Pending], "a notice owes what it owes");
    assert!(stage.inbox().finish(end("died twice")).await.is_err());
    assert_eq!(stage.inbox().notification(&name("acme"), 3).await.unwrap(), None);
}

pub async fn what_lanes_have_seen_comes_back(place: Place) {
    let (mut stage, claim) = with_one_claim(place).await;
    let lane = |key: &str| LaneKey { workspace: name("acme"), plugin: name("slack"), key: key.into() };
    let record = |key, paused_until, effects| LaneRecord { lane: lane(key), paused_until, effects };
    let bot = record("bot", Some(at(900)), vec![(at(1), 2), (at(3), 1)]);
    let chat = record("chat", None, Vec::new());
    let wait = Paused { lanes: vec![bot, chat.clone()], ..paused(kept(&claim, 0, 0), 20, true, Change::Keep) };
    stage.inbox().pause(wait).await.unwrap();
    let newer = record("bot", None, vec![(at(5), 7)]);
    let claim = stage.claim_one(at(20)).await;
    let end = Finished { lanes: vec![newer.clone()], ..finished(&claim, at(21), delivered()) };
    stage.inbox().finish(end).await.unwrap();
    let mut lanes = stage.reopen(at(30)).await.lanes;
    lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
    lanes.retain(|record| record.paused_until.is_some() || !record.effects.is_empty() || record.lane == chat.lane);
    assert_eq!(lanes, [newer, chat]);
}
