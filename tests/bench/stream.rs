//! How long a committed event takes to a thousand who read the stream, and what each of them costs, next to a bare server that
//! sends the same bytes from a channel.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::routing::get;
use futures_util::stream;
use rustix::time::{ClockId, clock_gettime};
use switchbell::app::App;
use switchbell::clock::Clock;
use switchbell::inbox::{Marks, Scope, Token, TokenKind, Tokens};
use switchbell::serve::auth::TokenText;
use switchbell::serve::shapes::NotificationJson;
use switchbell::serve::stream::READERS_PER_TOKEN_MAX;
use switchbell::telemetry::Nobody;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{broadcast, mpsc};

use crate::latency::{answer_text, intake, shown};
use crate::waiting::allow_open_files;
use crate::world::{World, notification};

const READERS: usize = 1_000;
const EVENTS: usize = 200;
const EVERY: Duration = Duration::from_millis(50);

/// Set for a process of its own that serves: how.
const ROLE: &str = "SWITCHBELL_BENCH_STREAM";

/// Serves, in the process that was started for that.
pub async fn serve_if_asked() {
    let Some(role) = std::env::var_os(ROLE) else { return };
    allow_open_files();
    if role == "switchbell" {
        ours().await
    } else {
        bare().await
    }
    std::process::exit(0);
}

pub async fn run() {
    println!("\n{READERS} readers of the stream, {EVENTS} events, one every {EVERY:?}");
    allow_open_files();
    let (bare, ours) = (measured("bare").await, measured("switchbell").await);
    for (label, one) in [("a bare server", &bare), ("switchbell", &ours)] {
        println!("  {label}: from the commit to a reader: {}", shown(&one.times));
        println!("    {:.1} KiB of memory for each reader", one.kib_each);
    }
    let ratio = |of: fn(&Measured) -> f64| of(&ours) / of(&bare);
    println!(
        "  switchbell to bare: {:.2} of the time in the middle, {:.2} at 99 of 100, {:.2} of the memory",
        ratio(|one| quantile(&one.times, 0.5)),
        ratio(|one| quantile(&one.times, 0.99)),
        ratio(|one| one.kib_each)
    );
}

struct Measured {
    times: Vec<f64>,
    kib_each: f64,
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get((share * sorted.len().saturating_sub(1) as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

/// What clocks of all processes agree on, in nanoseconds.
pub fn now() -> i128 {
    let time = clock_gettime(ClockId::Monotonic);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}

async fn measured(role: &str) -> Measured {
    let mut server = Server::start(role).await;
    let before = server.resident_kib();
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let mut readers = Vec::with_capacity(READERS);
    for number in 0..READERS {
        let token = server.tokens.get(number / READERS_PER_TOKEN_MAX).cloned().unwrap_or_default();
        readers.push(Reader::open(server.address, &token).await);
    }
    let kib_each = (server.resident_kib() - before) / READERS as f64;
    let reading: Vec<_> = readers.into_iter().map(|reader| tokio::spawn(reader.read(arrived.clone()))).collect();
    let mut ticks = tokio::time::interval(EVERY);
    let mut committed = HashMap::new();
    for number in 0..EVENTS {
        ticks.tick().await;
        committed.insert(number, server.commit(number).await);
    }
    let mut times = Vec::with_capacity(READERS * EVENTS);
    while times.len() < READERS * EVENTS {
        let (number, at) = arrivals.recv().await.expect("an arrival");
        let since = at - committed.get(&number).copied().expect("a commit");
        times.push(since.max(0) as f64 / 1e6);
    }
    reading.iter().for_each(tokio::task::JoinHandle::abort);
    server.child.kill().await.expect("an end");
    Measured { times, kib_each }
}

/// A server in a process of its own. It commits an event for each line it is sent, and says when.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    tokens: Vec<String>,
}

impl Server {
    async fn start(role: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg("--bench").env(ROLE, role).kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a process");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next_line().await.expect("a line").expect("an address");
        let mut words = first.split(' ').map(str::to_owned);
        let address = words.next().and_then(|word| word.parse().ok()).expect("an address");
        Self { child, lines, address, tokens: words.collect() }
    }

    /// Has it commit an event; when it was durable.
    async fn commit(&mut self, number: usize) -> i128 {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{number}\n").as_bytes()).await.expect("a write");
        let line = self.lines.next_line().await.expect("a line").expect("a commit");
        line.parse().expect("a time")
    }

    fn resident_kib(&self) -> f64 {
        let path = format!("/proc/{}/status", self.child.id().expect("a process"));
        let status = std::fs::read_to_string(path).expect("what it takes");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }
}

/// Reads a stream as it comes.
struct Reader {
    stream: TcpStream,
    text: Vec<u8>,
}

impl Reader {
    /// Returns once the server has let it in.
    async fn open(address: SocketAddr, token: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let request = format!(
            "GET /v1/workspaces/acme/stream HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut reader = Self { stream, text: Vec::new() };
        while reader.take(b"event: ready\n").is_none() {
            reader.more().await;
        }
        reader
    }

    async fn more(&mut self) {
        let count = self.stream.read_buf(&mut self.text).await.expect("a read");
        assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&self.text));
    }

    /// Forgets everything up to the end of a text; none when it has not come.
    fn take(&mut self, text: &[u8]) -> Option<()> {
        let at = self.text.windows(text.len()).position(|window| window == text)?;
        self.text.drain(..at + text.len());
        Some(())
    }

    /// Tells when each event arrived.
    async fn read(mut self, arrived: mpsc::UnboundedSender<(usize, i128)>) {
        loop {
            self.more().await;
            let at = now();
            while let Some(end) = self.text.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event);
                let number = event.split("\"eventId\":\"timed_").nth(1).and_then(|rest| rest.split('"').next());
                if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
                    let _ = arrived.send((number, at));
                }
            }
        }
    }
}

/// Numbers of events to commit, as they are asked for.
pub fn asked() -> mpsc::UnboundedReceiver<String> {
    let (sender, asked) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    asked
}

async fn ours() {
    let world = World::new(1).await;
    let tokens = tokens(&world).await;
    let app = App::start(Arc::clone(&world.config), Clock::system(), Arc::new(Nobody)).await.expect("a server");
    println!("{} {}", app.address(), tokens.join(" "));
    let workspace = world.config.workspaces.get("acme").expect("a workspace");
    let mut asked = asked();
    while let Some(number) = asked.recv().await {
        let mut intake = intake(workspace, &answer_text(number.parse().expect("a number")));
        // Deliveries would be told, too.
        intake.entries.iter_mut().for_each(|entry| entry.owed.clear());
        app.inbox().accept(intake).await.expect("a write");
        println!("{}", now());
    }
}

/// Tokens enough for all readers, in the store that the server is going to open.
async fn tokens(world: &World) -> Vec<String> {
    std::fs::create_dir_all(world.config.store.parent().expect("a folder")).expect("a folder");
    let store =
        switchbell::inbox::sqlite::SqliteInbox::open(&world.config.store, Clock::system().now()).expect("a store");
    let mut tokens = Vec::new();
    for _ in 0..READERS.div_ceil(READERS_PER_TOKEN_MAX) {
        let text = TokenText::draw(TokenKind::Bearer).expect("a token");
        let token = Token {
            id: 0,
            kind: TokenKind::Bearer,
            hash: text.hash(),
            label: None,
            scope: Scope::Operator,
            parent: None,
            created_at: Clock::system().now(),
            expires_at: None,
            revoked_at: None,
            used_at: None,
        };
        store.add_token(token).await.expect("a write");
        tokens.push(text.as_str().to_owned());
    }
    tokens
}

/// The same bytes from a channel, for all who connect.
async fn bare() {
    let (sender, _) = broadcast::channel::<Bytes>(1_024);
    let told = sender.clone();
    let answer = async move || {
        let ready = stream::iter([Ok(Bytes::from_static(b"id: 0\nevent: ready\ndata: {\"number\":0}\n\n"))]);
        let events = stream::unfold(told.subscribe(), async |mut receiver| {
            let bytes = receiver.recv().await.ok()?;
            Some((Ok::<_, Infallible>(bytes), receiver))
        });
        let body = Body::from_stream(futures_util::StreamExt::chain(ready, events));
        ([(header::CONTENT_TYPE, "text/event-stream")], body)
    };
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    let routes = Router::new().route("/v1/workspaces/acme/stream", get(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let mut asked = asked();
    while let Some(number) = asked.recv().await {
        let seq: u64 = number.parse().expect("a number");
        let json =
            serde_json::to_string(&NotificationJson::from(&(notification(seq), Marks::default()))).expect("JSON");
        let _ = sender.send(format!("id: {seq}\nevent: notification.created\ndata: {json}\n\n").into());
        println!("{}", now());
    }
}
