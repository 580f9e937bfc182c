//! WASI 0.2 without effect: what the standard libraries of guest languages insist on importing, and nothing that reaches
//! anything. Standard input is closed, output is discarded, errors are captured, there is no environment, time stands
//! still and randomness is computed.
//!
//! The interfaces are those of the WASI 0.2 specification (github.com/WebAssembly/WASI). They are registered under one
//! version; the linker matches it with any other 0.2 that a guest was built for.

mod cli;
mod clocks;
mod io;
mod random;

use wasmtime::component::Linker;

use super::state::State;

/// The interfaces that are linked, without their version.
pub(super) const INTERFACES: [&str; 18] = [
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:cli/terminal-stderr",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
];

/// Links all of it.
pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    io::link(linker)?;
    cli::link(linker)?;
    clocks::link(linker)?;
    random::link(linker)
}

/// The name under which an interface is registered.
fn versioned(interface: &str) -> String {
    format!("{interface}@0.2.12")
}
