//! Programs that write the value of a secret: run without a shell when the configuration is loaded.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::super::super::scalar::harmless;
use super::super::super::values::CommandEntry;
use super::super::super::variables::Lookup;
use super::source::VALUE_BYTES_MAX;

/// Longest time that a program may take: one that asks a person or a slow network does not belong into a start.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Most that is kept of what a program says on its standard error, in bytes, and most that is told of it, in characters.
const SAID_BYTES_MAX: usize = 4 << 10;
const SAID_CHARS_MAX: usize = 200;
/// Programs that run at the same time.
const AT_ONCE_MAX: usize = 8;
/// The variables that a program inherits, as a connector's program does.
const INHERITED: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

type Written = Result<Vec<u8>, String>;

/// The groups of the programs that run now.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the programs that run now, with what they started: whoever waits for their values is about to end.
pub fn end_all() {
    for group in groups().iter().copied().filter_map(Pid::from_raw) {
        let _gone_already = kill_process_group(group, Signal::KILL);
    }
}

/// The variables that every program gets.
pub(super) fn inherited(lookup: &Lookup<'_>) -> Vec<(&'static str, OsString)> {
    INHERITED.into_iter().filter_map(|name| Some((name, lookup(name)?))).collect()
}

/// What each program writes, or why it is unusable, in words that hold nothing of what it wrote.
pub(super) fn run_all(
    commands: BTreeSet<CommandEntry>,
    folder: &Path,
    inherited: &[(&str, OsString)],
) -> BTreeMap<CommandEntry, Written> {
    let commands: Vec<CommandEntry> = commands.into_iter().collect();
    let mut written = BTreeMap::new();
    for some in commands.chunks(AT_ONCE_MAX) {
        let found: Vec<Written> = thread::scope(|scope| {
            let start = |command| scope.spawn(move || run(command, folder, inherited, TIME_MAX));
            let running: Vec<_> = some.iter().map(start).collect();
            let failed = || Err("the program could not be watched".to_owned());
            running.into_iter().map(|running| running.join().unwrap_or_else(|_| failed())).collect()
        });
        written.extend(some.iter().cloned().zip(found));
    }
    written
}

/// What happens while a program runs.
enum Event {
    /// Its standard output was read to the end, or as far as it may go.
    Wrote(io::Result<Vec<u8>>),
    /// So was its standard error.
    Said(io::Result<Vec<u8>>),
    /// It ended. Nobody has asked for its status yet, so that its number is still its own.
    Ended,
}

fn run(entry: &CommandEntry, folder: &Path, inherited: &[(&str, OsString)], time_max: Duration) -> Written {
    let Some((program, arguments)) = entry.run.split_first() else { return Err("a program is missing".to_owned()) };
    // A path is relative to the folder, a bare name is looked for in PATH.
    let path = if program.contains('/') { folder.join(program) } else { program.into() };
    let mut command = Command::new(path);
    command.args(arguments).current_dir(folder).env_clear();
    command.envs(inherited.iter().map(|(name, value)| (name, value)));
    command.envs(entry.env.iter().map(|(name, value)| (name, value)));
    // A group of its own, so that what it starts ends with it.
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().map_err(|error| format!("the program named here cannot be started: {error}"))?;
    let group = i32::try_from(child.id()).unwrap_or_default();
    groups().insert(group);
    Running { child, group, late_at: Instant::now() + time_max, time_max, is_reaped: false }.finish()
}

/// A program that was started; it is ended when this is dropped.
struct Running {
    child: Child,
    /// Its number, which is that of its group.
    group: i32,
    late_at: Instant,
    time_max: Duration,
    /// Whether its number may be another's by now.
    is_reaped: bool,
}

impl Running {
    fn finish(mut self) -> Written {
        let events = self.watch();
        let (mut wrote, mut said, mut is_over) = (None, None, false);
        while wrote.is_none() || !is_over {
            match self.next(&events)? {
                Event::Wrote(bytes) => {
                    let bytes = bytes.map_err(|error| format!("what the program writes cannot be read: {error}"))?;
                    if bytes.len() > VALUE_BYTES_MAX {
                        return Err(format!("the program wrote more than {VALUE_BYTES_MAX} bytes"));
                    }
                    wrote = Some(bytes);
                }
                Event::Said(bytes) => said = bytes.ok(),
                Event::Ended => {
                    is_over = true;
                    // What it left running holds its pipes open, and has nothing to add.
                    self.end();
                }
            }
        }
        // From here on the number may be another's.
        groups().remove(&self.group);
        let status = self.child.wait().map_err(|error| format!("the program's end is not known: {error}"))?;
        self.is_reaped = true;
        if status.success() {
            return Ok(wrote.unwrap_or_default());
        }
        if said.is_none()
            && let Event::Said(bytes) = self.next(&events)?
        {
            said = bytes.ok();
        }
        Err(failure(status, &said.unwrap_or_default()))
    }

    fn next(&self, events: &Receiver<Event>) -> Result<Event, String> {
        let left = self.late_at.saturating_duration_since(Instant::now());
        let late = |_| format!("the program took longer than {} s and was ended", self.time_max.as_secs());
        events.recv_timeout(left).map_err(late)
    }

    fn watch(&mut self) -> Receiver<Event> {
        let (sender, events) = mpsc::channel();
        if let Some(out) = self.child.stdout.take() {
            read_aside(out, VALUE_BYTES_MAX + 1, sender.clone(), Event::Wrote);
        }
        if let Some(error) = self.child.stderr.take() {
            read_aside(error, SAID_BYTES_MAX, sender.clone(), Event::Said);
        }
        if let Some(pid) = self.pid() {
            thread::spawn(move || {
                let _gone = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
                let _late = sender.send(Event::Ended);
            });
        }
        events
    }

    fn pid(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Ends all of its group.
    fn end(&self) {
        if let Some(pid) = self.pid() {
            let _gone_already = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.end();
            let _ended = self.child.wait();
        }
        groups().remove(&self.group);
    }
}

/// Reads at most `most` bytes on a thread of its own; whatever follows is read and forgotten, so that the program is not
/// held up.
fn read_aside(
    mut from: impl Read + Send + 'static,
    most: usize,
    events: Sender<Event>,
    event: fn(io::Result<Vec<u8>>) -> Event,
) {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let limit = u64::try_from(most).unwrap_or(u64::MAX);
        let read = from.by_ref().take(limit).read_to_end(&mut bytes).map(|_| bytes);
        let _nobody_waits = events.send(event(read));
        let _forgotten = io::copy(&mut from, &mut io::sink());
    });
}

/// Says how a program failed, with the end of what it said on its standard error.
fn failure(status: ExitStatus, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    if last.is_empty() {
        return format!("the program failed ({status}) and said nothing");
    }
    let last: String = last.chars().take(SAID_CHARS_MAX).collect();
    format!("the program failed ({status}): {}", harmless(&last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(script: &str, time_max: Duration) -> Written {
        let entry = CommandEntry {
            run: ["sh", "-c", script].map(str::to_owned).to_vec(),
            env: vec![("GREETING".to_owned(), "a greeting".to_owned())],
        };
        let inherited = [("PATH", std::env::var_os("PATH").unwrap()), ("HOME", "/nowhere".into())];
        run(&entry, Path::new("/"), &inherited, time_max)
    }

    fn check(script: &str, expected: Result<&str, &str>) {
        let found = ran(script, Duration::from_secs(60));
        match (&found, expected) {
            (Ok(bytes), Ok(expected)) => assert_eq!(String::from_utf8_lossy(bytes), expected, "{script}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{script}: {message}"),
            _ => panic!("{script}: {found:?}"),
        }
    }

    #[test]
    fn a_program_writes_the_value_and_sees_little() {
        check("echo hello", Ok("hello\n"));
        check("echo $GREETING $HOME $CARGO_MANIFEST_DIR; pwd", Ok("a greeting /nowhere\n/\n"));
        check("echo noise >&2; echo hello", Ok("hello\n"));
        check("cat", Ok(""));
        check("head -c 8192 /dev/zero | tr '\\0' x", Ok(&"x".repeat(8192)));
        // What it leaves behind is ended with it.
        check("sleep 300 & echo hello", Ok("hello\n"));
    }

    #[test]
    fn a_program_that_fails_says_why_but_never_what_it_wrote() {
        check("echo hidden; exit 3", Err("(exit status: 3) and said nothing"));
        check("echo hidden; echo first >&2; echo no such item >&2; exit 1", Err("(exit status: 1): no such item"));
        check("kill -9 $$", Err("(signal: 9"));
        check("head -c 8193 /dev/zero", Err("more than 8192 bytes"));
        check("yes", Err("more than 8192 bytes"));
        let said = ran("echo hidden; exit 3", Duration::from_secs(60)).unwrap_err();
        assert!(!said.contains("hidden"), "{said}");
        let entry = CommandEntry { run: vec!["./not-there".to_owned()], env: Vec::new() };
        let said = run(&entry, Path::new("/"), &[], Duration::from_secs(60)).unwrap_err();
        assert!(said.contains("cannot be started"), "{said}");
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_what_it_started() {
        let started = Instant::now();
        let said = ran("sleep 300 & sleep 300", Duration::from_millis(200)).unwrap_err();
        assert!(said.contains("took longer than"), "{said}");
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
