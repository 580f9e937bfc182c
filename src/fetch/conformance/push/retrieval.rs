//! Pages of pending events: their shape, their bounds, their order.

use serde_json::{Value, json};

use super::Check;
use super::client::{Answer, Request, said};
use super::envelope::{self, id_of};
use super::rules as is;
use crate::fetch::event::moment;

/// Events asked for in a large page.
pub(super) const PAGE_EVENTS: usize = 100;

/// The largest number that every client can spell.
const LIMIT_MAX: u64 = (1 << 53) - 1;

/// What the result of get may hold.
const FIELDS: [&str; 4] = ["events", "hasMore", "resultType", "_meta"];

/// A page of pending events.
#[derive(Debug)]
pub(super) struct Page {
    pub events: Vec<Value>,
    pub has_more: bool,
}

impl Page {
    /// The ids of its events.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter_map(id_of)
    }

    /// Whether it brings this event.
    pub(super) fn has(&self, event: &Value) -> bool {
        id_of(event).is_some_and(|id| self.ids().any(|own| own == id))
    }
}

/// Asks for a page. What goes wrong is told.
pub(super) async fn page(check: &mut Check<'_>, params: Value, what: &str) -> Option<Page> {
    match check.client.call(&Request::get(params)).await {
        Ok(Answer::Result(result)) => {
            check.ledger.pass(&is::GET_ANSWERED, "every one");
            check.ledger.pass(&is::ANSWER_FORM, "every one");
            check.ledger.pass(&is::ANSWER_BOUNDED, "every page can be read");
            judge(check, &result, what)
        }
        Ok(Answer::Error { code, message }) => {
            check.ledger.fail(&is::GET_ANSWERED, format!("{what} is answered with the error {code}: {message}"));
            None
        }
        Err(missed) => {
            check.tell(&is::GET_ANSWERED, what, &missed);
            None
        }
    }
}

fn judge(check: &mut Check<'_>, result: &serde_json::Map<String, Value>, what: &str) -> Option<Page> {
    let (Some(Value::Array(events)), Some(Value::Bool(has_more))) = (result.get("events"), result.get("hasMore"))
    else {
        check.ledger.fail(
            &is::GET_SHAPE,
            format!("{what} is answered with {}", said(&Value::Object(result.clone()).to_string())),
        );
        return None;
    };
    check.ledger.pass(&is::GET_SHAPE, "every page");
    match result.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        None => check.ledger.pass(&is::GET_NO_CURSOR, "no other field"),
        Some(other) => {
            check.ledger.fail(&is::GET_NO_CURSOR, format!("the result of {what} has a field {:?}", said(other)))
        }
    }
    match (events.is_empty(), *has_more) {
        (true, true) => check.ledger.fail(&is::HAS_MORE_END, format!("{what} brings nothing and says there is more")),
        (_, false) => check.ledger.pass(&is::HAS_MORE_END, "the last page says false"),
        (false, true) => {}
    }
    for event in events {
        check.judge(event);
    }
    envelope::judge_ids(events, &mut check.ledger);
    Some(Page { events: events.clone(), has_more: *has_more })
}

/// The same page once more.
pub(super) async fn again(check: &mut Check<'_>, first: &Page) {
    judge_age(check, first);
    let Some(second) = page(check, json!({ "limit": PAGE_EVENTS }), "get").await else { return };
    if first.events.is_empty() {
        return;
    }
    if second.events.len() == first.events.len() && !first.ids().any(|id| second.ids().any(|other| id == other)) {
        let bare = |page: &Page| page.events.iter().map(without_id).collect::<Vec<_>>();
        if bare(first) == bare(&second) {
            check.ledger.fail(&is::EVENT_ID, "a second retrieval brings the same events under other ids");
            return;
        }
    }
    match first.events.iter().find(|event| !second.has(event)) {
        Some(gone) => {
            let id = said(id_of(gone).unwrap_or("an event"));
            check.ledger.fail(&is::KEPT, format!("{id} is not in a second retrieval, and nobody acknowledged it here"));
            return;
        }
        None => check.ledger.pass(&is::KEPT, "a second retrieval brings all of them"),
    }
    let mut common = second.ids().filter(|id| first.ids().any(|own| own == *id));
    match first.ids().all(|id| common.next() == Some(id)) {
        true if first.events.len() > 1 => check.ledger.pass(&is::ORDER_STABLE, "two retrievals agree"),
        true => {}
        false => check.ledger.fail(&is::ORDER_STABLE, "two retrievals bring the same events in another order"),
    }
}

fn without_id(event: &Value) -> Value {
    let mut event = event.clone();
    if let Some(fields) = event.as_object_mut() {
        fields.remove("eventId");
    }
    event
}

fn judge_age(check: &mut Check<'_>, page: &Page) {
    let created = |event: &Value| event.get("createdAt").and_then(Value::as_str).and_then(moment::parse);
    for pair in page.events.windows(2) {
        let [older, newer] = pair else { continue };
        match (created(older), created(newer)) {
            (Some(first), Some(second)) if first > second => {
                let id = said(id_of(newer).unwrap_or("an event"));
                check.ledger.warn(&is::ORDER_OLDEST, format!("{id} of {second} comes after an event of {first}"));
            }
            (Some(_), Some(_)) => check.ledger.pass(&is::ORDER_OLDEST, "in the order of createdAt"),
            _ => {}
        }
    }
}

/// Limits that are honoured, refused, or left out.
pub(super) async fn limits(check: &mut Check<'_>, known: &Page) {
    for limit in [json!(0), json!(-1), json!(1.5), json!("1")] {
        let what = format!("a limit of {limit}");
        let answer = check.client.call(&Request::get(json!({ "limit": limit }))).await;
        check.refused(&is::LIMIT_POSITIVE, &what, answer, &[-32_602]);
    }
    for (params, what) in
        [(json!({}), "get without a limit"), (json!({ "limit": LIMIT_MAX }), "get with the largest limit")]
    {
        match check.client.call(&Request::get(params)).await {
            Ok(Answer::Result(_)) => check.ledger.pass(&is::LIMIT_OPTIONAL, "left out and very large"),
            Ok(Answer::Error { code, message }) => {
                check.ledger.fail(&is::LIMIT_OPTIONAL, format!("{what} is refused with {code}: {message}"));
            }
            Err(missed) => check.tell(&is::LIMIT_OPTIONAL, what, &missed),
        }
    }
    if known.events.is_empty() {
        return;
    }
    let Some(small) = page(check, json!({ "limit": 1 }), "get with limit 1").await else { return };
    match small.events.len() {
        0 | 1 => check.ledger.pass(&is::LIMIT_HONOURED, "1 is"),
        found => check.ledger.fail(&is::LIMIT_HONOURED, format!("a limit of 1 brings {found} events")),
    }
    if known.events.len() > 1 && small.events.len() == 1 {
        match small.has_more {
            true => check.ledger.pass(&is::HAS_MORE_CUT, "a small page says true"),
            false => check.ledger.fail(
                &is::HAS_MORE_CUT,
                format!("a limit of 1 leaves out {} events, and hasMore is false", known.events.len() - 1),
            ),
        }
    }
}

/// Parameters that get does not define: unknown ones pass, and none of them chooses a queue.
pub(super) async fn other_parameters(check: &mut Check<'_>, known: &Page) {
    let params = json!({ "limit": PAGE_EVENTS, "switchbellPushCheck": { "of": ["a", "later", "version"] } });
    match check.client.call(&Request::get(params)).await {
        Ok(Answer::Result(_)) => check.ledger.pass(&is::GET_OPEN, "it is answered as without"),
        Ok(Answer::Error { code, message }) => {
            check.ledger.fail(&is::GET_OPEN, format!("a parameter more is refused with {code}: {message}"));
        }
        Err(missed) => check.tell(&is::GET_OPEN, "get with a parameter more", &missed),
    }
    let is_known = !check.ledger.has_failed(&is::KEPT) && !check.ledger.has_failed(&is::EVENT_ID);
    if known.events.is_empty() || !is_known {
        return;
    }
    let other = "switchbell-push-check-another";
    let params =
        json!({ "limit": PAGE_EVENTS, "consumer": other, "consumerId": other, "consumer_id": other, "queue": other });
    match check.client.call(&Request::get(params)).await {
        Ok(Answer::Result(result)) => {
            let events = result.get("events").and_then(Value::as_array).cloned().unwrap_or_default();
            match known.events.iter().all(|event| events.iter().any(|other| id_of(other) == id_of(event))) {
                true => check.ledger.pass(&is::CONSUMER_TRUSTED, "a parameter that names another changes nothing"),
                false => check
                    .ledger
                    .fail(&is::CONSUMER_TRUSTED, "with a parameter that names a consumer, other events come"),
            }
        }
        Ok(Answer::Error { code, .. }) => {
            check.ledger.pass(&is::CONSUMER_TRUSTED, format!("such a parameter is refused with {code}"))
        }
        Err(missed) => check.tell(&is::CONSUMER_TRUSTED, "get with a consumer", &missed),
    }
}
