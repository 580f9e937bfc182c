//! Real outbox servers: the examples, on the SDKs that people use.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use std::io::{BufRead, BufReader};

use super::{World, prepared, root};

/// The bearer token of outboxes over HTTP.
pub const TOKEN: &str = "outbox-token-of-the-tests";

/// An SDK that an example server is written on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    FastMcp,
    TypeScript1,
    TypeScript2,
    Rust,
}

/// An outbox server whose rows are in a file of the world.
pub struct Outbox {
    serve: Vec<PathBuf>,
    add: Vec<PathBuf>,
    variable: &'static str,
    file: PathBuf,
}

pub fn python_outbox(folder: &std::path::Path) -> Outbox {
    let python = prepared("examples/outbox-python/.venv/bin/python", "deps");
    let script = |name: &str| root().join("examples/outbox-python").join(name);
    Outbox {
        serve: vec![python.clone(), script("server.py")],
        add: vec![python, script("outbox.py"), "add".into()],
        variable: "OUTBOX_DB",
        file: folder.join("outbox.db"),
    }
}

fn node_outbox(folder: &std::path::Path, version: &str) -> Outbox {
    let script = |name: &str| prepared(&format!("examples/outbox-typescript/{version}/dist/{name}"), "deps");
    Outbox {
        serve: vec!["node".into(), script("server.js")],
        add: vec!["node".into(), script("add.js")],
        variable: "OUTBOX_FILE",
        file: folder.join("outbox.jsonl"),
    }
}

fn rust_outbox(folder: &std::path::Path) -> Outbox {
    let program = prepared("target/examples/debug/outbox-rust", "deps");
    Outbox {
        serve: vec![program.clone()],
        add: vec![program, "add".into()],
        variable: "OUTBOX_DB",
        file: folder.join("outbox.db"),
    }
}

impl Sdk {
    pub fn outbox(self, folder: &std::path::Path) -> Outbox {
        match self {
            Self::FastMcp => python_outbox(folder),
            Self::TypeScript1 => node_outbox(folder, "v1"),
            Self::TypeScript2 => node_outbox(folder, "v2"),
            Self::Rust => rust_outbox(folder),
        }
    }
}

impl Outbox {
    /// `commands:` of an operator's file that starts this server as `outbox`.
    pub fn commands(&self) -> String {
        let run = self.serve.iter().map(|part| format!("{part:?}")).collect::<Vec<_>>().join(", ");
        let (variable, file) = (self.variable, &self.file);
        format!("{{ outbox: {{ run: [{run}], env: {{ {variable}: {file:?} }}, workspaces: [acme] }} }}")
    }

    /// The words that start it over stdio.
    pub fn words(&self) -> Vec<String> {
        self.serve.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
    }

    /// The variable it is started with, `NAME=VALUE`.
    pub fn variable(&self) -> String {
        format!("{}={}", self.variable, self.file.display())
    }

    /// A shell command that adds an event so often.
    pub fn adding(&self, times: usize) -> String {
        let words: Vec<String> = self.add.iter().map(|word| format!("'{}'", word.display())).collect();
        vec![format!("{} {} domain.active --title 'A domain' >&2", self.variable(), words.join(" ")); times]
            .join(" && ")
    }

    /// Adds an event from another process, as the program that owns the outbox would.
    pub fn add(&self, arguments: &[&str]) {
        let (program, first) = self.add.split_first().unwrap();
        let output = Command::new(program).args(first).args(arguments).env(self.variable, &self.file).output().unwrap();
        assert!(output.status.success(), "adding {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Adds events with these titles, one after the other, from one other process, which goes on by itself. Only the outbox
    /// in Python has this.
    pub fn add_all(&self, titles: impl IntoIterator<Item = String>) -> Child {
        const ADD: &str = "import os, sys\n\
            sys.path.insert(0, sys.argv[1])\n\
            from outbox import Outbox\n\
            outbox = Outbox(os.environ['OUTBOX_DB'])\n\
            for title in sys.argv[2:]:\n    with outbox.transaction() as rows:\n        outbox.add(rows, 'domain.active', title=title)\n";
        let folder = root().join("examples/outbox-python");
        let mut command = Command::new(&self.add[0]);
        command.args(["-c", ADD]).arg(folder).args(titles).env(self.variable, &self.file).spawn().unwrap()
    }

    /// Starts it as an HTTP server that asks for a token.
    pub fn over_http(&self) -> HttpOutbox {
        let (program, first) = self.serve.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(first).args(["--http", "0"]).env(self.variable, &self.file).env("OUTBOX_TOKEN", TOKEN);
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("listening on ").map(|(_, url)| url.to_owned()));
        // Its later lines are read so that it never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        HttpOutbox { child, url: url.expect("the HTTP outbox never said where it listens") }
    }
}

/// A running HTTP outbox; ended when dropped.
pub struct HttpOutbox {
    child: Child,
    pub url: String,
}

impl Drop for HttpOutbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl World {
    /// `connectors:` that start the command `outbox`.
    pub fn stdio_connector() -> String {
        "{ registrar: { command: outbox, ceiling: attention, notifications: { resource: \"acme://notifications\" } } }"
            .to_owned()
    }

    /// `connectors:` that reach an outbox over HTTP.
    pub fn http_connector(url: &str) -> String {
        format!(
            "{{ registrar: {{ url: \"{url}\", auth: {{ bearer: {{ secret: outbox-token }} }}, ceiling: attention, \
             notifications: {{ resource: \"acme://notifications\" }} }} }}"
        )
    }
}
