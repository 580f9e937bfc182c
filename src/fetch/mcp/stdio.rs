//! A server as a child process that speaks MCP on its standard input and output.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::async_rw::AsyncRwTransport;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::fault::Faults;
use super::stdout::{Seen, Watched};
use super::{MESSAGE_BYTES_MAX, Times};
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// The variables a child inherits; the rest of the host's environment is not its business.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Lines kept of what a child wrote to its standard error: enough for the end of a stack trace.
const LAST_WORDS_LINES_MAX: usize = 5;

/// Longest line of standard error that is kept and logged, in bytes.
const LAST_WORDS_LINE_BYTES_MAX: usize = 1_000;

/// How long an answer may still come after the child is gone: what it wrote may be on its way.
const DRAIN_TIME_MAX: Duration = Duration::from_millis(250);

/// A program of the operator's, ready to be started.
#[derive(Debug)]
pub(super) struct Program {
    /// As the operator wrote it.
    written: String,
    run: PathBuf,
    arguments: Vec<String>,
    env: BTreeMap<String, String>,
    directory: PathBuf,
    workspace: Name,
    source: Name,
}

/// The transport of a child.
type Pipes = AsyncRwTransport<RoleClient, Watched<ChildStdout>, ChildStdin>;

impl Program {
    /// None when `run` is empty.
    pub(super) fn new(
        workspace: &Name,
        source: &Name,
        run: &[String],
        env: &BTreeMap<String, String>,
        directory: &Path,
    ) -> Option<Self> {
        let (program, arguments) = run.split_first()?;
        // A path is relative to the folder, a bare name is looked for in PATH.
        let run = if program.contains('/') { directory.join(program) } else { program.into() };
        Some(Self {
            written: program.clone(),
            run,
            arguments: arguments.to_vec(),
            env: env.clone(),
            directory: directory.to_owned(),
            workspace: workspace.clone(),
            source: source.clone(),
        })
    }

    fn name(&self) -> String {
        self.run.file_name().unwrap_or(self.run.as_os_str()).to_string_lossy().into_owned()
    }

    /// Starts it, in a process group of its own.
    pub(super) fn start(&self, faults: &Faults) -> Result<(Process, Pipes), ReadError> {
        let cannot = |why: &str| {
            let (program, directory) = (&self.written, self.directory.display());
            ReadError::NotConnected(format!("`{program}` cannot be started in {directory}: {why}; check `commands`"))
        };
        let mut child = self.command().spawn().map_err(|error| cannot(&error.to_string()))?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), (Some(stdin), Some(stdout), Some(stderr))) = (pid, pipes) else {
            return Err(cannot("it was gone at once"));
        };
        tracing::debug!(workspace = %self.workspace, source = %self.source, %pid, "started the server");

        let (seen, last_words) = (Seen::new(), LastWords::default());
        let (ended_sender, ended) = watch::channel(None);
        let mut tasks = JoinSet::new();
        tasks.spawn(wait(child, pid, ended_sender));
        tasks.spawn(listen(stderr, last_words.clone(), self.workspace.clone(), self.source.clone(), faults.clone()));
        let watched = Watched::new(stdout, MESSAGE_BYTES_MAX, seen.clone());
        let transport = AsyncRwTransport::new(watched, stdin).with_max_line_length(MESSAGE_BYTES_MAX);
        let (workspace, source) = (self.workspace.clone(), self.source.clone());
        let process = Process {
            name: self.name(),
            workspace,
            source,
            pid,
            ended,
            seen,
            last_words,
            is_warned: false,
            _tasks: tasks,
        };
        Ok((process, transport))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.run);
        command.args(&self.arguments).current_dir(&self.directory).env_clear();
        for name in INHERITED {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(&self.env).env("SWITCHBELL_WORKSPACE", self.workspace.as_str());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        command
    }
}

/// A child. Dropping it kills its whole process group.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    workspace: Name,
    source: Name,
    pid: Pid,
    ended: watch::Receiver<Option<ExitStatus>>,
    seen: Seen,
    last_words: LastWords,
    is_warned: bool,
    /// They wait for the child and drain its standard error. They end with this.
    _tasks: JoinSet<()>,
}

impl Process {
    #[cfg(test)]
    pub(super) fn ended(&self) -> watch::Receiver<Option<ExitStatus>> {
        self.ended.clone()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some() || self.ended.has_changed().is_err()
    }

    /// What `future` comes to, unless the child ends first, or writes a line that is too long and so is no answer.
    pub(super) async fn while_it_runs<T>(&mut self, future: impl Future<Output = T>) -> Result<T, ReadError> {
        let ended = end(self.ended.clone());
        let mut future = std::pin::pin!(future);
        let done = tokio::select! {
            biased;
            done = &mut future => Some(done),
            () = self.seen.too_long() => return Err(ReadError::TooLarge { bytes_max: MESSAGE_BYTES_MAX }),
            () = ended => tokio::time::timeout(DRAIN_TIME_MAX, future).await.ok(),
        };
        self.warn_of_stray();
        done.ok_or_else(|| ReadError::Disconnected(String::new()))
    }

    /// The first line of standard output that is not MCP.
    pub(super) fn stray(&self) -> Option<String> {
        self.seen.stray()
    }

    fn warn_of_stray(&mut self) {
        if !self.is_warned && self.seen.stray().is_some() {
            self.is_warned = true;
            let (workspace, source) = (&self.workspace, &self.source);
            tracing::warn!(%workspace, %source, "the server writes to its standard output what is not MCP; it belongs on standard error");
        }
    }

    /// Why the connection to the child ended, with its last words.
    pub(super) async fn farewell(&self, faults: &Faults) -> ReadError {
        // Its end and its last words may be on their way.
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, end(self.ended.clone())).await;
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, self.last_words.is_whole()).await;
        let name = &self.name;
        let how = match *self.ended.borrow() {
            Some(status) => format!("`{name}` {} before it answered", exited(status)),
            None => format!("`{name}` closed its standard output before it answered"),
        };
        ReadError::Disconnected(match self.last_words.text() {
            words if words.is_empty() => format!("{how}, without a word on standard error; run it by hand to see why"),
            words => format!("{how}; its last words: {}", faults.fit(&words)),
        })
    }

    /// Says more about an error of the handshake, and ends the child.
    pub(super) async fn explain(self, error: ReadError, faults: &Faults, times: Times) -> ReadError {
        let error = match error {
            ReadError::Disconnected(_) => self.farewell(faults).await,
            ReadError::Timeout { .. } | ReadError::NotMcp(_) => match self.seen.stray() {
                Some(stray) => ReadError::NotMcp(format!(
                    "`{}` answered something that is not MCP: \"{}\"; its standard output is for MCP alone, everything \
                     else belongs on standard error",
                    self.name,
                    faults.fit(&stray)
                )),
                None => error,
            },
            error => error,
        };
        self.stop(times.stop).await;
        error
    }

    /// Waits for the child to end by itself, its input being closed; then tells it to; then kills it and its group.
    pub(super) async fn stop(self, step: Duration) {
        if self.ends_within(step).await {
            return;
        }
        let _ = kill_process_group(self.pid, Signal::TERM);
        if self.ends_within(step).await {
            return;
        }
        tracing::debug!(workspace = %self.workspace, source = %self.source, "the server does not stop and is killed");
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.ends_within(step).await;
    }

    async fn ends_within(&self, most: Duration) -> bool {
        tokio::time::timeout(most, end(self.ended.clone())).await.is_ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // While its end was not seen its number cannot have passed on to another.
        if self.ended.borrow().is_none() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

/// Returns once the child has ended.
async fn end(mut ended: watch::Receiver<Option<ExitStatus>>) {
    let _ = ended.wait_for(Option::is_some).await;
}

/// Waits for the child, then kills what it left behind in its group.
async fn wait(mut child: Child, pid: Pid, ended: watch::Sender<Option<ExitStatus>>) {
    let status = child.wait().await;
    let _ = kill_process_group(pid, Signal::KILL);
    ended.send_replace(Some(status.unwrap_or_default()));
}

fn exited(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    whole: watch::Sender<bool>,
}

impl LastWords {
    fn add(&self, line: String) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() >= LAST_WORDS_LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Returns once nothing more can come.
    async fn is_whole(&self) {
        let _ = self.whole.subscribe().wait_for(|whole| *whole).await;
    }
}

/// Drains the child's standard error, so that it never blocks on it: the last lines are kept, each is logged.
async fn listen(mut stderr: impl AsyncRead + Unpin, words: LastWords, workspace: Name, source: Name, faults: Faults) {
    let mut line = Vec::new();
    let mut chunk = [0; 8_192];
    let say = |line: &mut Vec<u8>| {
        let said = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        if !said.is_empty() {
            tracing::debug!(%workspace, %source, "the server says: {}", faults.fit(&said));
            words.add(said);
        }
    };
    while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
        for &byte in chunk.iter().take(count) {
            if byte == b'\n' {
                say(&mut line);
            } else if line.len() < LAST_WORDS_LINE_BYTES_MAX {
                line.push(byte);
            }
        }
    }
    say(&mut line);
    words.whole.send_replace(true);
}
