//! The poller against the example servers, in their own processes: each SDK, over stdio and over streamable HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panic"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use switchbell::clock::Clock;
use switchbell::config::{Auth, Config, Connector, Plugins, Poll, Secret, SecretPlace, Transport, Workspace};
use switchbell::fetch::budget::Budget;
use switchbell::fetch::mcp::{Clients, Common, McpOutbox, Times};
use switchbell::fetch::poller::{Poller, Shared};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::notification::Level;
use switchbell::route::Router;
use switchbell::telemetry::{Happening, Observer};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Nothing on one machine takes longer; what does has failed.
const PATIENCE: Duration = Duration::from_secs(60);

const TOKEN: &str = "a-token-of-the-tests";

/// Waits are short: the servers are on this machine.
const POLL: Poll = Poll {
    base: Duration::from_millis(100),
    floor: Duration::from_millis(50),
    ceiling: Duration::from_millis(200),
    events_max: 2,
    chained_reads_max: 5,
    age_max: Duration::from_secs(90 * 86_400),
};

/// An example server.
#[derive(Clone, Copy, Debug)]
enum Example {
    Python,
    TypeScript1,
    TypeScript2,
}

impl Example {
    /// The words that run it, the words that add an event to its outbox, and the variable that names its file.
    fn words(self) -> ([String; 2], [String; 2], &'static str) {
        let node = |folder: &str| {
            let script = |name: &str| prepared(&format!("examples/outbox-typescript/{folder}/dist/{name}.js"));
            (["node".to_owned(), script("server")], ["node".to_owned(), script("add")], "OUTBOX_FILE")
        };
        match self {
            Self::Python => {
                let python = || prepared("examples/outbox-python/.venv/bin/python");
                let script = |name: &str| prepared(&format!("examples/outbox-python/{name}.py"));
                ([python(), script("server")], [python(), script("outbox")], "OUTBOX_DB")
            }
            Self::TypeScript1 => node("v1"),
            Self::TypeScript2 => node("v2"),
        }
    }
}

fn prepared(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    assert!(path.exists(), "{} is missing: run `make deps`", path.display());
    path.to_str().unwrap().to_owned()
}

/// The file of an example's outbox.
struct Source {
    example: Example,
    file: PathBuf,
}

impl Source {
    async fn add(&self, title: &str) {
        let ([program, script], variable) = (self.example.words().1, self.example.words().2);
        let mut command = Command::new(program);
        command.arg(script).args(if matches!(self.example, Example::Python) { &["add"][..] } else { &[] });
        command.args(["domain.active", "--level", "urgent", "--title", title, "--data", r#"{"b": 1, "a": [2.50]}"#]);
        let status = command.env(variable, &self.file).stdout(Stdio::null()).status().await.unwrap();
        assert!(status.success(), "{:?}: the event {title} was not added", self.example);
    }

    /// Runs it over HTTP: the child, and where it listens.
    async fn listen(&self) -> (Child, String) {
        let ([program, script], _, variable) = self.example.words();
        let mut command = Command::new(program);
        command.args([&script, "--http", "0"]).env(variable, &self.file).env("OUTBOX_TOKEN", TOKEN);
        command.stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = async {
            loop {
                let line = lines.next_line().await.unwrap().expect("it ended before it listened");
                if let Some((_, url)) = line.split_once("listening on ") {
                    return url.to_owned();
                }
            }
        };
        let url = tokio::time::timeout(PATIENCE, line).await.expect("it does not listen");
        (child, url)
    }

    fn over_stdio(&self) -> Transport {
        let (run, _, variable) = self.example.words();
        let env = BTreeMap::from([(variable.to_owned(), self.file.to_str().unwrap().to_owned())]);
        Transport::Stdio { run: run.to_vec(), env, directory: env!("CARGO_MANIFEST_DIR").into() }
    }
}

fn config(transport: Transport) -> Config {
    let connector = Connector {
        name: "registrar".parse().unwrap(),
        transport,
        outbox: Some("acme://notifications".to_owned()),
        not_polled: None,
        ceiling: Level::Urgent,
        poll: POLL,
    };
    let workspace = Workspace {
        name: "acme".parse().unwrap(),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::from([(connector.name.clone(), connector)]),
        routes: Vec::new(),
        router: Router::new(Vec::new()).unwrap(),
    };
    let place = SecretPlace::Connector;
    let token = Secret { value: TOKEN.to_owned(), place, hosts: Vec::new(), workspaces: Vec::new() };
    Config {
        file: "switchbell.yaml".into(),
        listen: ([127, 0, 0, 1], 0).into(),
        store: "switchbell.db".into(),
        plugins: Plugins { directory: "plugins".into(), grants: BTreeMap::new(), limits: Default::default() },
        secrets: BTreeMap::from([("token".parse().unwrap(), token)]),
        workspaces: BTreeMap::from([(workspace.name.clone(), workspace)]),
        reads_per_minute_max: 100_000,
    }
}

#[derive(Debug)]
struct Told(mpsc::UnboundedSender<Happening>);

impl Observer for Told {
    fn happened(&self, what: &Happening) {
        let _ = self.0.send(what.clone());
    }
}

/// A poller that runs on a store in `folder`.
struct Polling {
    told: mpsc::UnboundedReceiver<Happening>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Polling {
    fn start(folder: &Path, transport: Transport) -> Self {
        let config = Arc::new(config(transport));
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        let connector = &config.workspaces[&workspace].connectors[&source];
        let (secrets, clock) = (&config.secrets, Clock::system());
        let common = Common { secrets, times: Times::default(), clock, clients: Clients::new() };
        let outbox = McpOutbox::new(&workspace, connector, &common).unwrap();
        let inbox = Arc::new(SqliteInbox::open(&folder.join("switchbell.db"), Timestamp::UNIX_EPOCH).unwrap());
        let (sender, told) = mpsc::unbounded_channel();
        let observer = Arc::new(Told(sender));
        let budget = Arc::new(Budget::new(config.reads_per_minute_max, Clock::system()));
        let shared = Shared { config, inbox, clock: Clock::system(), observer, pollers: 1 };
        let poller = Poller::new(shared, &workspace, &source, Box::new(outbox), budget).unwrap();
        let stop = CancellationToken::new();
        Self { told, task: tokio::spawn(poller.run(stop.clone())), stop }
    }

    /// The next thing that is more than a read that brought nothing.
    async fn next(&mut self) -> Happening {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.told.recv()).await.expect("nothing happened");
            match next.expect("the poller ended") {
                Happening::Read { bootstrap: false, .. } => {}
                other => return other,
            }
        }
    }

    async fn expect_bootstrap(&mut self) {
        let next = self.next().await;
        assert!(matches!(next, Happening::Read { events: 0, bootstrap: true, .. }), "{next:?}");
    }

    async fn expect_event(&mut self, number: u64, title: &str) {
        match self.next().await {
            Happening::Accepted { seq, event, .. } => {
                assert_eq!((seq, event.title.as_str()), (number, title));
                let data: String = event.data.split_whitespace().collect();
                assert!(data == r#"{"b":1,"a":[2.50]}"# || data == r#"{"b":1,"a":[2.5]}"#, "{data}");
            }
            other => panic!("{other:?}"),
        }
    }

    async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it does not stop").unwrap();
    }
}

/// What happened before the first read is left alone; what happens after arrives once, in order, over a restart too.
async fn check(example: Example, over_http: bool) {
    let folder = tempfile::tempdir().unwrap();
    let source = Source { example, file: folder.path().join("outbox") };
    source.add("before anyone asked").await;
    let (_server, transport) = if over_http {
        let (server, url) = source.listen().await;
        (
            Some(server),
            Transport::Http {
                url: url.parse().unwrap(),
                auth: Auth::Bearer("token".parse().unwrap()),
                headers: BTreeMap::new(),
                private: false,
            },
        )
    } else {
        (None, source.over_stdio())
    };

    let mut polling = Polling::start(folder.path(), transport.clone());
    polling.expect_bootstrap().await;
    for title in ["one", "two", "three"] {
        source.add(title).await;
    }
    polling.expect_event(1, "one").await;
    polling.expect_event(2, "two").await;
    polling.expect_event(3, "three").await;
    polling.stop().await;

    source.add("while we were away").await;
    let mut polling = Polling::start(folder.path(), transport);
    polling.expect_event(4, "while we were away").await;
    polling.stop().await;
}

#[tokio::test]
async fn the_python_outbox_is_read_over_stdio() {
    check(Example::Python, false).await;
}

#[tokio::test]
async fn the_python_outbox_is_read_over_http() {
    check(Example::Python, true).await;
}

#[tokio::test]
async fn the_typescript_1_outbox_is_read_over_stdio() {
    check(Example::TypeScript1, false).await;
}

#[tokio::test]
async fn the_typescript_1_outbox_is_read_over_http() {
    check(Example::TypeScript1, true).await;
}

#[tokio::test]
async fn the_typescript_2_outbox_is_read_over_stdio() {
    check(Example::TypeScript2, false).await;
}

#[tokio::test]
async fn the_typescript_2_outbox_is_read_over_http() {
    check(Example::TypeScript2, true).await;
}

#[tokio::test]
async fn a_wrong_token_is_said_to_be_refused() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source { example: Example::Python, file: folder.path().join("outbox") };
    let (_server, url) = source.listen().await;
    let mut polling = Polling::start(
        folder.path(),
        Transport::Http { url: url.parse().unwrap(), auth: Auth::None, headers: BTreeMap::new(), private: false },
    );
    match polling.next().await {
        Happening::ReadFailed { reason, failures: 1, .. } => assert!(reason.starts_with("HTTP 401"), "{reason}"),
        other => panic!("{other:?}"),
    }
    polling.stop().await;
}
