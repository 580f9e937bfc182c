//! Streams of streamable HTTP, and hints in them: ended at once, idle, refused, promised, pushed, and far too many.

use std::time::Instant;

use axum::http::Method;
use axum::response::Response;
use serde_json::{Value, json};
use switchbell::fetch::mcp::Times;
use switchbell::telemetry::Happening;

use super::http::{HOUR, READS_AN_HOUR_MAX, bears, check, result_of, stage};
use super::stage::{FLOOR, hasty, patient};
use crate::support::misbehaving::{Bad, Era, Got, Outbox, Site, Wayward, endless, events, result, status, with};

/// Streams are taken up again as they are outside of tests.
fn unhurried() -> Times {
    Times { again: Times::default().again, again_max: Times::default().again_max, ..patient() }
}

fn is_stream(got: &Got) -> bool {
    got.method == Method::GET
}

fn streams(site: &Site) -> usize {
    site.outbox.requests().iter().filter(|got| is_stream(got)).count()
}

/// The answer of a server that behaves, as an event of a stream after others.
fn streamed_after(got: &Got, outbox: &Outbox, before: Vec<Value>) -> Response {
    let answer = result_of(got, &outbox.poll(got));
    events(&before.into_iter().chain([answer]).collect::<Vec<_>>())
}

fn updated(uri: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}})
}

#[tokio::test]
async fn a_stream_without_an_answer_is_a_failed_read_and_no_storm() {
    let empty: Bad = |got, _| got.is_read().then(|| events(&[]));
    check(empty, hasty(), 3, &["broke the connection: it ended before the answer came"]).await;
}

#[tokio::test]
async fn streams_that_the_server_ends_at_once_are_opened_no_more_often_than_makes_sense() {
    let started = Instant::now();
    let (site, mut stage) = stage(Era::Sessions, unhurried()).await;
    site.misbehave(|got, _| is_stream(got).then(|| events(&[])));
    stage.begins().await;
    for turn in stage.turns_of(HOUR).await {
        turn.worked();
    }
    stage.stop().await;
    let gets = streams(&site);
    let gets_max = 3 + usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!((1..=gets_max).contains(&gets), "{gets} streams in {:?}", started.elapsed());
    let reads = site.asked() - gets;
    assert!(reads <= READS_AN_HOUR_MAX + 8, "{reads} requests in an hour");
}

#[tokio::test]
async fn a_subscription_that_the_server_ends_at_once_is_made_no_more_often_than_makes_sense() {
    let started = Instant::now();
    let (site, mut stage) = stage(Era::Stateless, unhurried()).await;
    site.misbehave(|got, _| match got.call() {
        "server/discover" => Some(result(
            got,
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                   "capabilities": {"resources": {"subscribe": true}}}),
        )),
        "subscriptions/listen" => Some(events(&[])),
        _ => None,
    });
    stage.begins().await;
    for turn in stage.turns_of(HOUR).await {
        turn.worked();
    }
    stage.stop().await;
    let listens = site.outbox.calls("subscriptions/listen");
    let listens_max = 3 + usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!((1..=listens_max).contains(&listens), "{listens} subscriptions in {:?}", started.elapsed());
    assert!(site.asked() - listens <= READS_AN_HOUR_MAX + 8, "{:?}", site.calls());
}

#[tokio::test]
async fn a_second_stream_that_the_server_refuses_is_not_missed() {
    let site = bears(Era::Sessions, |got, _| is_stream(got).then(|| status(409))).await;
    let gets = streams(&site);
    assert!(gets <= 2, "{gets} streams");
}

#[tokio::test]
async fn hints_that_are_promised_and_never_come_cost_no_event() {
    let promises: Bad = |got, outbox| match got.call() {
        "initialize" => {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"resources": {"subscribe": true}},
                               "serverInfo": {"name": "misbehaving", "version": "1"}});
            Some(with(result(got, hello), "mcp-session-id", "s"))
        }
        "resources/subscribe" => Some(endless("application/json", "")),
        _ => Some(outbox.good(got)),
    };
    bears(Era::Sessions, promises).await;
}

#[tokio::test]
async fn what_is_pushed_with_an_answer_and_nobody_asked_for_makes_nobody_read() {
    let pushes: Bad = |got, outbox| {
        let pushed = (0..50).flat_map(|number| {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": number}});
            let later = json!({"jsonrpc": "2.0", "method": "notifications/of/another/time", "params": {}});
            [log, later, updated("acme://something/else")]
        });
        got.is_read().then(|| streamed_after(got, outbox, pushed.collect()))
    };
    bears(Era::Sessions, pushes).await;
    bears(Era::Stateless, pushes).await;
}

/// Every answer says that the outbox changed, so that each read would be followed by the next.
#[tokio::test]
async fn a_storm_of_hints_about_nothing_reads_no_faster_than_the_floor() {
    let (site, mut stage) = stage(Era::Sessions, patient()).await;
    site.misbehave(|got, outbox| {
        let hints = vec![updated("acme://notifications"); 20];
        got.is_read().then(|| streamed_after(got, outbox, hints))
    });
    for reads in 1..=5 {
        match stage.next().await {
            Happening::Read { events: 0, .. } => {}
            other => panic!("{other:?}"),
        }
        assert_eq!(site.outbox.calls("resources/read"), reads, "the first, the first hint, then one each floor");
        if reads > 1 {
            stage.clock.advance(FLOOR);
        }
    }
    stage.stop().await;
}

#[tokio::test]
async fn an_idle_stream_that_is_killed_is_opened_again_and_its_hints_count() {
    let (site, mut stage) = stage(Era::Sessions, patient()).await;
    // The first streams die without a word; a later one has something to say, and dies too.
    site.misbehave(|got, outbox| {
        let before = outbox.requests().iter().filter(|got| is_stream(got)).count();
        let hint = [updated("acme://notifications")];
        is_stream(got).then(|| events(if before == 3 { &hint } else { &[] }))
    });
    stage.begins().await;
    site.happen("one");
    // The clock stands still: only the hint can make it read.
    match stage.next().await {
        Happening::Read { events: 1, bootstrap: false, .. } => {}
        other => panic!("{other:?}"),
    }
    stage.stop().await;
}
