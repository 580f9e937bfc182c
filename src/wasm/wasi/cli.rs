//! `wasi:cli`: no environment, no arguments, no terminal.

use wasmtime::component::{Linker, Resource};
use wasmtime::{StoreContextMut, bail};

use super::io::{InputStream, ONLY, OutputStream, STDERR, STDOUT, resource};
use super::versioned;
use crate::wasm::state::State;

/// A terminal to read from. There is none.
struct TerminalInput;

/// A terminal to write to. There is none.
struct TerminalOutput;

type Context<'a> = StoreContextMut<'a, State>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    link_environment(linker)?;
    link_exit(linker)?;
    link_streams(linker)?;
    link_terminals(linker)
}

fn link_environment(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut environment = linker.instance(&versioned("wasi:cli/environment"))?;
    environment.func_wrap("get-environment", |_: Context<'_>, (): ()| Ok((Vec::<(String, String)>::new(),)))?;
    environment.func_wrap("get-arguments", |_: Context<'_>, (): ()| Ok((Vec::<String>::new(),)))?;
    environment.func_wrap("initial-cwd", |_: Context<'_>, (): ()| Ok((None::<String>,)))
}

fn link_exit(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut exit = linker.instance(&versioned("wasi:cli/exit"))?;
    exit.func_wrap("exit", |_: Context<'_>, (status,): (Result<(), ()>,)| -> wasmtime::Result<()> {
        bail!("exited with {} instead of answering", if status.is_ok() { "success" } else { "a failure" })
    })?;
    exit.func_wrap("exit-with-code", |_: Context<'_>, (code,): (u8,)| -> wasmtime::Result<()> {
        bail!("exited with code {code} instead of answering")
    })
}

fn link_streams(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker
        .instance(&versioned("wasi:cli/stdin"))?
        .func_wrap("get-stdin", |_: Context<'_>, (): ()| Ok((Resource::<InputStream>::new_own(ONLY),)))?;
    linker
        .instance(&versioned("wasi:cli/stdout"))?
        .func_wrap("get-stdout", |_: Context<'_>, (): ()| Ok((Resource::<OutputStream>::new_own(STDOUT),)))?;
    linker
        .instance(&versioned("wasi:cli/stderr"))?
        .func_wrap("get-stderr", |_: Context<'_>, (): ()| Ok((Resource::<OutputStream>::new_own(STDERR),)))
}

fn link_terminals(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    resource::<TerminalInput>(&mut linker.instance(&versioned("wasi:cli/terminal-input"))?, "terminal-input")?;
    resource::<TerminalOutput>(&mut linker.instance(&versioned("wasi:cli/terminal-output"))?, "terminal-output")?;
    linker
        .instance(&versioned("wasi:cli/terminal-stdin"))?
        .func_wrap("get-terminal-stdin", |_: Context<'_>, (): ()| Ok((None::<Resource<TerminalInput>>,)))?;
    for stream in ["stdout", "stderr"] {
        linker
            .instance(&versioned(&format!("wasi:cli/terminal-{stream}")))?
            .func_wrap(&format!("get-terminal-{stream}"), |_: Context<'_>, (): ()| {
                Ok((None::<Resource<TerminalOutput>>,))
            })?;
    }
    Ok(())
}
