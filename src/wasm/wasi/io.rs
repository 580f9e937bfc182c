//! `wasi:io`: streams that lead nowhere, and pollables that are always ready.

use wasmtime::component::{ComponentType, Linker, LinkerInstance, Lower, Resource, ResourceType, WasmList};
use wasmtime::{StoreContextMut, bail};

use super::versioned;
use crate::wasm::limits::WRITE_BYTES_MAX;
use crate::wasm::state::State;

/// Something to wait for; always ready.
pub(super) struct Pollable;

/// A stream to read; always at its end.
pub(super) struct InputStream;

/// A stream to write; its handle's number says which of [`STDOUT`] and [`STDERR`].
pub(super) struct OutputStream;

/// The cause of a failed operation. None ever fails, so none exists.
struct IoError;

/// The number of every handle that tells nothing apart.
pub(super) const ONLY: u32 = 0;

/// The number of the output stream that is discarded.
pub(super) const STDOUT: u32 = 1;

/// The number of the output stream that is captured.
pub(super) const STDERR: u32 = 2;

/// `stream-error`.
#[derive(ComponentType, Lower)]
#[component(variant)]
enum StreamError {
    #[component(name = "last-operation-failed")]
    #[expect(dead_code, reason = "a case of the specified type")]
    LastOperationFailed(Resource<IoError>),
    #[component(name = "closed")]
    Closed,
}

type Written = wasmtime::Result<(Result<(), StreamError>,)>;
type Context<'a> = StoreContextMut<'a, State>;

/// A pollable that is ready.
pub(super) fn ready() -> (Resource<Pollable>,) {
    (Resource::new_own(ONLY),)
}

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut error = linker.instance(&versioned("wasi:io/error"))?;
    resource::<IoError>(&mut error, "error")?;
    error.func_wrap("[method]error.to-debug-string", |_: Context<'_>, (_,): (Resource<IoError>,)| {
        Ok((String::new(),))
    })?;
    link_poll(&mut linker.instance(&versioned("wasi:io/poll"))?)?;
    let mut streams = linker.instance(&versioned("wasi:io/streams"))?;
    link_input(&mut streams)?;
    link_output(&mut streams)
}

/// Defines a resource whose handles own nothing.
pub(super) fn resource<T: 'static>(instance: &mut LinkerInstance<'_, State>, name: &str) -> wasmtime::Result<()> {
    instance.resource(name, ResourceType::host::<T>(), |_, _| Ok(()))
}

fn link_poll(poll: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    resource::<Pollable>(poll, "pollable")?;
    poll.func_wrap("[method]pollable.ready", |_: Context<'_>, (_,): (Resource<Pollable>,)| Ok((true,)))?;
    poll.func_wrap("[method]pollable.block", |_: Context<'_>, (_,): (Resource<Pollable>,)| Ok(()))?;
    poll.func_wrap("poll", |_: Context<'_>, (pollables,): (Vec<Resource<Pollable>>,)| {
        if pollables.is_empty() {
            bail!("polled an empty list");
        }
        Ok(((0..u32::try_from(pollables.len())?).collect::<Vec<u32>>(),))
    })
}

fn link_input(streams: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    type Input = (Resource<InputStream>,);
    type InputLength = (Resource<InputStream>, u64);
    resource::<InputStream>(streams, "input-stream")?;
    for name in ["read", "blocking-read"] {
        streams.func_wrap(&format!("[method]input-stream.{name}"), |_: Context<'_>, _: InputLength| {
            Ok((Err::<Vec<u8>, _>(StreamError::Closed),))
        })?;
    }
    for name in ["skip", "blocking-skip"] {
        streams.func_wrap(&format!("[method]input-stream.{name}"), |_: Context<'_>, _: InputLength| {
            Ok((Err::<u64, _>(StreamError::Closed),))
        })?;
    }
    streams.func_wrap("[method]input-stream.subscribe", |_: Context<'_>, _: Input| Ok(ready()))
}

fn link_output(streams: &mut LinkerInstance<'_, State>) -> wasmtime::Result<()> {
    type Output = (Resource<OutputStream>,);
    type OutputBytes = (Resource<OutputStream>, WasmList<u8>);
    type OutputLength = (Resource<OutputStream>, u64);
    type Splice = (Resource<OutputStream>, Resource<InputStream>, u64);
    resource::<OutputStream>(streams, "output-stream")?;
    streams.func_wrap("[method]output-stream.check-write", |_: Context<'_>, _: Output| {
        Ok((Ok::<_, StreamError>(WRITE_BYTES_MAX as u64),))
    })?;
    for name in ["write", "blocking-write-and-flush"] {
        streams.func_wrap(
            &format!("[method]output-stream.{name}"),
            |context: Context<'_>, (stream, bytes): OutputBytes| write(context, stream.rep(), &bytes),
        )?;
    }
    for name in ["write-zeroes", "blocking-write-zeroes-and-flush"] {
        // Zeroes show as nothing, so none are kept.
        streams.func_wrap(&format!("[method]output-stream.{name}"), |_: Context<'_>, _: OutputLength| {
            Written::Ok((Ok(()),))
        })?;
    }
    for name in ["flush", "blocking-flush"] {
        streams
            .func_wrap(&format!("[method]output-stream.{name}"), |_: Context<'_>, _: Output| Written::Ok((Ok(()),)))?;
    }
    for name in ["splice", "blocking-splice"] {
        streams.func_wrap(&format!("[method]output-stream.{name}"), |_: Context<'_>, _: Splice| {
            Ok((Err::<u64, _>(StreamError::Closed),))
        })?;
    }
    streams.func_wrap("[method]output-stream.subscribe", |_: Context<'_>, _: Output| Ok(ready()))
}

/// Looks at the length before anything is copied out of the plugin's memory.
fn write(mut context: Context<'_>, stream: u32, bytes: &WasmList<u8>) -> Written {
    if bytes.len() > WRITE_BYTES_MAX {
        bail!("wrote {} bytes at once; a stream takes at most {WRITE_BYTES_MAX}", bytes.len());
    }
    if stream == STDERR {
        let written = bytes.as_le_slice(&context).to_vec();
        context.data_mut().stderr.write(&written);
    }
    Ok((Ok(()),))
}
