//! Queues of consumers: how long a committed event takes until it is acknowledged, how many pages a second are got and
//! acknowledged, and what a thousand consumers with live streams cost, next to a bare server that sends the same from a channel
//! and keeps nothing.

mod server;

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;

use crate::latency::{quantile, shown};
use crate::rate;
use crate::stream::now;
use crate::waiting::allow_open_files;
pub use server::serve_if_asked;
use server::{CONSUMERS, ROLE};

/// Events that are timed one by one.
const TIMED: usize = 200;
const EVERY: Duration = Duration::from_millis(20);
/// Pages of a hundred events that are got and acknowledged.
const PAGES: usize = 90;
const PAGE_EVENTS: usize = 100;
/// Seconds in each of which every consumer gets one event.
const ROUNDS: usize = 10;
/// Clock ticks of the kernel's accounts in a second.
const TICKS: f64 = 100.0;

const EXTENSION: &str = "io.stagewise/push-notifications";

pub async fn run() {
    println!(
        "\n{CONSUMERS} consumers with live streams; {TIMED} events to one, {PAGES} pages, {ROUNDS} rounds of one for each"
    );
    allow_open_files();
    let (bare, ours) = (measured("bare").await, measured("switchbell").await);
    for (label, one) in [("a bare server", &bare), ("switchbell", &ours)] {
        println!("  {label}: from the commit to its acknowledgement: {}", shown(&one.acked));
        println!("    {:.0} pages of {PAGE_EVENTS} events a second, got and acknowledged", one.pages);
        println!("    {:.1} KiB of memory for each stream", one.kib_each);
        println!("    one event a second for each: {}, {:.0} % of a core", shown(&one.live), one.cpu * 100.0);
    }
    let ratio = |of: fn(&Measured) -> f64| of(&ours) / of(&bare);
    println!(
        "  switchbell to bare: {:.2} of the time to acknowledge at 99 of 100, {:.2} of the pages, {:.2} of the memory, {:.2} of the CPU",
        ratio(|one| quantile(&one.acked, 0.99)),
        ratio(|one| one.pages),
        ratio(|one| one.kib_each),
        ratio(|one| one.cpu)
    );
}

struct Measured {
    acked: Vec<f64>,
    pages: f64,
    kib_each: f64,
    live: Vec<f64>,
    cpu: f64,
}

async fn measured(role: &str) -> Measured {
    let mut server = Server::start(role).await;
    let acked = acknowledged(&mut server).await;
    let pages = pages(&mut server).await;
    let before = server.resident_kib();
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let mut readers = Vec::with_capacity(CONSUMERS);
    for token in &server.tokens {
        readers.push(Reader::open(server.address, token).await);
    }
    let kib_each = (server.resident_kib() - before) / CONSUMERS as f64;
    let reading: Vec<_> = readers.into_iter().map(|reader| tokio::spawn(reader.read(arrived.clone()))).collect();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    let (began, cpu) = (Instant::now(), server.cpu());
    let mut live = Vec::with_capacity(ROUNDS * CONSUMERS);
    for round in 0..ROUNDS {
        ticks.tick().await;
        let committed = server.ask(&format!("round {round}")).await;
        for _ in 0..CONSUMERS {
            let (_, at) = arrivals.recv().await.expect("an arrival");
            live.push((at - committed).max(0) as f64 / 1e6);
        }
    }
    ticks.tick().await;
    let cpu = (server.cpu() - cpu) / began.elapsed().as_secs_f64();
    reading.iter().for_each(tokio::task::JoinHandle::abort);
    server.child.kill().await.expect("an end");
    Measured { acked, pages, kib_each, live, cpu }
}

/// How long each event took from its commit until its acknowledgement was answered.
async fn acknowledged(server: &mut Server) -> Vec<f64> {
    let caller = Caller::new(server);
    let (arrived, mut arrivals) = mpsc::unbounded_channel();
    let reading = tokio::spawn(Reader::open(server.address, &caller.token).await.read(arrived));
    let mut ticks = tokio::time::interval(EVERY);
    let mut times = Vec::with_capacity(TIMED);
    for number in 0..TIMED {
        ticks.tick().await;
        let committed = server.ask(&format!("one {number}")).await;
        let (id, _) = arrivals.recv().await.expect("an arrival");
        caller.ask("ack", json!({ "eventIds": [id] })).await;
        times.push((now() - committed).max(0) as f64 / 1e6);
    }
    reading.abort();
    times
}

/// Pages a second, each got and acknowledged.
async fn pages(server: &mut Server) -> f64 {
    server.ask(&format!("fill {}", PAGES * PAGE_EVENTS)).await;
    let caller = Caller::new(server);
    let began = Instant::now();
    for _ in 0..PAGES {
        let page = caller.ask("get", json!({ "limit": PAGE_EVENTS })).await;
        let events = page.get("events").and_then(Value::as_array).expect("a page");
        let ids: Vec<_> = events.iter().map(|event| event.get("eventId")).collect();
        assert_eq!(ids.len(), PAGE_EVENTS);
        caller.ask("ack", json!({ "eventIds": ids })).await;
    }
    rate(PAGES, began.elapsed())
}

/// Asks as the first consumer.
struct Caller {
    client: reqwest::Client,
    url: String,
    token: String,
}

impl Caller {
    fn new(server: &Server) -> Self {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let token = server.tokens.first().expect("a token").clone();
        Self { client, url: format!("http://{}/mcp", server.address), token }
    }

    async fn ask(&self, what: &str, params: Value) -> Value {
        let method = format!("{EXTENSION}/{what}");
        let request = self.client.post(&self.url).bearer_auth(&self.token).header("mcp-method", &method);
        let request = request.header("content-type", "application/json").header("mcp-protocol-version", "2026-07-28");
        let request = request.header("accept", "application/json, text/event-stream");
        let text =
            request.body(message(&method, params)).send().await.expect("an answer").text().await.expect("a body");
        let mut answer: Value = serde_json::from_str(&text).expect("JSON");
        answer.get_mut("result").unwrap_or_else(|| unreachable!("no result: {text}")).take()
    }
}

fn message(method: &str, mut params: Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { EXTENSION: {} } },
    });
    params.as_object_mut().expect("an object").insert("_meta".to_owned(), meta);
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// A server in a process of its own. It commits what each line asks for, and says when that was durable.
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

    async fn ask(&mut self, line: &str) -> i128 {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("a write");
        self.lines.next_line().await.expect("a line").expect("a commit").parse().expect("a time")
    }

    fn of_process(&self, file: &str) -> String {
        let path = format!("/proc/{}/{file}", self.child.id().expect("a process"));
        std::fs::read_to_string(path).expect("what it takes")
    }

    fn resident_kib(&self) -> f64 {
        let status = self.of_process("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    }

    /// Seconds of CPU so far.
    fn cpu(&self) -> f64 {
        let stat = self.of_process("stat");
        // The name may hold anything; user and system time are the 14th and 15th fields.
        let fields = stat.rsplit(") ").next().expect("its accounts").split(' ');
        let ticks: f64 = fields.skip(11).take(2).map(|field| field.parse::<f64>().expect("a number")).sum();
        ticks / TICKS
    }
}

/// Reads a live stream as it comes.
struct Reader {
    stream: TcpStream,
    text: Vec<u8>,
}

impl Reader {
    /// Returns once the server has acknowledged it.
    async fn open(address: SocketAddr, token: &str) -> Self {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let body = message("subscriptions/listen", json!({ "notifications": { EXTENSION: {} } }));
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: subscriptions/listen\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("a request");
        let mut reader = Self { stream, text: Vec::new() };
        while !reader.take(b"subscriptions/acknowledged") {
            reader.more().await;
        }
        reader
    }

    async fn more(&mut self) {
        let count = self.stream.read_buf(&mut self.text).await.expect("a read");
        assert!(count > 0, "the stream ended: {}", String::from_utf8_lossy(&self.text));
    }

    /// Forgets everything up to the end of a text, if it has come.
    fn take(&mut self, text: &[u8]) -> bool {
        let at = self.text.windows(text.len()).position(|window| window == text);
        at.inspect(|at| drop(self.text.drain(..at + text.len()))).is_some()
    }

    /// Tells when each event arrived, and its id.
    async fn read(mut self, arrived: mpsc::UnboundedSender<(String, i128)>) {
        loop {
            self.more().await;
            let at = now();
            while let Some(end) = self.text.windows(2).position(|window| window == b"\n\n") {
                let event: Vec<u8> = self.text.drain(..end + 2).collect();
                let event = String::from_utf8_lossy(&event);
                let id = event.split("\"eventId\":\"").nth(1).and_then(|rest| rest.split('"').next());
                if let Some(id) = id {
                    let _ = arrived.send((id.to_owned(), at));
                }
            }
        }
    }
}
