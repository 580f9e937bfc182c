//! `wasi:clocks`: time stands still at the moment the attempt began, and every wait is over at once.

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Linker, Lower};

use super::io::ready;
use super::versioned;
use crate::wasm::state::State;

/// What the monotonic clock always says. Not zero, which some run-times take for "never asked".
const MONOTONIC_NANOSECONDS: u64 = 1_000_000_000;

/// `datetime`: the time since 1970.
#[derive(ComponentType, Lower)]
#[component(record)]
struct Datetime {
    seconds: u64,
    nanoseconds: u32,
}

type Context<'a> = StoreContextMut<'a, State>;

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut monotonic = linker.instance(&versioned("wasi:clocks/monotonic-clock"))?;
    monotonic.func_wrap("now", |_: Context<'_>, (): ()| Ok((MONOTONIC_NANOSECONDS,)))?;
    monotonic.func_wrap("resolution", |_: Context<'_>, (): ()| Ok((1_u64,)))?;
    for name in ["subscribe-instant", "subscribe-duration"] {
        monotonic.func_wrap(name, |_: Context<'_>, (_,): (u64,)| Ok(ready()))?;
    }
    let mut wall = linker.instance(&versioned("wasi:clocks/wall-clock"))?;
    wall.func_wrap("now", |context: Context<'_>, (): ()| Ok((now(context.data()),)))?;
    wall.func_wrap("resolution", |_: Context<'_>, (): ()| Ok((Datetime { seconds: 0, nanoseconds: 1 },)))
}

fn now(state: &State) -> Datetime {
    let now = state.now();
    let seconds = u64::try_from(now.as_second()).unwrap_or(0);
    Datetime { seconds, nanoseconds: u32::try_from(now.subsec_nanosecond()).unwrap_or(0) }
}
