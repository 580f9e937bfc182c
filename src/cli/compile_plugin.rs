//! `switchbell compile-plugin`: compiles one plugin for the server that runs it. Nobody else has a use for it: it reads a
//! component and writes native code, framed, and ends when its standard input does.

use std::process::ExitCode;

use super::output::fail;
use crate::wasm::{CompileRequest, compile_for_parent};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// The limit of a plugin's memory, in bytes.
    #[arg(long, value_name = "BYTES")]
    plugin_memory_bytes_max: usize,
    /// Memory that this process may have, in bytes.
    #[arg(long, value_name = "BYTES")]
    memory_bytes_max: u64,
    /// CPU time that this process may take, in seconds.
    #[arg(long, value_name = "SECONDS")]
    cpu_seconds_max: u64,
}

pub(super) fn run(asked: &Arguments) -> ExitCode {
    let &Arguments { plugin_memory_bytes_max, memory_bytes_max, cpu_seconds_max } = asked;
    match compile_for_parent(CompileRequest { plugin_memory_bytes_max, memory_bytes_max, cpu_seconds_max }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error),
    }
}
