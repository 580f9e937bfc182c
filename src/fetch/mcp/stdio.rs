//! A server as a child process that speaks MCP on its standard input and output.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::fault::Faults;
use super::lines::Lines;
use super::seen::{Alarm, Seen};
use super::stderr::{LastWords, Listener};
use super::tap::Tap;
use super::{MESSAGE_BYTES_MAX, Times};
use crate::fetch::outbox::ReadError;
use crate::notification::Name;

/// The variables a child inherits; the rest of the host's environment is not its business.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

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
type Pipes = Lines<ChildStdout, ChildStdin>;

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
    pub(super) fn start(&self, faults: &Faults, tap: Option<Arc<Tap>>) -> Result<(Process, Pipes), ReadError> {
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
        let (workspace, source) = (self.workspace.clone(), self.source.clone());
        let listener =
            Listener { workspace, source, faults: faults.clone(), seen: seen.clone(), words: last_words.clone() };
        let mut tasks = JoinSet::new();
        tasks.spawn(wait(child, pid, listener.clone(), ended_sender));
        tasks.spawn(listener.listen(stderr));
        let transport = Lines::new(stdout, stdin, MESSAGE_BYTES_MAX, seen.clone()).tapped(tap);
        let (workspace, source) = (self.workspace.clone(), self.source.clone());
        let process = Process {
            name: self.name(),
            workspace,
            source,
            pid,
            ended,
            seen,
            last_words,
            is_warned: AtomicBool::new(false),
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
    is_warned: AtomicBool,
    /// They wait for the child and drain its standard error. They end with this.
    _tasks: JoinSet<()>,
}

impl Process {
    #[cfg(test)]
    pub(super) fn ended(&self) -> watch::Receiver<Option<ExitStatus>> {
        self.ended.clone()
    }

    /// Whether it is of no use any more, be it that it runs.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.borrow().is_some() || self.ended.has_changed().is_err() || self.seen.standing().is_some()
    }

    /// What `future` comes to, unless the child ends first, or writes what is no answer and leaves no hope for one.
    pub(super) async fn while_it_runs<T>(
        &self,
        future: impl Future<Output = T>,
        faults: &Faults,
    ) -> Result<T, ReadError> {
        self.seen.begin();
        let ended = end(self.ended.clone());
        let mut future = std::pin::pin!(future);
        let done = tokio::select! {
            biased;
            done = &mut future => Ok(done),
            alarm = self.seen.alarm() => Err(self.alarmed(&alarm)),
            () = ended => {
                let drained = tokio::time::timeout(DRAIN_TIME_MAX, future).await;
                drained.map_err(|_| ReadError::Disconnected(String::new()))
            }
        };
        self.warn_of_stray(faults);
        done
    }

    /// The first line of standard output that is not MCP, fit to be told.
    pub(super) fn stray(&self, faults: &Faults) -> Option<String> {
        self.seen.first_stray().map(|stray| faults.fit_stray(&stray))
    }

    fn alarmed(&self, alarm: &Alarm) -> ReadError {
        let name = &self.name;
        match alarm {
            Alarm::TooLong => ReadError::TooLarge { bytes_max: MESSAGE_BYTES_MAX },
            Alarm::Broken(why) => ReadError::NotMcp(format!("`{name}` {why}")),
            Alarm::Flood(flood) => ReadError::NotMcp(format!("`{name}` was ended: {flood}")),
        }
    }

    fn warn_of_stray(&self, faults: &Faults) {
        if self.is_warned.load(Ordering::Relaxed) {
            return;
        }
        if let Some(stray) = self.seen.first_stray() {
            self.is_warned.store(true, Ordering::Relaxed);
            let (workspace, source, stray) = (&self.workspace, &self.source, faults.fit_stray(&stray));
            tracing::warn!(
                %workspace, %source,
                "the server writes to its standard output what is not MCP; it belongs on standard error: \"{stray}\""
            );
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

    /// Says more about an error of a read.
    pub(super) async fn explain(&self, error: ReadError, faults: &Faults) -> ReadError {
        match error {
            // The end of the stream may be noticed before its cause.
            ReadError::Disconnected(_) if let Some(alarm) = self.seen.standing() => self.alarmed(&alarm),
            ReadError::Disconnected(_) => self.farewell(faults).await,
            ReadError::Timeout { waited } => match self.seen.came_instead() {
                Some(what) => {
                    let (name, seconds) = (&self.name, waited.as_secs_f64());
                    ReadError::NotMcp(format!("`{name}` {what}; nothing else came within {seconds} s"))
                }
                None => error,
            },
            error => error,
        }
    }

    /// Says more about an error of the handshake, and ends the child.
    pub(super) async fn explain_start(self, error: ReadError, faults: &Faults, times: Times) -> ReadError {
        let error = match self.explain(error, faults).await {
            ReadError::Timeout { waited } => match self.seen.first_stray() {
                Some(stray) => ReadError::NotMcp(format!(
                    "`{}` answered something that is not MCP: \"{}\"; its standard output is for MCP alone, everything \
                     else belongs on standard error",
                    self.name,
                    faults.fit_stray(&stray)
                )),
                None => ReadError::Timeout { waited },
            },
            error => error,
        };
        self.stop(times.stop).await;
        error
    }

    /// Waits for the child to end by itself, its input being closed; then tells it to; then kills it and its group.
    pub(super) async fn stop(&self, step: Duration) {
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

/// Waits for the child, and ends it should it flood; then kills what it left behind in its group.
async fn wait(mut child: Child, pid: Pid, listener: Listener, ended: watch::Sender<Option<ExitStatus>>) {
    let Listener { workspace, source, seen, .. } = listener;
    let status = tokio::select! {
        status = child.wait() => status,
        flood = seen.flood() => {
            // Nobody reads what it writes any more; without this it would write on, or wait for ever.
            tracing::warn!(%workspace, %source, "the server is ended: {flood}");
            let _ = kill_process_group(pid, Signal::KILL);
            child.wait().await
        }
    };
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
