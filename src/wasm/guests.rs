//! The components under `tests/guests`, each built once in a run of the tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

#[path = "../../tests/guests/versioned/patch.rs"]
mod patch;

/// The component of the guest `tests/guests/<name>`.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    static BUILT: Mutex<BTreeMap<String, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let file = built.entry(name.to_owned()).or_insert_with(|| build(name)).clone();
    drop(built);
    let file = file.expect("the guest cannot be built; rustup target add wasm32-wasip2 adds the target");
    std::fs::read(file).unwrap()
}

/// The puppet, with another text for `describe` to answer.
pub(crate) fn puppet_describing(description: &str) -> Vec<u8> {
    const PLACE: &str = r#"{"name":"puppet","version":"1.0.0"}"#;
    const LENGTH: usize = 512;
    let mut bytes = guest("puppet");
    let start = bytes.windows(PLACE.len()).position(|window| window == PLACE.as_bytes()).unwrap();
    let padded = format!("{description:LENGTH$}");
    bytes[start..start + LENGTH].copy_from_slice(&padded.as_bytes()[..LENGTH]);
    bytes
}

/// A plugin of this name and version that does what `tests/guests/versioned` calls by this word.
pub(crate) fn versioned(name: &str, version: &str, behaviour: &str) -> Vec<u8> {
    versioned_with(&[("name", name), ("version", version), ("behaviour", behaviour)])
}

/// The guest `versioned` with these fields, of `name`, `version`, `behaviour` and `repeat`.
pub(crate) fn versioned_with(fields: &[(&str, &str)]) -> Vec<u8> {
    patch::patch(guest("versioned"), fields)
}

/// Builds a guest and returns its file; none when that fails, of which Cargo tells.
fn build(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = target.join("plugins");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_TARGET_DIR", &target);
    cargo.args(["build", "--quiet", "--target", "wasm32-wasip2", "--profile", "plugin"]);
    cargo.args(["--package", &format!("guest-{name}")]);
    let built = cargo.status().is_ok_and(|status| status.success());
    let file = format!("wasm32-wasip2/plugin/guest_{}.wasm", name.replace('-', "_"));
    built.then(|| target.join(file))
}
