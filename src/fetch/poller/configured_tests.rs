//! A configuration that changes while an outbox is polled.

use std::time::Duration;

use super::stage_for_tests::*;
use super::*;
use crate::config::Poll;
use crate::notification::Level;
use crate::telemetry::Happening;

/// Has the poller of the stage polled so, with this ceiling.
fn configure(stage: &Stage, ceiling: Level, poll: Poll) {
    let mut after = config();
    for connector in after.workspaces.values_mut().flat_map(|workspace| workspace.connectors.values_mut()) {
        (connector.ceiling, connector.poll) = (ceiling, poll);
    }
    stage.configured.send(Arc::new(after)).unwrap();
}

#[tokio::test]
async fn what_comes_is_decided_by_the_configuration_that_holds_then() {
    let urgent = |id: &str, cursor: &str| answer(&[event(id, "urgent")], &format!(",\"cursor\":\"{cursor}\""));
    let mut stage = Stage::start(vec![at("p:1"), urgent("a", "p:2"), urgent("b", "p:3")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    let wait = stage.read().await;
    assert_eq!(stage.accepted().await, (1, "a".to_owned(), Some(true)));
    configure(&stage, Level::Info, Poll::default());
    stage.clock.advance(wait);
    stage.read().await;
    assert_eq!(stage.accepted().await, (2, "b".to_owned(), Some(false)), "its level is capped below the route's");
    assert_eq!(stage.asked().len(), 3, "it was not started anew");
    stage.stop().await;
}

#[tokio::test]
async fn a_shorter_wait_counts_at_once_and_a_longer_one_from_the_next_read_on() {
    let mut stage = Stage::start(vec![at("p:1"), at("p:2"), at("p:3")]);
    let due_in = |stage: &Stage| stage.handle.status().next_at.map(|at| until(stage.clock.now(), at));
    around(stage.read().await, 60.0);
    let floor = Duration::from_secs(5);
    configure(&stage, Level::Attention, Poll { base: floor, floor, ..Poll::default() });
    while due_in(&stage) != Some(floor) {
        tokio::task::yield_now().await;
    }
    stage.clock.advance(floor);
    assert!(matches!(stage.next().await, Happening::Read { .. }));
    configure(&stage, Level::Attention, Poll { base: Duration::from_secs(200), ..Poll::default() });
    stage.clock.advance(Duration::from_secs(20));
    assert!(stage.read().await > Duration::from_secs(100), "what was due is read when it was due");
    stage.stop().await;
}

#[tokio::test]
async fn a_poller_whose_connector_is_gone_ends_by_itself() {
    let mut stage = Stage::start(vec![at("p:1")]);
    stage.read().await;
    let mut after = config();
    after.workspaces.values_mut().for_each(|workspace| workspace.connectors.clear());
    stage.configured.send(Arc::new(after)).unwrap();
    tokio::time::timeout(Duration::from_secs(10), stage.task).await.expect("it goes on").unwrap();
    assert!(stage.script.is_closed());
}
