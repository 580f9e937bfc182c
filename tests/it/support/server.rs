//! The program under test, as a process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{PATIENCE, Sink, World};

/// A running `switchbell`; killed when dropped.
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Server {
    /// Starts `serve` and returns once it is ready.
    pub fn start(world: &World, sink: &Sink) -> Self {
        let mut server = Self::spawn_serving(world, sink);
        server.wait_for(" ready ");
        server
    }

    /// Starts `serve`.
    pub fn spawn_serving(world: &World, sink: &Sink) -> Self {
        Self::spawn(command(&world.config(), sink).arg("serve"))
    }

    /// Starts a command whose standard error is read line by line.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that contains `text`, and returns it.
    pub fn wait_for(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(_) => panic!("the program never said {text:?}; it said:\n{}", self.seen.join("\n")),
            }
        }
    }

    /// Closes the pipes that it writes to, at its next line.
    pub fn stop_reading(&mut self) {
        self.lines = channel().1;
    }

    /// What it has said so far.
    pub fn said(&mut self) -> String {
        self.seen.extend(self.lines.try_iter());
        self.seen.join("\n")
    }

    /// Where it listens, as a URL: what it says once it is ready.
    pub fn url(&self) -> String {
        let line = self.seen.iter().find(|line| line.contains(" ready ")).expect("it is not ready");
        let address = line.split("listen=").nth(1).and_then(|rest| rest.split(' ').next());
        format!("http://{}", address.unwrap_or_else(|| panic!("no address: {line}")))
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as an operator does, and returns how it ended, how long that took, and what it said to the end.
    pub fn stop(mut self, signal: Signal) -> (ExitStatus, Duration, String) {
        let asked = Instant::now();
        self.signal(signal);
        let status = self.child.wait().unwrap();
        let took = asked.elapsed();
        self.seen.extend(self.lines.iter());
        (status, took, self.seen.join("\n"))
    }

    /// Kills it without a word.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.child.wait().unwrap();
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with the world's configuration and secrets.
pub fn command(config: &Path, sink: &Sink) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.arg("--config").arg(config).env("SLACK_OPS", sink.webhook()).env("OUTBOX_TOKEN", super::outbox::TOKEN);
    command.env("SWITCHBELL_LOG", "debug,hyper=info,rmcp=info,reqwest=info").env("NO_COLOR", "1").stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub fn run(world: &World, sink: &Sink, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(&world.config(), sink).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

impl World {
    /// What a command prints with `--json`.
    pub fn json(&self, sink: &Sink, arguments: &[&str]) -> Value {
        let (code, out, error) = run(self, sink, &[arguments, &["--json"]].concat());
        assert_eq!(code, 0, "{arguments:?} failed: {error}");
        serde_json::from_str(&out).unwrap()
    }
}

/// Sends each line on until nobody listens; then the pipe is closed, too.
fn forward(from: impl Read + Send + 'static, to: std::sync::mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
}
