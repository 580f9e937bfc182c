//! The one place where native code is taken from bytes, and the one `unsafe` of the project.

use wasmtime::Engine;
use wasmtime::component::Component;

use super::Code;

/// The component whose compiled code this is.
///
/// # Errors
/// When it was compiled for another engine, or needs more than this one's pool has.
#[expect(unsafe_code, reason = "compiled code cannot be checked, only its origin, which the type `Code` stands for")]
pub(in crate::wasm) fn deserialize(engine: &Engine, code: &Code) -> wasmtime::Result<Component> {
    // SAFETY: these are, unchanged, bytes of `Engine::precompile_component`. A `Code` is made in two places only: of the
    // answer of the compiler, and of an entry of the store after its tag, which nobody can make without the key, was found
    // to be that of these very bytes in memory. They are copied here, so nothing changes them afterwards.
    unsafe { Component::deserialize(engine, &code.0) }
}
