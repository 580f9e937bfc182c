//! What of a push queue must stay as it came: the library reads JSON into values, which forget the order of keys and the
//! spelling of numbers, and refuses numbers beyond its own. So pages and live events are taken out before it sees them, in the
//! order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::StreamExt;
use rmcp::model::{ClientRequest, JsonRpcRequest, NumberOrString, ServerJsonRpcMessage};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use serde_json::json;
use tokio::sync::Notify;

use super::lines::as_number;
use crate::fetch::json::{Kind, fields, kind, string};
use crate::fetch::queue::{EXTENSION, Live};

/// Asks for a live stream (MCP 2026-07-28, "Subscriptions").
pub(super) const LISTEN: &str = "subscriptions/listen";
/// Asks for a page of pending events.
pub(super) const GET: &str = "io.stagewise/push-notifications/get";
/// Acknowledges events.
pub(super) const ACK: &str = "io.stagewise/push-notifications/ack";
const EVENT: &str = "io.stagewise/push-notifications/event";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Live events that are kept while nobody takes them: what comes beyond is still pending at the server.
const EVENTS_MAX: usize = 1_000;
/// Their bytes.
const EVENTS_BYTES_MAX: usize = 8 << 20;

/// What a message was.
#[derive(Debug)]
pub(super) enum Taken {
    /// Nothing of a push queue: it goes on as it is.
    Nothing,
    /// It was taken whole.
    Whole,
    /// An answer whose result was taken: the rest of it goes on.
    Answer(Box<ServerJsonRpcMessage>),
}

/// What was taken out of one connection.
#[derive(Debug, Default)]
pub(super) struct Tap {
    kept: Mutex<Kept>,
    live: Notify,
    acknowledged: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    /// The page that was asked for last, and its result.
    page: Option<(NumberOrString, Option<String>)>,
    events: VecDeque<String>,
    events_bytes: usize,
    is_overflown: bool,
    is_alive: bool,
}

impl Tap {
    pub(super) fn new() -> Arc<Self> {
        Arc::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A stream is asked for: what came before is of another.
    pub(super) fn begin(&self) {
        let mut kept = self.kept();
        kept.events.clear();
        (kept.events_bytes, kept.is_overflown, kept.is_alive) = (0, false, false);
        drop(kept);
        // An acknowledgement of the one before.
        let _ = futures_util::FutureExt::now_or_never(self.acknowledged.notified());
    }

    /// Ready once a stream of ours was acknowledged.
    pub(super) async fn acknowledged(&self) {
        self.acknowledged.notified().await;
    }

    /// Notes a request that is sent. Whether its answer must stay as it comes.
    pub(super) fn asks(&self, request: &JsonRpcRequest<ClientRequest>) -> bool {
        let is_page = matches!(&request.request, ClientRequest::CustomRequest(custom) if custom.method == GET);
        if is_page {
            self.kept().page = Some((request.id.clone(), None));
        }
        is_page
    }

    /// The result of the page with this id, as it came.
    pub(super) fn page(&self, id: &NumberOrString) -> Option<String> {
        self.kept().page.take_if(|(asked, _)| asked == id)?.1
    }

    /// What happened next on the stream, if anything did.
    pub(super) fn next(&self) -> Option<Live> {
        let mut kept = self.kept();
        if let Some(event) = kept.events.pop_front() {
            kept.events_bytes = kept.events_bytes.saturating_sub(event.len());
            return Some(Live::Event(event));
        }
        if std::mem::take(&mut kept.is_overflown) {
            return Some(Live::Overflow);
        }
        std::mem::take(&mut kept.is_alive).then_some(Live::Alive)
    }

    /// Ready once something happened since the last time.
    pub(super) async fn live(&self) {
        self.live.notified().await;
    }

    /// Takes what is ours out of a message that came.
    pub(super) fn takes(&self, message: &[u8]) -> Taken {
        let Some([id, method, params, result]) =
            std::str::from_utf8(message).ok().and_then(|text| fields(text, ["id", "method", "params", "result"]).ok())
        else {
            return Taken::Nothing;
        };
        let Some(method) = method else {
            let id = id.and_then(|id| serde_json::from_str::<NumberOrString>(id.get()).ok());
            return match (id, result) {
                (Some(id), Some(result)) => self.takes_result(&id, result.get()),
                _ => Taken::Nothing,
            };
        };
        let params = params.map_or("{}", |params| params.get());
        let taken = match string(method).as_deref() {
            Some(EVENT) => {
                self.keep(params);
                Taken::Whole
            }
            Some(ACKNOWLEDGED) => {
                if is_of_ours(params) {
                    self.acknowledged.notify_one();
                }
                Taken::Nothing
            }
            _ => Taken::Nothing,
        };
        self.kept().is_alive = true;
        self.live.notify_one();
        taken
    }

    fn takes_result(&self, id: &NumberOrString, result: &str) -> Taken {
        let mut kept = self.kept();
        let Some((asked, page)) = &mut kept.page else { return Taken::Nothing };
        if asked != id && as_number(id).as_ref() != Some(asked) {
            return Taken::Nothing;
        }
        let plain = json!({ "jsonrpc": "2.0", "id": asked, "result": {} });
        match serde_json::from_value(plain) {
            Ok(answer) => {
                *page = Some(result.to_owned());
                Taken::Answer(answer)
            }
            Err(_) => Taken::Nothing,
        }
    }

    fn keep(&self, params: &str) {
        let mut kept = self.kept();
        let bytes = kept.events_bytes.saturating_add(params.len());
        if kept.events.len() >= EVENTS_MAX || bytes > EVENTS_BYTES_MAX {
            kept.is_overflown = true;
            return;
        }
        kept.events_bytes = bytes;
        kept.events.push_back(params.to_owned());
    }
}

/// Whether an acknowledgement is of a stream that was asked for by our key.
fn is_of_ours(params: &str) -> bool {
    let Ok([Some(accepted)]) = fields(params, ["notifications"]) else { return false };
    let ours = fields(accepted.get(), [EXTENSION]).ok();
    ours.and_then(|[ours]| ours).is_some_and(|ours| kind(ours) == Kind::Object)
}

/// The stream without what is ours in it.
pub(super) fn tapped(stream: BoxedSseResponse, tap: Arc<Tap>) -> BoxedSseResponse {
    let stream = stream.filter_map(move |event| {
        let left = match event {
            Ok(mut event) => match event.data.as_deref().map_or(Taken::Nothing, |data| tap.takes(data.as_bytes())) {
                Taken::Nothing => Some(Ok(event)),
                Taken::Whole => None,
                Taken::Answer(answer) => {
                    event.data = serde_json::to_string(&answer).ok();
                    Some(Ok(event))
                }
            },
            Err(error) => Some(Err(error)),
        };
        std::future::ready(left)
    });
    stream.boxed()
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CustomRequest, JsonRpcMessage};

    use super::*;

    fn event(text: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","method":"{EVENT}","params":{text}}}"#)
    }

    #[test]
    fn live_events_stay_as_they_came_and_in_order() {
        let tap = Tap::new();
        for text in [r#"{"event":{"b":1.0,"a":1e400}}"#, r#"{"event":{"n":123456789012345678901234567890}}"#] {
            assert!(matches!(tap.takes(event(text).as_bytes()), Taken::Whole));
        }
        assert_eq!(tap.next(), Some(Live::Event(r#"{"event":{"b":1.0,"a":1e400}}"#.to_owned())));
        assert!(matches!(tap.next(), Some(Live::Event(_))) && tap.next() == Some(Live::Alive) && tap.next().is_none());
    }

    #[test]
    fn a_page_is_kept_as_it_came_and_the_library_sees_that_it_was_answered() {
        let tap = Tap::new();
        let custom = |method: &str, id| {
            let custom = CustomRequest::new(method, Some(json!({ "limit": 1 })));
            JsonRpcRequest::new(NumberOrString::Number(id), ClientRequest::CustomRequest(custom))
        };
        assert!(!tap.asks(&custom(ACK, 6)) && tap.asks(&custom(GET, 7)));
        let answer = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{ "events":[{{"x":1e400}}] }}}}"#);
        assert!(matches!(tap.takes(answer("8").as_bytes()), Taken::Nothing));
        let Taken::Answer(plain) = tap.takes(answer("\"7\"").as_bytes()) else { panic!("not taken") };
        assert!(matches!(*plain, JsonRpcMessage::Response(plain) if plain.id == NumberOrString::Number(7)));
        assert_eq!(tap.page(&NumberOrString::Number(7)).as_deref(), Some(r#"{ "events":[{"x":1e400}] }"#));
        assert_eq!(tap.page(&NumberOrString::Number(7)), None);
        let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#;
        assert!(matches!(tap.takes(error.as_bytes()), Taken::Nothing));
    }

    #[tokio::test]
    async fn only_an_acknowledgement_with_our_key_is_one() {
        let acknowledged = |filter: &str| {
            let tap = Tap::new();
            let text =
                format!(r#"{{"jsonrpc":"2.0","method":"{ACKNOWLEDGED}","params":{{"notifications":{filter}}}}}"#);
            assert!(matches!(tap.takes(text.as_bytes()), Taken::Nothing));
            futures_util::FutureExt::now_or_never(tap.acknowledged()).is_some()
        };
        assert!(acknowledged(r#"{"io.stagewise/push-notifications":{}}"#));
        for other in ["{}", "null", r#"{"toolsListChanged":true}"#, r#"{"io.stagewise/push-notifications":false}"#] {
            assert!(!acknowledged(other), "{other}");
        }
    }

    #[test]
    fn what_is_not_taken_is_bounded_and_the_rest_is_told() {
        let tap = Tap::new();
        for _ in 0..EVENTS_MAX + 5 {
            tap.takes(event("{}").as_bytes());
        }
        let events = std::iter::from_fn(|| tap.next()).take_while(|live| matches!(live, Live::Event(_))).count();
        assert_eq!(events, EVENTS_MAX);
        tap.takes(event(&format!("{{\"a\":\"{}\"}}", "x".repeat(EVENTS_BYTES_MAX))).as_bytes());
        assert_eq!(tap.next(), Some(Live::Overflow));
        tap.takes(event("{}").as_bytes());
        tap.begin();
        assert_eq!(tap.next(), None);
    }
}
