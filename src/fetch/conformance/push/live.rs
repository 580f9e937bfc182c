//! Live streams: how they begin, what comes on them, how they end.

use std::time::Duration;

use serde_json::{Value, json};

use super::Check;
use super::client::{Answer, EXTENSION, Missed, Opened, Request, said};
use super::envelope::id_of;
use super::retrieval::Page;
use super::rules as is;
use super::stream::{Heard, Stream};

/// How long a server has to end the stream that was replaced.
const REPLACED_WITHIN: Duration = Duration::from_secs(5);

/// Once an event came, others that happened with it come within this.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// Live events that are looked at.
const LIVE_MAX: usize = 1_000;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The answer to a request for a stream that is to be refused: a stream is let through.
pub(super) async fn opened(check: &mut Check<'_>, request: &Request) -> Result<Answer, Missed> {
    match check.client.open(request).await? {
        Opened::Answer(answer) => Ok(answer),
        Opened::Stream(mut stream) => match stream.within(check.client.left(check.client.timeout)).await {
            // An error may come as the only event of a stream.
            Heard::Message(message) if message.get("method").is_none() => Answer::of(&message, stream.id),
            _ => Ok(Answer::Result(serde_json::Map::new())),
        },
    }
}

/// A filter that is not empty.
pub(super) async fn filter(check: &mut Check<'_>) {
    let request = Request::listen(&json!({ "switchbellPushCheck": "not-empty" }));
    let came = opened(check, &request).await;
    check.refused(&is::LISTEN_FILTER, "a filter that is not empty", came, &[-32_602]);
}

/// Opens a stream and judges its beginning.
pub(super) async fn listen(check: &mut Check<'_>) -> Option<Stream> {
    let mut stream = match check.client.open(&Request::listen(&json!({}))).await {
        Ok(Opened::Stream(stream)) => *stream,
        Ok(Opened::Answer(Answer::Error { code, message })) => {
            check.ledger.fail(&is::LISTEN_FIRST, format!("listen is answered with the error {code}: {message}"));
            return None;
        }
        Ok(Opened::Answer(Answer::Result(_))) => {
            check.ledger.fail(&is::LISTEN_FIRST, "listen is answered at once, instead of by a stream");
            return None;
        }
        Err(missed) => {
            check.tell(&is::LISTEN_FIRST, "listen", &missed);
            return None;
        }
    };
    match stream.within(check.client.left(check.client.timeout)).await {
        Heard::Message(message) => judge_first(check, &stream, &message),
        Heard::Nothing => check.ledger.fail(&is::LISTEN_FIRST, "nothing comes on the stream"),
        Heard::Ended => check.ledger.fail(&is::LISTEN_FIRST, "the stream ends without a word"),
        Heard::Missed(missed) => check.tell(&is::LISTEN_FIRST, "listen", &missed),
    }
    Some(stream)
}

fn judge_first(check: &mut Check<'_>, stream: &Stream, message: &Value) {
    if message.get("method").and_then(Value::as_str) != Some(ACKNOWLEDGED) {
        check.ledger.fail(&is::LISTEN_FIRST, format!("the stream begins with {}", said(&message.to_string())));
        return;
    }
    let filter = message.get("params").and_then(|params| params.get("notifications"));
    match filter {
        Some(filter) if *filter == json!({ EXTENSION: {} }) => {
            check.ledger.pass(&is::LISTEN_FIRST, "the first message, with the same filter");
        }
        other => {
            let other = other.map_or_else(|| "missing".to_owned(), |other| said(&other.to_string()));
            check.ledger.fail(&is::LISTEN_FIRST, format!("its filter is {other}"));
        }
    }
    judge_id(check, stream, message, "the acknowledgement");
}

fn judge_id(check: &mut Check<'_>, stream: &Stream, message: &Value, what: &str) {
    let told = message.get("params").and_then(|params| params.get("_meta")?.get(SUBSCRIPTION));
    match told {
        Some(told) if *told == json!(stream.id) => check.ledger.pass(&is::LISTEN_ID, "every message"),
        Some(other) => {
            let other = said(&other.to_string());
            check.ledger.fail(&is::LISTEN_ID, format!("{what} carries {other}, and the request was {}", stream.id));
        }
        None => check.ledger.fail(&is::LISTEN_ID, format!("{what} carries none")),
    }
}

/// Opens another stream, which is to replace the older; the newer.
pub(super) async fn replace(check: &mut Check<'_>, mut older: Stream) -> Option<Stream> {
    let newer = listen(check).await?;
    let time_max = check.client.timeout.min(REPLACED_WITHIN);
    let ended = async {
        loop {
            match older.message().await {
                Ok(Some(message)) if message.get("method").is_some() => {}
                other => return other,
            }
        }
    };
    match tokio::time::timeout(check.client.left(time_max), ended).await {
        Ok(Ok(Some(message))) => {
            check.ledger.pass(&is::LISTEN_REPLACED, "the older stream is ended");
            match Answer::of(&message, older.id) {
                Ok(Answer::Result(_)) => check.ledger.pass(&is::LISTEN_GRACEFUL, "with its result"),
                _ => {
                    let seen = format!("the older stream ends with {}", said(&message.to_string()));
                    check.ledger.fail(&is::LISTEN_GRACEFUL, seen);
                }
            }
        }
        Ok(Ok(None) | Err(_)) => {
            check.ledger.pass(&is::LISTEN_REPLACED, "the older stream is ended");
            check.ledger.fail(&is::LISTEN_GRACEFUL, "the older stream is cut off without its result");
        }
        Err(_) => {
            let seen = format!("{} ms after another listen the older stream is still open", time_max.as_millis());
            check.ledger.fail(&is::LISTEN_REPLACED, seen);
        }
    }
    Some(newer)
}

/// The events that come on a stream, while they are waited for.
pub(super) async fn hear(check: &mut Check<'_>, stream: &mut Stream, wait: Duration) -> Vec<Value> {
    let give_up = crate::clock::later(check.client.clock.now(), wait);
    let mut events = Vec::new();
    while events.len() < LIVE_MAX {
        let left = check.client.left(crate::clock::until(check.client.clock.now(), give_up));
        // What is there already is taken, even where nothing is waited for.
        let time = if events.is_empty() { left } else { left.min(AFTERWARDS) };
        match stream.within(time).await {
            Heard::Message(message) => events.extend(judge_message(check, stream, &message)),
            Heard::Nothing | Heard::Ended => break,
            Heard::Missed(missed) => {
                check.tell(&is::LISTEN_FIRST, "the live stream", &missed);
                break;
            }
        }
    }
    events
}

/// The event in a message of the stream.
fn judge_message(check: &mut Check<'_>, stream: &Stream, message: &Value) -> Option<Value> {
    if message.get("method").and_then(Value::as_str)? != format!("{EXTENSION}/event") {
        return None;
    }
    judge_id(check, stream, message, "an event");
    let event = message.get("params").and_then(|params| params.get("event"));
    let Some(event) = event else {
        check.ledger.fail(&is::EVENT_ID, "a live message has no event in its params");
        return None;
    };
    check.judge(event);
    Some(event.clone())
}

/// What came live, beside what is pending afterwards.
pub(super) fn compare(check: &mut Check<'_>, heard: &[Value], before: Option<&Page>, page: &Page, is_open: bool) {
    for event in heard {
        let id = said(id_of(event).unwrap_or("an event"));
        match page.events.iter().find(|pending| id_of(pending) == id_of(event)) {
            Some(pending) => {
                check.ledger.pass(&is::LIVE_PENDING, "what came live is pending");
                match pending == event {
                    true => check.ledger.pass(&is::LIVE_SAME, "alike on both ways"),
                    false => {
                        check.ledger.fail(&is::LIVE_SAME, format!("{id} came live otherwise than it is retrieved"))
                    }
                }
            }
            None if page.has_more => {}
            None => check.ledger.fail(&is::LIVE_PENDING, format!("{id} came live and is not pending")),
        }
    }
    let Some(before) = before.filter(|before| is_open && !before.has_more) else { return };
    let is_new = |event: &&Value| !before.has(event);
    let missed = page.events.iter().filter(is_new).find(|event| !heard.iter().any(|live| id_of(live) == id_of(event)));
    match missed {
        Some(event) => {
            let id = said(id_of(event).unwrap_or("an event"));
            check.ledger.fail(&is::LIVE_PUSHED, format!("{id} became pending and did not come live"));
        }
        None if !heard.is_empty() => check.ledger.pass(&is::LIVE_PUSHED, "what became pending came live"),
        None => {}
    }
}

/// Waits for a sign of life on a stream on which nothing happens.
pub(super) async fn keep_alive(check: &mut Check<'_>, mut stream: Stream, quiet: Duration) {
    match stream.sign_within(check.client.left(quiet)).await {
        true => check.ledger.pass(&is::LISTEN_ALIVE, "something comes in time"),
        false => check.ledger.fail(&is::LISTEN_ALIVE, format!("nothing comes within {} ms", quiet.as_millis())),
    }
}
