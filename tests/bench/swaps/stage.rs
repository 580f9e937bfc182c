//! A server without its edges: everything between the store and a sink, with the owner of versions.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use futures_util::future::join_all;
use jiff::Timestamp;
use switchbell::clock::Clock;
use switchbell::config::{self, Config};
use switchbell::inbox::Inbox;
use switchbell::inbox::delivery::Outcome;
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::send::effect::Effects;
use switchbell::send::keys::Keys;
use switchbell::send::queue::Queues;
use switchbell::send::upgrade::{Ground, Handle, Upgrades};
use switchbell::send::{Current, Dispatcher, IN_FLIGHT_MAX, Live, Means, Stop, book};
use switchbell::telemetry::{Happening, Observer};
use switchbell::wasm::catalog::depot;
use switchbell::wasm::{Compiler, Sandbox, Settings};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::RATE;
use super::patch::patch;
use crate::latency::{answer_text, intake};

/// Nothing that was sent needs longer to be delivered.
const PATIENCE: Duration = Duration::from_secs(30);

/// A version of the plugin that says in each message which it is.
pub fn version(version: &str) -> Vec<u8> {
    let guest = concat!(env!("CARGO_MANIFEST_DIR"), "/dist/guests/versioned.wasm");
    let guest = fs::read(guest).expect("dist/guests/versioned.wasm is missing: run `make guests`");
    patch(guest, &[("version", version), ("behaviour", "content"), ("repeat", "harmless")])
}

pub struct Stage {
    /// Asks for other versions.
    pub handle: Handle,
    config: Arc<Config>,
    inbox: Arc<dyn Inbox>,
    counter: Arc<Counter>,
    arrivals: Arrivals,
    stop: Stop,
    tasks: [JoinHandle<()>; 2],
    folder: TempDir,
}

impl Stage {
    pub async fn new() -> Self {
        let arrivals = Arrivals::default();
        let (folder, config) = configured(sink(arrivals.clone()).await);
        let inbox: Arc<dyn Inbox> = Arc::new(SqliteInbox::open(&config.store, Timestamp::UNIX_EPOCH).expect("a store"));
        let (clock, keys) = (Clock::system(), Keys::new(&inbox.key()));
        let settings = Settings {
            key: Some(keys.sandbox()),
            compiled: Some(depot::root(&config.store).join(depot::COMPILED)),
            compiler: Compiler::Child(env!("CARGO_BIN_EXE_switchbell").into()),
            ..Settings::new(config.plugins.limits)
        };
        let sandbox = Sandbox::new(settings).expect("a sandbox");
        let ground = Ground { sandbox, config: Arc::clone(&config), inbox: Arc::clone(&inbox), clock: clock.clone() };
        let upgrades = Upgrades::open(ground).await.expect("a depot");
        let catalog = upgrades.catalog().clone();
        let (book, mistakes) = book(&config, &catalog, &keys).await;
        assert!(mistakes.is_empty() && upgrades.problems().is_empty(), "{:?}", upgrades.problems());
        let means = Means {
            live: Live::new(Current { config: Arc::clone(&config), catalog, book: Arc::new(book) }),
            effects: Effects::new(&config, &clock).expect("effects"),
            queues: Queues::new(clock.clone(), IN_FLIGHT_MAX),
            clock,
            keys,
            inbox: Arc::clone(&inbox),
        };
        let counter = Arc::<Counter>::default();
        let observer = Arc::clone(&counter) as Arc<dyn Observer>;
        let dispatcher = Dispatcher::start(Arc::new(means), observer).await.expect("a dispatcher");
        let upgrades = upgrades.steering(Arc::clone(&dispatcher));
        let (handle, stop) = (upgrades.handle(), Stop::default());
        let tasks = [tokio::spawn(upgrades.run(stop.soon.clone())), tokio::spawn(dispatcher.run(stop.clone()))];
        Self { handle, config, inbox, counter, arrivals, stop, tasks, folder }
    }

    /// A path in its folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Begins to send events.
    pub fn load(&self) -> Load {
        let is_over = Arc::<AtomicBool>::default();
        let sending = send(Arc::clone(&self.config), Arc::clone(&self.inbox), Arc::clone(&is_over));
        Load { is_over, sending: tokio::spawn(sending) }
    }

    /// Waits until so many deliveries are recorded, and ends. Returns when each arrived.
    ///
    /// The run ends here if one failed, is lost or arrived twice.
    pub async fn settled(self, count: usize) -> Vec<Instant> {
        let mut ended = self.counter.ended.subscribe();
        let all = ended.wait_for(|ended| ended.delivered >= count || ended.otherwise > 0);
        let reached = tokio::time::timeout(PATIENCE, all).await.map(|ended| ended.is_ok());
        self.stop.soon.cancel();
        join_all(self.tasks).await.into_iter().for_each(|task| task.expect("a task"));
        let ended = *self.counter.ended.borrow();
        let arrivals = std::mem::take(&mut *self.arrivals.lock().unwrap_or_else(PoisonError::into_inner));
        let mut at: Vec<Option<Instant>> = vec![None; count];
        let mut doubled = 0;
        for (number, arrived) in arrivals {
            doubled += usize::from(at.get_mut(number).expect("a number").replace(arrived).is_some());
        }
        let lost = at.iter().filter(|at| at.is_none()).count();
        let is_well = reached == Ok(true) && ended == Ended { delivered: count, otherwise: 0 };
        assert!(
            is_well && lost == 0 && doubled == 0,
            "of {count} deliveries {lost} are lost and {doubled} arrived twice or more; attempts: {ended:?}"
        );
        at.into_iter().flatten().collect()
    }
}

/// Events on their way.
pub struct Load {
    is_over: Arc<AtomicBool>,
    sending: JoinHandle<Vec<Instant>>,
}

impl Load {
    /// Sends no more. Returns when each event began.
    pub async fn end(self) -> Vec<Instant> {
        self.is_over.store(true, Ordering::Relaxed);
        self.sending.await.expect("the load")
    }
}

async fn send(config: Arc<Config>, inbox: Arc<dyn Inbox>, is_over: Arc<AtomicBool>) -> Vec<Instant> {
    let workspace = config.workspaces.get("acme").expect("a workspace");
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(RATE).expect("a rate"));
    let (mut began, mut writes) = (Vec::new(), tokio::task::JoinSet::new());
    while !is_over.load(Ordering::Relaxed) {
        let text = answer_text(began.len());
        // The time that it should begin at: what is late before it begins counts.
        began.push(ticks.tick().await.into_std());
        let (intake, inbox) = (intake(workspace, &text), Arc::clone(&inbox));
        writes.spawn(async move { inbox.accept(intake).await.expect("a write") });
        while writes.try_join_next().is_some_and(|written| written.is_ok()) {}
    }
    writes.join_all().await;
    began
}

/// How attempts ended.
#[derive(Debug, Default)]
struct Counter {
    ended: watch::Sender<Ended>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ended {
    delivered: usize,
    otherwise: usize,
}

impl Observer for Counter {
    fn happened(&self, what: &Happening) {
        if let Happening::Attempted { outcome, .. } = what {
            self.ended.send_modify(|ended| match outcome {
                Outcome::Delivered => ended.delivered += 1,
                _ => ended.otherwise += 1,
            });
        }
    }
}

/// The number in each message, and when it arrived.
type Arrivals = Arc<Mutex<Vec<(usize, Instant)>>>;

async fn sink(arrivals: Arrivals) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = Router::new().fallback(take).with_state(arrivals);
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

async fn take(State(arrivals): State<Arrivals>, headers: HeaderMap, body: String) -> &'static str {
    let now = Instant::now();
    assert!(headers.contains_key("idempotency-key"), "{headers:?}");
    let number = body.trim_start_matches("event-number ").split_whitespace().next().unwrap_or_default();
    arrivals.lock().unwrap_or_else(PoisonError::into_inner).push((number.parse().expect("a number"), now));
    "ok"
}

/// One workspace whose one route delivers by the first version of the plugin.
fn configured(sink: SocketAddr) -> (TempDir, Arc<Config>) {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, bytes: &[u8]| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("a file");
    };
    let operator = format!(
        "listen: 127.0.0.1:0\nstore: sqlite:data/swaps.db\n\
         plugins: {{ directory: plugins/, grants: {{ versioned: {{ http: [\"http://{sink}\"] }} }} }}\n\
         commands: {{ none: {{ run: [\"true\"], workspaces: [acme] }} }}\n",
    );
    let workspace = format!(
        "members: {{ a@example.com: admin }}\n\
         connectors: {{ registrar: {{ command: none, ceiling: urgent, notifications: {{ resource: \"acme://n\" }} }} }}\n\
         routes:\n  - {{ name: news, owner: a@example.com, when: {{ name: \"domain.*\" }}, \
         deliver: [ {{ plugin: versioned, with: {{ url: \"http://{sink}/hook\" }} }} ] }}\n"
    );
    write("switchbell.yaml", operator.as_bytes());
    write("workspaces/acme.yaml", workspace.as_bytes());
    write("plugins/versioned.wasm", &version("1.0.0"));
    let loaded = config::load(&folder.path().join("switchbell.yaml"), &|_| None).expect("a configuration");
    (folder, Arc::new(loaded.config))
}
