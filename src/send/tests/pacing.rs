//! The pace of lanes, as an attempt sees it.

use std::time::Duration;

use super::*;
use crate::inbox::delivery::Outcome;

/// A stand whose queues know the lanes of its targets.
async fn paced(script: &str) -> Stand {
    let stand = Stand::new(script).await;
    stand.means.queues.take_up(&stand.means.live.get().book);
    stand
}

const TWO: &str = "@chat post AT/200/1|post AT/200/2|done";

#[tokio::test]
async fn every_effect_waits_for_the_pace_of_its_lane() {
    let stand = paced(TWO).await;
    let claim = claim();
    let clock = async {
        // Its past is kept before it waits.
        stand.store.until(|store| store.written().len() == 1).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(stand.sink.asked(), ["/200/1"]);
        stand.clock.advance(Duration::from_millis(1_001));
    };
    let (ended, ()) = tokio::join!(stand.ended(&claim), clock);
    assert_eq!((ended.outcome, stand.sink.asked().len()), (Outcome::Delivered, 2));
}

#[tokio::test]
async fn a_stop_ends_a_wait_for_the_pace_and_begins_nothing() {
    let stand = paced(TWO).await;
    let (claim, stop) = (claim(), Stop::default());
    let cut = async {
        stand.store.until(|store| store.written().len() == 1).await;
        stop.soon.cancel();
    };
    let (rest, ()) = tokio::join!(stand.rests(&claim, &stop), cut);
    assert_eq!((rest.kept.kept_before, rest.kept.effects.len(), rest.is_wait), (1, 0, false));
    assert_eq!(stand.sink.asked(), ["/200/1"]);
}

#[tokio::test]
async fn a_destination_that_asked_to_be_left_alone_is() {
    let stand = paced(TWO).await;
    let other = Claim { id: DeliveryId { store: "0badcafe".into(), number: 2 }, ..claim() };
    stand.means.queues.records(&other, Some(Duration::from_secs(600)));
    let ended = stand.ended(&claim()).await;
    assert_eq!(ended.outcome, Outcome::Interrupted, "the number is given back");
    let goes_on = stand.store.reopened(&claim());
    let begun = goes_on.begun.clone().map(|begun| crate::inbox::Begun { cut_off: false, ..begun });
    let rest = stand.rests(&Claim { begun, ..goes_on }, &Stop::default()).await;
    assert_eq!((rest.until, rest.is_wait), (crate::clock::later(start(), Duration::from_secs(600)), false));
    assert!(stand.sink.asked().is_empty());
}
