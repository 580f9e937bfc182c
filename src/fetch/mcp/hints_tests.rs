//! Hints from small servers of every revision: asked for where they are advertised, and never in the way of a read.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::http_tests::{Got, Site, legacy_with, modern_with, outbox_at, result, text};
use super::*;

/// What a server says on its stream, and when.
#[derive(Clone)]
struct Voice {
    sender: mpsc::UnboundedSender<Option<String>>,
    receiver: Arc<Mutex<Option<mpsc::UnboundedReceiver<Option<String>>>>>,
}

impl Voice {
    fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver: Arc::new(Mutex::new(Some(receiver))) }
    }

    fn say(&self, message: &Value) {
        self.sender.send(Some(format!("data: {message}\n\n"))).unwrap();
    }

    /// Ends the stream.
    fn end(&self) {
        self.sender.send(None).unwrap();
    }

    /// The stream, which can be had once; a later one says nothing.
    fn stream(&self) -> Response {
        let receiver = self.receiver.lock().unwrap().take();
        let said = futures_util::stream::unfold(receiver, |receiver| async {
            let mut receiver = receiver?;
            let said = receiver.recv().await??;
            Some((Ok::<_, std::io::Error>(said), Some(receiver)))
        });
        ([("content-type", "text/event-stream")], Body::from_stream(said)).into_response()
    }
}

fn updated(uri: &str, subscription: Option<&Value>) -> Value {
    let mut params = json!({"uri": uri});
    if let Some(id) = subscription {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    }
    json!({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params})
}

fn acknowledged(id: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let params = json!({"notifications": {"resourceSubscriptions": ["acme://n"]}, "_meta": meta});
    json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
}

fn count(site: &Site, method: &str) -> usize {
    site.methods().iter().filter(|found| *found == method).count()
}

/// Waits for hints until `done`.
async fn wait_for(outbox: &mut McpOutbox, done: impl Fn() -> bool) {
    let until = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    let waited = async move {
        tokio::select! {
            () = outbox.changed() => panic!("there was no hint"),
            () = until => {}
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waited).await.unwrap();
}

async fn hint(outbox: &mut McpOutbox) {
    tokio::time::timeout(Duration::from_secs(20), outbox.changed()).await.unwrap();
}

fn hasty() -> Times {
    Times { again: Duration::from_millis(1), again_max: Duration::from_millis(8), ..Times::default() }
}

#[tokio::test]
async fn a_server_from_before_discovery_is_subscribed_to_and_its_hints_are_told() {
    let voice = Voice::new();
    let speaking = voice.clone();
    let site = Site::start(move |got, _| match got.message["method"].as_str() {
        None if got.method == Method::GET => speaking.stream(),
        Some("resources/subscribe") => result(got, json!({})),
        _ => legacy_with(got, "s-1", json!({"resources": {"subscribe": true}}), |got| text(got, "fine")),
    })
    .await;
    let mut outbox = outbox_at(&site.url, hasty());
    assert!(futures_util::poll!(outbox.changed()).is_pending(), "there is no connection yet");
    outbox.read("acme://n?cursor=1").await.unwrap();
    wait_for(&mut outbox, || count(&site, "resources/subscribe") == 1).await;
    let uri = site.log.lock().unwrap().iter().find(|got| got.message["method"] == "resources/subscribe").cloned();
    assert_eq!(uri.unwrap().message["params"]["uri"], "acme://n", "the bare URI is subscribed to");

    for uri in ["acme://n", "acme://n?cursor=7&maxEvents=100"] {
        voice.say(&updated(uri, None));
        hint(&mut outbox).await;
    }
    for uri in ["acme://other", "acme://n", "acme://n", "acme://n"] {
        voice.say(&updated(uri, None));
    }
    hint(&mut outbox).await;
    outbox.read("acme://n?cursor=2").await.unwrap();
    assert_eq!(count(&site, "resources/subscribe"), 1);
    outbox.close().await;
    assert!(futures_util::poll!(outbox.changed()).is_pending(), "there is no connection any more");
}

#[tokio::test]
async fn a_hint_is_not_lost_when_nobody_waits_for_it_and_many_are_one() {
    let site = Site::start(|got, _| match got.message["method"].as_str() {
        Some("resources/subscribe") => result(got, json!({})),
        _ => legacy_with(got, "s-1", json!({"resources": {"subscribe": true}}), |got| text(got, "fine")),
    })
    .await;
    let mut outbox = outbox_at(&site.url, hasty());
    outbox.read("acme://n").await.unwrap();
    wait_for(&mut outbox, || count(&site, "resources/subscribe") == 1).await;
    let handler = outbox.connection.as_ref().unwrap().handler.clone();
    for _ in 0..100 {
        let mut given_up = outbox.changed();
        assert!(futures_util::poll!(&mut given_up).is_pending());
        // It is woken, and given up before it is asked.
        handler.hint("acme://n");
        drop(given_up);
        assert!(futures_util::poll!(outbox.changed()).is_ready());
        handler.hint("acme://n");
        handler.hint("acme://n");
        assert!(futures_util::poll!(outbox.changed()).is_ready());
    }
    handler.hint("acme://n");
    outbox.read("acme://n").await.unwrap();
    assert!(futures_util::poll!(outbox.changed()).is_ready());
    assert!(futures_util::poll!(outbox.changed()).is_pending(), "hints are one");
    outbox.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_advertise_hints_is_never_asked_for_them() {
    for capabilities in [json!({"resources": {}}), json!({"resources": {"subscribe": false}}), json!({})] {
        let legacy = capabilities.clone();
        let old = Site::start(move |got, _| legacy_with(got, "s-1", legacy.clone(), |got| text(got, "fine"))).await;
        let new = Site::start(move |got, _| modern_with(got, capabilities.clone(), |got| text(got, "fine"))).await;
        for site in [old, new] {
            let mut outbox = outbox_at(&site.url, hasty());
            outbox.read("acme://n").await.unwrap();
            assert!(futures_util::poll!(outbox.changed()).is_pending());
            outbox.read("acme://n").await.unwrap();
            assert!(futures_util::poll!(outbox.changed()).is_pending());
            outbox.close().await;
            assert_eq!(count(&site, "resources/subscribe") + count(&site, "subscriptions/listen"), 0);
        }
    }
}

#[tokio::test]
async fn a_subscription_that_is_refused_or_hangs_costs_nothing_but_the_hints() {
    let error = |got: &Got| {
        let error = json!({"code": -32601, "message": "Method not found"});
        let body = json!({"jsonrpc": "2.0", "id": got.message["id"], "error": error});
        ([("content-type", "application/json")], body.to_string()).into_response()
    };
    let hang = |_: &Got| {
        let nothing = Body::from_stream(futures_util::stream::pending::<Result<String, std::io::Error>>());
        ([("content-type", "application/json")], nothing).into_response()
    };
    let fail = |_: &Got| (StatusCode::INTERNAL_SERVER_ERROR, "no").into_response();
    let answers: [fn(&Got) -> Response; 3] = [error, hang, fail];
    for answer in answers {
        let capabilities = || json!({"resources": {"subscribe": true}});
        let old = Site::start(move |got, _| match got.message["method"].as_str() {
            Some("resources/subscribe") => answer(got),
            _ => legacy_with(got, "s-1", capabilities(), |got| text(got, "fine")),
        });
        let new = Site::start(move |got, _| match got.message["method"].as_str() {
            Some("subscriptions/listen") => answer(got),
            _ => modern_with(got, capabilities(), |got| text(got, "fine")),
        });
        for (site, method) in [(old.await, "resources/subscribe"), (new.await, "subscriptions/listen")] {
            let mut outbox = outbox_at(&site.url, hasty());
            outbox.read("acme://n").await.unwrap();
            wait_for(&mut outbox, || count(&site, method) == 1).await;
            for _ in 0..3 {
                assert!(futures_util::poll!(outbox.changed()).is_pending());
                assert_eq!(outbox.read("acme://n").await, Ok("fine".to_owned()));
            }
            outbox.close().await;
            assert_eq!(count(&site, method), 1, "it is left alone until the next connection");
        }
    }
}

#[tokio::test]
async fn a_server_of_the_newest_revision_is_listened_to_and_again_when_it_ends_that() {
    let voices = Arc::new(Mutex::new(Vec::<(Value, Voice)>::new()));
    let opened = Arc::clone(&voices);
    let site = Site::start(move |got, _| match got.message["method"].as_str() {
        Some("subscriptions/listen") => {
            let (id, voice) = (got.message["id"].clone(), Voice::new());
            voice.say(&acknowledged(&id));
            opened.lock().unwrap().push((id, voice.clone()));
            voice.stream()
        }
        _ => modern_with(got, json!({"resources": {"subscribe": true}}), |got| text(got, "fine")),
    })
    .await;
    let mut outbox = outbox_at(&site.url, hasty());
    outbox.read("acme://n").await.unwrap();
    let listens = || voices.lock().unwrap().len();
    wait_for(&mut outbox, || listens() == 1).await;
    let filter = site.log.lock().unwrap().iter().find(|got| got.message["method"] == "subscriptions/listen").cloned();
    assert_eq!(filter.unwrap().message["params"]["notifications"], json!({"resourceSubscriptions": ["acme://n"]}));

    for turn in 0..4 {
        let (id, voice) = voices.lock().unwrap()[turn].clone();
        for uri in ["acme://n", "acme://n?cursor=7"] {
            voice.say(&updated(uri, Some(&id)));
            hint(&mut outbox).await;
        }
        if turn % 2 == 0 {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
            voice.say(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}}));
        }
        voice.end();
        wait_for(&mut outbox, || listens() == turn + 2).await;
        assert_eq!(outbox.read("acme://n").await, Ok("fine".to_owned()), "the connection is as good as before");
    }
    outbox.close().await;
    assert_eq!(count(&site, "server/discover"), 1);
}

#[tokio::test]
async fn a_server_that_was_listened_to_and_cannot_be_reached_is_listened_to_once_it_is_back() {
    let (voice, listens) = (Voice::new(), Arc::new(Mutex::new(0)));
    let (speaking, counting) = (voice.clone(), Arc::clone(&listens));
    let site = Site::start(move |got, _| {
        if got.message["method"] != "subscriptions/listen" {
            return modern_with(got, json!({"resources": {"subscribe": true}}), |got| text(got, "fine"));
        }
        let mut listens = counting.lock().unwrap();
        *listens += 1;
        if (2..5).contains(&*listens) {
            return StatusCode::BAD_GATEWAY.into_response();
        }
        let opened = if *listens == 1 { speaking.clone() } else { Voice::new() };
        opened.say(&acknowledged(&got.message["id"]));
        if *listens > 1 {
            opened.say(&updated("acme://n", Some(&got.message["id"])));
        }
        opened.stream()
    })
    .await;
    let mut outbox = outbox_at(&site.url, hasty());
    outbox.read("acme://n").await.unwrap();
    wait_for(&mut outbox, || *listens.lock().unwrap() == 1).await;
    voice.end();
    hint(&mut outbox).await;
    assert_eq!(*listens.lock().unwrap(), 5);
    outbox.close().await;
}

#[tokio::test]
async fn a_session_that_was_opened_anew_is_subscribed_to_anew() {
    let site = Site::start(|got, before| {
        let reads = before.iter().filter(|got| got.message["method"] == "resources/read").count();
        let (session, capabilities) =
            (if reads == 0 { "s-1" } else { "s-2" }, json!({"resources": {"subscribe": true}}));
        let is_expired = reads > 0 && got.headers.get("mcp-session-id").is_some_and(|session| session == "s-1");
        match got.message["method"].as_str() {
            Some(_) if is_expired => StatusCode::NOT_FOUND.into_response(),
            Some("resources/subscribe") => result(got, json!({})),
            _ => legacy_with(got, session, capabilities, |got| text(got, "fine")),
        }
    })
    .await;
    let mut outbox = outbox_at(&site.url, hasty());
    outbox.read("acme://n").await.unwrap();
    wait_for(&mut outbox, || count(&site, "resources/subscribe") == 1).await;
    outbox.read("acme://n").await.unwrap();
    wait_for(&mut outbox, || count(&site, "resources/subscribe") == 2).await;
    let sessions: Vec<_> = {
        let log = site.log.lock().unwrap();
        let subscribed = log.iter().filter(|got| got.message["method"] == "resources/subscribe");
        subscribed.map(|got| got.headers["mcp-session-id"].clone()).collect()
    };
    assert_eq!(sessions, ["s-1", "s-2"]);
    outbox.close().await;
}

/// A child that says that its outbox changed right after each read, and when it is subscribed to.
const CHILD: &str = r#"
import json, sys
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def hint(meta): say({"method": "notifications/resources/updated", "params": {"uri": "acme://n?cursor=1", **meta}})
modern = sys.argv[1] == "modern"
subscription = None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message["method"], message.get("id")
    capabilities = {"resources": {"subscribe": True}}
    if method == "server/discover" and modern:
        say({"id": id, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"}})
    elif method == "initialize":
        say({"id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "a", "version": "1"}}})
    elif method == "resources/subscribe":
        say({"id": id, "result": {}})
        hint({})
    elif method == "subscriptions/listen":
        meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}}
        say({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": message["params"]["notifications"], **meta}})
        hint(meta)
    elif method == "resources/read":
        say({"id": id, "result": {"contents": [{"uri": "acme://n", "text": "fine"}]}})
    elif id is not None:
        say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
"#;

#[tokio::test]
async fn a_child_is_subscribed_to_in_the_way_of_its_revision() {
    for (revision, expected) in [("legacy", "2025-06-18"), ("modern", "2026-07-28")] {
        let words = ["python3", "-c", CHILD, revision];
        let mut outbox = super::stdio_tests::run(&words, &[], hasty());
        assert_eq!(outbox.read("acme://n").await, Ok("fine".to_owned()));
        hint(&mut outbox).await;
        assert_eq!(outbox.revision().as_deref(), Some(expected));
        outbox.close().await;
    }
}
