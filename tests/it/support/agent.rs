//! Real agents and models for runs: they tell what they were asked, and do what they are told.

use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{PATIENCE, prepared, root};

/// The key that they take, longer than the shortest secret there may be.
pub const KEY: &str = "key-of-the-agents-of-the-tests";

/// An agent or a model; gone when this is dropped.
pub struct Agent {
    _child: Child,
    input: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
    /// Reports that came before the one that was waited for.
    kept: Vec<Value>,
    /// Where it listens.
    pub url: String,
}

impl Agent {
    /// An agent that speaks A2A 1.0 only.
    pub async fn a2a_1() -> Self {
        Self::python("a2a-1", "a2a_1_server.py").await
    }

    /// An agent that speaks A2A 0.3 only.
    pub async fn a2a_03() -> Self {
        Self::python("a2a-03", "a2a_03_server.py").await
    }

    /// An agent that speaks the Responses protocol.
    pub async fn responses() -> Self {
        Self::python("responses", "responses_server.py").await
    }

    /// The APIs of OpenAI and Anthropic, answered at once.
    pub async fn models() -> Self {
        prepared("tests/peers/models/node_modules/@copilotkit/aimock", "deps");
        let mut command = Command::new("node");
        command.arg(root().join("tests/peers/models/server.mjs")).env("KEY", KEY);
        Self::start(command).await
    }

    async fn python(environment: &str, script: &str) -> Self {
        let mut command = Command::new(prepared(&format!("tests/peers/{environment}/.venv/bin/python"), "deps"));
        command.arg(root().join("tests/peers/agents").join(script)).env("PYTHONDONTWRITEBYTECODE", "1");
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let said = BufReader::new(output).lines();
        let mut agent = Self { _child: child, input, said, kept: Vec::new(), url: String::new() };
        agent.url = agent.next("url").await.as_str().unwrap().to_owned();
        agent
    }

    /// Tells it what to do.
    pub async fn tell(&mut self, order: &str) {
        self.input.write_all(format!("{order}\n").as_bytes()).await.unwrap();
    }

    /// The next report of this kind.
    pub async fn next(&mut self, kind: &str) -> Value {
        loop {
            if let Some(at) = self.kept.iter().position(|report| report.get(kind).is_some()) {
                return self.kept.remove(at)[kind].take();
            }
            let line = tokio::time::timeout(PATIENCE, self.said.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("the agent never told of {kind}, but {:?}", self.kept));
            self.kept.push(serde_json::from_str(&line.unwrap().expect("the agent ended")).unwrap());
        }
    }

    /// The next request with this method of A2A.
    pub async fn asked(&mut self, method: &str) -> Value {
        loop {
            let asked = self.next("asked").await;
            if asked["body"]["method"] == method {
                return asked;
            }
        }
    }

    /// How many reports of this kind came and were not waited for.
    pub fn left(&self, kind: &str) -> usize {
        self.kept.iter().filter(|report| report.get(kind).is_some()).count()
    }
}
