//! What is seen of real files, at times that the tests make up.

mod changes;
mod directory;
mod patience;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Folder, LOOK_EVERY, Patience, Seen};
use crate::wasm::load::digest;

/// A directory of plugins and who looks at it.
struct Stage {
    root: TempDir,
    folder: Folder,
    now: Instant,
}

impl Stage {
    /// An empty directory, looked at once.
    fn new() -> Self {
        let mut stage = Self::unseen();
        assert_eq!(stage.look(), [""; 0]);
        stage
    }

    /// An empty directory, not looked at yet.
    fn unseen() -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("plugins");
        fs::create_dir(&directory).unwrap();
        Self { root, folder: Folder::new(directory), now: Instant::now() }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.root.path().join("plugins").join(file)
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        fs::write(self.path(file), bytes).unwrap();
    }

    /// Puts a whole plugin there as an installer does: under another name first.
    fn put(&self, file: &str, content: &str) {
        self.write(".new", &component(content));
        fs::rename(self.path(".new"), self.path(file)).unwrap();
    }

    fn remove(&self, file: &str) {
        fs::remove_file(self.path(file)).unwrap();
    }

    fn see(&mut self) -> Vec<Seen> {
        self.now += LOOK_EVERY;
        self.folder.look(self.now)
    }

    /// Looks once more, and tells in short what is seen: `slack: content`, `slack gone`, `slack.wasm! message`.
    fn look(&mut self) -> Vec<String> {
        let root = self.root.path().join("plugins");
        self.see().into_iter().map(|seen| told(&root, seen)).collect()
    }

    /// What is seen in so many looks.
    fn looks(&mut self, count: u32) -> Vec<String> {
        (0..count).flat_map(|_| self.look()).collect()
    }

    /// The looks after which so much time has passed.
    fn looks_in(time: Duration) -> u32 {
        u32::try_from(time.as_millis() / LOOK_EVERY.as_millis()).unwrap()
    }

    fn refused(&mut self, name: &str, bytes: &[u8]) -> Patience {
        self.folder.refused(&name.parse().unwrap(), &digest(bytes), self.now)
    }

    fn problems(&self) -> Vec<String> {
        let named = |(path, message): (&Path, &str)| format!("{}: {message}", path.file_name().unwrap().display());
        self.folder.problems().map(named).collect()
    }
}

fn told(root: &Path, seen: Seen) -> String {
    match seen {
        Seen::Settled { name, path, bytes, digest, signature } => {
            assert_eq!((path, digest.len()), (root.join(format!("{name}.wasm")), 64));
            let signed = signature.map_or_else(String::new, |signature| format!(" signed {signature}"));
            format!("{name}: {}{signed}", content(&bytes))
        }
        Seen::Gone { name } => format!("{name} gone"),
        Seen::Problem { path, message } => {
            format!("{}! {message}", path.strip_prefix(root).unwrap().display())
        }
        Seen::Unreadable { message } => format!("unreadable: {message}"),
        Seen::Readable => "readable".into(),
    }
}

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

/// A component, as far as its sections go: one of 128 bytes and more, whose length takes two bytes.
fn component(content: &str) -> Vec<u8> {
    let content = format!("{content:<130}");
    [HEADER, &[0, 0x82, 0x01], content.as_bytes()].concat()
}

/// What [`component`] was made of, or how long a part of it is.
fn content(bytes: &[u8]) -> String {
    let whole = bytes.get(HEADER.len() + 3..).filter(|content| content.len() == 130);
    whole.map_or_else(|| format!("{} bytes", bytes.len()), |content| String::from_utf8_lossy(content).trim().to_owned())
}
