//! A store that has grown: how long a server takes to start on it, what memory it holds, and whether claims take longer
//! than with a small one.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchbell::clock::Clock;
use switchbell::inbox::book::{Book, QueueKey, Rule};
use switchbell::inbox::{Ended, Entry, Inbox, Intake, Owed, Want};
use switchbell::route::timing::Timing;

use crate::median;
use crate::world::{World, name, notification};

const QUEUES: usize = 50;
/// Of one route.
const TARGETS: usize = 5;
/// Of the smaller store's 20 in each queue, so that both hand out as many.
const CLAIMED_AT_ONCE: u32 = 16;
/// Queues claimed from, each once.
const CLAIMS: usize = 30;

pub async fn run() {
    println!(
        "\na store that has grown: claims of {CLAIMED_AT_ONCE} from one of {QUEUES} queues, and the start of a server"
    );
    let world = World::new(1).await;
    std::fs::write(world.path("workspaces/acme.yaml"), workspace()).expect("a file");
    for (notifications, waiting) in [(1_000, 1_000), (1_000_000, 100_000)] {
        let path = world.path(&format!("size-{notifications}.db"));
        let claim = fill_and_claim(&world, &path, notifications, waiting).await;
        let (ready, memory_mib) = start(&world, &path);
        println!(
            "  {notifications:>9} notifications, {waiting:>7} deliveries waiting: {:>6.0} µs for a claim, ready after {:>4.0} ms, {memory_mib:.0} MiB",
            claim.as_secs_f64() * 1e6,
            ready.as_secs_f64() * 1e3,
        );
    }
}

fn queue(number: usize) -> QueueKey {
    let number = number % QUEUES;
    let route = name(&format!("news-{}", number / TARGETS));
    QueueKey { workspace: name("acme"), route, target: format!("t{number}").into() }
}

/// A workspace with all the queues.
fn workspace() -> String {
    let mut text = "members: { a@example.com: admin }\nroutes:\n".to_owned();
    for route in 0..QUEUES / TARGETS {
        text.push_str(&format!(
            "  - {{ name: news-{route}, owner: a@example.com, when: {{ name: \"domain.*\" }}, deliver: ["
        ));
        for number in route * TARGETS..(route + 1) * TARGETS {
            text.push_str(&format!("{{ id: t{number}, plugin: slack, with: {{ webhook: {{ secret: hook }} }} }}, "));
        }
        text.push_str("] }\n");
    }
    text
}

async fn fill_and_claim(world: &World, path: &Path, notifications: usize, waiting: usize) -> Duration {
    let inbox = world.inbox(path.file_name().and_then(|name| name.to_str()).expect("a name"));
    let rule = |number| Rule {
        queue: queue(number),
        plugin: name("slack"),
        timing: Timing::default(),
        blocked: None,
        is_strict: false,
        goes_on: Vec::new(),
        by_subject: false,
        lanes: Vec::new(),
    };
    let now = Clock::system().now();
    inbox.adopt(Arc::new(Book::new((0..QUEUES).map(rule))), None, now).await.expect("a book");
    for first in (0..notifications).step_by(1_000) {
        let entry = |number: usize| {
            let one = notification(number as u64);
            let QueueKey { route, target, .. } = queue(number);
            let owed = Owed { route, target: target.to_string(), plugin: name("slack") };
            let owed = if number >= notifications - waiting { vec![owed] } else { Vec::new() };
            Entry { event: one.event, effective_level: one.effective_level, owed, consumers: Vec::new() }
        };
        let intake = Intake {
            is_first: false,
            workspace: name("acme"),
            source: name("registrar"),
            received_at: now,
            entries: (first..first + 1_000).map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        inbox.accept(intake).await.expect("a write");
    }
    let mut times = Vec::new();
    for round in 0..CLAIMS {
        let want = Want { queue: queue(round), most: CLAIMED_AT_ONCE, only: None, busy: Vec::new() };
        let began = Instant::now();
        let claimed = inbox.claim(Clock::system().now(), vec![want]).await.expect("a claim");
        times.push(began.elapsed().as_secs_f64());
        assert_eq!(claimed.claims.len(), CLAIMED_AT_ONCE as usize);
    }
    Duration::from_secs_f64(median(times))
}

/// Starts a server on the store and waits until it is ready.
pub fn start(world: &World, path: &Path) -> (Duration, f64) {
    let file = world.path("switchbell.yaml");
    let text = std::fs::read_to_string(&file).expect("a file");
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port").local_addr().expect("an address").port();
    let text =
        text.replace("listen: 127.0.0.1:0", &format!("store: \"sqlite:{}\"\nlisten: 127.0.0.1:{port}", path.display()));
    let own = world.path("started.yaml");
    std::fs::write(&own, text).expect("a file");
    let began = Instant::now();
    let mut server = Command::new(env!("CARGO_BIN_EXE_switchbell"))
        .args(["--config", own.to_str().expect("a path"), "serve"])
        .env("HOOK", format!("http://{}/services/T00000000/B00000000/x", world.sink))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("a server");
    while !is_ready(port) {
        assert!(server.try_wait().expect("a state").is_none(), "the server ended");
        std::thread::sleep(Duration::from_millis(1));
    }
    let ready = began.elapsed();
    let memory_mib = memory_mib(&server);
    server.kill().expect("an end");
    let _ = server.wait();
    (ready, memory_mib)
}

fn is_ready(port: u16) -> bool {
    use std::io::{Read, Write};
    let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    asked.is_ok() && stream.read_to_string(&mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
}

fn memory_mib(server: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<f64>().ok()).map_or(f64::NAN, |kib| kib / 1024.0)
}
