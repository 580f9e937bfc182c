//! What stands in the directory of plugins, by the names of its files.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::notification::Name;

/// Entries of the directory that are looked at. It is for plugins; what holds more is another directory.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// The files that are plugins by their name, or are surely meant to be.
#[derive(Debug)]
pub(super) struct Listing {
    /// The file system that the directory is on.
    pub(super) device: u64,
    pub(super) files: Vec<OsString>,
}

/// Lists the directory.
///
/// # Errors
/// Why it cannot be listed as a whole, and what to do.
pub(super) fn list(directory: &Path) -> Result<Listing, String> {
    let cannot =
        |error: std::io::Error| format!("the directory of plugins cannot be read: {error}; make it, or name another");
    let device = fs::metadata(directory).map_err(cannot)?.dev();
    let mut files = Vec::new();
    for (count, entry) in fs::read_dir(directory).map_err(cannot)?.enumerate() {
        let name = entry.map_err(cannot)?.file_name();
        if count >= ENTRIES_MAX {
            return Err(format!(
                "the directory of plugins holds more than {ENTRIES_MAX} files; keep plugins in a directory of their own"
            ));
        }
        if is_meant(&name.to_string_lossy()) {
            files.push(name);
        }
    }
    Ok(Listing { device, files })
}

/// Hidden files are somebody's unfinished copies, and files of other kinds somebody's notes.
fn is_meant(name: &str) -> bool {
    !name.starts_with('.') && ["wasm", "cwasm", "wat"].contains(&extension(name).to_ascii_lowercase().as_str())
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The plugin that a file is named for.
///
/// # Errors
/// What is wrong with the name, and what to do.
pub(super) fn named(file: &str) -> Result<Name, String> {
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    match extension(file) {
        "wasm" => stem.parse().map_err(|error| format!("the file is named for no plugin: {error}, then .wasm")),
        other if other.eq_ignore_ascii_case("cwasm") => {
            Err("compiled code is not loaded, since it cannot be checked: put the .wasm component here, the host \
                 compiles it"
                .into())
        }
        other if other.eq_ignore_ascii_case("wat") => {
            Err("WebAssembly in its text format is not loaded: turn it into a .wasm file with wasm-tools parse".into())
        }
        _ => Err("the file is named for no plugin: its name must end with .wasm in small letters".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        for (name, expected) in [
            ("slack.wasm", Some("slack")),
            ("agent-run.wasm", Some("agent-run")),
            ("Slack.wasm", None),
            ("a.b.wasm", None),
            ("slack.WASM", None),
            ("slack.cwasm", None),
            ("slack.wat", None),
        ] {
            assert!(is_meant(name), "{name}");
            assert_eq!(named(name).ok().as_ref().map(Name::as_str), expected, "{name}");
        }
        for name in [".slack.wasm", "slack.wasm.minisig", "slack.wasm~", "slack.wasm.part", "README", "wasm", ".wasm"] {
            assert!(!is_meant(name), "{name}");
        }
    }
}
