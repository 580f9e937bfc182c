//! What is said by the extension: answers, and the messages of a live stream as server-sent events.

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;

use super::EVENT;
use super::event::EventJson;
use super::refusal::Refusal;
use crate::inbox::Pending;

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const PROGRESS: &str = "notifications/progress";

/// A sign of life that says nothing.
const COMMENT: &[u8] = b":\n\n";

#[derive(Serialize)]
struct AnswerJson<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

#[derive(Serialize)]
struct NotificationJson<'a, T> {
    jsonrpc: &'static str,
    method: &'a str,
    params: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PageJson<'a> {
    result_type: &'static str,
    events: Vec<EventJson<'a>>,
    has_more: bool,
    #[serde(rename = "_meta")]
    meta: HandedOn,
}

/// That a Switchbell hands it on ([`HANDED_ON`](crate::notification::HANDED_ON)).
#[derive(Serialize)]
struct HandedOn {
    #[serde(rename = "switchbell/handed-on")]
    is: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DoneJson<'a> {
    result_type: &'static str,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<OfSubscription<'a>>,
}

/// Which subscription it belongs to: the id of its request.
#[derive(Serialize)]
struct OfSubscription<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RawValue,
}

#[derive(Serialize)]
struct AcknowledgedJson<'a> {
    notifications: FilterJson,
    #[serde(rename = "_meta")]
    meta: OfSubscription<'a>,
}

/// All that is honoured of a filter, whatever else was asked for beside it.
#[derive(Default, Serialize)]
struct FilterJson {
    #[serde(rename = "io.stagewise/push-notifications")]
    extension: Nothing,
}

#[derive(Default, Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct ToldJson<'a> {
    event: EventJson<'a>,
    #[serde(rename = "_meta")]
    meta: OfEvent<'a>,
}

#[derive(Serialize)]
struct OfEvent<'a> {
    #[serde(rename = "switchbell/handed-on")]
    is_handed_on: bool,
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RawValue,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressJson<'a> {
    progress_token: &'a RawValue,
    progress: u64,
}

/// A page of events.
pub(super) fn page(id: &RawValue, pending: &Pending) -> Result<Response, Refusal> {
    let events = pending.items.iter().map(EventJson::from).collect();
    answer(id, PageJson { result_type: "complete", events, has_more: pending.has_more, meta: HandedOn { is: true } })
}

/// That it is done.
pub(super) fn done(id: &RawValue) -> Result<Response, Refusal> {
    answer(id, DoneJson { result_type: "complete", meta: None })
}

fn answer(id: &RawValue, result: impl Serialize) -> Result<Response, Refusal> {
    let answer = AnswerJson { jsonrpc: "2.0", id, result };
    let text = serde_json::to_string(&answer)
        .map_err(|error| Refusal::internal(format_args!("the answer cannot be written: {error}")))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// That a subscription has begun, and for what.
pub(super) fn acknowledged(id: &RawValue) -> serde_json::Result<Bytes> {
    told(ACKNOWLEDGED, AcknowledgedJson { notifications: FilterJson::default(), meta: OfSubscription { id } })
}

/// An event, as it comes.
pub(super) fn event(id: &RawValue, event: EventJson<'_>) -> serde_json::Result<Bytes> {
    told(EVENT, ToldJson { event, meta: OfEvent { is_handed_on: true, id } })
}

/// That a subscription has ended, in good order.
pub(super) fn ended(id: &RawValue) -> serde_json::Result<Bytes> {
    let result = DoneJson { result_type: "complete", meta: Some(OfSubscription { id }) };
    frame(&AnswerJson { jsonrpc: "2.0", id, result })
}

/// A sign of life: of this number, where the request has named a token for that.
pub(super) fn alive(token: Option<&RawValue>, progress: u64) -> serde_json::Result<Bytes> {
    match token {
        Some(progress_token) => told(PROGRESS, ProgressJson { progress_token, progress }),
        None => Ok(Bytes::from_static(COMMENT)),
    }
}

fn told(method: &str, params: impl Serialize) -> serde_json::Result<Bytes> {
    frame(&NotificationJson { jsonrpc: "2.0", method, params })
}

/// A message as one event of the stream. A payload may have lines, which its readers put together again; the other sign that
/// would end a line is white space there, as a blank is.
fn frame(message: &impl Serialize) -> serde_json::Result<Bytes> {
    let text = serde_json::to_string(message)?;
    let text = text.replace('\r', " ").replace('\n', "\ndata: ");
    Ok(format!("event: message\ndata: {text}\n\n").into())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::notification::{Event, Level, Notification};

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn check(frame: serde_json::Result<Bytes>, expected: &str) {
        assert_eq!(String::from_utf8(frame.unwrap().to_vec()).unwrap(), expected);
    }

    #[test]
    fn messages_name_their_subscription_as_the_request_wrote_its_id() {
        let meta = |id: &str| format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
        for id in ["7", "\"7\"", "\"a\\u00e4\"", "1.0"] {
            check(
                acknowledged(&raw(id)),
                &format!(
                    "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"{ACKNOWLEDGED}\",\"params\":\
                     {{\"notifications\":{{\"io.stagewise/push-notifications\":{{}}}},{}}}}}\n\n",
                    meta(id)
                ),
            );
            check(
                ended(&raw(id)),
                &format!(
                    "event: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"resultType\":\"complete\",{}}}}}\n\n",
                    meta(id)
                ),
            );
        }
    }

    #[test]
    fn a_sign_of_life_is_a_comment_or_progress() {
        check(alive(None, 1), ":\n\n");
        let progress = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":3}}";
        check(alive(Some(&raw("\"t\"")), 3), &format!("event: message\ndata: {progress}\n\n"));
    }

    #[test]
    fn a_payload_of_more_lines_stays_in_its_frame() {
        let of = Notification {
            workspace: "acme".parse().unwrap(),
            seq: 1,
            source: "crm".parse().unwrap(),
            received_at: Timestamp::UNIX_EPOCH,
            effective_level: Level::Info,
            event: Event {
                event_id: "1".to_owned(),
                name: "a".to_owned(),
                timestamp: Timestamp::UNIX_EPOCH,
                level: Level::Info,
                subject: None,
                title: "a".to_owned(),
                body: None,
                link: None,
                data: "{\r\n\n\"a\":\r1}".to_owned(),
                content: None,
            },
        };
        let frame = event(&raw("1"), EventJson::from(&of)).unwrap();
        let frame = String::from_utf8(frame.to_vec()).unwrap();
        let (body, end) = frame.split_at(frame.len() - 2);
        assert_eq!(end, "\n\n");
        assert!(!body.contains("\n\n") && !body.contains('\r'), "{frame:?}");
        let data: Vec<&str> = body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let message: serde_json::Value = serde_json::from_str(&data.join("\n")).unwrap();
        assert_eq!(message["params"]["event"]["data"]["a"], 1);
        assert_eq!(message["method"], EVENT);
        assert!(data.join("\n").contains("\"data\":{ \n\n\"a\": 1}"), "{data:?}");
    }
}
