//! Compiling in a process of its own, as its parent sees it.
//!
//! The parent writes the length of the component (eight bytes, little endian) and the component to the child's standard
//! input, and keeps that open: its end tells the child that nobody waits any more, also when the parent was killed. The child
//! answers on standard output with 64 digits that say what it compiles for, then `+` and the code, or `-` and what is wrong
//! with the component.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::thread::available_parallelism;
use std::time::Instant;

use rustix::process::Signal;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::process::{ChildStdin, Command};

use super::compiler::{CompileBounds, Job, refused};
use super::worker::{CODE_FOLLOWS, REFUSAL_FOLLOWS};
use crate::wasm::fault::{CompileLimit, LoadError};
use crate::wasm::limits::{COMPILE_STDERR_BYTES_MAX, COMPILE_THREADS_MAX};
use crate::wasm::text::{self, one_line};

/// What is shown of what a compiler that failed wrote to standard error, characters.
const SAID_LENGTH_MAX: usize = 350;

/// How a process says that it got no memory, before it ends itself: the compiler's runtime, and the system.
const NO_MEMORY: [&str; 2] = ["memory allocation of ", "Cannot allocate memory"];

/// How it says that it got no thread.
const NO_THREAD: &str = "Resource temporarily unavailable";

/// How a process ended, and what it wrote.
struct Ended {
    status: ExitStatus,
    answer: Vec<u8>,
    said: String,
}

/// Has `program` compile a component. The process is killed if the future is dropped.
///
/// # Errors
/// What is wrong with the component, which limit it passed, or why it could not be compiled.
pub(super) async fn compile(program: &Path, job: &Job<'_>) -> Result<Vec<u8>, LoadError> {
    let bounds = &job.bounds;
    let mut command = Command::new(program);
    command
        .arg0("switchbell")
        .arg("compile-plugin")
        .arg(format!("--plugin-memory-bytes-max={}", job.plugin_memory_bytes_max))
        .arg(format!("--memory-bytes-max={}", bounds.memory_bytes_max))
        .arg(format!("--cpu-seconds-max={}", bounds.cpu_max.as_secs()))
        .env_clear()
        .env("RAYON_NUM_THREADS", threads().to_string())
        .current_dir("/")
        // Ctrl-C at a terminal is for the server, which ends this by the end of its input.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let lost = |error: std::io::Error| {
        LoadError::Host(format!("no process could be started to compile it ({}: {error})", program.display()))
    };
    let mut child = command.spawn().map_err(lost)?;
    let (Some(mut input), Some(output), Some(errors)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(LoadError::Host("the process that compiles it has no pipes".into()));
    };
    let work = async {
        let asked = async {
            // A process that reads no more has ended, or is about to; its end says why.
            let _ = ask(&mut input, &job.component).await;
            Ok(())
        };
        let ((), answer, said) = tokio::try_join!(asked, answer(output, bounds), complaint(errors))?;
        let status = child.wait().await.map_err(lost)?;
        judge(Ended { status, answer, said }, job)
    };
    let began = Instant::now();
    let done = tokio::time::timeout(bounds.time_max, work).await;
    let compiled = done.unwrap_or_else(|_elapsed| Err(passed(CompileLimit::Time, text::duration(bounds.time_max))));
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::debug!(
        bytes = job.component.len(),
        took_ms,
        is_good = compiled.is_ok(),
        "compiled in a process of its own"
    );
    compiled
}

fn threads() -> usize {
    available_parallelism().map_or(1, usize::from).min(COMPILE_THREADS_MAX)
}

fn passed(which: CompileLimit, allowed: String) -> LoadError {
    LoadError::CompileLimit { which, allowed }
}

async fn ask(input: &mut ChildStdin, component: &[u8]) -> std::io::Result<()> {
    input.write_all(&(component.len() as u64).to_le_bytes()).await?;
    input.write_all(component).await?;
    input.flush().await
}

async fn answer(output: impl AsyncRead + Unpin, bounds: &CompileBounds) -> Result<Vec<u8>, LoadError> {
    // What stands before the code is of no weight.
    let mut answer = Vec::new();
    let read = output.take(bounds.code_bytes_max as u64 + 1).read_to_end(&mut answer).await;
    read.map_err(|error| LoadError::Host(format!("the process that compiles it cannot be heard: {error}")))?;
    if answer.len() > bounds.code_bytes_max {
        return Err(passed(CompileLimit::Code, text::bytes(bounds.code_bytes_max)));
    }
    Ok(answer)
}

/// What the process writes to standard error, cut and cleaned. It is read to its end, so that nothing has to wait.
async fn complaint(mut errors: impl AsyncRead + Unpin) -> Result<String, LoadError> {
    let mut said = Vec::new();
    // Whether it can be read does not matter.
    let _ = (&mut errors).take(COMPILE_STDERR_BYTES_MAX as u64).read_to_end(&mut said).await;
    let _ = copy(&mut errors, &mut sink()).await;
    Ok(one_line(&String::from_utf8_lossy(&said), SAID_LENGTH_MAX))
}

fn judge(ended: Ended, job: &Job<'_>) -> Result<Vec<u8>, LoadError> {
    let Ended { status, answer, said } = ended;
    if status.success() {
        return read(answer, job.compatibility);
    }
    let ended_by = |signal: Signal| status.signal() == Some(signal.as_raw());
    Err(match () {
        () if ended_by(Signal::XCPU) => passed(CompileLimit::Cpu, text::duration(job.bounds.cpu_max)),
        () if ended_by(Signal::KILL) => LoadError::Host(
            "the process that compiles it was killed, perhaps because the machine's memory ran out; load it again when there \
             is more"
                .into(),
        ),
        () if NO_MEMORY.iter().any(|mark| said.contains(mark)) => {
            passed(CompileLimit::Memory, memory_text(job.bounds.memory_bytes_max))
        }
        () if said.contains(NO_THREAD) => LoadError::Host(format!(
            "the process that compiles it got no thread; allow this server more processes, or more memory ({said})"
        )),
        () if said.is_empty() => LoadError::Compiler(status.to_string()),
        () => LoadError::Compiler(format!("{status}: {said}")),
    })
}

fn memory_text(bytes: u64) -> String {
    usize::try_from(bytes).map_or_else(|_| format!("{bytes} bytes"), text::bytes)
}

/// The code in an answer.
fn read(mut answer: Vec<u8>, compatibility: &str) -> Result<Vec<u8>, LoadError> {
    let other = || {
        LoadError::Host(
            "the process that compiles it is of another version than this server: restart the server".into(),
        )
    };
    let rest = answer.strip_prefix(compatibility.as_bytes()).ok_or_else(other)?;
    match rest.split_first() {
        Some((&CODE_FOLLOWS, _)) => {
            answer.drain(..=compatibility.len());
            Ok(answer)
        }
        Some((&REFUSAL_FOLLOWS, said)) => Err(refused(&String::from_utf8_lossy(said))),
        _ => Err(other()),
    }
}
