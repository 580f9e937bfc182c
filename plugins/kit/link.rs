//! The build script of every plugin (`build = "../kit/link.rs"`): how its component is linked.
//!
//! A build script, not `.cargo/config.toml`: that is ignored as soon as somebody sets `RUSTFLAGS`, and would apply to
//! whatever else is built for the target. It gives nothing to host builds.

use std::env;

/// The stack, in bytes. The default of 1 MiB would be zeroed for every fresh instance; a step needs a few KiB. It lies
/// below the data, so that an overflow traps instead of corrupting it.
const STACK: u32 = 32 * 1024;

/// The memory for the heap that is there from the start, in bytes (the linker wants whole pages): enough for a usual
/// step, so that linear memory need not grow. With up to 32 KiB of data, a plugin then starts with two pages.
const HEAP: u32 = 64 * 1024;

fn main() {
    println!("cargo:rerun-if-changed=../kit/link.rs");
    if env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo:rustc-link-arg-cdylib=-zstack-size={STACK}");
        println!("cargo:rustc-link-arg-cdylib=--initial-heap={HEAP}");
    }
}
