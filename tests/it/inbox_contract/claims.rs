//! Deliveries are handed out.

use switchbell::inbox::book::Rule;
use switchbell::inbox::delivery::{Cause, State};
use switchbell::inbox::{Want, Which};

use super::stage::{
    Place, Stage, about, at, delivered, entries, entry, name, owing, queue, retrying, rule, seqs, want,
};

pub async fn each_delivery_is_handed_out_once(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 1)).await;
    let claim = stage.claim_one(at(5)).await;
    assert_eq!((claim.attempt.get(), claim.cause, claim.queue.clone()), (1, Cause::First, queue("t")));
    assert_eq!((claim.since, claim.due_at, claim.omitted), (at(5), at(1), 0));
    assert!(claim.begun.is_none() && claim.resume.is_none() && claim.memory.is_none());
    assert_eq!(stage.states().await, [State::InFlight]);
    assert!(stage.claims(at(1_000_000)).await.is_empty());
    let view = stage.views().await.remove(0);
    assert_eq!((view.next_at, view.due_at, view.attempts.len()), (None, at(1), 0));
}

pub async fn what_is_not_due_is_not_handed_out(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(10), entries(1, 1)).await;
    let claimed = stage.claim(at(9)).await;
    assert!(claimed.claims.is_empty());
    assert_eq!(claimed.next_due, [(queue("t"), Some(at(10)))]);
    assert_eq!(stage.claims(at(10)).await.len(), 1);
}

pub async fn what_is_longest_due_comes_first(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 2)).await;
    for (claim, next_at) in stage.claims(at(1)).await.iter().zip([at(30), at(20)]) {
        stage.finish(claim, at(2), retrying(next_at)).await;
    }
    stage.accept(at(25), entries(3, 3)).await;
    let order: Vec<_> = stage.claims(at(40)).await.iter().map(seqs).collect();
    assert_eq!(order, [[2], [3], [1]]);
}

pub async fn no_more_is_handed_out_than_asked_for(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 5)).await;
    let most = |most| vec![Want { most, ..want(queue("t")) }];
    let claimed = stage.inbox().claim(at(2), most(2)).await.unwrap();
    assert_eq!(claimed.claims.iter().map(seqs).collect::<Vec<_>>(), [[1], [2]]);
    let next_due = claimed.next_due[0].1.unwrap();
    assert!(next_due <= at(2), "there is more that is due: {next_due}");
    let claimed = stage.inbox().claim(at(2), most(9)).await.unwrap();
    assert_eq!(claimed.claims.iter().map(seqs).collect::<Vec<_>>(), [[3], [4], [5]]);
    assert_eq!(claimed.next_due, [(queue("t"), None)]);
}

pub async fn a_queue_that_keeps_its_order_asks_for_one_delivery(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 3)).await;
    let second = stage.views().await[1].id.number;
    let only = |only| vec![Want { only: Some(only), ..want(queue("t")) }];
    let claims = stage.inbox().claim(at(2), only(second)).await.unwrap().claims;
    assert_eq!(claims.iter().map(seqs).collect::<Vec<_>>(), [[2]]);
    stage.finish(&claims[0], at(2), retrying(at(60))).await;
    assert!(stage.inbox().claim(at(3), only(second)).await.unwrap().claims.is_empty(), "it is not due");
    assert_eq!(stage.inbox().claim(at(60), only(second)).await.unwrap().claims.len(), 1);
    assert_eq!(stage.claims(at(60)).await.len(), 2, "the others were left alone");
}

pub async fn two_attempts_of_one_subject_never_run_at_once_where_it_is_remembered(place: Place) {
    let stage = Stage::new(place, vec![Rule { by_subject: true, ..rule("t") }]).await;
    let subjects = [Some("a"), Some("a"), Some("b"), None, None];
    let sent = subjects.iter().zip(1..).map(|(subject, number)| about(entry(&format!("e{number}")), *subject));
    stage.accept(at(1), sent.collect()).await;
    let first = stage.claims(at(2)).await;
    assert_eq!(first.iter().map(seqs).collect::<Vec<_>>(), [[1], [3], [4], [5]], "one of each subject");
    let busy = vec![Want { busy: vec!["a".to_owned()], ..want(queue("t")) }];
    assert!(stage.inbox().claim(at(2), busy).await.unwrap().claims.is_empty());
    stage.finish(&first[0], at(3), delivered()).await;
    assert_eq!(seqs(&stage.claim_one(at(3)).await), [2]);
}

pub async fn what_waits_for_others_of_its_subject_is_said_to_be_due(place: Place) {
    let stage = Stage::new(place, vec![Rule { by_subject: true, ..rule("t") }]).await;
    stage.accept(at(1), entries(1, 2)).await;
    let claimed = stage.claim(at(2)).await;
    assert_eq!(claimed.claims.iter().map(seqs).collect::<Vec<_>>(), [[1]]);
    let due = claimed.next_due[0].1;
    assert!(due.is_some_and(|due| due <= at(2)), "or nobody would ask for the second: {due:?}");
}

pub async fn a_long_row_of_one_subject_keeps_no_other_back(place: Place) {
    let stage = Stage::new(place, vec![Rule { by_subject: true, ..rule("t") }]).await;
    stage.accept(at(1), entries(1, 300)).await;
    stage.accept(at(2), vec![about(entry("other"), Some("b"))]).await;
    let busy = vec!["a.example".to_owned()];
    let claims = stage.inbox().claim(at(3), vec![Want { most: 1, busy, ..want(queue("t")) }]).await.unwrap().claims;
    assert_eq!(claims.iter().map(seqs).collect::<Vec<_>>(), [[301]]);
}

pub async fn what_others_waited_for_keeps_them_no_longer_when_it_is_taken_away(place: Place) {
    let stage = Stage::new(place, vec![Rule { is_strict: true, ..rule("t") }]).await;
    stage.accept(at(1), entries(1, 2)).await;
    let first = stage.inbox().claim(at(1), vec![Want { most: 1, ..want(queue("t")) }]).await.unwrap().claims.remove(0);
    stage.finish(&first, at(1), retrying(at(3_600))).await;
    let only = vec![Want { most: 1, only: Some(first.id.number), ..want(queue("t")) }];
    assert!(stage.inbox().claim(at(2), only.clone()).await.unwrap().claims.is_empty());
    stage.news();
    let which = Which { ids: vec![first.id], ..Which::default() };
    stage.inbox().cancel(&name("acme"), which, "not any more".to_owned()).await.unwrap();
    assert!(stage.news().due.iter().any(|(queue, due)| queue.route.as_str() == "news" && *due <= at(2)));
    let claims = stage.inbox().claim(at(2), only).await.unwrap().claims;
    assert_eq!(claims.iter().map(seqs).collect::<Vec<_>>(), [[2]]);
}

pub async fn subjects_do_not_matter_where_nothing_is_remembered(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 3)).await;
    let busy = vec![Want { busy: vec!["a.example".to_owned()], ..want(queue("t")) }];
    assert_eq!(stage.inbox().claim(at(1), busy).await.unwrap().claims.len(), 3);
}

pub async fn every_queue_that_was_asked_says_what_is_due_next(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), rule("u"), rule("v")]).await;
    stage.accept(at(1), vec![owing(entry("e1"), &["t"]), owing(entry("e2"), &["u"])]).await;
    let claims = stage.claims(at(1)).await;
    let u = claims.iter().find(|claim| claim.queue == queue("u")).unwrap();
    stage.finish(u, at(2), retrying(at(90))).await;
    let mut claimed = stage.claim(at(3)).await;
    claimed.next_due.sort();
    let expected = [(queue("t"), None), (queue("u"), Some(at(90))), (queue("v"), None)];
    assert_eq!(claimed.next_due, expected);
}

pub async fn queues_are_served_in_the_order_they_are_asked_for(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), rule("u")]).await;
    stage.accept(at(1), vec![owing(entry("e1"), &["t"]), owing(entry("e2"), &["u"])]).await;
    let claimed = stage.inbox().claim(at(1), vec![want(queue("u")), want(queue("t"))]).await.unwrap();
    let order: Vec<_> = claimed.claims.iter().map(|claim| claim.queue.clone()).collect();
    assert_eq!(order, [queue("u"), queue("t")]);
    assert!(stage.inbox().claim(at(1), Vec::new()).await.unwrap().claims.is_empty());
}

pub async fn ids_are_stable_and_differ_between_stores(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, 2)).await;
    let before: Vec<_> = stage.views().await.into_iter().map(|view| view.id).collect();
    assert_ne!(before[0], before[1]);
    assert_eq!(before[0].store.len(), 8);
    let key = stage.inbox().key();
    stage.reopen(at(2)).await;
    let after: Vec<_> = stage.views().await.into_iter().map(|view| view.id).collect();
    assert_eq!(before, after);
    assert_eq!(stage.inbox().key(), key, "and so is the key");
    assert_ne!(key, [0; 32]);
}
