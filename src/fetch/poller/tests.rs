//! The loop, case by case.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::stage_for_tests::*;
use super::*;
use crate::fetch::answer;
use crate::fetch::outbox::ReadError;
use crate::inbox::Page;
use crate::notification::Level;
use crate::telemetry::Happening;

#[tokio::test]
async fn the_first_read_is_bare_and_comes_at_once_and_later_ones_have_all_three_parameters() {
    let mut stage = Stage::start(vec![at("p:1"), at("p+1"), at("p+1")]);
    let wait = stage.read().await;
    around(wait, 60.0);
    stage.clock.advance(wait);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    stage.read().await;
    assert_eq!(stage.asked(), ["", "?cursor=p:1&maxEvents=100", "?cursor=p%2B1&maxEvents=100"]);
    assert_eq!(stage.position().await.as_deref(), Some("p+1"));
    stage.stop().await;
}

#[tokio::test]
async fn a_first_read_that_is_not_found_is_tried_once_more_with_its_bounds() {
    let not_found = || Err(ReadError::NotFound("Resource not found".to_owned()));
    let mut stage = Stage::start(vec![not_found(), at("p:1"), not_found(), not_found()]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    let (reason, _) = stage.failure().await;
    assert!(reason.contains("does not know the resource (Resource not found)"), "{reason}");
    assert_eq!(stage.asked(), ["", "?maxEvents=100", "?cursor=p:1&maxEvents=100"]);
    stage.stop().await;

    let mut stage = Stage::start(vec![not_found(), not_found(), at("p:1")]);
    let (_, wait) = stage.failure().await;
    stage.clock.advance(wait);
    stage.read().await;
    assert_eq!(stage.asked(), ["", "?maxEvents=100", ""]);
    stage.stop().await;
}

#[tokio::test]
async fn events_of_the_first_answer_are_stored_but_owe_nothing() {
    let first = answer(&[event("old", "urgent")], ",\"cursor\":\"p:1\",\"truncated\":true");
    let next = answer(&[event("new", "urgent"), event("quiet", "info"), event("old", "urgent")], ",\"cursor\":\"p:2\"");
    let mut stage = Stage::start(vec![first, next]);
    assert!(matches!(stage.next().await, Happening::Read { events: 1, bootstrap: true, .. }));
    assert_eq!(stage.accepted().await, (1, "old".to_owned(), None));
    let (name, body) = stage.notice().await;
    assert!(name == "connector.backlog" && body.contains("no route was followed"), "{name}: {body}");
    assert_eq!(stage.owed().await, 0, "a remark at level info matches no route here");
    stage.clock.advance(BASE * 2);
    assert!(matches!(stage.next().await, Happening::Read { events: 3, bootstrap: false, .. }));
    assert_eq!(stage.accepted().await, (3, "new".to_owned(), Some(true)));
    assert_eq!(stage.accepted().await, (4, "quiet".to_owned(), Some(false)));
    assert_eq!(stage.owed().await, 1);
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 10 };
    let levels = stage.store.notifications(page).await.unwrap();
    let levels: Vec<_> = levels.iter().map(|one| (one.event.level, one.effective_level)).collect();
    assert_eq!(levels.last(), Some(&(Level::Urgent, Level::Attention)), "the ceiling caps the level");
    stage.stop().await;
}

#[tokio::test]
async fn a_first_answer_without_a_position_is_a_failed_read_that_says_what_to_change() {
    let mut stage = Stage::start(vec![answer(&[event("a", "info")], ""), at("p:1")]);
    let (reason, wait) = stage.failure().await;
    assert!(reason.contains("has no \"cursor\"") && reason.contains("answer a read without a query with"), "{reason}");
    let (name, body) = stage.notice().await;
    assert!(name == "connector.failing" && body.contains("has no \"cursor\""), "the admin is told at once: {body}");
    assert_eq!((stage.position().await, stage.owed().await), (None, 1));
    stage.clock.advance(wait);
    assert!(matches!(stage.next().await, Happening::Read { bootstrap: true, .. }));
    assert_eq!(stage.notice().await.0, "connector.recovered");
    stage.stop().await;
}

#[tokio::test]
async fn a_malformed_event_costs_itself_only_and_an_events_own_cursor_is_a_position() {
    let with_cursor = event("b", "info").replace("\"data\"", "\"cursor\":\"p:b\",\"data\"");
    let events = [event("a", "info"), event("bad", "high"), "7".to_owned(), with_cursor, event("c", "loud")];
    let mut stage = Stage::start(vec![at("p:1"), answer(&events, "")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    stage.read().await;
    let mut dropped = Vec::new();
    for _ in 0..3 {
        match stage.next().await {
            Happening::Dropped { reason, .. } => dropped.push(reason),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        dropped[0],
        "event \"bad\" was dropped: level is \"high\"; it must be \"info\", \"attention\" or \"urgent\", or left out"
    );
    assert_eq!(dropped[1], "an event was dropped: the event is a number; it must be an object");
    assert!(dropped[2].starts_with("event \"c\""));
    assert_eq!(stage.accepted().await.1, "a");
    assert_eq!(stage.accepted().await.1, "b");
    let (name, body) = stage.notice().await;
    assert!(name == "connector.dropped" && body.contains("\n1 × level is \"high\""), "{name}: {body}");
    assert_eq!(stage.position().await.as_deref(), Some("p:b"));
    stage.stop().await;
}

#[tokio::test]
async fn more_is_read_at_once_as_often_as_allowed_and_then_after_the_floor() {
    let page = |number: u32| {
        answer(
            &[event(&number.to_string(), "info")],
            &format!(",\"cursor\":\"p:{number}\",\"hasMore\":{},\"nextPollMs\":299000", number < 6),
        )
    };
    let mut stage = Stage::start([at("p:0")].into_iter().chain((1..=6).map(page)).collect());
    stage.clock.advance(BASE * 2);
    stage.read().await;
    stage.clock.advance(BASE * 2);
    for number in 1..=5 {
        let wait = stage.read().await;
        assert_eq!(wait.is_zero(), number < 5, "read {number}");
        assert_eq!(stage.accepted().await.1, number.to_string());
        if number == 5 {
            around(wait, 15.0);
            assert!(wait >= Duration::from_secs(15));
            stage.clock.advance(wait);
        }
    }
    stage.read().await;
    assert_eq!(stage.asked().len(), 7);
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_promises_more_and_brings_nothing_is_not_read_in_a_circle() {
    let again = || answer(&[event("a", "info")], ",\"cursor\":\"p:1\",\"hasMore\":true");
    let nothing = || answer(&[], ",\"cursor\":\"p:1\",\"hasMore\":true");
    let mut stage = Stage::start(vec![at("p:1"), again(), again(), nothing(), nothing()]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    assert_eq!(stage.read().await, Duration::ZERO);
    assert_eq!(stage.accepted().await.1, "a");
    let wait = stage.read().await;
    around(wait, 120.0);
    stage.clock.advance(wait);
    let wait = stage.read().await;
    around(wait, 240.0);
    stage.clock.advance(wait);
    assert!(stage.read().await >= Duration::from_secs(240));
    assert_eq!(stage.asked().len(), 5);
    stage.stop().await;
}

#[tokio::test]
async fn reads_that_bring_nothing_back_off_and_an_event_ends_that() {
    let idle = || at("p:1");
    let news = answer(&[event("a", "info")], ",\"cursor\":\"p:2\"");
    let asks = answer(&[], ",\"cursor\":\"p:2\",\"nextPollMs\":20000");
    let mut stage = Stage::start(vec![idle(), idle(), idle(), idle(), news, asks]);
    for seconds in [60.0, 120.0, 240.0] {
        let wait = stage.read().await;
        around(wait, seconds);
        stage.clock.advance(wait);
    }
    let wait = stage.read().await;
    assert!(wait >= Duration::from_secs(240) && wait <= Duration::from_secs(300), "{wait:?}");
    stage.clock.advance(wait);
    let wait = stage.read().await;
    around(wait, 60.0);
    stage.accepted().await;
    stage.clock.advance(wait);
    around(stage.read().await, 20.0);
    stage.stop().await;
}

#[tokio::test]
async fn failed_reads_leave_the_position_back_off_and_never_end() {
    let failing = [
        Err(ReadError::Timeout { waited: Duration::from_secs(30) }),
        Ok("<html>".to_owned()),
        answer(&[event("a", "urgent")], ",\"cursor\":\"\""),
        Err(ReadError::Http { status: 503, retry_after: Some(Duration::from_secs(1_000)) }),
    ];
    let mut stage = Stage::start([at("p:1")].into_iter().chain(failing).chain([at("p:2"), at("p:2")]).collect());
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for (expected, seconds) in
        [("did not answer within 30 s", 120.0), ("is not JSON", 240.0), ("1 to 1024", 270.0), ("HTTP 503", 1_000.0)]
    {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains(expected), "{reason}");
        around(wait, seconds);
        assert_eq!(stage.position().await.as_deref(), Some("p:1"));
        if expected == "1 to 1024" {
            assert_eq!(stage.notice().await.0, "connector.failing", "the third failure is told");
        }
        stage.clock.advance(wait);
    }
    stage.read().await;
    assert_eq!(
        stage.notice().await,
        ("connector.recovered".to_owned(), "4 reads in a row had failed. Reading goes on where it was.".to_owned(),)
    );
    assert_eq!(stage.position().await.as_deref(), Some("p:2"));
    stage.stop().await;
}

#[tokio::test]
async fn a_write_that_fails_tells_nothing_and_leaves_the_position_and_the_events_come_again() {
    let news = || answer(&[event("a", "urgent")], ",\"cursor\":\"p:2\",\"truncated\":true");
    let mut stage = Stage::start(vec![at("p:1"), news(), news()]);
    let wait = stage.read().await;
    stage.store.is_full.store(true, Ordering::SeqCst);
    stage.clock.advance(wait);
    let (reason, wait) = stage.failure().await;
    assert_eq!(reason, "the inbox is not available: the disk is full");
    assert_eq!((stage.position().await.as_deref(), stage.owed().await), (Some("p:1"), 0));
    stage.store.is_full.store(false, Ordering::SeqCst);
    stage.clock.advance(wait);
    stage.read().await;
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    assert_eq!(stage.accepted().await, (1, "a".to_owned(), Some(true)));
    assert_eq!(stage.notice().await.0, "connector.gap");
    assert_eq!((stage.position().await.as_deref(), stage.owed().await), (Some("p:2"), 2));
    assert_eq!(stage.asked().last().map(String::as_str), Some("?cursor=p:1&maxEvents=100"));
    stage.stop().await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_asked_for_again_with_fewer_events() {
    let too_large = || Err(ReadError::TooLarge { bytes_max: 8 << 20 });
    let page = |id: &str, more| answer(&[event(id, "info")], &format!(",\"cursor\":\"{id}\",\"hasMore\":{more}"));
    let mut stage = Stage::start(vec![at("p"), too_large(), too_large(), page("a", true), page("b", false), at("b")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    stage.read().await;
    stage.accepted().await;
    let wait = stage.read().await;
    stage.accepted().await;
    stage.clock.advance(wait);
    stage.read().await;
    let asked = stage.asked();
    let counts: Vec<_> = asked.iter().skip(1).map(|uri| uri.split('=').next_back().unwrap()).collect();
    assert_eq!(counts, ["100", "25", "6", "6", "100"]);
    stage.stop().await;
}

#[tokio::test]
async fn an_answer_of_far_too_many_events_is_taken_as_far_as_their_own_cursors_say_or_whole() {
    let own = |number: usize| {
        event(&number.to_string(), "info").replace("\"data\"", &format!("\"cursor\":\"p:{number}\",\"data\""))
    };
    let events: Vec<_> = (0..=answer::EVENTS_MAX).map(own).collect();
    let without: Vec<_> = (0..=answer::EVENTS_MAX).map(|number| event(&number.to_string(), "info")).collect();
    for (events, position, wait_is_zero) in [(events, "p:4999", true), (without, "end", false)] {
        let mut stage = Stage::start(vec![at("p"), answer(&events, ",\"cursor\":\"end\"")]);
        let wait = stage.read().await;
        stage.clock.advance(wait);
        match stage.next().await {
            Happening::Read { events: 5_001, next_in, .. } => assert_eq!(next_in.is_zero(), wait_is_zero),
            other => panic!("{other:?}"),
        }
        assert_eq!(stage.position().await.as_deref(), Some(position));
        stage.stop().await;
    }
}

#[tokio::test]
async fn a_start_goes_on_where_the_last_run_was_and_a_stop_does_not_wait_for_an_answer() {
    let mut stage = Stage::start(vec![at("p:7")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    while stage.asked().len() < 2 {
        tokio::task::yield_now().await;
    }
    let folder = stage.stop().await;

    let mut stage = Stage::start_in(folder, vec![at("p:8")]);
    while stage.asked().is_empty() {
        stage.clock.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
    }
    assert!(matches!(stage.next().await, Happening::Read { bootstrap: false, .. }));
    assert_eq!(stage.asked(), ["?cursor=p:7&maxEvents=100"]);
    stage.stop().await;
}

#[tokio::test]
async fn there_is_no_poller_for_what_declares_no_outbox() {
    let stage = Stage::start(vec![]);
    let mut silent = config();
    for connector in silent.workspaces.values_mut().flat_map(|workspace| workspace.connectors.values_mut()) {
        connector.outbox = None;
    }
    let (sender, _told) = mpsc::unbounded_channel();
    let observer: Arc<dyn Observer> = Arc::new(Told(sender));
    let poller = |config: Config, workspace: &str, source: &str| {
        let outbox = Box::new(Scripted(Arc::default()));
        let (workspace, source) = (workspace.parse().unwrap(), source.parse().unwrap());
        let (inbox, clock) = (stage.store.clone(), stage.clock.clone());
        let budget = Arc::new(Budget::new(1, clock.clone()));
        let config = watch::channel(config.into()).1;
        let shared = Shared { config, inbox, clock, observer: observer.clone(), pollers: 1 };
        Poller::new(shared, &workspace, &source, outbox, budget)
    };
    assert!(poller(silent, "acme", "registrar").is_none());
    assert!(poller(config(), "acme", "other").is_none());
    assert!(poller(config(), "other", "registrar").is_none());
    stage.stop().await;
}
