//! What the loop does beyond one good read: hints, the budget, the breaker, positions that are lost, what the admin hears.

use std::sync::Arc;
use std::time::Duration;

use super::stage_for_tests::*;
use super::*;
use crate::fetch::outbox::ReadError;
use crate::inbox::Page;
use crate::telemetry::Happening;

fn refused(message: &str) -> Step {
    Err(ReadError::Refused { code: -32_603, message: message.to_owned() })
}

fn not_found() -> Step {
    Err(ReadError::NotFound("Resource not found".to_owned()))
}

fn timeout() -> Step {
    Err(ReadError::Timeout { waited: Duration::from_secs(30) })
}

#[tokio::test]
async fn a_hint_is_read_at_once_and_does_not_count_as_a_read_that_brought_nothing() {
    let mut stage = Stage::start(vec![at("p:1"), at("p:1"), at("p:1"), at("p:1")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    around(stage.read().await, 120.0);
    stage.script.hint.notify_one();
    around(stage.read().await, 60.0);
    stage.clock.advance(BASE * 2);
    around(stage.read().await, 120.0);
    stage.stop().await;
}

#[tokio::test]
async fn a_hint_does_not_shorten_the_wait_after_a_failure() {
    let mut stage = Stage::start(vec![at("p:1"), timeout(), at("p:1"), at("p:1")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    let (_, wait) = stage.failure().await;
    stage.script.hint.notify_one();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(stage.asked().len(), 2);
    stage.clock.advance(wait);
    stage.read().await;
    around(stage.read().await, 60.0);
    assert_eq!(stage.asked().len(), 4, "the hint was not forgotten");
    stage.stop().await;
}

#[tokio::test]
async fn an_unknown_cursor_that_is_said_three_times_is_left_for_a_fresh_start_and_a_gap() {
    let lost = || refused("unknown cursor \"p:1\"");
    let fresh = answer(&[event("during", "urgent")], ",\"cursor\":\"q:1\"");
    let next = answer(&[event("after", "urgent")], ",\"cursor\":\"q:2\"");
    let mut stage = Stage::start(vec![at("p:1"), lost(), lost(), lost(), not_found(), fresh, next]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..2 {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("unknown cursor"), "{reason}");
        assert_eq!(stage.position().await.as_deref(), Some("p:1"));
        stage.clock.advance(wait);
    }
    assert!(matches!(stage.next().await, Happening::Read { bootstrap: true, events: 1, .. }));
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    assert_eq!(stage.accepted().await, (1, "during".to_owned(), None), "it is kept and owes nothing");
    let (name, body) = stage.notice().await;
    assert!(name == "connector.gap" && body.contains("started anew from now"), "{name}: {body}");
    assert_eq!(stage.notice().await.0, "connector.backlog");
    assert_eq!(stage.position().await.as_deref(), Some("q:1"));
    stage.clock.advance(BASE * 2);
    stage.read().await;
    assert_eq!(stage.accepted().await.1, "after");
    assert_eq!(
        stage.asked()[3..],
        ["?cursor=p:1&maxEvents=100", "", "?maxEvents=100", "?cursor=q:1&maxEvents=100"],
        "both ways of a first read are tried"
    );
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_knows_no_cursor_at_all_is_not_started_anew_again_and_again() {
    let mut steps = vec![at("p:1"), not_found(), not_found(), not_found(), at("p:2")];
    steps.extend((0..6).map(|_| not_found()));
    let mut stage = Stage::start(steps);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..2 {
        let (_, wait) = stage.failure().await;
        stage.clock.advance(wait);
    }
    let wait = stage.read().await;
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    assert_eq!(stage.notice().await.0, "connector.gap");
    stage.clock.advance(wait);
    for number in 1..=6 {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("let it serve the template"), "{reason}");
        if number == 3 {
            assert_eq!(stage.notice().await.0, "connector.failing");
        }
        if number < 6 {
            stage.clock.advance(wait);
        }
    }
    assert_eq!(stage.asked().len(), 11);
    stage.stop().await;
}

#[tokio::test]
async fn a_fresh_start_that_fails_leaves_the_position() {
    let lost = || refused("no such cursor");
    let mut stage = Stage::start(vec![at("p:1"), lost(), lost(), lost(), timeout(), at("p:2")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..3 {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("no such cursor"), "the first cause is told: {reason}");
        assert_eq!(stage.position().await.as_deref(), Some("p:1"));
        stage.clock.advance(wait);
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    stage.read().await;
    assert_eq!(stage.position().await.as_deref(), Some("p:2"));
    stage.stop().await;
}

#[tokio::test]
async fn a_single_event_that_is_too_large_does_not_hold_up_the_outbox_for_ever() {
    let too_large = || Err(ReadError::TooLarge { bytes_max: 8 << 20 });
    let mut steps = vec![at("p:1")];
    // 100, 25, 6, 1; then 1 and 1.
    steps.extend((0..6).map(|_| too_large()));
    steps.push(at("p:9"));
    let mut stage = Stage::start(steps);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..2 {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("more than"), "{reason}");
        stage.clock.advance(wait);
    }
    stage.read().await;
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    assert_eq!(stage.position().await.as_deref(), Some("p:9"));
    stage.stop().await;
}

#[tokio::test]
async fn the_breaker_opens_after_three_failures_half_opens_at_the_ceiling_and_closes_on_success() {
    let mut steps = vec![at("p:1")];
    steps.extend((0..40).map(|_| timeout()));
    steps.push(at("p:2"));
    let mut stage = Stage::start(steps);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for number in 1..=40 {
        let (_, wait) = stage.failure().await;
        let state = stage.handle.status().state;
        if number < 3 {
            assert_eq!(state, State::Failing);
        } else {
            assert_eq!(state, State::Open);
            assert!((240.0..=300.0).contains(&wait.as_secs_f64()), "{wait:?}");
        }
        if number == 3 {
            assert_eq!(stage.notice().await.0, "connector.failing", "told once");
        }
        stage.clock.advance(wait);
    }
    stage.read().await;
    assert_eq!(stage.notice().await.0, "connector.recovered");
    assert_eq!(stage.handle.status().state, State::Ok);
    stage.stop().await;
}

#[tokio::test]
async fn what_was_told_before_a_restart_is_not_told_again_and_its_end_is() {
    let mut steps = vec![at("p:1")];
    steps.extend((0..3).map(|_| timeout()));
    let mut stage = Stage::start(steps);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for number in 1..=3 {
        let (_, wait) = stage.failure().await;
        if number < 3 {
            stage.clock.advance(wait);
        }
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    let folder = stage.stop().await;

    let mut stage = Stage::start_in(folder, vec![timeout(), at("p:2")]);
    let (_, wait) = stage.failure().await;
    let reading = stage.handle.status().reading;
    assert_eq!((reading.failures, reading.cursor.as_deref()), (4, Some("p:1")), "what was kept is known again");
    assert!(reading.failure.is_some_and(|(_, reason)| reason.contains("did not answer within 30 s")));
    stage.clock.advance(wait);
    stage.read().await;
    assert_eq!(stage.notice().await.0, "connector.recovered");
    stage.stop().await;
}

#[tokio::test]
async fn a_sign_in_that_is_over_is_told_at_once_and_shown() {
    let over = || Err(ReadError::Reauthorize("run `switchbell connector login registrar`".to_owned()));
    let mut stage = Stage::start(vec![at("p:1"), over(), over(), at("p:2")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    let (_, wait) = stage.failure().await;
    let (name, body) = stage.notice().await;
    assert!(name == "connector.reauthorize" && body.contains("connector login registrar"), "{name}: {body}");
    assert_eq!(stage.handle.status().state, State::Reauthorize);
    stage.clock.advance(wait);
    let (_, wait) = stage.failure().await;
    stage.clock.advance(wait);
    stage.read().await;
    assert_eq!(stage.notice().await.0, "connector.recovered");
    stage.stop().await;
}

#[tokio::test]
async fn a_person_can_ask_for_a_read_now() {
    let news = answer(&[event("a", "urgent"), event("bad", "loud")], ",\"cursor\":\"p:2\"");
    let mut stage = Stage::start(vec![at("p:1"), news, timeout()]);
    stage.read().await;
    let polled = stage.handle.poll().await.unwrap();
    assert_eq!((polled.failure, polled.reads, polled.events, polled.new, polled.dropped), (None, 1, 2, 1, 1));
    around(polled.next_in, 60.0);
    let polled = stage.handle.poll().await.unwrap();
    assert!(polled.failure.is_some_and(|reason| reason.contains("did not answer within")));
    let handle = stage.handle.clone();
    stage.stop().await;
    assert_eq!(handle.poll().await, None, "a poller that has stopped says so");
}

#[tokio::test]
async fn reads_wait_for_the_budget_of_their_workspace_and_go_on_when_there_is_some() {
    let page = |number: u32| {
        let rest = format!(",\"cursor\":\"p:{number}\",\"hasMore\":{}", number < 3);
        answer(&[event(&number.to_string(), "info")], &rest)
    };
    let mut stage = Stage::start_with_budget(3, [at("p:0")].into_iter().chain((1..=3).map(page)).collect());
    stage.read().await;
    stage.script.hint.notify_one();
    for number in 1..=2 {
        stage.read().await;
        assert_eq!(stage.accepted().await.1, number.to_string());
    }
    assert!(matches!(stage.next().await, Happening::Deferred { .. }));
    assert!(stage.handle.status().is_deferred);
    assert_eq!((stage.asked().len(), stage.handle.budget().left()), (3, 0));
    stage.clock.advance(Duration::from_secs(60));
    stage.read().await;
    assert_eq!(stage.accepted().await.1, "3");
    assert!(!stage.handle.status().is_deferred);
    stage.stop().await;
}

#[tokio::test]
async fn notices_are_in_the_inbox_and_owe_what_routes_say() {
    let mut stage = Stage::start(vec![at("p:1"), timeout(), timeout(), timeout()]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..3 {
        let (_, wait) = stage.failure().await;
        stage.clock.advance(wait);
    }
    stage.notice().await;
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 10 };
    let stored = stage.store.notifications(page).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].source.as_str(), stored[0].event.subject.as_deref()), ("switchbell", Some("registrar")));
    assert_eq!(stage.owed().await, 1, "the route for attention matches");
    stage.stop().await;
}

#[tokio::test]
async fn a_poller_can_read_once_and_end() {
    let stage = Stage::start(vec![]);
    let config = tokio::sync::watch::channel(Arc::new(config())).1;
    let script = Arc::new(Script::of(vec![at("p:1")]));
    let shared = Shared {
        config,
        inbox: stage.store.clone(),
        clock: stage.clock.clone(),
        observer: Arc::new(crate::telemetry::Nobody),
        pollers: 1,
    };
    let budget = Arc::new(Budget::new(1, stage.clock.clone()));
    let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
    let poller = Poller::new(shared, &workspace, &source, Box::new(Scripted(script.clone())), budget).unwrap();
    let polled = poller.once(&CancellationToken::new()).await.unwrap();
    assert!(polled.first && polled.failure.is_none());
    assert!(script.is_closed());
    stage.stop().await;
}

#[tokio::test]
async fn all_that_a_first_answer_promises_is_from_before_also_over_a_restart() {
    let page =
        |id: &str, more: bool| answer(&[event(id, "urgent")], &format!(",\"cursor\":\"p:{id}\",\"hasMore\":{more}"));
    let mut stage = Stage::start(vec![page("a", true)]);
    assert!(matches!(stage.next().await, Happening::Read { bootstrap: true, next_in: Duration::ZERO, .. }));
    assert_eq!(stage.accepted().await, (1, "a".to_owned(), None));
    assert_eq!(stage.notice().await.0, "connector.backlog");
    let folder = stage.stop().await;

    let mut stage = Stage::start_in(folder, vec![page("b", true), page("c", false), page("d", false)]);
    for id in ["b", "c"] {
        assert!(matches!(stage.next().await, Happening::Read { .. }));
        let (_, accepted, decided) = stage.accepted().await;
        assert_eq!((accepted.as_str(), decided), (id, None), "it owes nothing");
    }
    stage.clock.advance(BASE * 2);
    stage.read().await;
    let (_, accepted, decided) = stage.accepted().await;
    assert_eq!((accepted.as_str(), decided), ("d", Some(true)));
    assert_eq!(stage.owed().await, 1);
    stage.stop().await;
}

#[tokio::test]
async fn a_position_that_is_lost_again_is_given_up_again_an_hour_later() {
    let lost = || refused("unknown cursor");
    let steps = vec![at("p:1"), lost(), lost(), lost(), at("q:1"), lost(), lost(), lost(), lost(), at("r:1")];
    let mut stage = Stage::start(steps);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    for _ in 0..2 {
        let (_, wait) = stage.failure().await;
        stage.clock.advance(wait);
    }
    let wait = stage.read().await;
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    stage.notice().await;
    stage.clock.advance(wait);
    for number in 1..=3 {
        let (_, wait) = stage.failure().await;
        if number < 3 {
            stage.clock.advance(wait);
        }
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    assert_eq!(stage.position().await.as_deref(), Some("q:1"));
    stage.clock.advance(BASE * 60);
    stage.read().await;
    assert!(matches!(stage.next().await, Happening::Gap { .. }));
    assert_eq!(stage.position().await.as_deref(), Some("r:1"));
    stage.stop().await;
}

#[tokio::test]
async fn a_dropped_event_that_gives_the_credential_back_does_not_show_it() {
    let mut stage = Stage::start(vec![at("p:1"), answer(&[event("s3cret-id", "s3cret")], ",\"cursor\":\"p:2\"")]);
    let wait = stage.read().await;
    stage.clock.advance(wait);
    stage.read().await;
    match stage.next().await {
        Happening::Dropped { reason, .. } => {
            assert!(reason.contains("\"***\"") && reason.contains("***-id") && !reason.contains("s3cret"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    let (name, body) = stage.notice().await;
    assert!(name == "connector.dropped" && body.contains("***") && !body.contains("s3cret"), "{body}");
    stage.stop().await;
}
