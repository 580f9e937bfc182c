//! The pipeline over a store in memory.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::memory::Write;
use super::*;
use crate::inbox::Finished;
use crate::inbox::book::Admission;
use crate::inbox::delivery::{Next, Outcome, State as DeliveryState};

async fn run(stand: &Stand, stop: &Stop) -> JoinHandle<()> {
    let dispatcher = dispatcher(&stand.means).await;
    tokio::spawn(dispatcher.run(stop.clone()))
}

/// The one attempt that ended, while the clock goes on.
async fn finished(stand: &Stand) -> Finished {
    let passing = async {
        loop {
            stand.clock.advance(Duration::from_millis(100));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = stand.store.until(|store| store.finished().len() == 1) => {}
        () = passing => {}
    }
    stand.store.finished().remove(0)
}

#[tokio::test]
async fn what_was_claimed_as_it_was_written_starts_and_is_recorded() {
    let (stand, stop) = (Stand::new("post AT/200|done well").await, Stop::default());
    let running = run(&stand, &stop).await;
    stand.store.hand_out(claim());
    stand.store.until(|store| store.finished().len() == 1).await;
    let finished = stand.store.finished().remove(0);
    assert_eq!(finished.next, Next { state: DeliveryState::Delivered, next_at: None });
    assert_eq!((finished.attempt.outcome, finished.attempt.steps, finished.reached), (Outcome::Delivered, 2, true));
    assert_eq!(finished.attempt.reason.as_deref(), Some("done well"));
    assert_eq!((finished.attempt.started_at, finished.notices.len()), (start(), 0));
    stop.soon.cancel();
    running.await.unwrap();
    assert_eq!(stand.means.queues.in_flight(), 0);
}

#[tokio::test]
async fn what_is_due_is_claimed_and_a_store_that_refuses_is_asked_again() {
    let (stand, stop) = (Stand::new("retry later").await, Stop::default());
    stand.store.make_due(claim());
    stand.store.refuse(3);
    let running = run(&stand, &stop).await;
    let finished = finished(&stand).await;
    assert_eq!((finished.attempt.outcome, finished.next.state), (Outcome::Retry, DeliveryState::Retrying));
    // The destination asked for seven seconds.
    let wait = crate::clock::until(finished.attempt.ended_at, finished.next.next_at.unwrap());
    assert_eq!(wait, Duration::from_secs(7));
    stop.soon.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn a_claim_that_comes_after_a_stop_is_given_back() {
    let (stand, stop) = (Stand::new("post AT/200|done").await, Stop::default());
    let running = run(&stand, &stop).await;
    assert!(stand.means.queues.admit(&claim().queue, None), "the store may let it in");
    stop.soon.cancel();
    stand.store.hand_out(claim());
    stand.store.until(|store| store.finished().len() == 1).await;
    let finished = stand.store.finished().remove(0);
    assert_eq!((finished.attempt.outcome, finished.next.state), (Outcome::Interrupted, DeliveryState::Pending));
    stop.now.cancel();
    running.await.unwrap();
    assert!(stand.sink.asked().is_empty());
    assert!(!stand.means.queues.admit(&claim().queue, None));
}

#[tokio::test]
async fn an_attempt_that_a_stop_cuts_off_is_paused_with_its_past() {
    let (stand, stop) = (Stand::new("post AT/never|report").await, Stop::default());
    let running = run(&stand, &stop).await;
    stand.store.hand_out(claim());
    stand.sink.asked_times(1).await;
    stop.soon.cancel();
    stop.now.cancel();
    running.await.unwrap();
    let written = stand.store.written();
    let [Write::Paused(paused)] = written.as_slice() else { panic!("{written:?}") };
    assert_eq!((paused.is_wait, paused.kept.effects.len()), (false, 1));
    assert!(paused.kept.effects[0].answer.contains("cut-off"));
    assert!(stand.store.finished().is_empty());
}

#[tokio::test]
async fn what_cannot_be_written_before_the_end_is_left_to_the_next_opening() {
    let (stand, stop) = (Stand::new("post AT/never|report").await, Stop::default());
    let running = run(&stand, &stop).await;
    stand.store.hand_out(claim());
    stand.sink.asked_times(1).await;
    stand.store.refuse(u32::MAX);
    stop.soon.cancel();
    stop.now.cancel();
    running.await.unwrap();
    assert!(stand.store.written().is_empty() && stand.store.finished().is_empty());
}

#[tokio::test]
async fn a_failure_inside_the_host_is_an_outcome() {
    let (stand, stop) = (Stand::new("post AT/200|post AT/200|done").await, Stop::default());
    stand.store.fail_inside();
    let running = run(&stand, &stop).await;
    stand.store.hand_out(claim());
    stand.store.until(|store| store.finished().len() == 1).await;
    let finished = stand.store.finished().remove(0);
    assert_eq!((finished.attempt.outcome, finished.next.state), (Outcome::Unknown, DeliveryState::Retrying));
    assert!(finished.attempt.reason.unwrap().contains("the host failed inside"));
    stop.soon.cancel();
    running.await.unwrap();
}

#[tokio::test]
async fn an_unknown_outcome_stops_where_a_repeat_does_harm() {
    for (plugin, state) in [("riskyone", DeliveryState::Unknown), ("scripted", DeliveryState::Retrying)] {
        let (stand, stop) = (Stand::with(plugin, |_| json!("unknown who knows")).await, Stop::default());
        let running = run(&stand, &stop).await;
        stand.store.hand_out(claim());
        stand.store.until(|store| store.finished().len() == 1).await;
        assert_eq!(stand.store.finished().remove(0).next.state, state, "{plugin}");
        stop.soon.cancel();
        running.await.unwrap();
    }
}

#[tokio::test]
async fn memory_is_written_for_the_version_that_was_read() {
    let (stand, stop) = (Stand::new("remember 8").await, Stop::default());
    let running = run(&stand, &stop).await;
    let memory = Some(crate::inbox::Memory { written: written("7"), version: 4 });
    stand.store.hand_out(Claim { memory, ..claim() });
    stand.store.until(|store| store.finished().len() == 1).await;
    assert_eq!(stand.store.finished().remove(0).remember, (set("8"), 4));
    stop.soon.cancel();
    running.await.unwrap();
}
