//! A reader that was away hears exactly what it missed, in order.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::stage::{Fake, Running, acme};
use crate::serve::stream::reader::Start;
use crate::serve::stream::ring::Taken;

/// What happens to a reader, again and again: so many changes are committed, it hears so many events of them, is gone, and
/// then so many more are committed; and whether the server is started anew meanwhile.
type Cut = (u8, u8, u8, bool);

async fn heard_over(cuts: &[Cut], shows_work: bool) {
    let fake = Fake::new();
    let mut running = Running::over(&fake);
    let mut start = Start::After(0);
    let mut heard = Vec::new();
    for (before, hears, after, restarts) in cuts {
        let mut reader = running.read(start, shows_work);
        fake.writes(usize::from(*before));
        let there = fake.events(shows_work).len() - heard.len();
        heard.extend(reader.events(usize::from(*hears).min(there)).await);
        start = reader.position.map_or(start, Start::After);
        drop(reader);
        fake.writes(usize::from(*after));
        if *restarts {
            running = Running::over(&fake);
        }
    }
    let expected: Vec<(u64, String)> =
        fake.events(shows_work).into_iter().map(|(number, name)| (number, name.to_owned())).collect();
    let mut reader = running.read(start, shows_work);
    heard.extend(reader.events(expected.len() - heard.len()).await);
    assert_eq!(heard, expected);
    assert!(reader.is_silent().await, "nothing is told twice");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_heard_between_cuts_is_what_changed(cuts in prop::collection::vec(any::<Cut>(), 0..12), shows_work: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(heard_over(&cuts, shows_work));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_who_come_and_go_while_others_write_miss_nothing() {
    const CHANGES: usize = 3_000;
    let fake = Fake::new();
    let running = Arc::new(Running::over(&fake));
    let writer = tokio::spawn({
        let fake = Arc::clone(&fake);
        async move {
            for number in 0..CHANGES {
                fake.write();
                if number % 7 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    let readers: Vec<_> = (1..=8_usize)
        .map(|step| {
            let running = Arc::clone(&running);
            tokio::spawn(async move {
                let (mut heard, mut start) = (Vec::new(), Start::After(0));
                while heard.len() < CHANGES {
                    let mut reader = running.read(start, true);
                    heard.extend(reader.events((step * 37).min(CHANGES - heard.len())).await);
                    start = Start::After(reader.position.unwrap());
                }
                heard
            })
        })
        .collect();
    writer.await.unwrap();
    let expected: Vec<(u64, String)> =
        fake.events(true).into_iter().map(|(number, name)| (number, name.to_owned())).collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_reader_that_is_slower_than_all_others_is_sent_the_rest_in_order() {
    const CHANGES: usize = 6_000;
    let fake = Fake::new();
    let running = Running::over(&fake);
    let (mut slow, mut quick) = (running.read(Start::Now, true), running.read(Start::Now, true));
    assert_eq!((slow.event().await.unwrap().1, quick.event().await.unwrap().1), ("ready".into(), "ready".into()));
    let mut heard = Vec::new();
    for _ in 0..CHANGES / 100 {
        fake.writes(100);
        quick.events(100).await;
        heard.extend(slow.events(1).await);
    }
    // What it has not taken is long gone from the frames that are kept.
    let (topic, _level) = running.hub.join(&acme());
    assert_eq!(topic.after(heard.len() as u64, true), Taken::Behind);
    heard.extend(slow.events(CHANGES - heard.len()).await);
    let expected: Vec<(u64, String)> =
        fake.events(true).into_iter().map(|(number, name)| (number, name.to_owned())).collect();
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn a_log_that_does_not_reach_back_is_said_and_where_to_go_on() {
    let fake = Fake::new();
    fake.writes(900);
    fake.cut(600);
    let running = Running::over(&fake);
    let mut reader = running.read(Start::After(17), true);
    let reset = (900, "reset".to_owned(), "{\"number\":900}".to_owned());
    assert_eq!(reader.event().await, Some(reset.clone()));
    fake.write();
    assert_eq!(reader.events(1).await, [(901, "notification.created".to_owned())]);
    // The last change that is forgotten is one that the reader has.
    let mut reader = running.read(Start::After(600), true);
    assert_eq!(reader.event().await.unwrap().0, 601);
    // A number of another store, and one that is none.
    for start in [Start::After(5_000), Start::Anew] {
        let (number, name, _) = running.read(start, true).event().await.unwrap();
        assert_eq!((number, name.as_str()), (901, "reset"), "{start:?}");
    }
}

#[tokio::test]
async fn a_notification_that_is_gone_is_passed_over() {
    let fake = Fake::new();
    fake.writes(5);
    fake.remove(4);
    let running = Running::over(&fake);
    let mut reader = running.read(Start::After(2), true);
    assert_eq!(reader.event().await.unwrap().0, 3);
    let (number, name, data) = reader.event().await.unwrap();
    assert_eq!((number, name.as_str()), (5, "gap"));
    assert!(data.ends_with("\"title\":null}"), "{data}");
}
