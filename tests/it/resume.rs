//! The promise: an attempt of several steps that a stop or a crash cuts off goes on where it was, and nothing that it did
//! is done again.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::Uri;
use rustix::process::Signal;
use serde_json::Value;
use switchbell::clock::{Clock, until};
use tokio::sync::watch;

use crate::support::{Outbox, Server, Sink, World, prepared, python_outbox};

/// From when the program is ready to when what it was cut off from is over.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(1);

/// A destination that keeps the paths it was asked for; it never answers those that begin with `/never`.
#[derive(Clone)]
struct Destination {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    count: Arc<watch::Sender<usize>>,
}

impl Destination {
    async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let destination = Self { address, asked: Arc::default(), count: Arc::default() };
        let service = Router::new().fallback(answer).with_state(destination.clone());
        tokio::spawn(async move { axum::serve(listener, service).await });
        destination
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns once so many requests came.
    async fn asked_times(&self, times: usize) {
        let mut counts = self.count.subscribe();
        let enough = counts.wait_for(|count| *count >= times);
        tokio::time::timeout(crate::support::PATIENCE, enough).await.expect("too few requests came").unwrap();
    }
}

async fn answer(State(destination): State<Destination>, uri: Uri) -> &'static str {
    destination.asked.lock().unwrap().push(uri.path().to_owned());
    destination.count.send_modify(|count| *count += 1);
    if uri.path().starts_with("/never") {
        std::future::pending::<()>().await;
    }
    "ok"
}

/// A world whose one route follows a script, in which `AT` is the destination.
struct Stage {
    outbox: Outbox,
    destination: Destination,
    ops: Sink,
    world: World,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let outbox = python_outbox(folder.path());
        let destination = Destination::open().await;
        let ops = Sink::start().await;
        let world = World::new(&ops, &outbox.commands(), &World::stdio_connector());
        let at = format!("http://{}", destination.address);
        let operator = crate::support::operator(&ops, &outbox.commands());
        let grant = format!("  grants:\n    scripted: {{ http: [\"{at}\"] }}\n");
        world.write("switchbell.yaml", &operator.replace("  grants:\n", &grant));
        let script = script.replace("AT", &at);
        let workspace = crate::support::workspace(&World::stdio_connector(), "{ source: registrar }");
        let workspace = workspace.replace("plugin: slack", "plugin: scripted");
        let with = format!("with: {{ script: \"{script}\" }}");
        world.write("workspaces/acme.yaml", &workspace.replace("with: { webhook: { secret: slack-ops } }", &with));
        let plugin = prepared("dist/guests/scripted.wasm", "guests");
        std::fs::copy(plugin, world.path("plugins/scripted.wasm")).unwrap();
        Self { outbox, destination, ops, world, _folder: folder }
    }

    fn serve(&self) -> Server {
        Server::start(&self.world, &self.ops)
    }

    /// Has one event delivered.
    fn begin(&self) -> Server {
        let mut server = self.serve();
        server.wait_for("bootstrap=true");
        self.outbox.add(&["domain.active", "--title", "a title"]);
        server
    }

    fn delivery(&self) -> Value {
        self.world.json(&self.ops, &["deliveries", "list"])[0].clone()
    }

    /// Returns once the end of an attempt is recorded. The server may be quicker with that than with saying it is ready.
    fn wait_for_an_end(&self) {
        let began = Instant::now();
        while self.delivery()["attempts"].as_array().is_none_or(Vec::is_empty) {
            assert!(began.elapsed() < Duration::from_secs(30), "no attempt ended: {}", self.delivery());
        }
    }
}

fn end(server: Server, signal: Signal) {
    if signal == Signal::KILL {
        server.kill();
    } else {
        assert!(server.stop(signal).0.success());
    }
}

/// Cuts an attempt off while its second effect waits for an answer, and starts again.
async fn check(signal: Signal, then: &str, asked: &[&str], reason: &str) {
    let stage = Stage::new(&format!("post AT/first|post AT/never/second|{then}")).await;
    let server = stage.begin();
    stage.destination.asked_times(2).await;
    end(server, signal);
    let server = stage.serve();
    let ready = Clock::system().now();
    stage.wait_for_an_end();
    let ended: jiff::Timestamp = stage.delivery()["attempts"][0]["endedAt"].as_str().unwrap().parse().unwrap();
    let took = until(ready, ended);
    server.stop(Signal::TERM);
    assert!(took < RECOVERY_TIME_MAX, "it took {took:?} after {signal:?}");
    assert_eq!(stage.destination.asked(), asked, "after {signal:?}");
    let delivery = stage.delivery();
    let attempts = delivery["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["number"]), (1, &Value::from(1)), "{delivery}");
    assert!(attempts[0]["reason"].as_str().unwrap().contains(reason), "{delivery}");
    assert_eq!(attempts[0]["steps"], asked.len() + 1, "{delivery}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_crash_cut_off_is_answered_as_unanswered_and_never_done_again() {
    check(Signal::KILL, "report", &["/first", "/never/second"], "Unanswered cut-off").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_crash_the_attempt_goes_on_with_its_next_effect() {
    check(Signal::KILL, "post AT/third|report", &["/first", "/never/second", "/third"], "200").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_stop_cut_off_is_answered_as_unanswered_and_never_done_again() {
    check(Signal::TERM, "post AT/third|report", &["/first", "/never/second", "/third"], "200").await;
    check(Signal::TERM, "report", &["/first", "/never/second"], "Unanswered cut-off").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_of_a_plugin_survives_a_crash() {
    let stage = Stage::new("post AT/start|wait 3 1 ; post AT/poll|done").await;
    let mut server = stage.begin();
    server.wait_for("the attempt goes on in");
    server.kill();
    let server = stage.serve();
    stage.wait_for_an_end();
    server.stop(Signal::TERM);
    assert_eq!(stage.destination.asked(), ["/start", "/poll"]);
    let delivery = stage.delivery();
    let attempts = delivery["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["number"]), (1, &Value::from(1)), "{delivery}");
    let moment = |key: &str| attempts[0][key].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(moment("endedAt").duration_since(moment("startedAt")).as_secs() >= 3, "{delivery}");
}
