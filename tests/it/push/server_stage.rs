//! Our server of the extension, consumers of it, and what they are told.

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use switchbell::clock::Clock;
use switchbell::inbox::{Ended, Entry, Intake};
use switchbell::notification::{Event, Level};

use crate::mcp::stage::{ACME, Answer, MODERN, Stage, event, name};
use crate::support::PATIENCE;

pub const EXTENSION: &str = "io.stagewise/push-notifications";
pub const GET: &str = "io.stagewise/push-notifications/get";
pub const ACK: &str = "io.stagewise/push-notifications/ack";
pub const LISTEN: &str = "subscriptions/listen";

/// The consumers of the file: `triage` has everything, `watch` what is named so.
pub const CONSUMERS: &str = "consumers: { triage: {}, watch: { when: { name: \"domain.**\", level: attention } } }\n";

/// A server whose workspace `acme` has the consumers.
pub async fn start() -> Stage {
    let stage = Stage::start().await;
    stage.reload_with("workspaces/acme.yaml", &format!("{ACME}{CONSUMERS}")).await;
    stage
}

pub fn capabilities() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

/// What a request says of itself.
pub fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities(),
        "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
    })
}

/// A request of the extension.
pub fn message(id: &Value, method: &str, mut params: Value) -> Value {
    if params["_meta"].is_null() {
        params["_meta"] = meta();
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn filter() -> Value {
    json!({ "notifications": { EXTENSION: {} } })
}

/// A consumer of `acme`.
pub struct Consumer {
    client: reqwest::Client,
    url: String,
    pub token: String,
    /// The id of its token.
    pub id: i64,
}

impl Consumer {
    pub async fn new(stage: &Stage, name: &str) -> Self {
        let made = stage.make(json!({ "role": "agent", "workspaceId": "acme", "consumer": name })).await;
        let id = made["made"]["id"].as_i64().unwrap();
        Self { id, ..Self::at(&stage.url, made["token"].as_str().unwrap()) }
    }

    /// One that reaches `/mcp` of a server there.
    pub fn at(url: &str, token: &str) -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { client, url: url.to_owned(), token: token.to_owned(), id: 0 }
    }

    fn request(&self, revision: &str, message: &Value) -> reqwest::RequestBuilder {
        let request = self.client.post(&self.url).bearer_auth(&self.token).body(message.to_string());
        let request = request.header("content-type", "application/json").header("mcp-protocol-version", revision);
        let request = request.header("accept", "application/json, text/event-stream");
        request.header("mcp-method", message["method"].as_str().unwrap())
    }

    /// Posts a message as clients of 2026-07-28 do; the status, and the answer as it was written.
    pub async fn post(&self, message: &Value) -> Answer {
        let response = self.request(MODERN, message).send().await.unwrap();
        Answer { status: response.status().as_u16(), challenge: None, text: response.text().await.unwrap() }
    }

    /// The result of a request.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.post(&message(&json!(7), method, params)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let answer = answer.json();
        assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&json!(7), &json!("complete")), "{answer}");
        answer["result"].clone()
    }

    /// The error of a request, with its HTTP status.
    pub async fn refusal(&self, method: &str, params: Value) -> (u16, Value) {
        let answer = self.post(&message(&json!(7), method, params)).await;
        let error = answer.json()["error"].clone();
        assert!(error.is_object(), "{answer:?}");
        (answer.status, error)
    }

    /// The ids of what is pending, up to a page of it.
    pub async fn pending(&self) -> Vec<String> {
        ids(&self.result(GET, json!({})).await)
    }

    pub async fn acknowledge(&self, ids: &[&str]) {
        assert_eq!(self.result(ACK, json!({ "eventIds": ids })).await, json!({ "resultType": "complete" }));
    }

    /// Listens, and waits for its acknowledgement.
    pub async fn listen(&self, id: Value) -> Live {
        let mut live = self.open(&message(&id, LISTEN, filter())).await;
        let first = live.next().await.unwrap();
        let expected = json!({ "notifications": { EXTENSION: {} }, "_meta": { SUBSCRIPTION: id } });
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"], expected);
        live
    }

    /// Posts a message whose answer is a stream.
    pub async fn open(&self, message: &Value) -> Live {
        self.open_as(MODERN, message).await
    }

    /// The same by another revision.
    pub async fn open_as(&self, revision: &str, message: &Value) -> Live {
        let response = self.request(revision, message).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((response.status().as_u16(), header("content-type").as_str()), (200, "text/event-stream"));
        assert_eq!((header("x-accel-buffering").as_str(), header("cache-control").as_str()), ("no", "no-store"));
        let stream = response.bytes_stream().map(|chunk| chunk.map(|chunk| chunk.to_vec())).boxed();
        Live { stream, rest: String::new(), id: message["id"].clone() }
    }
}

pub const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub fn ids(page: &Value) -> Vec<String> {
    let events = page["events"].as_array().unwrap_or_else(|| panic!("no page: {page}"));
    events.iter().map(|event| event["eventId"].as_str().unwrap().to_owned()).collect()
}

/// A live stream as it comes.
pub struct Live {
    stream: BoxStream<'static, reqwest::Result<Vec<u8>>>,
    rest: String,
    id: Value,
}

impl Live {
    /// The next event of the stream as it was written: its lines. None at the end.
    pub async fn lines(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let event = event.to_owned();
                self.rest = rest.to_owned();
                return Some(event);
            }
            let chunk = tokio::time::timeout(PATIENCE, self.stream.next()).await.expect("nothing came")?;
            self.rest.push_str(&String::from_utf8(chunk.ok()?).unwrap());
        }
    }

    /// The next message as it was written.
    pub async fn text(&mut self) -> Option<String> {
        loop {
            let event = self.lines().await?;
            let data: Vec<&str> = event.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
            if !data.is_empty() {
                return Some(data.join("\n"));
            }
        }
    }

    /// The next message; none at the end.
    pub async fn next(&mut self) -> Option<Value> {
        self.text().await.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// The id of the event that is told next.
    pub async fn told(&mut self) -> String {
        let message = self.next().await.expect("it ended");
        assert_eq!(message["method"], format!("{EXTENSION}/event"), "{message}");
        let meta = json!({ "switchbell/handed-on": true, SUBSCRIPTION: self.id });
        assert_eq!(message["params"]["_meta"], meta);
        message["params"]["event"]["eventId"].as_str().unwrap().to_owned()
    }

    /// Waits for the end in good order.
    pub async fn ended(mut self) {
        let result = json!({ "resultType": "complete", "_meta": { SUBSCRIPTION: self.id } });
        let expected = json!({ "jsonrpc": "2.0", "id": self.id, "result": result });
        assert_eq!(self.next().await, Some(expected));
        assert_eq!(self.next().await, None);
    }
}

/// Writes what a connector told into the inbox of `acme`, and into the queues of these consumers.
pub async fn emit(stage: &Stage, source: &str, events: Vec<Event>, consumers: &[&str]) {
    let consumers: Vec<_> = consumers.iter().map(|consumer| name(consumer)).collect();
    let entry = |event: Event| Entry {
        effective_level: Level::Attention,
        event,
        owed: Vec::new(),
        consumers: consumers.clone(),
    };
    let intake = Intake {
        workspace: name("acme"),
        source: name(source),
        received_at: Clock::system().now(),
        is_first: false,
        entries: events.into_iter().map(entry).collect(),
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    };
    stage.app.inbox().accept(intake).await.unwrap();
}

/// The same for events with these ids from the connector `crm`.
pub async fn emit_ids(stage: &Stage, ids: &[&str], consumers: &[&str]) {
    emit(stage, "crm", ids.iter().map(|id| event(id)).collect(), consumers).await;
}
