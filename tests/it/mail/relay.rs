//! A relay on aiosmtpd whose answers the recipient's address decides, and a program that reads mails.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::{PATIENCE, prepared, root};

pub const USER: &str = "bell";
pub const PASSWORD: &str = "a-password-of-the-tests";

/// A running relay; it ends when this is dropped.
pub struct Relay {
    pub port: u16,
    child: Child,
    stdin: Option<ChildStdin>,
    reports: mpsc::UnboundedReceiver<Value>,
}

/// How a relay is set up.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    pub tls: &'a str,
    /// The files with a certificate and its key, in PEM.
    pub identity: Option<(&'a Path, &'a Path)>,
    pub signs_in: bool,
}

/// Neither TLS nor a password.
pub const PLAIN: Setup<'static> = Setup { tls: "none", identity: None, signs_in: false };

fn python() -> Command {
    let mut command = Command::new(prepared("tests/peers/smtp/.venv/bin/python", "deps"));
    command.args(["-W", "ignore"]);
    command
}

impl Relay {
    pub async fn start(setup: Setup<'_>) -> Self {
        Self::with_password(setup, PASSWORD).await
    }

    pub async fn with_password(setup: Setup<'_>, password: &str) -> Self {
        let mut settings = json!({ "tls": setup.tls });
        if let Some((certificate, key)) = setup.identity {
            settings["certificate"] = json!(certificate);
            settings["key"] = json!(key);
        }
        if setup.signs_in {
            settings["user"] = json!(USER);
            settings["password"] = json!(password);
        }
        let mut command = python();
        command.arg(root().join("tests/peers/smtp/server.py")).arg(settings.to_string());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, reports) = mpsc::unbounded_channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        std::thread::spawn(move || lines.for_each(|line| drop(sender.send(serde_json::from_str(&line).unwrap()))));
        let mut relay = Self { port: 0, stdin: child.stdin.take(), child, reports };
        relay.port = relay.next("listening").await.as_u64().unwrap().try_into().unwrap();
        relay
    }

    /// The next report of this kind; others before it are dropped.
    pub async fn next(&mut self, kind: &str) -> Value {
        loop {
            let next = tokio::time::timeout(PATIENCE, self.reports.recv()).await;
            let mut report = next.unwrap_or_else(|_| panic!("no report of {kind}")).expect("the relay ended");
            if !report[kind].is_null() {
                return report[kind].take();
            }
        }
    }

    /// Ends the relay and returns what it had reported that nobody asked for.
    pub async fn stop(mut self) -> Vec<Value> {
        self.stdin = None;
        let mut reports = Vec::new();
        while let Some(report) = self.reports.recv().await {
            reports.push(report);
        }
        reports
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that was reported of this kind.
pub fn of_kind<'a>(reports: &'a [Value], kind: &str) -> Vec<&'a Value> {
    reports.iter().map(|report| &report[kind]).filter(|report| !report.is_null()).collect()
}

/// The bytes of a mail as the relay got them.
pub fn content(mail: &Value) -> Vec<u8> {
    STANDARD.decode(mail["content"].as_str().unwrap()).unwrap()
}

/// What Python's `email` package reads in a mail.
pub fn read(mail: &[u8]) -> Value {
    let mut command = python();
    command.arg(root().join("tests/peers/smtp/read_mail.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(mail).unwrap();
    let read = child.wait_with_output().unwrap();
    assert!(read.status.success(), "it cannot read {}", String::from_utf8_lossy(mail));
    serde_json::from_slice(&read.stdout).unwrap()
}
