//! What the first-party plugins share: the contract's bindings, the allocator, and helpers for settings, text, JSON
//! and outcomes.
//!
//! A plugin crate is `#![no_std]`, implements [`Guest`] for a unit struct, and ends in one line:
//!
//! ```text
//! switchbell_kit::plugin!(Slack);
//! ```
//!
//! Built for `wasm32-wasip2` it becomes a component of one core instance that imports types only: no WASI, no
//! function, no resource. Such an instance is nearly free to make, and has nothing to escape through. On the host the
//! same crate is an ordinary library, so that its tests run natively.
//!
//! Functions that are called in several places say `inline(never)`: a plugin is built for speed, and each copy would make
//! its component larger and its compilation slower.

#![no_std]

extern crate alloc;
// On the host std brings the panic handler and the allocator that `memory` is in the sandbox.
#[cfg(not(target_arch = "wasm32"))]
extern crate std;

/// The generated bindings of `wit/`.
#[allow(unsafe_code, missing_docs, unreachable_pub, reason = "generated code; the contract is documented in wit/")]
#[allow(clippy::all, clippy::allow_attributes_without_reason, reason = "generated code")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "delivery-plugin",
        pub_export_macro: true,
        additional_derives: [PartialEq],
    });
}

pub mod fields;
pub mod http;
pub mod json;
pub mod level;
pub mod link;
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "an allocator and the canonical ABI's realloc deal in raw memory")]
mod memory;
pub mod outcome;
pub mod secret;
pub mod settings;
pub mod text;
pub mod time;

pub use bindings::exports::switchbell::delivery::plugin::Guest;
pub use bindings::switchbell::delivery::types;

/// Makes the crate a plugin: exports the unit struct named, which implements [`Guest`], as the world `delivery-plugin`.
#[macro_export]
macro_rules! plugin {
    ($plugin:ident) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, reason = "exported functions of the canonical ABI")]
        mod exported {
            use super::$plugin;
            $crate::bindings::export!($plugin with_types_in $crate::bindings);
        }
    };
}
