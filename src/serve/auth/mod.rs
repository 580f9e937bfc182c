//! Who asks, and what they may: the one place where every surface checks workspace and role.

mod caller;
mod extract;
mod gate;

pub use caller::{Caller, Right, Role};
pub use gate::{Admitted, Gate};
