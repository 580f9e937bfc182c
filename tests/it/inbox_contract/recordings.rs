//! Attempts that are kept to be made again.

use std::num::NonZeroU32;

use switchbell::inbox::delivery::Outcome;
use switchbell::inbox::{DeliveryId, RECORDING_BYTES_MAX, RECORDINGS_KEPT, Recording};

use super::stage::{Place, Stage, at, entries, name, rule};

/// A store with two notifications and no recording.
async fn stage(place: Place) -> Stage {
    let stage = Stage::new(place, vec![rule("t")]).await;
    assert_eq!(stage.accept(at(1), entries(1, 2)).await, [1, 2]);
    stage
}

async fn recording(stage: &Stage, number: u32, outcome: Option<Outcome>) -> Recording {
    let views = stage.views().await;
    Recording {
        delivery: DeliveryId { number: number.into(), ..views[0].id.clone() },
        attempt: NonZeroU32::new(number).unwrap(),
        workspace: name("acme"),
        seqs: vec![1, 2],
        plugin: name("slack"),
        plugin_version: "1.2.3".to_owned(),
        plugin_digest: "0badcafe".to_owned(),
        outcome,
        at: at(number.into()),
        content: format!("{{\"number\":{number}}}"),
    }
}

async fn record(stage: &Stage, recording: Recording) {
    stage.inbox().record(recording).await.unwrap();
}

/// The numbers of the recordings of a plugin.
async fn kept(stage: &Stage, plugin: &str) -> Vec<u32> {
    let found = stage.inbox().recordings(&name(plugin)).await.unwrap();
    found.iter().map(|recording| recording.attempt.get()).collect()
}

pub async fn a_recording_comes_back_as_it_was(place: Place) {
    let mut stage = stage(place).await;
    let ended = recording(&stage, 1, Some(Outcome::Reject)).await;
    let waits = Recording { seqs: vec![2], ..recording(&stage, 2, None).await };
    record(&stage, ended.clone()).await;
    record(&stage, waits.clone()).await;
    stage.reopen(at(100)).await;
    assert_eq!(stage.inbox().recordings(&name("slack")).await.unwrap(), [waits, ended]);
    assert_eq!(kept(&stage, "mail").await, Vec::<u32>::new());
}

pub async fn the_newest_recordings_of_each_plugin_are_kept(place: Place) {
    let stage = stage(place).await;
    let more = RECORDINGS_KEPT + 5;
    let other = Recording { plugin: name("mail"), ..recording(&stage, 1, Some(Outcome::Delivered)).await };
    record(&stage, other).await;
    for number in 1..=more {
        record(&stage, recording(&stage, number, Some(Outcome::Delivered)).await).await;
    }
    assert_eq!(kept(&stage, "slack").await, (6..=more).rev().collect::<Vec<_>>());
    assert_eq!(kept(&stage, "mail").await, [1], "one plugin does not take another's place");
}

pub async fn the_newest_of_each_outcome_is_kept_however_old(place: Place) {
    let stage = stage(place).await;
    for (number, outcome) in [(1, Some(Outcome::Reject)), (2, Some(Outcome::Reject)), (3, None)] {
        record(&stage, recording(&stage, number, outcome).await).await;
    }
    for number in 4..=RECORDINGS_KEPT + 10 {
        record(&stage, recording(&stage, number, Some(Outcome::Delivered)).await).await;
    }
    let newest = (11..=RECORDINGS_KEPT + 10).rev();
    assert_eq!(kept(&stage, "slack").await, newest.chain([3, 2]).collect::<Vec<_>>());
}

pub async fn a_recording_that_is_too_large_is_not_kept(place: Place) {
    let stage = stage(place).await;
    for (number, bytes) in [(1, RECORDING_BYTES_MAX), (2, RECORDING_BYTES_MAX + 1)] {
        let content = "x".repeat(bytes);
        record(&stage, Recording { content, ..recording(&stage, number, None).await }).await;
    }
    assert_eq!(kept(&stage, "slack").await, [1]);
}

pub async fn a_recording_of_no_notification_is_not_kept(place: Place) {
    let stage = stage(place).await;
    for seqs in [vec![], vec![1, 3], vec![u64::MAX]] {
        record(&stage, Recording { seqs, ..recording(&stage, 1, None).await }).await;
    }
    let elsewhere = Recording { workspace: name("other"), ..recording(&stage, 1, None).await };
    record(&stage, elsewhere).await;
    assert_eq!(kept(&stage, "slack").await, Vec::<u32>::new());
}
