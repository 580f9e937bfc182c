//! What is told live.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use switchbell::clock::Clock;
use switchbell::notification::Event;

use super::server_stage::{
    ACK, CONSUMERS, Consumer, EXTENSION, GET, LISTEN, emit, emit_ids, filter, ids, message, meta, start,
};
use crate::mcp::stage::{ACME, LEGACY, Stage, event};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_listens_is_told_what_joins_its_queue_from_then_on_in_order() {
    let stage = start().await;
    let (triage, watch) = (Consumer::new(&stage, "triage").await, Consumer::new(&stage, "watch").await);
    emit_ids(&stage, &["before"], &["triage", "watch"]).await;
    for id in [json!(9), json!("nine")] {
        let mut live = triage.listen(id.clone()).await;
        let new = |number: u32| format!("{id}-{number}").replace('"', "");
        emit_ids(&stage, &[&new(1)], &["triage"]).await;
        emit_ids(&stage, &[&new(2)], &["watch"]).await;
        emit_ids(&stage, &[&new(3), &new(4)], &["triage", "watch"]).await;
        for number in [1, 3, 4] {
            assert_eq!(live.told().await, format!("acme:crm:{}", new(number)));
        }
    }
    // Telling is not acknowledging.
    assert_eq!(triage.pending().await.len(), 7);
    assert_eq!(watch.pending().await.len(), 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_told_as_it_is_in_a_page_with_its_payload_as_it_came() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let mut live = triage.listen(json!(1)).await;
    let data = "{ \"b\": 1.50,\n \"a\" : 12345678901234567890123 }";
    emit(&stage, "crm", vec![Event { data: data.to_owned(), ..event("1") }], &["triage"]).await;
    let told = live.text().await.unwrap();
    assert!(told.contains(&format!("\"data\":{data}}}")), "{told}");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["params"]["event"], triage.result(GET, json!({})).await["events"][0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_acknowledged_before_it_is_told_is_not_told() {
    const EVENTS: usize = 320;
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let mut live = triage.listen(json!(1)).await;
    // More than lies on the way to a reader that reads nothing yet.
    let data = format!("{{\"a\":\"{}\"}}", "x".repeat(60_000));
    let name = |number: usize| format!("{number}");
    let events = (0..EVENTS).map(|number| Event { data: data.clone(), ..event(&name(number)) }).collect();
    emit(&stage, "crm", events, &["triage"]).await;
    let acknowledged: Vec<String> = (EVENTS - 5..EVENTS).map(|number| format!("acme:crm:{number}")).collect();
    triage.result(ACK, json!({ "eventIds": acknowledged })).await;
    emit_ids(&stage, &["last"], &["triage"]).await;
    for number in 0..EVENTS - 5 {
        assert_eq!(live.told().await, format!("acme:crm:{number}"));
    }
    assert_eq!(live.told().await, "acme:crm:last");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_stream_takes_the_place_of_the_one_before_which_ends_in_good_order() {
    let stage = start().await;
    let (triage, watch) = (Consumer::new(&stage, "triage").await, Consumer::new(&stage, "watch").await);
    let first = triage.listen(json!(1)).await;
    let mut other = watch.listen(json!(1)).await;
    // Another token of the same consumer is the same consumer.
    let mut second = Consumer::new(&stage, "triage").await.listen(json!(1)).await;
    first.ended().await;
    emit_ids(&stage, &["1"], &["triage", "watch"]).await;
    assert_eq!((second.told().await, other.told().await), ("acme:crm:1".to_owned(), "acme:crm:1".to_owned()));
    let mut third = triage.listen(json!("third")).await;
    second.ended().await;
    emit_ids(&stage, &["2"], &["triage"]).await;
    assert_eq!(third.told().await, "acme:crm:2");
    // What is refused replaces nothing.
    let wrong = json!({ "notifications": { EXTENSION: { "a": 1 } } });
    assert_eq!(triage.refusal(LISTEN, wrong).await.1["code"], -32602);
    emit_ids(&stage, &["3"], &["triage"]).await;
    assert_eq!(third.told().await, "acme:crm:3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_in_good_order_with_its_token_its_consumer_and_the_server() {
    let stage = start().await;
    let (triage, watch) = (Consumer::new(&stage, "triage").await, Consumer::new(&stage, "watch").await);
    let (live, mut other) = (triage.listen(json!(1)).await, watch.listen(json!(1)).await);
    stage.local(&format!("/v1/tokens/{}/revoke", triage.id), &json!({})).await;
    live.ended().await;
    assert_eq!(triage.post(&message(&json!(1), LISTEN, filter())).await.status, 401);
    let triage = Consumer::new(&stage, "triage").await;
    let live = triage.listen(json!(2)).await;
    // What does not concern it leaves it alone.
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}consumers: {{ watch: {{}}, triage: {{}} }}\n")).await;
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}consumers: {{ watch: {{}} }}\n")).await;
    live.ended().await;
    emit_ids(&stage, &["1"], &["watch"]).await;
    assert_eq!(other.told().await, "acme:crm:1");
    stage.app.stop().await;
    other.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_says_that_it_is_alive_by_a_comment_or_by_progress() {
    let now = "2026-09-01T18:42:10Z".parse().unwrap();
    let clock = Clock::manual(now);
    let stage = Stage::start_at(clock.clone()).await;
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}{CONSUMERS}")).await;
    let (triage, watch) = (Consumer::new(&stage, "triage").await, Consumer::new(&stage, "watch").await);
    let mut commented = triage.listen(json!(1)).await;
    let mut meta = meta();
    meta["progressToken"] = json!("t-1");
    let mut params = filter();
    params["_meta"] = meta;
    let mut progressing = watch.open(&message(&json!(1), LISTEN, params)).await;
    progressing.next().await.unwrap();
    let beat = SignedDuration::from_secs(15);
    for count in 1..=2 {
        let due = clock.now() + beat;
        while clock.sleepers().iter().filter(|until| **until == due).count() < 2 {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_secs(15));
        assert_eq!(commented.lines().await.unwrap(), ":");
        let progress = json!({ "progressToken": "t-1", "progress": count });
        let expected = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
        assert_eq!(progressing.next().await, Some(expected));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_nothing_is_cut_off_and_finds_all_of_it_pending() {
    const EVENTS: usize = 320;
    let clock = Clock::manual("2026-09-01T18:42:10Z".parse().unwrap());
    let stage = Stage::start_at(clock.clone()).await;
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}{CONSUMERS}")).await;
    let triage = Consumer::new(&stage, "triage").await;
    let live = triage.listen(json!(1)).await;
    let metrics = stage.url.replace("/mcp", "/metrics");
    let streams = async || {
        let text = stage.client.get(&metrics).send().await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with("switchbell_push_streams ")).unwrap().to_owned();
        line.rsplit_once(' ').unwrap().1.to_owned()
    };
    assert_eq!(streams().await, "1");
    // More than lies on the way to a reader that reads nothing.
    let data = format!("{{\"a\":\"{}\"}}", "x".repeat(60_000));
    let events = (0..EVENTS).map(|number| Event { data: data.clone(), ..event(&format!("{number}")) }).collect();
    emit(&stage, "crm", events, &["triage"]).await;
    while streams().await != "0" {
        clock.advance(Duration::from_secs(1));
    }
    drop(live);
    let page = triage.result(GET, json!({})).await;
    assert_eq!((ids(&page)[0].as_str(), &page["hasMore"]), ("acme:crm:0", &json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_else_a_filter_asks_for_is_not_claimed_to_be_honoured() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let both =
        json!({ EXTENSION: {}, "resourceSubscriptions": ["switchbell://notifications"], "toolsListChanged": true });
    let mut live = triage.open(&message(&json!(1), LISTEN, json!({ "notifications": both }))).await;
    assert_eq!(live.next().await.unwrap()["params"]["notifications"], json!({ EXTENSION: {} }));
    emit_ids(&stage, &["1"], &["triage"]).await;
    assert_eq!(live.told().await, "acme:crm:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_an_older_revision_listens_too() {
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    let declared = json!({ "io.modelcontextprotocol/clientCapabilities": super::server_stage::capabilities() });
    let params = json!({ "notifications": { EXTENSION: {} }, "_meta": declared });
    let mut live = triage.open_as(LEGACY, &message(&json!(4), LISTEN, params)).await;
    live.next().await.unwrap();
    emit_ids(&stage, &["1"], &["triage"]).await;
    assert_eq!(live.told().await, "acme:crm:1");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_come_around_the_start_are_told_or_pending_and_none_is_lost() {
    const ROUNDS: usize = 20;
    let stage = start().await;
    let triage = Consumer::new(&stage, "triage").await;
    for round in 0..ROUNDS {
        let id = format!("{round}");
        let emitted = async {
            emit_ids(&stage, &[&id], &["triage"]).await;
        };
        let ((), mut live) = tokio::join!(emitted, triage.listen(json!(round)));
        let page = ids(&triage.result(GET, json!({})).await);
        assert_eq!(page, [format!("acme:crm:{round}")]);
        triage.acknowledge(&[&page[0]]).await;
        emit_ids(&stage, &[&format!("after-{round}")], &["triage"]).await;
        // It may have been told of the first, too.
        let mut told = live.told().await;
        if told == page[0] {
            told = live.told().await;
        }
        assert_eq!(told, format!("acme:crm:after-{round}"));
        triage.acknowledge(&[&told]).await;
    }
    assert_eq!(triage.pending().await, Vec::<String>::new());
}
