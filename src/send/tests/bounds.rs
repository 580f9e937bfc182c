//! The limits of an attempt, just obeyed and just passed.

use std::time::Duration;

use super::*;
use crate::inbox::Inbox as _;
use crate::inbox::delivery::Outcome;

/// What a script comes to.
async fn ended(script: &str) -> Ended {
    Stand::new(script).await.ended(&claim()).await
}

#[tokio::test]
async fn an_attempt_has_so_many_steps() {
    let posts = |count: usize| vec!["post AT/500"; count].join("|");
    let just = ended(&format!("{}|done well", posts(7))).await;
    assert_eq!((just.outcome, just.steps), (Outcome::Delivered, 8));
    let beyond = ended(&format!("{}|done well", posts(8))).await;
    assert_eq!((beyond.outcome, beyond.steps), (Outcome::Retry, 8));
    assert_eq!(beyond.reason.as_deref(), Some("the plugin asked for more than 8 steps: plugins.limits.steps"));
}

#[tokio::test]
async fn an_attempt_has_so_much_time() {
    let time_max = Limits::default().attempt_time_max;
    let after = async |passed: Duration| {
        let stand = Stand::new(&format!("wait {} 1 ; done well", time_max.as_secs())).await;
        let rest = stand.rests(&claim(), &Stop::default()).await;
        let Rest { kept, until, is_wait, resume } = rest;
        stand.store.pause(crate::inbox::Paused { kept, until, is_wait, resume, lanes: Vec::new() }).await.unwrap();
        stand.clock.advance(passed);
        stand.ended(&stand.store.reopened(&claim())).await
    };
    assert_eq!(after(time_max).await.reason.as_deref(), Some("done well"));
    let beyond = after(time_max + Duration::from_secs(1)).await;
    let says = "the attempt took longer than its limit of 24.0 h: plugins.limits.attempt_time";
    assert_eq!((beyond.outcome, beyond.reason.as_deref()), (Outcome::Retry, Some(says)));
}

#[tokio::test]
async fn what_is_remembered_and_resumed_has_so_many_bytes() {
    const KEPT_BYTES_MAX: usize = 64 << 10;
    // The script stands in JSON between quotes of its own, so that what is kept is a number.
    let number = |digits: usize| "1".repeat(digits);
    let just = ended(&format!("remember {}", number(300))).await;
    assert_eq!((just.outcome, just.remember), (Outcome::Delivered, set(&number(300))));
    for script in ["remember", "carry-on"] {
        let beyond = ended(&format!("{script} {}", number(KEPT_BYTES_MAX + 1))).await;
        let reason = beyond.reason.unwrap();
        assert!(reason.ends_with("has 65537 bytes; at most 64 KiB"), "{reason}");
        assert_eq!((beyond.outcome, beyond.remember, beyond.resume), (Outcome::Retry, Change::Keep, Change::Keep));
    }
}

#[tokio::test]
async fn a_reason_has_so_many_characters() {
    for (script, expected) in [("reject", 500), ("done", 500)] {
        let just = ended(&format!("{script} {}", "r".repeat(400))).await;
        assert!(just.reason.unwrap().ends_with(&"r".repeat(400)), "{script}");
        let beyond = ended(&format!("{script} {}", "r".repeat(10_000))).await.reason.unwrap();
        assert_eq!(beyond.chars().count(), expected + 1, "{script}");
        assert!(beyond.ends_with("r…"), "{script}");
    }
}

#[tokio::test]
async fn the_largest_delivery_there_can_be_is_delivered() {
    // A hundred notifications of a digest, with all texts as long as they may be, come to far more than a digest holds.
    let one = || {
        let mut one = notification("registrar");
        one.event.title = "t".repeat(200);
        one.event.body = Some("b".repeat(2_000));
        one.event.data = format!(r#"{{"a":"{}"}}"#, "d".repeat(3_000));
        one
    };
    let claim = Claim { notifications: (0..100).map(|_| one()).collect(), omitted: u32::MAX, ..claim() };
    let ended = Stand::new("digest").await.ended(&claim).await;
    assert_eq!(ended.reason.as_deref(), Some("100 and 4294967295"));
}
