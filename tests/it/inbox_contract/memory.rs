//! What targets remember of subjects.

use switchbell::inbox::book::Rule;
use switchbell::inbox::{Change, Claim, Finished, Memory};

use super::stage::{Place, Stage, about, at, delivered, entry, finished, owing, queue, rule, want, written};

pub fn by_subject(target: &str) -> Rule {
    Rule { by_subject: true, ..rule(target) }
}

pub async fn remember(stage: &Stage, claim: &Claim, change: Change) {
    let version = claim.memory.as_ref().map_or(0, |memory| memory.version);
    let end = Finished { remember: (change, version), ..finished(claim, at(100), delivered()) };
    stage.inbox().finish(end).await.unwrap();
}

fn set(value: &str) -> Change {
    Change::Set(written(value))
}

/// What the next delivery about this subject is told, and its claim.
pub async fn next(stage: &Stage, event: &str, subject: Option<&str>) -> Claim {
    stage.accept(at(50), vec![about(entry(event), subject)]).await;
    stage.claim_one(at(100)).await
}

pub fn value(claim: &Claim) -> Option<&str> {
    claim.memory.as_ref().map(|memory| memory.written.value.as_str())
}

pub async fn what_is_remembered_of_a_subject_comes_with_its_next_delivery(place: Place) {
    let mut stage = Stage::new(place, vec![by_subject("t")]).await;
    let first = next(&stage, "e1", Some("a")).await;
    assert_eq!(first.memory, None);
    remember(&stage, &first, set("1")).await;
    stage.reopen(at(101)).await;
    let second = next(&stage, "e2", Some("a")).await;
    assert_eq!(value(&second), Some("1"));
    remember(&stage, &second, Change::Keep).await;
    let third = next(&stage, "e3", Some("a")).await;
    assert_eq!(third.memory, second.memory, "it stays, and so does its version");
    remember(&stage, &third, set("2")).await;
    let fourth = next(&stage, "e4", Some("a")).await;
    assert_eq!(value(&fourth), Some("2"));
    assert!(fourth.memory.as_ref().unwrap().version > third.memory.as_ref().unwrap().version);
    remember(&stage, &fourth, Change::Forget).await;
    assert_eq!(next(&stage, "e5", Some("a")).await.memory, None);
}

pub async fn an_older_attempt_never_overwrites_newer_memory(place: Place) {
    let stage = Stage::new(place, vec![by_subject("t")]).await;
    let first = next(&stage, "e1", Some("a")).await;
    remember(&stage, &first, set("1")).await;
    // Without `busy` two of one subject are in flight, as after a mistake.
    let second = next(&stage, "e2", Some("a")).await;
    stage.accept(at(50), vec![about(entry("e3"), Some("a"))]).await;
    let third = stage.inbox().claim(at(100), vec![want(queue("t"))]).await.unwrap().claims.remove(0);
    assert_eq!((value(&second), value(&third)), (Some("1"), Some("1")));
    remember(&stage, &third, set("newer")).await;
    remember(&stage, &second, set("older")).await;
    let fourth = next(&stage, "e4", Some("a")).await;
    assert_eq!(value(&fourth), Some("newer"));
    let stale = Claim { memory: Some(Memory { written: written(""), version: 1 }), ..fourth };
    remember(&stage, &stale, Change::Forget).await;
    assert_eq!(value(&next(&stage, "e5", Some("a")).await), Some("newer"), "nor does it forget it");
}

pub async fn targets_and_subjects_remember_apart(place: Place) {
    let stage = Stage::new(place, vec![by_subject("t"), by_subject("u")]).await;
    let first = next(&stage, "e1", Some("a")).await;
    remember(&stage, &first, set("1")).await;
    assert_eq!(next(&stage, "e2", Some("b")).await.memory, None);
    stage.accept(at(50), vec![owing(about(entry("e3"), Some("a")), &["u"])]).await;
    assert_eq!(stage.claim_one(at(100)).await.memory, None);
}

pub async fn what_has_no_subject_is_not_remembered(place: Place) {
    let stage = Stage::new(place, vec![by_subject("t")]).await;
    let first = next(&stage, "e1", None).await;
    remember(&stage, &first, set("1")).await;
    assert_eq!(next(&stage, "e2", None).await.memory, None);
}
