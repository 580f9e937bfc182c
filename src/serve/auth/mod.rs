//! Who asks, and what they may: the one place where every surface checks workspace and role.

mod caller;
mod client;
mod cookie;
mod extract;
mod failures;
mod gate;
mod hosts;
mod page;
mod protect;
mod scope;
mod sessions;
mod sign_in;
mod text;
mod tokens;
mod wire;

use std::time::Duration;

pub use caller::{Caller, Proof, Right, Role};
pub use cookie::COOKIE;
pub use failures::{FAILURES_MAX, WINDOW as FAILURES_WINDOW};
pub use gate::{Admitted, Gate};
pub use page::body as sign_in_body;
pub(super) use protect::{is_from_this_machine, protect};
pub(super) use sign_in::routes;
pub use sign_in::to_sign_in;
pub use text::TokenText;
pub use tokens::{LABEL_CHARS_MAX, LINK, Made, Revoked, Wanted};
pub use wire::{MadeTokenJson, NewTokenJson, RevokedTokenJson, TokenJson};

/// How long a browser stays signed in, unless the token it signed in with ends before.
pub const SESSION: Duration = Duration::from_secs(30 * 86_400);

/// The header of our own pages, with the value `1`: no page of another site can send it.
pub const REQUEST_HEADER: &str = "switchbell-request";

#[cfg(test)]
mod tests;
