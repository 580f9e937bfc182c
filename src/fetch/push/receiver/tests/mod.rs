//! The loop, against a server that is scripted, with the real store and a clock that is moved by hand.

mod stage;

use std::sync::atomic::Ordering;

use super::*;
use crate::inbox::{Inbox as _, Page};
use crate::notification::Level;
use stage::{Queue, Stage, event, lost};

#[tokio::test]
async fn pending_comes_page_by_page_each_accepted_before_its_ack_and_then_what_is_live() {
    let stage = Stage::start(&["a", "b", "c"], Vec::new());
    stage.server.say(Live::Event(format!("{{\"event\":{}}}", event("b"))));
    stage.asked(&["listen", "get", "ack a b", "get", "ack c", "ack b"]).await;
    stage.server.emit("d");
    stage.asked(&["listen", "get", "ack a b", "get", "ack c", "ack b", "ack d"]).await;
    let loud = |id: &str| (id.to_owned(), Level::Attention);
    assert_eq!(stage.inbox().await, ["a", "b", "c", "d"].map(loud), "the ceiling caps the level of the type");
    stage.stop().await;
}

#[tokio::test]
async fn nothing_is_acknowledged_that_the_inbox_did_not_take() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.store.is_full.store(true, Ordering::SeqCst);
    stage.server.emit("a");
    let (reason, wait) = stage.failure().await;
    assert!(reason.contains("the disk is full"), "{reason}");
    stage.store.is_full.store(false, Ordering::SeqCst);
    stage.clock.advance(Duration::from_secs_f64(wait));
    stage.asked(&["listen", "get", "listen", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_bad_event_is_told_and_acknowledged_and_costs_nothing_else() {
    let bad = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    let pending = vec![
        bad("x", r#"{"eventId":"x","type":"s3cret","createdAt":"s3cret"}"#),
        bad("", r#"{"eventId":7}"#),
        bad("a", &event("a")),
    ];
    let mut stage = Stage::of(Queue { pending, page_max: 10, ..Queue::default() });
    stage.asked(&["listen", "get", "ack x a"]).await;
    let (name, body) = stage.notice().await;
    assert_eq!(name, "connector.dropped");
    assert!(body.contains("x: createdAt is \"***\""), "{body}");
    let (_, body) = stage.notice().await;
    assert!(body.contains("one without an id: eventId is a number"), "{body}");
    stage.pass(SILENCE_MAX).await;
    stage.asked(&["listen", "get", "ack x a", "get"]).await;
    stage.server.emit("b");
    stage.asked(&["listen", "get", "ack x a", "get", "ack b"]).await;
    assert_eq!(stage.inbox().await.len(), 2);
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
    assert_eq!(stage.store.sqlite.notifications(page).await.unwrap().len(), 4, "each is told once");
    stage.stop().await;
}

#[tokio::test]
async fn a_page_that_never_ends_is_no_progress() {
    let pending = (0..3).map(|number| (String::new(), format!("{{\"eventId\":{number}}}"))).collect();
    let mut stage = Stage::of(Queue { pending, page_max: 2, ..Queue::default() });
    let (reason, wait) = stage.failure().await;
    assert_eq!(
        reason,
        "the server says that there is more, and gives nothing that was not acknowledged before: an event \
                        that is acknowledged leaves the queue at once, and each needs an eventId of its own, a string"
    );
    assert!((0.8..=1.2).contains(&wait), "{wait}");
    stage.asked(&["listen", "get"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn what_is_acknowledged_and_does_not_leave_the_queue_is_asked_for_later_each_time() {
    let pending = ["a", "b", "c"].map(|id| (id.to_owned(), event(id))).to_vec();
    let mut stage = Stage::of(Queue { pending, page_max: 2, is_stuck: true, ..Queue::default() });
    for expected in [1.0, 2.0, 4.0] {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("gives nothing that was not acknowledged before"), "{reason}");
        assert!((expected * 0.8..=expected * 1.2).contains(&wait), "{wait}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    assert_eq!(stage.inbox().await.len(), 2);
    stage.stop().await;
}

#[tokio::test]
async fn what_can_be_got_and_not_acknowledged_is_told_once_until_it_can() {
    let gone = || ("ack", ReadError::Http { status: 404, retry_after: None });
    let mut stage = Stage::start(&["a"], (0..6).map(|_| gone()).collect());
    for _ in 0..6 {
        let (_, wait) = stage.failure().await;
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    stage.asked(&["listen", "get", "ack a"].repeat(7)).await;
    stage.pass(SILENCE_MAX).await;
    stage.asked(&[&["listen", "get", "ack a"].repeat(7)[..], &["get"]].concat()).await;
    assert_eq!(stage.notice().await.0, "connector.recovered");
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
    let told = stage.store.sqlite.notifications(page).await.unwrap();
    assert_eq!(told.iter().filter(|of| of.event.name.starts_with("connector.")).count(), 2, "once each");
    assert_eq!(stage.inbox().await.len(), 1);
    stage.stop().await;
}

#[tokio::test]
async fn an_ack_that_fails_is_sent_again_without_accepting_again() {
    let timeout = || ReadError::Timeout { waited: Duration::from_secs(30) };
    let stage = Stage::start(&["a"], vec![("ack", timeout()), ("ack", timeout())]);
    stage.asked(&["listen", "get", "ack a"]).await;
    stage.pass(ACK_WAIT_MAX).await;
    stage.asked(&["listen", "get", "ack a", "ack a"]).await;
    stage.pass(ACK_WAIT_MAX).await;
    stage.asked(&["listen", "get", "ack a", "ack a", "ack a"]).await;
    assert_eq!((stage.inbox().await.len(), stage.server.state().pending.len()), (1, 0));
    stage.stop().await;
}

/// No wait between two acknowledgements is longer.
const ACK_WAIT_MAX: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_stream_that_is_lost_begins_everything_anew_later_each_time() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    for expected in [1.0, 2.0, 4.0] {
        stage.server.say(lost());
        let (reason, wait) = stage.failure().await;
        assert!(reason == "cut off" && (expected * 0.8..=expected * 1.2).contains(&wait), "{reason} {wait}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    stage.asked(&["listen", "get"].repeat(4)).await;
    stage.server.emit("a");
    stage.asked(&[&["listen", "get"].repeat(4)[..], &["ack a"]].concat()).await;
    stage.server.say(lost());
    assert!(stage.failure().await.1 <= 1.2, "something useful came: the wait is short again");
    stage.stop().await;
}

#[tokio::test]
async fn who_is_replaced_waits_longer_and_says_so_once() {
    let mut stage = Stage::start(&[], Vec::new());
    for expected in [15.0, 30.0, 60.0, 120.0] {
        stage.server.say(Live::Closed);
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("another client listens as this consumer"), "{reason}");
        assert!((expected * 0.8..=expected * 1.2).contains(&wait), "{wait}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    stage.asked(&["listen", "get"].repeat(5)).await;
    stage.pass(SILENCE_MAX).await;
    stage.asked(&[&["listen", "get"].repeat(5)[..], &["get"]].concat()).await;
    assert_eq!(stage.notice().await.0, "connector.recovered");
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
    let told = stage.store.sqlite.notifications(page).await.unwrap();
    let told: Vec<&str> = told.iter().rev().map(|of| of.event.name.as_str()).collect();
    assert_eq!(told, ["connector.failing", "connector.recovered"]);
    stage.stop().await;
}

#[tokio::test]
async fn a_silent_stream_is_doubted_only_if_the_queue_cannot_be_looked_at() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.pass(SILENCE_MAX).await;
    stage.asked(&["listen", "get", "get"]).await;
    stage.server.state().refusals.push(("get", ReadError::Disconnected("gone".to_owned())));
    stage.pass(SILENCE_MAX).await;
    let (reason, wait) = stage.failure().await;
    assert_eq!(reason, "gone");
    stage.clock.advance(Duration::from_secs_f64(wait));
    stage.asked(&["listen", "get", "get", "get", "listen", "get"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn what_overflowed_is_still_pending() {
    let stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.server.state().pending.push(("a".to_owned(), event("a")));
    stage.server.say(Live::Overflow);
    stage.asked(&["listen", "get", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_person_looks_at_the_queue_now_also_while_it_fails() {
    let mut stage = Stage::start(&[], vec![("listen", ReadError::Refused { code: -32021, message: "no".to_owned() })]);
    let (reason, _) = stage.failure().await;
    assert!(reason.contains("-32021") && reason.contains("did not see that Switchbell speaks"), "{reason}");
    stage.server.state().pending.push(("a".to_owned(), event("a")));
    let polled = stage.handle.poll().await.unwrap();
    assert_eq!((polled.failure, polled.events, polled.new, polled.reads), (None, 1, 1, 1));
    stage.asked(&["listen", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_server_without_the_extension_is_told_what_to_do() {
    let refused = |code| ReadError::Refused { code, message: "what?".to_owned() };
    let mut stage =
        Stage::start(&[], vec![("listen", refused(-32601)), ("listen", refused(-32003)), ("listen", refused(-32602))]);
    for expected in ["does not know the extension", "which every request says in its `_meta`", "another draft"] {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains(expected) && reason.contains("the server said: what?"), "{reason}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    stage.stop().await;
}
