//! Where plugins are compiled, and how much that may take.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use wasmtime::Engine;

use super::{Code, child};
use crate::wasm::fault::LoadError;
use crate::wasm::limits::{CODE_BYTES_MAX, COMPILE_CPU_MAX, COMPILE_MEMORY_BYTES_MAX, COMPILE_TIME_MAX};
use crate::wasm::text::one_line;

/// How far the compiler stands back behind everything else that runs.
pub(super) const NICENESS: i32 = 10;

/// The stack of the thread that compiles.
pub(super) const STACK_BYTES: usize = 8 << 20;

/// What is kept of what the compiler says about a component, characters.
const SAID_LENGTH_MAX: usize = 500;

/// Where plugins are compiled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// On a thread of this process. Its memory and time have no limits of their own.
    #[default]
    Thread,
    /// In a process of its own under limits, for each plugin: this program, by its absolute path, with the command
    /// `compile-plugin`. It must be the very program that this process runs.
    Child(PathBuf),
}

impl Compiler {
    /// A process of the program that this process runs, also when its file was replaced meanwhile; a thread where the system
    /// does not tell which program that is.
    pub fn of_this_program() -> Self {
        let running = Path::new("/proc/self/exe");
        let path = if running.exists() { Ok(running.to_owned()) } else { std::env::current_exe() };
        match path {
            Ok(path) => Self::Child(path),
            Err(error) => {
                tracing::warn!(%error, "the system does not tell which program this is: plugins are compiled without limits");
                Self::Thread
            }
        }
    }
}

/// What compiling one plugin in a process of its own may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompileBounds {
    /// Memory that the process may have, its program and stacks included, bytes.
    pub memory_bytes_max: u64,
    /// CPU time, of all its threads together; whole seconds.
    pub cpu_max: Duration,
    /// Time until it is killed.
    pub time_max: Duration,
    /// Compiled code, bytes.
    pub code_bytes_max: usize,
}

impl Default for CompileBounds {
    fn default() -> Self {
        Self {
            memory_bytes_max: COMPILE_MEMORY_BYTES_MAX,
            cpu_max: COMPILE_CPU_MAX,
            time_max: COMPILE_TIME_MAX,
            code_bytes_max: CODE_BYTES_MAX,
        }
    }
}

/// A component to compile.
pub(in crate::wasm) struct Job<'a> {
    pub(in crate::wasm) engine: &'a Engine,
    pub(in crate::wasm) compatibility: &'a str,
    /// The limit of a plugin's memory, which the code depends on.
    pub(in crate::wasm) plugin_memory_bytes_max: usize,
    pub(in crate::wasm) bounds: CompileBounds,
    pub(in crate::wasm) component: Arc<[u8]>,
}

/// Compiles a component. The permit, of which there is one, is given back with the code; without code, once nothing is
/// compiled any more.
///
/// # Errors
/// What is wrong with it, which limit it passed, or why nothing could be compiled.
pub(in crate::wasm) async fn compile(
    compiler: &Compiler,
    job: Job<'_>,
    permit: OwnedSemaphorePermit,
) -> Result<(Code, OwnedSemaphorePermit), LoadError> {
    match compiler {
        Compiler::Child(program) => Ok((Code(child::compile(program, &job).await?), permit)),
        Compiler::Thread => on_thread(job.engine.clone(), job.component, permit).await,
    }
}

/// Compiles on a thread of its own, which goes on to its end if the future is dropped.
async fn on_thread(
    engine: Engine,
    component: Arc<[u8]>,
    permit: OwnedSemaphorePermit,
) -> Result<(Code, OwnedSemaphorePermit), LoadError> {
    let (result, compiled) = oneshot::channel();
    let work = move || {
        // Deliveries go first. On Linux this is the thread's own, and the compiler's threads, which it starts, inherit it.
        let _ = rustix::process::nice(NICENESS);
        // Nobody waits any more if the future was dropped.
        let _ =
            result.send(native(&engine, &component).map(|code| (Code(code), permit)).map_err(|said| refused(&said)));
    };
    let thread = thread::Builder::new().name("sandbox-compile".into()).stack_size(STACK_BYTES);
    thread.spawn(work).map_err(|error| LoadError::Host(format!("no thread could be started: {error}")))?;
    compiled.await.map_err(|_gone| LoadError::Compiler("it ended without a result".into()))?
}

/// The code of a component, or what the compiler says is wrong with it.
pub(super) fn native(engine: &Engine, component: &[u8]) -> Result<Vec<u8>, String> {
    engine.precompile_component(component).map_err(|error| format!("{error:#}"))
}

/// What is wrong with a component, in the compiler's words.
pub(in crate::wasm) fn refused(said: &str) -> LoadError {
    let detail = one_line(said, SAID_LENGTH_MAX);
    // The engine gives these errors no type to ask for; without the text they are reported as malformed.
    let too_demanding = detail.contains("pooling allocator");
    if too_demanding { LoadError::TooDemanding(detail) } else { LoadError::Malformed(detail) }
}
