//! How long an event takes from the text of an outbox's answer to a sink on this machine, at a steady 200 a second, next
//! to the time that this machine needs to make a write durable.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use switchbell::clock::Clock;
use switchbell::config::Workspace;
use switchbell::fetch::{answer, event};
use switchbell::inbox::{Ended, Entry, Inbox, Intake, Store};
use switchbell::notification::Level;
use switchbell::route::entry;
use switchbell::send::{Dispatcher, Stop};
use switchbell::telemetry::Nobody;
use tokio::sync::mpsc;

use crate::deliver::means;
use crate::page::fill;
use crate::retention::remove;
use crate::world::{World, name, slack};

const EVENTS: usize = 2_000;
const EVERY: Duration = Duration::from_millis(5);
/// Notifications that are there to go. It is said when they are gone too soon.
const OLD: u64 = 1_000_000;
/// Often enough to see what the disk does, seldom enough to be no load.
const PROBED_EVERY: Duration = Duration::from_millis(20);

pub async fn run() {
    println!("\nfrom an outbox's answer to a sink on this machine, {EVENTS} events, one every {EVERY:?}");
    for (label, beside) in [
        ("quiet", Beside::Nothing),
        ("while plugins are compiled and the log is checkpointed", Beside::Compiling),
        ("while old notifications go", Beside::Retention),
    ] {
        let (arrived, mut arrivals) = mpsc::unbounded_channel();
        let world = World::with_sink(1, sink(arrived).await);
        let probe = Probe::start(world.path("probe"));
        let times = events(&world, &mut arrivals, beside).await;
        let noise = probe.end();
        println!("  {label}: {}", shown(&times));
        noise.tell();
    }
}

/// What goes on meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    Nothing,
    Compiling,
    Retention,
}

/// Tells the number in each message as it arrives.
async fn sink(arrived: mpsc::UnboundedSender<(usize, Instant)>) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let take = async move |body: Bytes| {
        let now = Instant::now();
        let text = String::from_utf8_lossy(&body);
        let digits = text.split("event-number ").nth(1).unwrap_or_default();
        let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
        let _ = arrived.send((digits.parse().expect("a number"), now));
        "ok"
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(take)).await });
    address
}

async fn events(world: &World, arrivals: &mut mpsc::UnboundedReceiver<(usize, Instant)>, beside: Beside) -> Vec<f64> {
    let store: Arc<dyn Store> = Arc::new(world.inbox("latency.db"));
    if beside == Beside::Retention {
        fill(&*store, OLD).await;
    }
    let inbox: Arc<dyn Inbox> = Arc::clone(&store) as Arc<dyn Inbox>;
    let catalog = world.catalog().await;
    slack(&catalog).await;
    let means = means(world, &catalog, Arc::clone(&inbox)).await;
    let stop = Stop::default();
    let dispatcher = Dispatcher::start(means, Arc::new(Nobody)).await.expect("a dispatcher");
    let running = tokio::spawn(dispatcher.run(stop.clone()));
    let busy = Arc::new(AtomicBool::new(true));
    let compiling = (beside == Beside::Compiling).then(|| disturb(world, Arc::clone(&busy)));
    let is_over = Arc::new(AtomicBool::new(false));
    let removing =
        (beside == Beside::Retention).then(|| tokio::spawn(remove(Arc::clone(&store), Arc::clone(&is_over))));
    let sent = send(world, &inbox).await;
    let mut times = Vec::with_capacity(EVENTS);
    while times.len() < EVENTS {
        let (number, at) = arrivals.recv().await.expect("an arrival");
        let began = sent.lock().unwrap_or_else(PoisonError::into_inner).get(number).copied().expect("a beginning");
        times.push(at.duration_since(began).as_secs_f64() * 1e3);
    }
    busy.store(false, Ordering::Relaxed);
    if let Some(removing) = removing {
        let too_soon = if removing.is_finished() { ", and none were left before the end" } else { "" };
        is_over.store(true, Ordering::Relaxed);
        let rate = removing.await.expect("the removal");
        println!("  meanwhile {rate:.0} old notifications went a second{too_soon}");
    }
    if let Some(thread) = compiling {
        thread.join().expect("the compiler");
    }
    stop.soon.cancel();
    running.await.expect("the dispatcher");
    times
}

/// Sends every event at its time; returns when each began.
async fn send(world: &World, inbox: &Arc<dyn Inbox>) -> Arc<Mutex<Vec<Instant>>> {
    let workspace = world.config.workspaces.get("acme").expect("a workspace");
    let began = Arc::new(Mutex::new(Vec::with_capacity(EVENTS)));
    let mut ticks = tokio::time::interval(EVERY);
    for number in 0..EVENTS {
        let text = answer_text(number);
        ticks.tick().await;
        began.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        let intake = intake(workspace, &text);
        let inbox = Arc::clone(inbox);
        tokio::spawn(async move { inbox.accept(intake).await.expect("a write") });
    }
    began
}

pub fn intake(workspace: &Workspace, text: &str) -> Intake {
    let answer = answer::parse(text).expect("an answer");
    let source = name("registrar");
    let one = |raw: &&serde_json::value::RawValue| -> Entry {
        let event = event::judge(raw).expect("an event").event;
        let level = event.level.capped(Level::Urgent);
        entry(event, level, (workspace, &source)).0
    };
    Intake {
        is_first: false,
        workspace: workspace.name.clone(),
        source: source.clone(),
        received_at: Clock::system().now(),
        entries: answer.events.iter().map(one).collect(),
        notices: Vec::new(),
        cursor: Some("c".to_owned()),
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

pub fn answer_text(number: usize) -> String {
    format!(
        r#"{{"events":[{{"eventId":"timed_{number}","name":"domain.active","timestamp":"2026-09-01T18:42:10Z","data":{{"campaign_id":"cmp_8f2a"}},"_meta":{{"ai.nimblebrain/notification":{{"subject":"acme-outreach.test","level":"attention","title":"event-number {number} "}}}}}}],"cursor":"c{number}"}}"#
    )
}

/// Compiles the plugin again and again, and checkpoints the log, until told to stop.
fn disturb(world: &World, busy: Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let config = Arc::clone(&world.config);
    let path = world.path("latency.db");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        // A server has one sandbox, whatever it compiles.
        let sandbox = switchbell::wasm::Sandbox::new(switchbell::wasm::Settings::new(config.plugins.limits));
        let sandbox = sandbox.expect("a sandbox");
        while busy.load(Ordering::Relaxed) {
            runtime.block_on(switchbell::wasm::Catalog::open(&sandbox, &config.plugins.directory));
            let connection = rusqlite::Connection::open(&path).expect("a database");
            // A connection knows of the log once it has read.
            let _ = connection.query_row("PRAGMA schema_version", [], |_| Ok(()));
            let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        }
    })
}

/// What the machine does to everybody while something else is measured: how long small appends take to be on the disk, and
/// how long a thread that may run has to wait for a core.
pub struct Probe {
    is_over: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(Vec<f64>, Vec<f64>)>,
}

impl Probe {
    pub fn start(path: PathBuf) -> Self {
        let mut file = std::fs::File::create(path).expect("a file");
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let (mut disk, mut late) = (Vec::new(), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let began = Instant::now();
                file.write_all(&[0; 4_096]).and_then(|()| file.sync_data()).expect("a write");
                disk.push(began.elapsed().as_secs_f64() * 1e3);
                let slept = Instant::now();
                std::thread::sleep(PROBED_EVERY);
                late.push(slept.elapsed().saturating_sub(PROBED_EVERY).as_secs_f64() * 1e3);
            }
            (disk, late)
        });
        Self { is_over, thread }
    }

    /// Stops. It may take a moment.
    pub fn end(self) -> Noise {
        self.is_over.store(true, Ordering::Relaxed);
        let (disk, late) = self.thread.join().expect("the probe");
        Noise { disk, late }
    }
}

/// What a probe saw, in milliseconds.
pub struct Noise {
    disk: Vec<f64>,
    late: Vec<f64>,
}

impl Noise {
    /// Prints it.
    pub fn tell(&self) {
        println!("    meanwhile, a small append made durable every {PROBED_EVERY:?}: {}", shown(&self.disk));
        println!("    and how much later than asked that thread woke up: {}", shown(&self.late));
    }
}

pub fn shown(times: &[f64]) -> String {
    let [half, most, longest] = [0.5, 0.99, 1.0].map(|share| quantile(times, share));
    format!("half within {half:.2} ms, 99 of 100 within {most:.2} ms, the longest {longest:.1} ms")
}

/// The value below which this share of them is.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (share * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}
