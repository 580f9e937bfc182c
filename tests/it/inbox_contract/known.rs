//! What routes may know of the past.

use std::time::Duration;

use switchbell::inbox::{Actor, Deed, Intake, KNOWN_MAX, Known, Mark, SET_BACK_MAX};
use switchbell::notification::{Event, Level};
use switchbell::route::timing::bytes_in_digest;

use super::stage::{HOUR, MINUTE, Place, Stage, about, at, entries, entry, intake, large, name, rule, urgent};

async fn known(stage: &Stage, from: u64, limit: u32) -> Vec<Known> {
    stage.inbox().known(&name("acme"), from, limit).await.unwrap()
}

fn seqs(known: &[Known]) -> Vec<u64> {
    known.iter().map(|one| one.seq).collect()
}

pub async fn what_routes_may_know_comes_back_as_it_was(place: Place) {
    let mut stage = Stage::new(place, vec![rule("t")]).await;
    let first = urgent(about(entry("e1"), None));
    let mut second = large(entry("e2"), 9_000);
    second.event = Event { body: Some("ä".to_owned()), link: Some("https://a.example".to_owned()), ..second.event };
    stage.accept(at(1), vec![first.clone()]).await;
    let sent = Intake { source: name("crm"), is_first: true, ..intake("acme", at(2), vec![second.clone()]) };
    stage.inbox().accept(sent).await.unwrap();
    let mark = Mark { at: at(3), by: Actor { name: "triage".to_owned(), is_agent: true } };
    stage.inbox().mark(&name("acme"), vec![2], Deed::Acknowledge, mark.clone()).await.unwrap();
    stage.reopen(at(4)).await;
    let one = |seq, received, source, acknowledged| Known {
        seq,
        received_at: at(received),
        source: name(source),
        name: "domain.active".to_owned(),
        subject: (seq == 2).then(|| "a.example".to_owned()),
        level: Level::Attention,
        effective_level: if seq == 1 { Level::Urgent } else { Level::Attention },
        bytes: bytes_in_digest(if seq == 1 { &first.event } else { &second.event }),
        is_first: seq == 2,
        acknowledged,
    };
    assert_eq!(known(&stage, 0, 9).await, [one(1, 1, "registrar", None), one(2, 2, "crm", Some(mark))]);
}

pub async fn the_past_is_read_from_a_number_on_in_bounded_parts(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    stage.accept(at(1), entries(1, KNOWN_MAX as usize + 5)).await;
    stage.inbox().accept(intake("other", at(1), entries(1, 1))).await.unwrap();
    assert_eq!(seqs(&known(&stage, 3, 2).await), [3, 4]);
    assert!(seqs(&known(&stage, 2, u32::MAX).await).into_iter().eq(2..2 + u64::from(KNOWN_MAX)));
    assert_eq!(known(&stage, u64::from(KNOWN_MAX) + 2, KNOWN_MAX).await.len(), 4, "none of another workspace");
    for nothing in [u64::from(KNOWN_MAX) + 6, 1 << 40, u64::MAX] {
        assert!(known(&stage, nothing, 9).await.is_empty(), "{nothing}");
    }
    assert!(stage.inbox().known(&name("nowhere"), 1, 9).await.unwrap().is_empty());
}

pub async fn a_number_is_found_from_which_on_lies_all_that_was_received_since(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let since = async |moment| stage.inbox().seq_since(&name("acme"), moment).await.unwrap();
    assert_eq!(since(at(0)).await, 1, "of a workspace that has nothing");
    for number in 1..=50 {
        stage.accept(at(number as u64 * 2 * HOUR), entries(number, number)).await;
    }
    for number in 1..=50_u64 {
        assert_eq!(
            since(at((number * 2 + 1) * HOUR)).await,
            number,
            "that it was the last before is known to the hour"
        );
        assert_eq!(since(at((number * 2 + 1) * HOUR + 1)).await, number + 1);
    }
    assert_eq!(since(at(0)).await, 1);
    assert_eq!(since(at(1_000 * HOUR)).await, 51);
    assert_eq!(since(jiff::Timestamp::MIN).await, 1);
    assert_eq!(since(jiff::Timestamp::MAX).await, 51);
}

pub async fn a_clock_that_was_set_back_hides_nothing(place: Place) {
    let stage = Stage::new(place, vec![rule("t")]).await;
    let back = Duration::try_from(SET_BACK_MAX).unwrap().as_secs();
    let mut moments = Vec::new();
    for number in 1..=40 {
        // Each step is a minute, but for one back.
        let second = number * MINUTE + 3 * back - if number > 20 { back } else { 0 };
        moments.push(at(second));
        stage.accept(at(second), entries(number as usize, number as usize)).await;
    }
    for &moment in &moments {
        let first = stage.inbox().seq_since(&name("acme"), moment).await.unwrap();
        let received = (1..).zip(&moments).find(|(_, received)| **received >= moment).map(|(seq, _)| seq).unwrap();
        assert!(first <= received, "{moment}: {first} comes after {received}");
    }
}
