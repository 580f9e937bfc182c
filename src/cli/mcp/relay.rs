//! Messages to the server and back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::Response;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Messages, answers, refusal};
use super::door::Server;
use super::headers;
use crate::cli::output::tell;

/// Requests under way; each is a connection.
const UNDER_WAY_MAX: usize = 256;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// Codes of JSON-RPC.
const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
/// The server was not reached, or refused the request as such.
const NOT_RELAYED: i32 = -32_000;

/// Relays. Its clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Relay(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    server: Server,
    lines: mpsc::Sender<String>,
    agreed: Mutex<Agreed>,
    /// Requests under way, by their ids, each with what ends it.
    under_way: Mutex<HashMap<String, UnderWay>>,
}

/// What older revisions agree on at the beginning.
#[derive(Debug, Default)]
struct Agreed {
    revision: Option<HeaderValue>,
    session: Option<HeaderValue>,
}

#[derive(Debug)]
struct UnderWay {
    end: CancellationToken,
    /// Whether its answer is a stream without an end.
    is_stream: bool,
}

/// A message that is to be sent.
#[derive(Debug)]
pub(super) struct Message {
    text: String,
    value: Value,
    /// The id, where it is a request.
    id: Option<Value>,
    end: CancellationToken,
}

impl Relay {
    pub(super) fn new(server: Server, lines: mpsc::Sender<String>) -> Self {
        Self(Arc::new(Shared { server, lines, agreed: Mutex::default(), under_way: Mutex::default() }))
    }

    /// Ready once nobody reads what is said.
    pub(super) async fn nobody_reads(&self) {
        self.0.lines.closed().await;
    }

    /// Takes a line: a message that can be sent beside others is returned; what others depend on is sent before.
    pub(super) async fn take(&self, line: &str) -> Option<Message> {
        let value: Value = match serde_json::from_str(line) {
            Ok(value @ Value::Object(_)) => value,
            Ok(_) => {
                self.refuse(&Value::Null, INVALID_REQUEST, "a message is a JSON object: send one a line").await;
                return None;
            }
            Err(error) => {
                self.refuse(&Value::Null, PARSE_ERROR, &format!("this is no JSON: {error}")).await;
                return None;
            }
        };
        let method = headers::method(&value);
        let id = value.get("id").filter(|id| method.is_some() && !id.is_null()).cloned();
        if method == Some("notifications/cancelled") && self.cancelled(&value) {
            return None;
        }
        let is_stream = method == Some("subscriptions/listen");
        let is_first = method == Some("initialize");
        let message = Message { text: line.to_owned(), value, id, end: CancellationToken::new() };
        if let Some(id) = &message.id
            && !self.begin(id, &message.end, is_stream)
        {
            let why = format!("{UNDER_WAY_MAX} streams are under way, or a request with this id is: end one first");
            self.refuse(id, INVALID_REQUEST, &why).await;
            return None;
        }
        // What is no request is in order with the rest, and what was agreed on is needed by what follows.
        if message.id.is_none() || is_first {
            self.send(message).await;
            return None;
        }
        Some(message)
    }

    /// Says that a line was too long.
    pub(super) async fn refuse_too_long(&self) {
        self.refuse(&Value::Null, INVALID_REQUEST, "the message is too long: no tool takes as much").await;
    }

    /// Ends the requests whose answers would not end.
    pub(super) fn end_streams(&self) {
        for under_way in self.under_way().values().filter(|under_way| under_way.is_stream) {
            under_way.end.cancel();
        }
    }

    /// Sends a message, and what is answered back.
    pub(super) fn send(&self, message: Message) -> impl Future<Output = ()> + use<> {
        let relay = self.clone();
        async move {
            let end = message.end.clone();
            // A closed connection tells the server that nobody waits any more.
            let is_over = end.run_until_cancelled(relay.exchange(&message)).await.is_some();
            // The id of one that was cancelled may be another's by now.
            if let Some(id) = message.id.filter(|_| is_over) {
                relay.under_way().remove(&id.to_string());
            }
        }
    }

    async fn exchange(&self, message: &Message) {
        let sent = self.post(message).await;
        let why = match sent {
            Ok(response) => match Answer::of(response).await {
                Answer::Messages(messages) => self.pass_on(message, messages).await,
                Answer::Taken if message.id.is_none() => Ok(()),
                Answer::Taken => Err("the server took the request and answered nothing; check --server".to_owned()),
                Answer::Refused(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        match (why, &message.id) {
            (Err(why), Some(id)) => self.refuse(id, NOT_RELAYED, &why).await,
            (Err(why), None) => tell(format_args!("switchbell: {why}")),
            (Ok(()), _) => {}
        }
    }

    async fn post(&self, message: &Message) -> Result<Response, String> {
        let headers = {
            let agreed = self.agreed();
            let mut headers = headers::of(&message.value, agreed.revision.as_ref());
            headers.extend(agreed.session.clone().map(|session| (SESSION_ID, session)));
            headers
        };
        self.0.server.post(&message.text, headers).await
    }

    /// Writes the messages of an answer. An error when the request's own is not among them.
    async fn pass_on(&self, message: &Message, mut messages: Messages) -> Result<(), String> {
        let session = messages.header(&SESSION_ID);
        let mut is_answered = message.id.is_none();
        while let Some(text) = messages.next().await? {
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| format!("the server answered what is no JSON ({error}); check --server"))?;
            if value.get("jsonrpc").is_none() {
                return Err("the server answered what is no message of MCP; check --server".to_owned());
            }
            if let Some(id) = &message.id {
                if answers(&value, id) {
                    is_answered = true;
                    self.agree(message, &value, session.clone());
                } else if let Some(why) = refusal(&value) {
                    // It refused the request before it knew which one it was.
                    return Err(why);
                }
            }
            if self.0.lines.send(text).await.is_err() {
                return Ok(());
            }
        }
        is_answered.then_some(()).ok_or_else(|| "the answer of the server ended before it was whole".to_owned())
    }

    /// Keeps what was agreed on, if this answers the first message.
    fn agree(&self, message: &Message, answer: &Value, session: Option<HeaderValue>) {
        if headers::method(&message.value) != Some("initialize") {
            return;
        }
        let revision = answer.get("result").and_then(|result| result.get("protocolVersion")?.as_str());
        let revision = revision.and_then(|revision| HeaderValue::from_str(revision).ok());
        *self.agreed() = Agreed { revision, session };
    }

    /// Ends the request that a message says is not waited for. Whether there was one, and the server need not be told: the
    /// connection says it, but where there are sessions.
    fn cancelled(&self, message: &Value) -> bool {
        let id = message.get("params").and_then(|params| params.get("requestId"));
        let found = id.and_then(|id| self.under_way().remove(&id.to_string()));
        if let Some(under_way) = &found {
            under_way.end.cancel();
        }
        found.is_some() && self.agreed().session.is_none()
    }

    /// Whether nothing is to be taken until an answer came. Where all that is under way are streams, none may come for long:
    /// then what is taken is refused.
    pub(super) fn is_full(&self) -> bool {
        let under_way = self.under_way();
        under_way.len() >= UNDER_WAY_MAX && !under_way.values().all(|one| one.is_stream)
    }

    fn begin(&self, id: &Value, end: &CancellationToken, is_stream: bool) -> bool {
        let mut under_way = self.under_way();
        let id = id.to_string();
        if under_way.len() >= UNDER_WAY_MAX || under_way.contains_key(&id) {
            return false;
        }
        under_way.insert(id, UnderWay { end: end.clone(), is_stream });
        true
    }

    async fn refuse(&self, id: &Value, code: i32, why: &str) {
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": why } });
        // Nobody reads any more otherwise.
        let _ = self.0.lines.send(error.to_string()).await;
    }

    fn agreed(&self) -> std::sync::MutexGuard<'_, Agreed> {
        self.0.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn under_way(&self) -> std::sync::MutexGuard<'_, HashMap<String, UnderWay>> {
        self.0.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
