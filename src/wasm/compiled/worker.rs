//! Compiling in a process of its own, as that process does it: `switchbell compile-plugin`, which the server runs.

use std::fs;
use std::io::{self, Read, Write};
use std::process::exit;
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};
use wasmtime::Engine;

use super::compiler::{NICENESS, STACK_BYTES, native};
use super::store::compatibility;
use crate::wasm::engine::config;
use crate::wasm::limits::PLUGIN_BYTES_MAX;

/// What stands before the code in an answer.
pub(super) const CODE_FOLLOWS: u8 = b'+';

/// What stands before what is wrong with a component.
pub(super) const REFUSAL_FOLLOWS: u8 = b'-';

/// What the process is told by its arguments.
#[derive(Clone, Copy, Debug)]
pub struct CompileRequest {
    /// The limit of a plugin's memory, bytes; the code depends on it.
    pub plugin_memory_bytes_max: usize,
    /// Memory that this process may have, bytes.
    pub memory_bytes_max: u64,
    /// CPU time that this process may take, seconds.
    pub cpu_seconds_max: u64,
}

/// Compiles the component on standard input, under limits that hold for the whole process from now on, and answers on standard
/// output. It ends the process when standard input ends, because then nobody waits any more.
///
/// # Errors
/// When nothing could be compiled. That a component is wrong is an answer.
pub fn serve(asked: CompileRequest) -> io::Result<()> {
    limit(asked)?;
    let component = read_component(&mut io::stdin())?;
    thread::Builder::new().spawn(end_with_parent)?;
    let engine = Engine::new(&config(asked.plugin_memory_bytes_max)).map_err(io::Error::other)?;
    let compatibility = compatibility(&engine);
    // Deep components need more stack than a process may have been given.
    let compiling = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || native(&engine, &component))?;
    let compiled = compiling.join().map_err(|_told| io::Error::other("it panicked"))?;
    let mut output = io::stdout().lock();
    output.write_all(compatibility.as_bytes())?;
    match compiled {
        Ok(code) => output.write_all(&[CODE_FOLLOWS]).and_then(|()| output.write_all(&code)),
        Err(said) => output.write_all(&[REFUSAL_FOLLOWS]).and_then(|()| output.write_all(said.as_bytes())),
    }?;
    output.flush()
}

/// Limits this process, and puts it behind everything else that runs.
fn limit(asked: CompileRequest) -> io::Result<()> {
    // Where the machine's memory runs out, this goes first.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    let _ = nice(NICENESS);
    let most = |resource, wanted: u64| {
        let allowed = getrlimit(resource).maximum.map_or(wanted, |maximum| maximum.min(wanted));
        setrlimit(resource, Rlimit { current: Some(allowed), maximum: Some(allowed) })
    };
    most(Resource::Core, 0)?;
    most(Resource::Fsize, 0)?;
    most(Resource::As, asked.memory_bytes_max)?;
    // The signal of the first says which limit it was; the second would only kill.
    let maximum = getrlimit(Resource::Cpu).maximum;
    let wanted = asked.cpu_seconds_max;
    let current = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    setrlimit(Resource::Cpu, Rlimit { current: Some(current), maximum })?;
    Ok(())
}

fn read_component(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(usize::MAX);
    if length > PLUGIN_BYTES_MAX {
        return Err(io::Error::other("the component is larger than a plugin may be"));
    }
    let mut component = vec![0; length];
    input.read_exact(&mut component)?;
    Ok(component)
}

/// Ends this process when standard input ends.
fn end_with_parent() {
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    exit(1);
}
