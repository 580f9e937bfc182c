//! The poller against the example servers, in their own processes: each SDK, over stdio and over streamable HTTP.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests fail by panic"
)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use switchbell::config::{Auth, Poll, Transport};
use switchbell::telemetry::Happening;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{PATIENCE, Polling, TOKEN, root};

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
    crate::support::prepared(path, "deps").to_str().unwrap().to_owned()
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
        Transport::Stdio { run: run.to_vec(), env, directory: root().to_owned() }
    }
}

async fn expect_bootstrap(polling: &mut Polling) {
    let next = polling.next().await;
    assert!(matches!(next, Happening::Read { events: 0, bootstrap: true, .. }), "{next:?}");
}

async fn expect_event(polling: &mut Polling, number: u64, title: &str) {
    match polling.next().await {
        Happening::Accepted { seq, event, .. } => {
            assert_eq!((seq, event.title.as_str()), (number, title));
            let data: String = event.data.split_whitespace().collect();
            assert!(data == r#"{"b":1,"a":[2.50]}"# || data == r#"{"b":1,"a":[2.5]}"#, "{data}");
        }
        other => panic!("{other:?}"),
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

    let mut polling = Polling::start(folder.path(), transport.clone(), POLL);
    expect_bootstrap(&mut polling).await;
    for title in ["one", "two", "three"] {
        source.add(title).await;
    }
    expect_event(&mut polling, 1, "one").await;
    expect_event(&mut polling, 2, "two").await;
    expect_event(&mut polling, 3, "three").await;
    polling.stop().await;

    source.add("while we were away").await;
    let mut polling = Polling::start(folder.path(), transport, POLL);
    expect_event(&mut polling, 4, "while we were away").await;
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
        POLL,
    );
    match polling.next().await {
        Happening::ReadFailed { reason, failures: 1, .. } => assert!(reason.starts_with("HTTP 401"), "{reason}"),
        other => panic!("{other:?}"),
    }
    polling.stop().await;
}
