//! The program with the hostile plugin, a neighbour, a destination that both may reach, and one that neither may.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::support::{Outbox, PATIENCE, Server, Sink, World, prepared, python_outbox};

/// Resident memory that may come and go without a leak, KiB: less than what one instance may take.
const MEMORY_KIB_MAX: u64 = 24 << 10;

/// The value of the secret `bot`.
const BOT: &str = "xoxb-the-value-that-nobody-sees";

/// One way to do harm, and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its name, and that of its route.
    pub name: &'static str,
    /// The target's settings, in which `AT` is the destination's URL, and `FORBIDDEN` and `PORT` are the forbidden
    /// address and its port.
    pub with: &'static str,
    /// The state of the delivery after its first attempt, and the outcome of that; none for a delivery that waits for
    /// somebody to mend its plugin.
    pub came: (&'static str, &'static str),
    /// What the reason contains.
    pub says: &'static str,
}

/// A case whose reason must say this.
pub const fn case(
    name: &'static str,
    with: &'static str,
    came: (&'static str, &'static str),
    says: &'static str,
) -> Case {
    Case { name, with, came, says }
}

pub const DELIVERED: (&str, &str) = ("delivered", "delivered");
/// The plugin was at fault before anything had happened.
pub const RETRIED: (&str, &str) = ("retrying", "retry");
/// The plugin was at fault after something had happened.
pub const UNKNOWN: (&str, &str) = ("retrying", "unknown");
pub const REJECTED: (&str, &str) = ("dead", "reject");
pub const BLOCKED: (&str, &str) = ("blocked", "");

/// A destination that keeps what it was asked, and answers by the path.
#[derive(Clone)]
pub struct Destination {
    address: SocketAddr,
    forbidden: SocketAddr,
    asked: Arc<Mutex<Vec<Got>>>,
    count: Arc<watch::Sender<usize>>,
    released: Arc<watch::Sender<bool>>,
}

/// A request as the destination got it: its path and query, and all of it as one text.
#[derive(Clone, Debug)]
pub struct Got {
    pub path: String,
    pub whole: String,
}

impl Destination {
    async fn open(forbidden: SocketAddr) -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (count, released) = (Arc::default(), Arc::default());
        let destination = Self { address, forbidden, asked: Arc::default(), count, released };
        let service = Router::new().fallback(answer).with_state(destination.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        destination
    }

    /// The requests so far but the neighbour's, in order.
    pub fn asked(&self) -> Vec<Got> {
        self.asked.lock().unwrap().iter().filter(|got| got.path != "/neighbour").cloned().collect()
    }

    /// Returns once so many requests came, the neighbour's included.
    pub async fn asked_times(&self, times: usize) {
        let mut counts = self.count.subscribe();
        let enough = counts.wait_for(|count| *count >= times);
        tokio::time::timeout(PATIENCE, enough).await.expect("too few requests came").unwrap();
    }

    /// Has requests for `/held` answered from now on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

async fn answer(
    State(destination): State<Destination>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let whole = format!("{method} {uri} {headers:?} {}", String::from_utf8_lossy(&body));
    destination.asked.lock().unwrap().push(Got { path: uri.to_string(), whole: whole.clone() });
    destination.count.send_modify(|count| *count += 1);
    match uri.path() {
        "/redirect" => {
            let to = format!("http://{}/latest/meta-data/", destination.forbidden);
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)]).into_response()
        }
        "/echo" => whole.into_response(),
        "/never" => std::future::pending().await,
        "/held" => {
            let _ = destination.released.subscribe().wait_for(|released| *released).await;
            "ok".into_response()
        }
        _ => "ok".into_response(),
    }
}

/// What the program uses.
#[derive(Debug)]
struct Usage {
    memory_kib: u64,
    /// The names of the sandbox's threads, in order.
    threads: Vec<String>,
}

pub struct Stage {
    pub destination: Destination,
    pub world: World,
    pub server: Option<Server>,
    pub ops: Sink,
    outbox: Outbox,
    forbidden: TcpListener,
    /// Events that were added.
    events: usize,
    before: Usage,
    _folder: TempDir,
}

impl Stage {
    /// Starts the program with a route for each case.
    pub async fn start(cases: &[Case]) -> Self {
        Self::with_files(cases, &[]).await
    }

    /// The same, with more files in the folder of plugins.
    pub async fn with_files(cases: &[Case], files: &[(&str, Vec<u8>)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let forbidden = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        forbidden.set_nonblocking(true).unwrap();
        let destination = Destination::open(forbidden.local_addr().unwrap()).await;
        let ops = Sink::start().await;
        let world = World::new(&ops, &outbox.commands(), &World::stdio_connector());
        world.write("bot-token", BOT);
        world.write("switchbell.yaml", &operator(&outbox, &destination, &ops));
        world.write("workspaces/acme.yaml", &workspace(cases, &destination));
        for name in ["hostile", "scripted"] {
            std::fs::copy(guest(name), world.path(&format!("plugins/{name}.wasm"))).unwrap();
        }
        for (name, bytes) in files {
            std::fs::write(world.path(&format!("plugins/{name}.wasm")), bytes).unwrap();
        }
        let before = Usage { memory_kib: 0, threads: Vec::new() };
        let mut stage =
            Self { destination, world, server: None, ops, outbox, forbidden, events: 0, before, _folder: folder };
        stage.serve();
        stage.server.as_mut().unwrap().wait_for("bootstrap=true");
        // What is made only once, such as connections and caches, is there from now on.
        stage.add("nothing").await;
        stage.before = stage.usage();
        stage
    }

    /// Starts the program once more.
    pub fn serve(&mut self) {
        self.server = Some(Server::start(&self.world, &self.ops));
    }

    /// Adds the event of a case, and returns once the neighbour has delivered it.
    pub async fn add(&mut self, name: &str) {
        self.outbox.add(&[&format!("case.{name}"), "--title", "a title", "--subject", name]);
        self.events += 1;
        let neighbours = |stage: &Self| {
            let delivered = stage.deliveries("neighbour");
            assert!(delivered.iter().all(|one| one["attempts"].as_array().unwrap().len() < 2), "{delivered:?}");
            delivered.iter().filter(|one| one["state"] == "delivered").count()
        };
        self.until(|stage| neighbours(stage) == stage.events, "the neighbour did not deliver").await;
    }

    /// Has each case do its harm, one after the other.
    pub async fn run(&mut self, cases: &[Case]) {
        for case in cases {
            self.add(case.name).await;
            self.check(case).await;
        }
    }

    /// The newest delivery of the case came to what it must, and the program is as it was.
    async fn check(&self, case: &Case) {
        let (state, outcome) = case.came;
        let newest = |stage: &Self| stage.deliveries(case.name).into_iter().next().unwrap_or_default();
        let is_over = |delivery: &Value| delivery["state"] == state;
        self.until(|stage| is_over(&newest(stage)), &format!("{case:?} did not end so")).await;
        let delivery = newest(self);
        let last = delivery["attempts"].as_array().unwrap().last().cloned().unwrap_or_default();
        let reason = if outcome.is_empty() { &delivery["why"] } else { &last["reason"] };
        assert_eq!(last["outcome"].as_str().unwrap_or_default(), outcome, "{case:?}: {delivery}");
        let reason = reason.as_str().unwrap_or_default();
        assert!(reason.contains(case.says) && !reason.contains("switchbell-secret."), "{case:?}: {reason}");
        assert!(reason.chars().count() <= 700 && !reason.chars().any(char::is_control), "{case:?}: {reason:?}");
        let is_back = |stage: &Self| {
            let Usage { memory_kib, threads } = stage.usage();
            memory_kib <= stage.before.memory_kib + MEMORY_KIB_MAX && threads == stage.before.threads
        };
        self.until(is_back, &format!("after {case:?} more is in use than {:?}", self.before)).await;
    }

    /// The deliveries of a route, newest first.
    pub fn deliveries(&self, route: &str) -> Vec<Value> {
        let listed = self.world.json(&self.ops, &["deliveries", "list", "--route", route, "--limit", "1000"]);
        listed.as_array().unwrap().clone()
    }

    /// Returns once it holds. It looks again and again: every look is a command that runs.
    pub async fn until(&self, holds: impl Fn(&Self) -> bool, complaint: &str) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "{complaint}: now {:?}; {}", self.usage(), self.listed());
            tokio::task::yield_now().await;
        }
    }

    fn listed(&self) -> Value {
        self.world.json(&self.ops, &["deliveries", "list", "--limit", "5"])
    }

    fn usage(&self) -> Usage {
        let process = PathBuf::from(format!("/proc/{}", self.server.as_ref().unwrap().pid()));
        let status = std::fs::read_to_string(process.join("status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let tasks = std::fs::read_dir(process.join("task")).unwrap();
        let name =
            |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.ok()?.path().join("comm")).ok();
        let mut threads: Vec<String> = tasks.filter_map(name).filter(|name| name.starts_with("sandbox")).collect();
        threads.sort();
        Usage { memory_kib: resident.trim().trim_end_matches(" kB").parse().unwrap(), threads }
    }

    /// Nobody knocked where nobody may, and no secret is in what people and destinations see.
    pub fn finish(mut self) {
        let knock = self.forbidden.accept();
        assert!(
            knock.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock),
            "the forbidden place was reached"
        );
        let said = self.server.as_mut().unwrap().said();
        let kept = self.world.json(&self.ops, &["deliveries", "list", "--limit", "1000"]).to_string();
        for (place, text) in [("the log", &said), ("the list", &kept)] {
            for secret in ["secret-part", BOT, "switchbell-secret."] {
                assert!(!text.contains(secret), "{place} holds {secret}: {text}");
            }
        }
        for got in self.destination.asked() {
            assert!(!got.whole.contains("smuggled") && !got.whole.contains("secret-part"), "{got:?}");
        }
    }
}

/// The component of a guest.
pub fn guest(name: &str) -> PathBuf {
    prepared(&format!("dist/guests/{name}.wasm"), "guests")
}

fn operator(outbox: &Outbox, destination: &Destination, ops: &Sink) -> String {
    let (at, port) = (destination.address, destination.address.port());
    format!(
        "listen: 127.0.0.1:0
store: sqlite:data/switchbell.db
poll: {{ base: 50ms, floor: 20ms, ceiling: 200ms, budget_per_minute: 100000 }}
commands: {commands}
plugins:
  limits: {{ steps: 8 }}
  grants:
    scripted: {{ http: [\"http://{at}\"] }}
    hostile:
      http:
        - \"http://{at}\"
        - \"http://{ops}\"
        - {{ host: \"http://localhost:{port}\", private: true }}
        - \"http://localhost:{forbidden}\"
secrets:
  hook: {{ env: SLACK_OPS, in: url, workspaces: [acme] }}
  bot: {{ file: bot-token, in: \"header:Authorization:Bearer\", hosts: [127.0.0.1], workspaces: [acme] }}
",
        commands = outbox.commands(),
        ops = ops.address(),
        forbidden = destination.forbidden.port(),
    )
}

fn workspace(cases: &[Case], destination: &Destination) -> String {
    let (at, forbidden) = (format!("http://{}", destination.address), destination.forbidden);
    let mut text = format!(
        "members: {{ admin@example.com: admin }}
connectors: {connector}
routes:
  - name: neighbour
    owner: admin@example.com
    when: {{ name: [\"case.*\"] }}
    deliver: [{{ plugin: scripted, with: {{ script: \"post {at}/neighbour|judge\" }} }}]
",
        connector = World::stdio_connector(),
    );
    for Case { name, with, .. } in cases {
        let with = with.replace("FORBIDDEN", &forbidden.to_string()).replace("PORT", &forbidden.port().to_string());
        let with = with.replace("ELSEWHERE", &format!("http://localhost:{}", destination.address.port()));
        let with = with.replace("AT", &at);
        let plugin = if with.contains("does:") { "hostile" } else { name };
        text.push_str(&format!(
            "  - name: {name}
    owner: admin@example.com
    when: {{ name: [\"case.{name}\"] }}
    deliver: [{{ plugin: {plugin}, with: {with}, retry: {{ first: 1h }} }}]
"
        ));
    }
    text
}
