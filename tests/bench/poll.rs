//! Polling at scale: a thousand outboxes over HTTP in a hundred workspaces, and programs that die at once beside others
//! that must not notice. The server runs as a process of its own, so that its time and memory are its own.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

const WORKSPACES: usize = 100;
const CONNECTORS: usize = 10;
const BASE: Duration = Duration::from_secs(60);
/// From the start until every outbox has been read and the waits have spread.
const SETTLE: Duration = Duration::from_secs(90);
const WATCH: Duration = Duration::from_secs(120);

const DYING: usize = 50;
const HEALTHY: usize = 10;
const STORM_WATCH: Duration = Duration::from_secs(20);

/// The variable that makes this program a bare client instead, for comparison.
const BARE: &str = "SWITCHBELL_BENCH_BARE";

/// Reads of each outbox, as the outboxes saw them.
type Reads = Arc<Mutex<BTreeMap<String, Vec<Instant>>>>;

pub async fn run() {
    thousand().await;
    storm().await;
}

/// Whether this process was started to be compared with; then it never returns.
pub async fn bare_if_asked() {
    if let Ok(url) = std::env::var(BARE) {
        bare(&url).await;
    }
}

async fn thousand() {
    println!("polling {WORKSPACES} workspaces x {CONNECTORS} connectors over HTTP at {} s", BASE.as_secs());
    let (url, reads) = outboxes().await;
    let folder = tempfile::tempdir().expect("a folder");
    let connectors = |workspace: usize| {
        let mut text = "connectors:\n".to_owned();
        for number in 0..CONNECTORS {
            let _ = writeln!(
                text,
                "  c{number}: {{ url: \"{url}/{workspace}/{number}\", notifications: {{ resource: \"acme://n\" }} }}"
            );
        }
        text
    };
    configure(folder.path(), "poll: { base: 60s }", WORKSPACES, connectors);
    let server = Process::start(serve(folder.path()));
    tokio::time::sleep(SETTLE).await;
    reads.lock().expect("a lock").clear();
    let used = server.cpu();
    tokio::time::sleep(WATCH).await;
    let share = (server.cpu() - used).as_secs_f64() / WATCH.as_secs_f64();
    let (rss, peak) = server.memory_mib();
    let seen = std::mem::take(&mut *reads.lock().expect("a lock"));
    drop(server);

    let all: Vec<Instant> = seen.values().flatten().copied().collect();
    println!(
        "  {} outboxes read {} times in {} s; {:.1} % of a core; {rss:.0} MiB, {peak:.0} at most",
        seen.len(),
        all.len(),
        WATCH.as_secs(),
        share * 100.0
    );
    let (dispersion, most) = evenness(&all);
    println!(
        "  reads in a second: {most} at most; variance over mean {dispersion:.2} (1 is pure chance, bursts are far above)"
    );

    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.arg("--bench").env(BARE, &url);
    let bare = Process::start(command);
    tokio::time::sleep(BASE / 2).await;
    let used = bare.cpu();
    tokio::time::sleep(BASE).await;
    let bare_share = (bare.cpu() - used).as_secs_f64() / BASE.as_secs_f64();
    println!(
        "  a bare client that makes the same requests and throws the answers away: {:.1} % of a core, so {:.1} times that",
        bare_share * 100.0,
        share / bare_share
    );
}

/// Variance over mean of the reads in each second, and the most of one second.
fn evenness(reads: &[Instant]) -> (f64, usize) {
    let Some(first) = reads.iter().min() else { return (f64::NAN, 0) };
    let mut seconds = vec![0_usize; usize::try_from(WATCH.as_secs()).unwrap_or(1)];
    for read in reads {
        let second = usize::try_from(read.duration_since(*first).as_secs()).unwrap_or(0);
        if let Some(count) = seconds.get_mut(second) {
            *count += 1;
        }
    }
    let mean = seconds.iter().sum::<usize>() as f64 / seconds.len() as f64;
    let variance = seconds.iter().map(|&count| (count as f64 - mean).powi(2)).sum::<f64>() / seconds.len() as f64;
    (variance / mean, seconds.into_iter().max().unwrap_or_default())
}

async fn storm() {
    println!("{DYING} programs that end at once, each started again every second, beside {HEALTHY} outboxes over HTTP");
    for dying in [0, DYING] {
        let (url, reads) = outboxes().await;
        let folder = tempfile::tempdir().expect("a folder");
        let connectors = |_: usize| {
            let mut text = "connectors:\n".to_owned();
            for number in 0..HEALTHY {
                let _ = writeln!(
                    text,
                    "  c{number}: {{ url: \"{url}/0/{number}\", notifications: {{ resource: \"acme://n\" }} }}"
                );
            }
            for number in 0..dying {
                let _ =
                    writeln!(text, "  d{number}: {{ command: dying, notifications: {{ resource: \"acme://n\" }} }}");
            }
            text
        };
        let operator = "poll: { base: 1s, floor: 1s, ceiling: 1s, budget_per_minute: 100000 }\n\
                        commands: { dying: { run: [\"false\"], workspaces: [w0] } }";
        configure(folder.path(), operator, 1, connectors);
        let server = Process::start(serve(folder.path()));
        tokio::time::sleep(Duration::from_secs(5)).await;
        reads.lock().expect("a lock").clear();
        let used = server.cpu();
        tokio::time::sleep(STORM_WATCH).await;
        let share = (server.cpu() - used).as_secs_f64() / STORM_WATCH.as_secs_f64();
        let seen = std::mem::take(&mut *reads.lock().expect("a lock"));
        drop(server);
        let mut late: Vec<f64> = seen
            .values()
            .flat_map(|reads| reads.iter().zip(reads.iter().skip(1)))
            .map(|(one, next)| (next.duration_since(*one).as_secs_f64() - 1.0).max(0.0) * 1_000.0)
            .collect();
        late.sort_by(f64::total_cmp);
        let at = |share: f64| late.get(((late.len() as f64 - 1.0) * share) as usize).copied().unwrap_or(f64::NAN);
        println!(
            "  with {dying} of them: {} reads, each at most so late: {:.1} ms half of them, {:.1} ms 99 of 100, {:.1} ms all; {:.0} % of a core",
            late.len(),
            at(0.5),
            at(0.99),
            at(1.0),
            share * 100.0
        );
    }
}

/// Writes the files of a server with so many workspaces.
fn configure(folder: &Path, operator: &str, workspaces: usize, connectors: impl Fn(usize) -> String) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("switchbell.yaml", &format!("listen: 127.0.0.1:0\nplugins: {{ directory: plugins/ }}\n{operator}\n"));
    std::fs::create_dir_all(folder.join("plugins")).expect("a folder");
    for number in 0..workspaces {
        write(&format!("workspaces/w{number}.yaml"), &connectors(number));
    }
}

fn serve(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.arg("--config").arg(folder.join("switchbell.yaml")).arg("serve").env("SWITCHBELL_LOG", "error");
    command
}

/// A process whose use of the machine is watched; killed when dropped.
struct Process(Child);

impl Process {
    fn start(mut command: Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("a process"))
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.0.id())).expect("the process runs")
    }

    /// Time on the processor so far, its own and that of the children it has waited for.
    fn cpu(&self) -> Duration {
        let stat = self.file("stat");
        let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
        let ticks: u64 = fields.split_whitespace().skip(11).take(4).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        // Linux counts a hundred ticks a second for every program.
        Duration::from_millis(ticks * 10)
    }

    /// Resident memory now and at most.
    fn memory_mib(&self) -> (f64, f64) {
        let status = self.file("status");
        let of = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1_024.0
        };
        (of("VmRSS:"), of("VmHWM:"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Outboxes with nothing new, which ask to be read every minute; one for each path.
async fn outboxes() -> (String, Reads) {
    let reads = Reads::default();
    let seen = Arc::clone(&reads);
    let handler = move |request: Request| {
        let seen = Arc::clone(&seen);
        async move {
            let path = request.uri().path().to_owned();
            let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
            let message = serde_json::from_slice(&body).unwrap_or(Value::Null);
            if method(&message) == "resources/read" {
                seen.lock().expect("a lock").entry(path).or_default().push(Instant::now());
            }
            answer(&message)
        }
    };
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await });
    (url, reads)
}

fn method(message: &Value) -> &str {
    message.get("method").and_then(Value::as_str).unwrap_or_default()
}

fn answer(message: &Value) -> Response {
    let result = match method(message) {
        "server/discover" => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "resources": {} }, "ttlMs": 0, "cacheScope": "private" }),
        "resources/read" => json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "contents": [{ "uri": "acme://n", "text": "{\"events\":[],\"cursor\":\"p:1\",\"nextPollMs\":60000}" }] }),
        _ => return StatusCode::ACCEPTED.into_response(),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message.get("id"), "result": result }).to_string();
    ([("content-type", "application/json")], body).into_response()
}

/// Reads every outbox of [`thousand`] once in each `BASE`, spread as polls are, with a client and nothing else.
async fn bare(url: &str) {
    let client =
        reqwest::Client::builder().no_proxy().pool_idle_timeout(Duration::from_secs(4)).build().expect("a client");
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {
        "uri": "acme://n?cursor=p:1&maxEvents=100&maxAgeMs=7776000000" } })
    .to_string();
    let count = WORKSPACES * CONNECTORS;
    for number in 0..count {
        let (client, request) = (client.clone(), request.clone());
        let url = format!("{url}/{}/{}", number / CONNECTORS, number % CONNECTORS);
        tokio::spawn(async move {
            tokio::time::sleep(BASE.mul_f64(number as f64 / count as f64)).await;
            loop {
                let asked = client.post(&url).header("content-type", "application/json").body(request.clone()).send();
                if let Ok(response) = asked.await {
                    let _ = response.text().await;
                }
                tokio::time::sleep(BASE).await;
            }
        });
    }
    std::future::pending::<()>().await;
}
