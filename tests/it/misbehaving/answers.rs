//! Outboxes whose answers are wrong, too large, or never done. How they are reached does not matter: over HTTP, here.

use std::time::Duration;

use axum::response::Response;
use serde_json::{Value, json};

use super::stage::{CEILING, FLOOR, Setting, Stage, Turn, patient};
use crate::support::misbehaving::{Bad, Era, Got, Site, Wayward, error, event, result, text};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

pub(super) async fn stage() -> (Site, Stage) {
    let site = Site::start(Era::Stateless).await;
    let stage = Stage::start(&Setting::over_http(&site, patient()));
    (site, stage)
}

/// Reads fail for this reason, and the first good one brings what happened meanwhile.
async fn fails(bad: Bad, says: &[&str]) {
    let (site, mut stage) = stage().await;
    stage.begins().await;
    site.misbehave(bad);
    site.happen("one");
    stage.fails(&site, 3, says).await;
    site.behave();
    stage.recovers(3, "one", "c-1").await;
    stage.stop().await;
}

/// A read is answered with this; everything else as it should be.
fn read(got: &Got, answer: impl FnOnce() -> Value) -> Option<Response> {
    got.is_read().then(|| text(got, &answer().to_string()))
}

#[tokio::test]
async fn an_answer_without_text_is_a_failed_read() {
    let blob: Bad = |got, _| {
        got.is_read().then(|| result(got, json!({"contents": [{"uri": "acme://notifications", "blob": "AAAA"}]})))
    };
    let says = ["the answer has no text; the resource must be read as text, not as a blob"];
    fails(blob, &says).await;
    fails(|got, _| got.is_read().then(|| result(got, json!({"contents": []}))), &says).await;
}

#[tokio::test]
async fn a_text_that_is_not_json_is_a_failed_read() {
    let shape = "the outbox must answer {\"events\": […], \"cursor\": \"…\"}";
    fails(|got, _| got.is_read().then(|| text(got, "3 new events")), &["the answer is not JSON (", shape]).await;
    fails(|got, _| got.is_read().then(|| text(got, "")), &["the answer is not JSON (EOF", shape]).await;
    fails(|got, _| got.is_read().then(|| text(got, "[]")), &["the answer is an array", shape]).await;
}

#[tokio::test]
async fn a_poll_result_of_the_wrong_shape_is_a_failed_read_that_names_the_field() {
    fails(
        |got, _| read(got, || json!({"events": {}, "cursor": "x"})),
        &["\"events\" of the answer is an object; it must be an array"],
    )
    .await;
    fails(|got, _| read(got, || json!({"cursor": "x"})), &["the answer has no \"events\""]).await;
    let cursor = ["\"cursor\" of the answer must be a string of 1 to 1024 characters, or left out"];
    fails(|got, _| read(got, || json!({"events": [event(1, "one")], "cursor": ""})), &cursor).await;
    fails(|got, _| read(got, || json!({"events": [event(1, "one")], "cursor": "x".repeat(1_025)})), &cursor).await;
    fails(
        |got, _| read(got, || json!({"events": [event(1, "one")], "cursor": "x", "nextPollMs": -5})),
        &["\"nextPollMs\" of the answer must be a number of milliseconds above 0, or left out"],
    )
    .await;
}

#[tokio::test]
async fn an_outbox_that_wants_to_be_read_all_the_time_or_never_again_is_read_within_the_bounds() {
    let check = async |bad: Bad, expected: std::ops::RangeInclusive<Duration>| {
        let (site, mut stage) = stage().await;
        stage.begins().await;
        site.misbehave(bad);
        stage.turn().await.worked();
        let asked = site.asked();
        for turn in stage.turns_of(HOUR).await {
            assert!(expected.contains(&turn.worked().wait));
        }
        assert!(site.asked() - asked <= 240, "no more than one read in fifteen seconds");
        stage.stop().await;
    };
    check(|got, _| read(got, || json!({"events": [], "nextPollMs": 1})), FLOOR..=FLOOR).await;
    check(|got, _| read(got, || json!({"events": [], "nextPollMs": 1e300})), CEILING..=CEILING).await;
}

/// So many events after the cursor, whatever was asked for, from the `c-N` on.
fn flood(got: &Got, count: usize, has_cursors: bool) -> Value {
    let at: usize = got.parameter("cursor").and_then(|cursor| cursor.strip_prefix("c-")).unwrap().parse().unwrap();
    let of_number = |number: usize| {
        let mut event = event(number, "one of many");
        if has_cursors {
            event["cursor"] = json!(format!("c-{number}"));
        }
        event
    };
    let events: Vec<_> = (at + 1..=count).map(of_number).collect();
    json!({"events": events, "cursor": format!("c-{count}")})
}

#[tokio::test]
async fn far_too_many_events_at_once_are_taken_part_by_part_where_they_say_where_they_stand_and_else_whole() {
    let check = async |bad: Bad, parts: &[usize]| {
        let (site, mut stage) = stage().await;
        stage.begins().await;
        site.misbehave(bad);
        for &part in parts {
            assert_eq!(stage.turn().await.worked().accepted.len(), part);
        }
        assert_eq!(stage.position().await.as_deref(), Some("c-6000"));
        assert_eq!(site.outbox.calls("resources/read"), 1 + parts.len());
        stage.stop().await;
    };
    check(|got, _| read_after(got, true), &[5_000, 1_000]).await;
    check(|got, _| read_after(got, false), &[6_000]).await;
}

fn read_after(got: &Got, has_cursors: bool) -> Option<Response> {
    read(got, || flood(got, 6_000, has_cursors))
}

/// An outbox with 150 events of 60 KiB, which heeds what is asked for.
fn bulky(got: &Got) -> Value {
    let at: usize = got.parameter("cursor").and_then(|cursor| cursor.strip_prefix("c-")).unwrap().parse().unwrap();
    let most: usize = got.parameter("maxEvents").unwrap().parse().unwrap();
    let end = 150.min(at + most);
    let of_number = |number: usize| {
        let mut event = event(number, "bulky");
        event["data"] = json!({"text": "x".repeat(60 << 10)});
        event
    };
    json!({"events": (at + 1..=end).map(of_number).collect::<Vec<_>>(), "cursor": format!("c-{end}"), "hasMore": end < 150})
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_asked_for_again_with_fewer_events_and_none_is_lost() {
    let site = Site::start(Era::Stateless).await;
    let mut stage = Stage::start(&Setting { poll: "{ max_events: 400 }", ..Setting::over_http(&site, patient()) });
    stage.begins().await;
    site.misbehave(|got, _| read(got, || bulky(got)));
    let mut accepted = 0;
    for expected in [100, 50] {
        let turn = stage.turn().await.worked();
        assert_eq!((turn.accepted.len(), turn.gaps, turn.notices.len()), (expected, 0, 0));
        accepted += turn.accepted.len();
    }
    assert_eq!((accepted, stage.position().await.as_deref()), (150, Some("c-150")));
    let asked: Vec<_> = site.outbox.requests();
    let asked: Vec<_> = asked.iter().filter_map(|got| got.parameter("maxEvents")).collect();
    assert_eq!(asked, ["400", "100", "100"]);
    stage.stop().await;
}

#[tokio::test]
async fn an_event_that_no_answer_can_hold_costs_a_gap_and_not_the_outbox() {
    let (site, mut stage) = stage().await;
    stage.begins().await;
    site.happen("too large");
    // Who reads after the first position gets it; who starts anew does not.
    site.misbehave(|got, _| (got.parameter("cursor") == Some("c-0")).then(|| text(got, &"x".repeat(9 << 20))));
    let mut reads = 0;
    let turn = loop {
        let turn = stage.turn().await;
        reads += 1;
        assert!(reads < 10, "{turn:?}");
        if turn.failure.is_none() {
            break turn;
        }
        turn.failed(&["the answer has more than 8388608 bytes; let the outbox answer with fewer events at once"]);
    };
    assert!(turn.bootstrap && turn.gaps == 1, "{turn:?}");
    assert!(turn.notice_names().contains(&"connector.gap"), "{turn:?}");
    assert_eq!(stage.position().await.as_deref(), Some("c-1"));
    site.happen("after it");
    assert_eq!(stage.turn().await.worked().accepted, ["after it"]);
    let asked = site.outbox.requests();
    let mut asked: Vec<_> = asked.iter().filter_map(|got| got.parameter("maxEvents")).collect();
    asked.dedup();
    assert_eq!(asked, ["100", "25", "6", "1", "100"]);
    stage.stop().await;
}

#[tokio::test]
async fn an_event_that_is_larger_than_an_event_may_be_is_dropped_and_told_and_the_next_ones_come() {
    let (site, mut stage) = stage().await;
    stage.begins().await;
    site.misbehave(|got, outbox| {
        let mut poll = outbox.poll(got);
        if let Some(Value::Array(events)) = poll.get_mut("events") {
            for event in events.iter_mut().filter(|event| event["eventId"] == "e-1") {
                event["data"] = json!({"text": "x".repeat(65 << 10)});
            }
        }
        read(got, || poll)
    });
    site.happen("too large");
    site.happen("after it");
    let turn = stage.turn().await.worked();
    assert_eq!((&turn.accepted[..], turn.dropped.len()), (&["after it".to_owned()][..], 1), "{turn:?}");
    assert!(turn.dropped[0].contains("e-1") && turn.dropped[0].contains("65536"), "{turn:?}");
    assert_eq!(turn.notice_names(), ["connector.dropped"]);
    assert!(turn.notices[0].1.contains("1 × "), "{turn:?}");
    assert_eq!(stage.position().await.as_deref(), Some("c-2"));
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_always_has_more_and_brings_nothing_is_read_no_more_often() {
    let check = async |bad: Bad, reads_max: usize| {
        let (site, mut stage) = stage().await;
        stage.begins().await;
        site.misbehave(bad);
        let asked = site.asked();
        for turn in stage.turns_of(HOUR).await {
            assert!(turn.worked().notices.is_empty());
        }
        let reads = site.asked() - asked;
        assert!((10..=reads_max).contains(&reads), "{reads} reads in an hour");
        stage.stop().await;
    };
    // The waits grow to five minutes, spread by a fifth.
    let waits_max = 18;
    check(|got, _| read(got, || json!({"events": [], "hasMore": true})), waits_max).await;
    check(|got, _| read(got, || json!({"events": [], "cursor": "c-0", "hasMore": true})), waits_max).await;
    // A position that moves is read after, five times in a row.
    check(
        |got, outbox| {
            let number = outbox.requests().len();
            read(got, || json!({"events": [], "cursor": format!("n-{number}"), "hasMore": true}))
        },
        5 * waits_max,
    )
    .await;
}

#[tokio::test]
async fn an_outbox_that_brings_the_same_events_for_ever_is_read_no_more_often_and_they_are_kept_once() {
    let (site, mut stage) = stage().await;
    stage.begins().await;
    site.misbehave(|got, _| read(got, || json!({"events": [event(1, "again")], "cursor": "c-0", "hasMore": true})));
    let asked = site.asked();
    let turns = stage.turns_of(HOUR).await;
    assert_eq!(turns.iter().map(|turn| turn.accepted.len()).sum::<usize>(), 1);
    let reads = site.asked() - asked;
    assert!(reads <= 80, "{reads} reads in an hour");
    stage.stop().await;
}

#[tokio::test]
async fn an_outbox_that_has_more_and_more_for_ever_is_read_within_the_budget() {
    let site = Site::start(Era::Stateless).await;
    let poll = "{ budget_per_minute: 10 }";
    let mut stage = Stage::start(&Setting { poll, ..Setting::over_http(&site, patient()) });
    stage.begins().await;
    site.misbehave(|got, outbox| {
        let number = outbox.calls("resources/read");
        let events = [event(number, "one of ever more")];
        read(got, || json!({"events": events, "cursor": format!("n-{number}"), "hasMore": true}))
    });
    let (asked, minutes) = (site.asked(), 10);
    let turns = stage.turns_of(Duration::from_secs(60 * minutes)).await;
    assert!(turns.iter().all(|turn| turn.accepted.len() == 1 && turn.notices.is_empty()));
    let reads = site.asked() - asked;
    assert!(stage.deferred > 0 && reads <= 10 * 11, "{reads} reads in {minutes} minutes");
    stage.stop().await;
}

#[tokio::test]
async fn a_cursor_that_the_server_says_again_and_again_not_to_know_is_given_up_for_a_gap() {
    let check = async |bad: Bad| {
        let (site, mut stage) = stage().await;
        stage.begins().await;
        site.misbehave(bad);
        site.happen("lost");
        stage.turn().await.failed(&["cursor"]);
        stage.turn().await.failed(&["cursor"]);
        assert_eq!(stage.position().await.as_deref(), Some("c-0"), "twice may be a mistake");
        let turn = stage.turn().await.worked();
        assert!(turn.bootstrap && turn.gaps == 1, "{turn:?}");
        assert_eq!(turn.notice_names(), ["connector.gap"]);
        assert!(turn.notices[0].1.contains("reading was started anew from now"), "{turn:?}");
        assert_eq!(stage.position().await.as_deref(), Some("c-1"));
        site.happen("one");
        assert_eq!(stage.turn().await.worked().accepted, ["one"]);
        stage.stop().await;
    };
    check(|got, _| unknown_cursor(got, -32602)).await;
    check(|got, _| unknown_cursor(got, -32002)).await;
    check(|got, _| unknown_cursor(got, -32603)).await;
}

fn unknown_cursor(got: &Got, code: i32) -> Option<Response> {
    (got.parameter("cursor") == Some("c-0")).then(|| error(got, code, "unknown cursor c-0"))
}

#[tokio::test]
async fn an_outbox_that_knows_no_cursor_at_all_stays_failing_after_one_gap() {
    let (site, mut stage) = stage().await;
    stage.begins().await;
    site.misbehave(|got, _| got.parameter("cursor").map(|_| error(got, -32602, "Resource not found")));
    let asked = site.asked();
    let turns = stage.turns_of(HOUR).await;
    assert_eq!(turns.iter().map(|turn| turn.gaps).sum::<usize>(), 1);
    let last = turns.last().unwrap();
    assert!(last.failures > 5, "{last:?}");
    let names: Vec<_> = turns.iter().flat_map(Turn::notice_names).collect();
    assert_eq!(names, ["connector.gap", "connector.failing"]);
    let reads = site.asked() - asked;
    assert!(reads <= 2 * turns.len(), "{reads} requests for {} reads", turns.len());
    site.behave();
    site.happen("one");
    let turn = stage.turn().await.worked();
    assert_eq!((&turn.accepted[..], turn.notice_names()), (&["one".to_owned()][..], vec!["connector.recovered"]));
    stage.stop().await;
}

#[tokio::test]
async fn a_first_answer_without_a_cursor_is_told_at_once_and_mended_by_one_with_a_cursor() {
    let (site, mut stage) = stage().await;
    site.misbehave(|got, _| read(got, || json!({"events": []})));
    let turn = stage.turn().await.failed(&["the first answer has no \"cursor\"", "answer a read without a query with"]);
    assert_eq!(turn.notice_names(), ["connector.failing"]);
    assert!(stage.turn().await.failed(&["no \"cursor\""]).notices.is_empty(), "it is told once");
    assert_eq!(stage.position().await, None);
    site.behave();
    let turn = stage.turn().await.worked();
    assert!(turn.bootstrap, "{turn:?}");
    assert_eq!(turn.notice_names(), ["connector.recovered"]);
    site.happen("one");
    assert_eq!(stage.turn().await.worked().accepted, ["one"]);
    stage.stop().await;
}

#[tokio::test]
async fn events_of_a_first_answer_are_kept_and_the_admin_is_told_once() {
    let (site, mut stage) = stage().await;
    site.misbehave(|got, outbox| read(got, || json!({"events": outbox.events(), "cursor": "c-2"})));
    site.happen("old");
    site.happen("older");
    let turn = stage.turn().await.worked();
    assert!(turn.bootstrap, "{turn:?}");
    assert_eq!(turn.accepted, ["old", "older"]);
    assert_eq!(turn.notice_names(), ["connector.backlog"]);
    let turn = stage.turn().await.worked();
    assert_eq!((turn.events, turn.accepted.len(), turn.notices.len()), (2, 0, 0), "the same ids change nothing");
    stage.stop().await;
}
