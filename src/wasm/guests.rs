//! The components under `tests/guests`, built once for all tests of a run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The component of the guest `tests/guests/<name>`.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = BUILT.get_or_init(build).as_ref();
    let folder = folder.expect("the guests cannot be built; rustup target add wasm32-wasip2 adds the target");
    std::fs::read(folder.join(format!("guest_{}.wasm", name.replace('-', "_")))).unwrap()
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

/// Builds every guest and returns the folder they are in; none when that fails, of which Cargo tells.
fn build() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let target = target.join("plugins");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_TARGET_DIR", &target);
    cargo.args(["build", "--quiet", "--target", "wasm32-wasip2", "--profile", "plugin"]);
    for entry in std::fs::read_dir(root.join("tests/guests")).unwrap() {
        cargo.arg("--package").arg(format!("guest-{}", entry.unwrap().file_name().to_str().unwrap()));
    }
    let built = cargo.status().is_ok_and(|status| status.success());
    built.then(|| target.join("wasm32-wasip2/plugin"))
}
