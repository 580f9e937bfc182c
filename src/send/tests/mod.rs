//! Attempts of a plugin that follows a script, against a real HTTP server and a store in memory.

mod attempts;
mod bounds;
mod dispatching;
mod dry;
mod explain;
mod gate;
mod memory;
mod notices;
mod pacing;
mod probation;
mod reopening;
mod reports;
mod resuming;
mod rules;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, watch};

use super::attempt::in_milliseconds;
use super::keys::Keys;
use super::queue::Queues;
use super::{Came, Current, Dispatcher, Ended, IN_FLIGHT_MAX, Live, Means, Rest, Stop, book, settings_mistakes};
use crate::clock::Clock;
use crate::config::{
    Access, Config, Grant, HostPattern, HttpGrant, Limits, Plugins, Route, Secret, SecretPlace, Target, Workspace,
};
use crate::inbox::book::QueueKey;
use crate::inbox::delivery::Cause;
use crate::inbox::{Change, Claim, DeliveryId, Fence, Inbox, Written};
use crate::notification::{Event, Level, Name, Notification};
use crate::route::Matcher;
use crate::send::effect::Effects;
use crate::telemetry::Nobody;
use crate::wasm::guests::guest;
use crate::wasm::{Catalog, Sandbox, Settings};
use memory::Memory;

const SECRET: &str = "http://127.0.0.1:9/value-that-nobody-sees";

/// When the tests' clocks begin.
const START: &str = "2026-03-01T12:00:00.123Z";

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn start() -> Timestamp {
    START.parse().unwrap()
}

/// The scripted plugin and its like, loaded once: `scripted` does as it is told, for `riskyone` a repeat is harmful, and
/// `an-agent` starts agents.
async fn catalog() -> Catalog {
    static CATALOG: OnceCell<Catalog> = OnceCell::const_new();
    let open = async || {
        let folder = tempfile::tempdir().unwrap();
        let scripted = guest("scripted");
        let risky = changed(&changed(&scripted, "scripted\"", "riskyone\""), "\"tolerable\"", "\"harmful\"  ");
        let agent = changed(&changed(&scripted, "scripted\"", "an-agent\""), "\"agent\":false", "\"agent\":true ");
        let puppet = guest("puppet");
        for (name, bytes) in [("scripted", &scripted), ("riskyone", &risky), ("an-agent", &agent), ("puppet", &puppet)]
        {
            std::fs::write(folder.path().join(format!("{name}.wasm")), bytes).unwrap();
        }
        let sandbox = Sandbox::new(Settings::new(Limits::default())).unwrap();
        let (catalog, problems) = Catalog::open(&sandbox, folder.path()).await;
        assert_eq!(problems, []);
        catalog
    };
    CATALOG.get_or_init(open).await.clone()
}

/// A component that describes itself in other words of the same length.
fn changed(component: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let at = component.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
    let mut bytes = component.to_vec();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

/// A server whose path says how it answers, and which remembers what it was asked.
#[derive(Clone)]
struct Sink {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    requests: Arc<Mutex<Vec<Value>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Sink {
    async fn open() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let sink = Self { address, asked: Arc::default(), requests: Arc::default(), count: Arc::default() };
        let service = Router::new().fallback(answer).with_state(sink.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        sink
    }

    /// The paths that were asked for, in order.
    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The requests, whole, in order.
    fn requests(&self) -> Vec<Value> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns once so many requests came.
    async fn asked_times(&self, times: usize) {
        self.count.subscribe().wait_for(|count| *count >= times).await.unwrap();
    }
}

async fn answer(State(sink): State<Sink>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let headers = headers.iter().map(|(name, value)| json!([name.as_str(), value.to_str().unwrap()]));
    let (headers, body) = (headers.collect::<Vec<_>>(), String::from_utf8_lossy(&body));
    let request = json!({"method": method.as_str(), "uri": uri.to_string(), "headers": headers, "body": body});
    sink.requests.lock().unwrap().push(request);
    sink.asked.lock().unwrap().push(uri.path().to_owned());
    sink.count.send_modify(|count| *count += 1);
    match uri.path().split('/').nth(1).unwrap() {
        "never" => std::future::pending().await,
        "redirect" => (StatusCode::FOUND, [(header::LOCATION, "/200")]).into_response(),
        "large" => "x".repeat(300 * 1024).into_response(),
        status => StatusCode::from_u16(status.parse().unwrap()).unwrap().into_response(),
    }
}

fn target(id: &str, plugin: &str, settings: Value) -> Target {
    Target::plain(id.to_owned(), name(plugin), settings)
}

fn route(route: &str, pattern: &str, deliver: Vec<Target>) -> Route {
    let when = Matcher { name: vec![pattern.to_owned()], ..Matcher::default() };
    Route { name: name(route), owner: "admin@example.com".to_owned(), when, deliver }
}

fn config(routes: Vec<Route>, sink: SocketAddr) -> Config {
    let workspace = Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: name("acme"),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::new(),
        router: crate::route::Router::new(routes.iter().map(|route| route.when.clone()).collect()).unwrap(),
        routes,
    };
    let grant = |port| HttpGrant {
        scheme: "http",
        host: HostPattern::Exact("127.0.0.1".to_owned()),
        port,
        private: false,
        workspaces: Vec::new(),
    };
    let grants = Grant { http: vec![grant(sink.port()), grant(9)], ..Grant::default() };
    let plugins = ["scripted", "riskyone", "an-agent", "versioned"];
    let secret = Secret { workspaces: vec![name("acme")], ..Secret::new(SECRET.to_owned(), SecretPlace::Url) };
    Config {
        file: "switchbell.yaml".into(),
        listen: ([127, 0, 0, 1], 0).into(),
        access: Access::default(),
        store: "switchbell.db".into(),
        plugins: Plugins {
            grants: plugins.iter().map(|plugin| (name(plugin), grants.clone())).collect(),
            limits: Limits { steps_max: 8, ..Limits::default() },
            ..Plugins::at("plugins".into())
        },
        mail: None,
        secrets: BTreeMap::from([(name("hook"), secret)]),
        workspaces: BTreeMap::from([(name("acme"), workspace)]),
        aside: BTreeSet::new(),
        retention: Default::default(),
        reads_per_minute_max: 60,
    }
}

/// Means with a store in memory and a clock that is moved by hand.
struct Stand {
    sink: Sink,
    store: Arc<Memory>,
    clock: Clock,
    means: Arc<Means>,
}

impl Stand {
    /// One route to one target with this script, in which `AT` is the address of the sink.
    async fn new(script: &str) -> Self {
        Self::with("scripted", |at| json!(script.replace("AT", at))).await
    }

    async fn with(plugin: &str, settings: impl FnOnce(&str) -> Value) -> Self {
        let deliver = |at: &str| vec![route("news", "domain.*", vec![target("target", plugin, settings(at))])];
        Self::routing(deliver).await
    }

    async fn routing(routes: impl FnOnce(&str) -> Vec<Route>) -> Self {
        Self::having(catalog().await, routes).await
    }

    async fn having(catalog: Catalog, routes: impl FnOnce(&str) -> Vec<Route>) -> Self {
        let sink = Sink::open().await;
        let config = Arc::new(config(routes(&format!("http://{}", sink.address)), sink.address));
        let (store, clock) = (Arc::new(Memory::default()), Clock::manual(start()));
        let means = means_with(catalog, config, Arc::clone(&store) as Arc<dyn Inbox>, &clock).await;
        Self { sink, store, clock, means }
    }

    async fn attempt(&self, claim: &Claim, stop: &Stop) -> Came {
        let now = in_milliseconds(self.clock.now());
        let began = claim.begun.as_ref().map_or(now, |begun| begun.started_at);
        self.means.attempt(claim, began, stop).await
    }

    async fn ended(&self, claim: &Claim) -> Ended {
        match self.attempt(claim, &Stop::default()).await {
            Came::Ended(ended) => ended,
            other => panic!("it has not ended: {other:?}"),
        }
    }

    async fn rests(&self, claim: &Claim, stop: &Stop) -> Rest {
        match self.attempt(claim, stop).await {
            Came::Rests(rest) => rest,
            other => panic!("it does not rest: {other:?}"),
        }
    }
}

async fn means_with(catalog: Catalog, config: Arc<Config>, inbox: Arc<dyn Inbox>, clock: &Clock) -> Arc<Means> {
    let keys = Keys::new(&inbox.key());
    let (book, _) = book(&config, &catalog, &keys).await;
    Arc::new(Means {
        effects: Effects::new(&config, clock).unwrap(),
        live: Live::new(Current { config, catalog, book: Arc::new(book) }),
        clock: clock.clone(),
        queues: Queues::new(clock.clone(), IN_FLIGHT_MAX),
        keys,
        inbox,
    })
}

/// The dispatcher over these means, with the targets that their configuration has.
async fn dispatcher(means: &Arc<Means>) -> Arc<Dispatcher> {
    let Current { config, catalog, .. } = &*means.live.get();
    assert_eq!(settings_mistakes(config, catalog).await, []);
    Dispatcher::start(Arc::clone(means), Arc::new(Nobody)).await.unwrap()
}

fn notification(source: &str) -> Notification {
    let event = Event {
        event_id: "e1".to_owned(),
        name: "domain.active".to_owned(),
        timestamp: Timestamp::UNIX_EPOCH,
        level: Level::Info,
        subject: None,
        title: "a title".to_owned(),
        body: None,
        link: None,
        data: "{}".to_owned(),
        content: None,
    };
    Notification {
        workspace: name("acme"),
        seq: 1,
        source: name(source),
        received_at: Timestamp::UNIX_EPOCH,
        effective_level: Level::Info,
        event,
    }
}

/// What version 1.0.0 of a plugin asked to have kept.
fn written(value: &str) -> Written {
    Written { value: value.to_owned(), plugin_version: Some("1.0.0".to_owned()) }
}

fn set(value: &str) -> Change {
    Change::Set(written(value))
}

fn queue(route: &str, target: &str) -> QueueKey {
    QueueKey { workspace: name("acme"), route: name(route), target: target.into() }
}

fn claim() -> Claim {
    Claim {
        id: DeliveryId { store: "0badcafe".into(), number: 1 },
        fence: Fence::default(),
        queue: queue("news", "target"),
        plugin: name("scripted"),
        attempt: NonZeroU32::MIN,
        since: start(),
        due_at: start(),
        cause: Cause::First,
        notifications: vec![notification("registrar")],
        omitted: 0,
        resume: None,
        memory: None,
        begun: None,
    }
}
