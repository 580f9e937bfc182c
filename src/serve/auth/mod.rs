//! Who asks, and what they may: the one place where every surface checks workspace and role.

mod caller;
mod client;
mod cookie;
mod extract;
mod failures;
mod gate;
mod hosts;
mod scope;
mod text;

use std::time::Duration;

pub use caller::{Caller, Proof, Right, Role};
pub use cookie::COOKIE;
pub use failures::{FAILURES_MAX, WINDOW as FAILURES_WINDOW};
pub use gate::{Admitted, Gate};
pub use text::TokenText;

/// How long a browser stays signed in, unless the token it signed in with ends before.
pub const SESSION: Duration = Duration::from_secs(30 * 86_400);

/// The header of our own pages, with the value `1`: no page of another site can send it.
pub const REQUEST_HEADER: &str = "switchbell-request";
