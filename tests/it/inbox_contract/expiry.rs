//! What goes when it is old.

use std::num::NonZeroU32;

use switchbell::inbox::delivery::{Outcome, State};
use switchbell::inbox::{Actor, Deed, Expired, Expiry, Mark, Recording, Which};

use super::stage::{HOUR, MINUTE, Place, Stage, at, delivered, entries, entry, name, owing, rule, timed};
use super::timing::{after, collect};

const DAY: u64 = 24 * HOUR;

async fn expiring(stage: &Stage, expiry: Expiry) -> Vec<u64> {
    let found = stage.inbox().expiring(&name("acme"), expiry, 100).await.unwrap();
    found.items.iter().map(|(one, _)| one.seq).collect()
}

fn before(seconds: u64) -> Expiry {
    Expiry { before: Some(at(seconds)), ..Expiry::default() }
}

async fn expire(stage: &Stage, seqs: &[u64]) -> (u64, u64) {
    let Expired { notifications, deliveries } =
        stage.inbox().expire(&name("acme"), seqs.to_vec(), at(70)).await.unwrap();
    (notifications, deliveries)
}

async fn seqs(stage: &Stage) -> Vec<u64> {
    let all = stage.inbox().notifications(super::stage::page("acme")).await.unwrap();
    all.iter().rev().map(|one| one.seq).collect()
}

pub async fn what_is_old_goes_with_its_deliveries(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 3)).await;
    stage.accept(at(HOUR), entries(4, 5)).await;
    stage.deliver(at(HOUR)).await;
    let by = Actor { name: "admin@example.com".to_owned(), is_agent: false };
    stage.inbox().mark(&name("acme"), vec![1], Deed::Read, Mark { at: at(5), by }).await.unwrap();
    assert!(expiring(&stage, before(0)).await.is_empty());
    let found = stage.inbox().expiring(&name("acme"), before(HOUR), 2).await.unwrap();
    assert_eq!((found.items[0].0.seq, found.items[0].1.read.is_some(), found.next), (1, true, Some(2)));
    assert_eq!(expiring(&stage, Expiry { after: 2, ..before(HOUR) }).await, [3]);
    let last = stage.inbox().changes(&name("acme"), 0, 1).await.unwrap().last;
    assert_eq!(expire(&stage, &[1, 2, 3, 99]).await, (3, 3));
    assert_eq!(seqs(&stage).await, [4, 5]);
    assert_eq!(stage.states().await, [State::Delivered; 2]);
    assert_eq!(stage.inbox().changes(&name("acme"), 0, 1).await.unwrap().last, last, "what goes is no change");
    assert_eq!(stage.accept(at(DAY), entries(6, 6)).await, [6], "numbers go on");
    assert_eq!(expire(&stage, &[1]).await, (0, 0));
}

pub async fn what_is_more_than_the_newest_goes(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let all = entries(1, 10).into_iter().map(|entry| owing(entry, &[])).collect();
    stage.accept(at(0), all).await;
    let keep = |keep| Expiry { keep: Some(keep), ..Expiry::default() };
    assert_eq!(expiring(&stage, keep(7)).await, [1, 2, 3]);
    assert!(expiring(&stage, keep(10)).await.is_empty() && expiring(&stage, keep(u64::MAX)).await.is_empty());
    assert_eq!(expiring(&stage, keep(0)).await.len(), 10);
    assert_eq!(expire(&stage, &[1, 2, 3]).await, (3, 0));
    assert!(expiring(&stage, keep(7)).await.is_empty());
    assert_eq!(expiring(&stage, Expiry { before: Some(at(1)), ..keep(7) }).await.len(), 7, "whichever is less");
}

pub async fn what_is_owed_stays(place: Place) {
    let stage = Stage::new(place, vec![rule("t"), timed("s", after(60)), timed("c", collect(60, 9))]).await;
    let owed: [&[&str]; 4] = [&["t"], &["s"], &["c"], &[]];
    let all = entries(1, 4).into_iter().zip(owed).map(|(entry, targets)| owing(entry, targets)).collect();
    stage.accept(at(0), all).await;
    let claim = stage.claim_one(at(1)).await;
    assert_eq!(expiring(&stage, before(DAY)).await, [4]);
    assert_eq!(expire(&stage, &[1, 2, 3]).await, (0, 0), "whoever asks");
    stage.finish(&claim, at(2), delivered()).await;
    assert_eq!(expiring(&stage, before(DAY)).await, [1, 4]);
    stage.deliver(at(2 * HOUR)).await;
    assert_eq!(expiring(&stage, before(DAY)).await, [1, 2, 3, 4]);
}

pub async fn a_digest_goes_with_the_last_that_it_stands_for(place: Place) {
    let stage = Stage::new(place, vec![timed("c", collect(10, 9))]).await;
    let to_c = |from, to| entries(from, to).into_iter().map(|entry| owing(entry, &["c"])).collect();
    stage.accept(at(0), to_c(1, 2)).await;
    stage.accept(at(MINUTE), to_c(3, 3)).await;
    assert!(expiring(&stage, before(DAY)).await.is_empty());
    assert_eq!(stage.deliver(at(HOUR)).await, [[1, 2, 3]]);
    assert_eq!(expire(&stage, &[1, 2]).await, (2, 0));
    let views = stage.views().await;
    assert_eq!((views.len(), views[0].seqs.clone(), views[0].attempts.len()), (1, vec![3], 1));
    let of_third = Which { seq: Some(3), ..Which::default() };
    assert_eq!(stage.inbox().deliveries(super::stage::page("acme"), of_third).await.unwrap().len(), 1);
    assert_eq!(expire(&stage, &[3]).await, (1, 1));
    assert!(stage.views().await.is_empty());
}

pub async fn an_event_that_went_stays_known(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 2)).await;
    stage.deliver(at(1)).await;
    assert_eq!(expire(&stage, &[1, 2]).await, (2, 2));
    let again = stage.try_accept(at(DAY), vec![entry("e1"), entry("e3")]).await.unwrap();
    assert_eq!(again.seqs, [None, Some(3)]);
}

pub async fn an_id_that_is_repeated_stays_known(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 2)).await;
    // The outbox shows the first one still.
    assert_eq!(stage.try_accept(at(9 * DAY), entries(1, 1)).await.unwrap().seqs, [None]);
    assert_eq!(stage.inbox().forget_seen(at(9 * DAY), 100).await.unwrap(), 1);
    assert_eq!(stage.try_accept(at(10 * DAY), entries(1, 2)).await.unwrap().seqs, [None, Some(3)]);
}

pub async fn an_id_that_is_shown_all_the_time_stays_known(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let shown = async |hour| {
        let entry = owing(entry("e1"), &[]);
        stage.try_accept(at(hour * HOUR), vec![entry]).await.unwrap().seqs
    };
    assert_eq!(shown(0).await, [Some(1)]);
    for hour in 1..100 {
        assert_eq!(shown(hour).await, [None]);
        assert_eq!(stage.inbox().forget_seen(at(hour * HOUR), 100).await.unwrap(), 0, "shown in hour {hour}");
    }
    assert_eq!(stage.inbox().forget_seen(at(100 * HOUR + DAY), 100).await.unwrap(), 1);
}

pub async fn ids_that_were_not_used_for_long_are_forgotten(place: Place) {
    let stage = Stage::new(place, Vec::new()).await;
    let unowed = |from, to| entries(from, to).into_iter().map(|entry| owing(entry, &[])).collect();
    stage.accept(at(0), unowed(1, 25)).await;
    stage.accept(at(DAY), unowed(26, 30)).await;
    let forget = |limit| stage.inbox().forget_seen(at(2 * DAY), limit);
    assert_eq!(forget(10).await.unwrap(), 10);
    assert_eq!(forget(10).await.unwrap(), 10);
    assert_eq!(forget(10).await.unwrap(), 5);
    assert_eq!(forget(10).await.unwrap(), 0);
    let again = stage.try_accept(at(2 * DAY), unowed(1, 30)).await.unwrap();
    assert_eq!(again.seqs.iter().flatten().count(), 25);
}

pub async fn a_recording_goes_with_its_notification(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 2)).await;
    stage.deliver(at(1)).await;
    for (view, seq) in stage.views().await.into_iter().zip(1..) {
        let recording = Recording {
            delivery: view.id,
            attempt: NonZeroU32::MIN,
            workspace: name("acme"),
            seqs: vec![seq],
            plugin: name("slack"),
            plugin_version: "1.2.3".to_owned(),
            plugin_digest: "abcd".to_owned(),
            outcome: Some(Outcome::Delivered),
            at: at(1),
            content: "{}".to_owned(),
        };
        stage.inbox().record(recording).await.unwrap();
    }
    expire(&stage, &[1]).await;
    let left = stage.inbox().recordings(&name("slack")).await.unwrap();
    assert_eq!(left.iter().map(|one| one.seqs.clone()).collect::<Vec<_>>(), [[2]]);
}

pub async fn one_that_came_to_be_owed_meanwhile_stays(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(0), entries(1, 1)).await;
    stage.deliver(at(1)).await;
    assert_eq!(expiring(&stage, before(DAY)).await, [1]);
    stage.inbox().retry(&name("acme"), Which::default(), at(2)).await.unwrap();
    assert_eq!(expire(&stage, &[1]).await, (0, 0));
    stage.deliver(at(3)).await;
    assert_eq!(expire(&stage, &[1]).await, (1, 2), "both that were made for it");
}
