//! Outbox servers on the SDKs that people use, and what they report of what they are asked.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener as StdListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};
use switchbell::config::{Auth, Poll, Transport};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use super::{PATIENCE, Polling, prepared, root};

/// The file that takes what a server over HTTP writes to standard error.
const LAST_WORDS: &str = "last-words";

/// A server under `tests/peers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    FastMcp2,
    FastMcp3,
    FastMcp4,
    Python1,
    Python2,
    TypeScript1,
    TypeScript2,
    /// FastMCP 3.x with tools besides its outbox.
    Tools,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Stdio,
    Http,
}

impl Peer {
    /// The words that run it. What is installed for one of them serves another that needs the same versions.
    fn words(self) -> [PathBuf; 2] {
        let python = |venv: &str, name: &str| {
            let script = prepared(&format!("tests/peers/python/{name}_server.py"), "deps");
            [prepared(&format!("{venv}/.venv/bin/python"), "deps"), script]
        };
        let node = |folder: &str| {
            prepared(&format!("tests/peers/{folder}/node_modules/.ready"), "deps");
            ["node".into(), prepared(&format!("tests/peers/{folder}/server.mjs"), "deps")]
        };
        match self {
            Self::FastMcp2 => python("tests/peers/fastmcp-2", "fastmcp"),
            Self::FastMcp3 => python("tests/peers/fastmcp-3", "fastmcp"),
            Self::FastMcp4 => python("examples/outbox-python", "fastmcp"),
            Self::Python1 => python("tests/peers/fastmcp-2", "sdk1"),
            Self::Python2 => python("examples/outbox-python", "sdk2"),
            Self::Tools => python("tests/peers/fastmcp-3", "tools"),
            Self::TypeScript1 => node("typescript-1"),
            Self::TypeScript2 => node("typescript-2"),
        }
    }

    /// Whether it says by itself that its outbox changed.
    pub fn hints(self) -> bool {
        !matches!(self, Self::FastMcp2 | Self::FastMcp3 | Self::FastMcp4 | Self::Tools)
    }

    /// Whether it keeps sessions over HTTP, in the revision that is spoken with it.
    pub fn keeps_sessions(self) -> bool {
        matches!(self, Self::FastMcp2 | Self::FastMcp3 | Self::Python1 | Self::TypeScript1 | Self::Tools)
    }
}

/// One server, its outbox, and what it reported.
pub struct Stage {
    words: Vec<String>,
    env: BTreeMap<String, String>,
    /// Its port, and the server, where it runs by itself.
    http: Option<(u16, Child)>,
    rows: PathBuf,
    reports: mpsc::UnboundedReceiver<Value>,
    /// Reports that came before the one that was waited for.
    kept: Vec<Value>,
    listening: JoinHandle<()>,
    folder: TempDir,
}

impl Stage {
    /// An outbox with one row that ends at `cursor`; over HTTP its server runs.
    pub async fn new(peer: Peer, over: Over, cursor: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rows = folder.path().join("rows");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let env = BTreeMap::from([
            ("OUTBOX_ROWS".to_owned(), rows.to_str().unwrap().to_owned()),
            ("OUTBOX_REPORTS".to_owned(), listener.local_addr().unwrap().to_string()),
        ]);
        let words = peer.words().map(|word| word.to_str().unwrap().to_owned()).to_vec();
        let (sender, reports) = mpsc::unbounded_channel();
        let listening = tokio::spawn(listen(listener, sender));
        let mut stage = Self { words, env, http: None, rows, reports, kept: Vec::new(), listening, folder };
        stage.add(&[("before anyone asked", cursor)], false);
        if over == Over::Http {
            stage.start_http(free_port()).await;
        }
        stage
    }

    /// Adds rows all at once, each with its title and its cursor. With `hint` the server says so, if it can.
    pub fn add(&self, rows: &[(&str, &str)], hint: bool) {
        let row = |&(title, cursor): &(&str, &str)| {
            let block = json!({ "title": title, "level": "attention" });
            let event = json!({
                "eventId": title,
                "name": "domain.active",
                "timestamp": "2026-09-01T18:42:10Z",
                "data": { "b": 1, "a": [2.5] },
                "_meta": { "ai.nimblebrain/notification": block },
            });
            format!("{}\n", json!({ "cursor": cursor, "event": event, "hint": hint }))
        };
        self.write(rows.iter().map(row).collect());
    }

    /// Adds one event, whatever it is.
    pub fn add_event(&self, event: &Value, cursor: &str) {
        self.write(format!("{}\n", json!({ "cursor": cursor, "event": event, "hint": false })));
    }

    fn write(&self, rows: String) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.rows).unwrap();
        file.write_all(rows.as_bytes()).unwrap();
    }

    /// It as a `command` of the operator's file.
    pub fn command(&self) -> String {
        json!({ "run": self.words, "env": self.env, "workspaces": ["acme"] }).to_string()
    }

    /// Where it listens, over HTTP.
    pub fn url(&self) -> Option<String> {
        self.http.as_ref().map(|(port, _)| format!("http://127.0.0.1:{port}/mcp"))
    }

    /// Polls it, going on where an earlier poller of this stage was.
    pub fn poll(&self, poll: Poll) -> Polling {
        let transport = match &self.http {
            Some((port, _)) => Transport::Http {
                url: format!("http://127.0.0.1:{port}/mcp").parse().unwrap(),
                auth: Auth::None,
                headers: BTreeMap::new(),
                private: false,
            },
            None => Transport::Stdio { run: self.words.clone(), env: self.env.clone(), directory: root().to_owned() },
        };
        Polling::start(self.folder.path(), transport, poll)
    }

    /// Kills the server. Over HTTP another runs in its place when this returns; over stdio a poller starts its own.
    pub async fn restart(&mut self) {
        let pid = self.all("started").last().unwrap().as_i64().unwrap();
        match self.http.take() {
            Some((port, mut server)) => {
                server.kill().await.unwrap();
                self.start_http(port).await;
            }
            None => {
                let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
    }

    async fn start_http(&mut self, port: u16) {
        let (program, first) = self.words.split_first().unwrap();
        let mut command = Command::new(program);
        let words = File::create(self.folder.path().join(LAST_WORDS)).unwrap();
        command.args(first).args(["--http", &port.to_string()]).envs(&self.env).kill_on_drop(true);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(words).spawn().unwrap();
        self.http = Some((port, server));
        self.next("listening").await;
    }

    /// The next report of this kind.
    pub async fn next(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.kept.iter().position(|report| report.get(kind).is_some()) {
                return self.kept.remove(at)[kind].take();
            }
            let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            let words = || std::fs::read_to_string(self.folder.path().join(LAST_WORDS)).unwrap_or_default();
            let next = next.unwrap_or_else(|_| panic!("no report of {kind}, but {:?} and {}", self.kept, words()));
            self.kept.push(next.unwrap());
        }
    }

    /// Every report of this kind that came and was not waited for. They are not taken: a later call has them again.
    pub fn all(&mut self, kind: &str) -> Vec<Value> {
        self.kept.extend(std::iter::from_fn(|| self.reports.try_recv().ok()));
        self.kept.iter().filter_map(|report| report.get(kind).cloned()).collect()
    }

    /// The same, once they are enough, or when no more come.
    pub async fn all_once(&mut self, kind: &str, are_enough: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        loop {
            let all = self.all(kind);
            if are_enough(&all) {
                return all;
            }
            match tokio::time::timeout(PATIENCE, self.reports.recv()).await {
                Ok(Some(report)) => self.kept.push(report),
                _ => return all,
            }
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// Sends on what servers report, until it is dropped; then they end.
async fn listen(listener: TcpListener, reports: mpsc::UnboundedSender<Value>) {
    let mut servers = JoinSet::new();
    loop {
        let (server, _) = listener.accept().await.unwrap();
        servers.spawn(forward(server, reports.clone()));
    }
}

async fn forward(server: TcpStream, reports: mpsc::UnboundedSender<Value>) {
    let mut lines = BufReader::new(server).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = reports.send(serde_json::from_str(&line).unwrap());
    }
}

/// A port to listen on twice: out of the range that systems give to connections, which might take it in between.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 500).unwrap() * 20;
    let mut candidates = std::iter::from_fn(|| Some(20_000 + own + NEXT.fetch_add(1, Ordering::Relaxed)));
    candidates.find(|&port| StdListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()).unwrap()
}
