//! Compiled code: made from components by a [`Compiler`], kept in a [`CodeStore`], and turned into what runs by
//! [`deserialize`] alone.
//!
//! ```text
//!  component ──digest──▶ store ──verified──▶ Code ──deserialize──▶ Component
//!                          │ nothing there, or nothing to trust      ▲
//!                          └──────────▶ compiler ──▶ Code ───────────┘ and into the store
//! ```
//!
//! Compiled code is native code that is run as it is. So a [`Code`] is only ever what this host's compiler has just
//! answered, or what the store has found under its own tag.

mod child;
mod compiler;
mod deserialize;
mod store;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt;

pub use compiler::{CompileBounds, Compiler};
pub(super) use compiler::{Job, compile, refused};
pub(super) use deserialize::deserialize;
pub(super) use store::{CodeStore, compatibility};
pub use worker::{CompileRequest, serve};

/// Code that this host's compiler made, for an engine of the same settings.
pub(super) struct Code(Vec<u8>);

impl fmt::Debug for Code {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Code({} bytes)", self.0.len())
    }
}
