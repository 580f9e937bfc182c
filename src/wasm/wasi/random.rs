//! `wasi:random`: computed from the attempt and a key of the host, so that the same input gives the same answer and no
//! plugin can tell what another draws.

use wasmtime::component::Linker;
use wasmtime::{StoreContextMut, bail};

use super::versioned;
use crate::wasm::limits::RANDOM_BYTES_MAX;
use crate::wasm::state::State;

type Context<'a> = StoreContextMut<'a, State>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    for (interface, kind) in [("wasi:random/random", ""), ("wasi:random/insecure", "insecure-")] {
        let mut random = linker.instance(&versioned(interface))?;
        random.func_wrap(&format!("get-{kind}random-bytes"), |context: Context<'_>, (length,): (u64,)| {
            Ok((draw(context, length)?,))
        })?;
        random.func_wrap(&format!("get-{kind}random-u64"), |context: Context<'_>, (): ()| {
            let bytes = draw(context, 8)?;
            Ok((number(&bytes),))
        })?;
    }
    let mut seed = linker.instance(&versioned("wasi:random/insecure-seed"))?;
    seed.func_wrap("insecure-seed", |context: Context<'_>, (): ()| {
        let seed = context.data().hash_seed();
        let (first, rest) = seed.split_at(8);
        Ok(((number(first), number(rest)),))
    })
}

fn draw(mut context: Context<'_>, length: u64) -> wasmtime::Result<Vec<u8>> {
    if length > RANDOM_BYTES_MAX {
        bail!("asked for {length} random bytes at once; at most {RANDOM_BYTES_MAX} are given");
    }
    Ok(context.data_mut().random(usize::try_from(length)?))
}

/// The number that the first eight of `bytes` are.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}
