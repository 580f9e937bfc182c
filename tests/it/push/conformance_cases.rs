//! What the seed of the extension asks of a server, case by case. Each is run against a server of its own.

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};

use super::conformance_stage::{EXTENSION, SUBSCRIPTION, Side, ids, message, message_with};

pub type Case = for<'a> fn(&'a mut Side) -> BoxFuture<'a, ()>;

macro_rules! cases {
    ($($name:ident: |$side:ident| $body:block)*) => {
        $(async fn $name($side: &mut Side) $body)*

        /// Every case, by its name.
        pub const CASES: &[(&str, Case)] = &[$((stringify!($name), |side| $name(side).boxed())),*];
    };
}

const UNKNOWN: &str = "none-has-this-id";

/// The code that refuses a request of a client that did not declare the extension.
async fn undeclared(side: &Side, what: &str, params: Value) {
    for extensions in [json!({}), json!({ "com.example/other": {} })] {
        let answer = side.ask(0, &message_with(&json!(1), what, params.clone(), &extensions)).await;
        assert_eq!(answer["error"]["code"], -32_021, "{answer}");
        let required = &answer["error"]["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({ EXTENSION: {} }), "{answer}");
    }
}

cases! {
    discover_advertises_an_empty_capability: |side| {
        let answer = side.ask(0, &message(&json!(1), "server/discover", json!({}))).await;
        assert_eq!(answer["result"]["capabilities"]["extensions"][EXTENSION], json!({}), "{answer}");
    }
    get_needs_the_capability: |side| { undeclared(side, "get", json!({ "limit": 1 })).await; }
    ack_needs_the_capability: |side| { undeclared(side, "ack", json!({ "eventIds": [UNKNOWN] })).await; }
    listen_needs_the_capability: |side| { undeclared(side, "listen", json!({})).await; }
    an_ack_without_the_capability_acknowledges_nothing: |side| {
        side.emit(0, "one").await;
        undeclared(side, "ack", json!({ "eventIds": [side.wire("one")] })).await;
        assert_eq!(side.pending(0).await, [side.wire("one")]);
    }
    nothing_pending_is_an_empty_page: |side| {
        let page = side.page(0).await;
        assert_eq!((&page["events"], &page["hasMore"]), (&json!([]), &json!(false)));
    }
    a_page_holds_events_and_has_more_and_no_cursor: |side| {
        side.emit(0, "one").await;
        let page = side.page(0).await;
        let known = |key: &&String| ["events", "hasMore", "resultType", "_meta"].contains(&key.as_str());
        let other = page.as_object().unwrap().keys().find(|key| !known(key));
        assert_eq!(other, None);
    }
    an_envelope_has_its_fields_and_no_other: |side| {
        side.emit(0, "one").await;
        let page = side.page(0).await;
        let event = page["events"][0].as_object().unwrap();
        for field in ["eventId", "sourceId", "type", "createdAt"] {
            assert!(event[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {event:?}");
        }
        let fields = ["content", "createdAt", "data", "eventId", "sourceId", "type"];
        assert!(event.keys().all(|key| fields.contains(&key.as_str())), "{event:?}");
    }
    created_at_is_a_date_and_time_in_utc: |side| {
        side.emit(0, "one").await;
        let page = side.page(0).await;
        let text = page["events"][0]["createdAt"].as_str().unwrap();
        assert!(text.ends_with('Z') && text.parse::<jiff::Timestamp>().is_ok(), "{text}");
    }
    content_is_an_array_of_blocks: |side| {
        side.emit(0, "one").await;
        let page = side.page(0).await;
        for block in page["events"][0]["content"].as_array().unwrap() {
            assert_eq!(block["type"], "text");
            assert!(block["text"].is_string(), "{block}");
            assert_eq!(block.as_object().unwrap().len(), 2, "{block}");
        }
    }
    data_is_an_object: |side| {
        side.emit(0, "one").await;
        assert!(side.page(0).await["events"][0]["data"].is_object());
    }
    the_oldest_event_comes_first: |side| {
        side.emit_all(0, &["c", "a", "b"]).await;
        assert_eq!(side.pending(0).await, [side.wire("c"), side.wire("a"), side.wire("b")]);
    }
    two_retrievals_agree: |side| {
        side.emit_all(0, &["c", "a", "b"]).await;
        assert_eq!(side.page(0).await, side.page(0).await);
    }
    retrieval_acknowledges_nothing: |side| {
        side.emit(0, "one").await;
        for _ in 0..3 {
            assert_eq!(side.pending(0).await, [side.wire("one")]);
        }
    }
    a_limit_bounds_a_page: |side| {
        side.emit_all(0, &["a", "b", "c"]).await;
        for limit in [1, 2] {
            let page = side.result(0, "get", json!({ "limit": limit })).await;
            assert_eq!(ids(&page).len(), limit);
        }
    }
    has_more_is_true_where_events_are_left_out: |side| {
        side.emit_all(0, &["a", "b", "c"]).await;
        assert_eq!(side.result(0, "get", json!({ "limit": 2 })).await["hasMore"], json!(true));
    }
    has_more_is_false_where_a_full_page_is_the_last: |side| {
        side.emit_all(0, &["a", "b", "c"]).await;
        for limit in [3, 4] {
            assert_eq!(side.result(0, "get", json!({ "limit": limit })).await["hasMore"], json!(false));
        }
    }
    a_limit_of_zero_is_refused: |side| { assert_eq!(side.refusal("get", json!({ "limit": 0 })).await, -32_602); }
    a_negative_limit_is_refused: |side| { assert_eq!(side.refusal("get", json!({ "limit": -1 })).await, -32_602); }
    a_fraction_as_limit_is_refused: |side| { assert_eq!(side.refusal("get", json!({ "limit": 1.5 })).await, -32_602); }
    a_text_as_limit_is_refused: |side| { assert_eq!(side.refusal("get", json!({ "limit": "1" })).await, -32_602); }
    a_limit_may_be_left_out: |side| {
        side.emit(0, "one").await;
        assert_eq!(ids(&side.result(0, "get", json!({})).await), [side.wire("one")]);
    }
    the_largest_limit_is_taken_for_the_own_maximum: |side| {
        side.emit(0, "one").await;
        let page = side.result(0, "get", json!({ "limit": 9_007_199_254_740_991_u64 })).await;
        assert_eq!(ids(&page), [side.wire("one")]);
    }
    unknown_parameters_pass: |side| {
        side.emit(0, "one").await;
        let page = side.result(0, "get", json!({ "limit": 5, "ofALaterVersion": { "a": [1] } })).await;
        assert_eq!(ids(&page), [side.wire("one")]);
    }
    an_acknowledgement_is_answered_by_an_empty_result: |side| {
        side.emit(0, "one").await;
        let result = side.ack(0, &[side.wire("one")]).await;
        let known = |key: &String| ["resultType", "_meta"].contains(&key.as_str());
        assert!(result.as_object().unwrap().keys().all(known), "{result}");
    }
    what_is_acknowledged_is_gone_at_once: |side| {
        side.emit_all(0, &["a", "b"]).await;
        side.ack(0, &[side.wire("a"), side.wire("b")]).await;
        assert_eq!(side.pending(0).await, [""; 0]);
    }
    an_event_that_is_not_acknowledged_blocks_no_later_one: |side| {
        side.emit_all(0, &["a", "b", "c"]).await;
        side.ack(0, &[side.wire("b"), side.wire("c")]).await;
        side.emit(0, "d").await;
        assert_eq!(side.pending(0).await, [side.wire("a"), side.wire("d")]);
    }
    acknowledging_twice_changes_nothing: |side| {
        side.emit_all(0, &["a", "b"]).await;
        let first = side.ack(0, &[side.wire("a")]).await;
        assert_eq!(side.ack(0, &[side.wire("a")]).await, first);
        assert_eq!(side.pending(0).await, [side.wire("b")]);
    }
    an_unknown_id_is_acknowledged_as_a_known_one: |side| {
        side.emit(0, "one").await;
        let unknown = side.ack(0, &[UNKNOWN.to_owned()]).await;
        assert_eq!(side.ack(0, &[side.wire("one")]).await, unknown);
        assert_eq!(side.ack(0, &[side.wire("never-happened")]).await, unknown);
    }
    known_and_unknown_ids_are_acknowledged_together: |side| {
        side.emit_all(0, &["a", "b"]).await;
        side.ack(0, &[UNKNOWN.to_owned(), side.wire("a"), side.wire("a")]).await;
        assert_eq!(side.pending(0).await, [side.wire("b")]);
    }
    no_id_at_all_is_refused: |side| { assert_eq!(side.refusal("ack", json!({ "eventIds": [] })).await, -32_602); }
    ids_that_are_no_array_are_refused: |side| {
        assert_eq!(side.refusal("ack", json!({ "eventIds": UNKNOWN })).await, -32_602);
        assert_eq!(side.refusal("ack", json!({})).await, -32_602);
    }
    an_acknowledged_event_never_comes_again: |side| {
        side.emit(0, "one").await;
        side.ack(0, &[side.wire("one")]).await;
        side.emit(0, "one").await;
        assert_eq!(side.pending(0).await, [""; 0]);
    }
    an_event_that_happens_twice_is_pending_once: |side| {
        side.emit_all(0, &["one", "one", "two"]).await;
        assert_eq!(side.pending(0).await, [side.wire("one"), side.wire("two")]);
    }
    a_consumer_retrieves_only_its_own: |side| {
        side.emit(0, "one").await;
        side.emit(1, "two").await;
        assert_eq!(side.pending(0).await, [side.wire("one")]);
        assert_eq!(side.pending(1).await, [side.wire("two")]);
    }
    a_foreign_id_is_acknowledged_as_an_unknown_one_and_stays: |side| {
        side.emit(0, "one").await;
        let foreign = side.ack(1, &[side.wire("one")]).await;
        assert_eq!(foreign, side.ack(1, &[UNKNOWN.to_owned()]).await);
        assert_eq!(side.pending(0).await, [side.wire("one")]);
    }
    no_parameter_chooses_the_queue: |side| {
        side.emit(0, "one").await;
        let other = json!({ "limit": 5, "consumer": "watch", "consumerId": "watch", "queue": "watch" });
        assert_eq!(ids(&side.result(0, "get", other).await), [side.wire("one")]);
        side.result(1, "ack", json!({ "eventIds": [side.wire("one")], "consumer": "triage" })).await;
        assert_eq!(side.pending(0).await, [side.wire("one")]);
    }
    a_stream_begins_with_the_acknowledgement_of_its_filter: |side| {
        let mut live = side.open(0, json!(41)).await;
        let first = live.next().await.unwrap();
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], json!({ EXTENSION: {} }));
        assert_eq!(first["params"]["_meta"][SUBSCRIPTION], json!(41));
        assert!(first.get("id").is_none(), "{first}");
    }
    the_id_of_a_subscription_may_be_a_text: |side| {
        let mut live = side.listen(0, json!("a text")).await;
        side.emit(0, "one").await;
        assert_eq!(live.told_id().await, side.wire("one"));
    }
    a_filter_that_is_not_empty_is_refused: |side| {
        assert_eq!(side.refusal("listen", json!({ "afterCursor": "1" })).await, -32_602);
        assert_eq!(side.refusal("listen", json!(true)).await, -32_602);
    }
    a_refused_stream_replaces_none: |side| {
        let mut live = side.listen(0, json!(1)).await;
        assert_eq!(side.refusal("listen", json!({ "afterCursor": "1" })).await, -32_602);
        side.emit(0, "one").await;
        assert_eq!(live.told_id().await, side.wire("one"));
    }
    what_is_told_live_is_pending_already: |side| {
        let mut live = side.listen(0, json!(1)).await;
        side.emit(0, "one").await;
        let told = live.told().await;
        assert_eq!(side.page(0).await["events"], json!([told]));
    }
    being_told_acknowledges_nothing: |side| {
        let mut live = side.listen(0, json!(1)).await;
        side.emit_all(0, &["a", "b"]).await;
        assert_eq!([live.told_id().await, live.told_id().await], [side.wire("a"), side.wire("b")]);
        assert_eq!(side.pending(0).await, [side.wire("a"), side.wire("b")]);
    }
    events_from_before_a_stream_are_pending: |side| {
        side.emit(0, "before").await;
        let mut live = side.listen(0, json!(1)).await;
        side.emit(0, "after").await;
        let told = live.told_id().await;
        assert!(told == side.wire("after") || told == side.wire("before"), "{told}");
        assert_eq!(side.pending(0).await, [side.wire("before"), side.wire("after")]);
    }
    a_new_stream_replaces_the_one_before_with_a_result: |side| {
        let mut older = side.listen(0, json!(1)).await;
        let mut newer = side.listen(0, json!(2)).await;
        let last = older.next().await.expect("it was cut off");
        assert_eq!((&last["id"], &last["result"]["_meta"][SUBSCRIPTION]), (&json!(1), &json!(1)), "{last}");
        assert_eq!(older.next().await, None);
        side.emit(0, "one").await;
        assert_eq!(newer.told_id().await, side.wire("one"));
    }
    a_stream_of_one_consumer_leaves_that_of_another: |side| {
        let mut first = side.listen(0, json!(1)).await;
        let mut second = side.listen(1, json!(1)).await;
        side.emit(0, "one").await;
        side.emit(1, "two").await;
        assert_eq!(first.told_id().await, side.wire("one"));
        assert_eq!(second.told_id().await, side.wire("two"));
    }
    what_was_acknowledged_is_not_told_on_a_new_stream: |side| {
        side.emit(0, "one").await;
        side.ack(0, &[side.wire("one")]).await;
        let mut live = side.listen(0, json!(1)).await;
        side.emit(0, "two").await;
        assert_eq!(live.told_id().await, side.wire("two"));
    }
    a_stream_that_broke_off_loses_nothing: |side| {
        let mut live = side.listen(0, json!(1)).await;
        side.emit(0, "one").await;
        live.told().await;
        side.drop_streams().await;
        while live.next().await.is_some() {}
        side.emit(0, "two").await;
        let mut live = side.listen(0, json!(2)).await;
        assert_eq!(side.pending(0).await, [side.wire("one"), side.wire("two")]);
        side.emit(0, "three").await;
        assert_eq!(live.told_id().await, side.wire("three"));
    }
    a_client_that_goes_away_takes_no_event_with_it: |side| {
        drop(side.listen(0, json!(1)).await);
        side.emit(0, "one").await;
        assert_eq!(side.pending(0).await, [side.wire("one")]);
    }
    page_after_page_brings_every_event_once_and_in_order: |side| {
        let names: Vec<String> = (0..25).map(|number| format!("event-{number}")).collect();
        side.emit_all(0, &names.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let mut seen = Vec::new();
        loop {
            let page = side.result(0, "get", json!({ "limit": 10 })).await;
            seen.extend(ids(&page));
            side.ack(0, &ids(&page)).await;
            if page["hasMore"] == json!(false) {
                break;
            }
        }
        assert_eq!(seen, names.iter().map(|name| side.wire(name)).collect::<Vec<_>>());
    }
    a_repeated_page_is_the_same_until_it_is_acknowledged: |side| {
        side.emit_all(0, &["a", "b", "c"]).await;
        let first = side.result(0, "get", json!({ "limit": 2 })).await;
        assert_eq!(side.result(0, "get", json!({ "limit": 2 })).await, first);
        side.ack(0, &ids(&first)).await;
        assert_eq!(ids(&side.result(0, "get", json!({ "limit": 2 })).await), [side.wire("c")]);
    }
    a_restart_loses_nothing_that_is_pending: |side| {
        side.emit_all(0, &["a", "b"]).await;
        side.ack(0, &[side.wire("a")]).await;
        side.restart().await;
        assert_eq!(side.pending(0).await, [side.wire("b")]);
    }
    a_restart_keeps_what_was_acknowledged_gone: |side| {
        side.emit(0, "one").await;
        side.ack(0, &[side.wire("one")]).await;
        side.restart().await;
        side.emit_all(0, &["one", "two"]).await;
        assert_eq!(side.pending(0).await, [side.wire("two")]);
    }
}
