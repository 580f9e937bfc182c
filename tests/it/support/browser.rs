//! Chromium, as people read the inbox in it.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::{PATIENCE, prepared};

/// A browser that does as it is told; it ends with the test.
pub struct Browser {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Browser {
    /// Starts one for the pages of a server, `http://127.0.0.1:PORT`.
    pub fn start(address: &str) -> Self {
        prepared("tests/peers/browser/node_modules/.ready", "deps");
        let mut command = Command::new("node");
        command.arg(prepared("tests/peers/browser/browser.mjs", "deps")).arg(address).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (orders, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, orders, answers: BufReader::new(answers).lines() }
    }

    /// Runs the body of an asynchronous function of JavaScript (`tests/peers/browser/browser.mjs` says what it sees), and
    /// returns what it does.
    pub async fn run(&mut self, script: &str, args: Value) -> Value {
        let order = format!("{}\n", json!({ "run": script, "args": args }));
        self.orders.write_all(order.as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(PATIENCE, self.answers.next_line()).await;
        let answer = answer.unwrap_or_else(|_| panic!("the browser did not come to the end of {script}")).unwrap();
        let mut answer: Value = serde_json::from_str(&answer.expect("the browser has ended")).unwrap();
        if let Some(error) = answer.get("error") {
            panic!("{script}\n\n{}", error.as_str().unwrap());
        }
        answer["value"].take()
    }

    /// Nothing that no page of ours may bring about was seen.
    pub async fn has_seen_nothing(&mut self) {
        assert_eq!(self.run("return seen.splice(0)", Value::Null).await, json!([]));
    }

    /// Ends it.
    pub async fn end(self) {
        let Self { mut child, orders, answers } = self;
        drop(orders);
        let _ = tokio::time::timeout(PATIENCE, child.wait()).await;
        drop(answers);
    }
}
