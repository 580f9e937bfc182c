//! The store of compiled code: `<folder>/<compatibility>/<sha256 of the component>.cwasm`.
//!
//! An entry is a tag of 32 bytes, HMAC-SHA256 over what it was compiled for, which component it is and the code, and then the
//! code. Nobody who merely writes into the folder can make a tag. Whatever is wrong with an entry, or with the disk, costs a
//! compilation and is told, and nothing else.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Once;

use ring::hmac;
use sha2::{Digest, Sha256};
use wasmtime::Engine;

use super::Code;
use crate::private_file::{UNFINISHED, make_folder, replace};
use crate::text::hex;
use crate::wasm::catalog::depot::is_digest;
use crate::wasm::limits::CODE_BYTES_MAX;

/// The length of a tag.
const TAG_BYTES: usize = 32;

/// The largest entry.
const ENTRY_BYTES_MAX: u64 = (TAG_BYTES + CODE_BYTES_MAX) as u64;

const ENTRY: &str = ".cwasm";

/// What code is compiled for, as 64 hexadecimal digits: the engine's settings, the processor, and the exact version of the
/// compiler, which is part of what the engine hashes. It is the same in every process of the same program.
pub(in crate::wasm) fn compatibility(engine: &Engine) -> String {
    let mut hasher = Sha(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex(&hasher.0.finalize())
}

/// SHA-256 as a hasher: its 64 bits are too few to be a name.
struct Sha(Sha256);

impl Hasher for Sha {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
    }
}

/// The store.
#[derive(Debug)]
pub(in crate::wasm) struct CodeStore {
    folder: PathBuf,
    compatibility: String,
    key: hmac::Key,
    tidied: Once,
}

impl CodeStore {
    /// The store in this folder, of the sandbox whose key this is. Nothing is touched yet.
    pub(in crate::wasm) fn new(folder: PathBuf, compatibility: String, key: &[u8; 32]) -> Self {
        // A key of its own, so that no other use of the sandbox's key can stand for a tag.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"compiled code");
        let key = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Self { folder, compatibility, key, tidied: Once::new() }
    }

    /// The code of the component with this digest. An entry that is not this store's is removed, and told.
    pub(in crate::wasm) fn get(&self, digest: &str) -> Option<Code> {
        self.tidied.call_once(|| self.tidy());
        let path = self.path(digest);
        let entry = match read(&path) {
            Ok(entry) => entry,
            Err(error) if is_absence(&error) => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled code cannot be read: the plugin is compiled again");
                return None;
            }
        };
        let code = self.verified(digest, entry);
        if code.is_none() {
            self.distrust(digest, "it is damaged, or not of this server");
        }
        code
    }

    /// Removes the code of this component, which was found to be of no use.
    pub(in crate::wasm) fn distrust(&self, digest: &str, why: &str) {
        let path = self.path(digest);
        tracing::warn!(path = %path.display(), why, "compiled code is not used: the plugin is compiled again");
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "compiled code that is of no use cannot be removed");
        }
    }

    /// Keeps the code of the component with this digest. One writer at a time. What goes wrong is told: the plugin is
    /// compiled again after the next start, nothing else.
    pub(in crate::wasm) fn put(&self, digest: &str, code: &Code) {
        let path = self.path(digest);
        let mut entry = self.tag(digest, &code.0).as_ref().to_vec();
        entry.extend_from_slice(&code.0);
        if let Err(error) = self.make_folders().and_then(|()| replace(&path, &entry)) {
            tracing::warn!(
                path = %path.display(), %error,
                "compiled code cannot be kept: the plugin will be compiled again after the next start"
            );
        }
    }

    /// Removes what was compiled of components that are not among these digests, and what a write that was cut off left.
    pub(in crate::wasm) fn prune(&self, keep: &BTreeSet<String>) -> io::Result<()> {
        let entries = match fs::read_dir(self.folder.join(&self.compatibility)) {
            Err(error) if is_absence(&error) => return Ok(()),
            entries => entries?,
        };
        let mut failed = Ok(());
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let is_left = name.to_str().is_some_and(|name| {
                let digest = name.strip_suffix(ENTRY).filter(|digest| is_digest(digest));
                digest.is_some_and(|digest| !keep.contains(digest)) || name.ends_with(UNFINISHED)
            });
            if is_left {
                failed = failed.and(fs::remove_file(entry.path()));
            }
        }
        failed
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.folder.join(&self.compatibility).join(format!("{digest}{ENTRY}"))
    }

    fn verified(&self, digest: &str, mut entry: Vec<u8>) -> Option<Code> {
        let (tag, code) = entry.split_at_checked(TAG_BYTES)?;
        // Tags of the two tags are compared, which takes the same time whatever differs.
        let expected = hmac::sign(&self.key, self.tag(digest, code).as_ref());
        hmac::verify(&self.key, tag, expected.as_ref()).ok()?;
        entry.drain(..TAG_BYTES);
        Some(Code(entry))
    }

    fn tag(&self, digest: &str, code: &[u8]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.key);
        // Both names have a fixed length.
        context.update(self.compatibility.as_bytes());
        context.update(digest.as_bytes());
        context.update(code);
        context.sign()
    }

    fn make_folders(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        make_folder(&self.folder.join(&self.compatibility))
    }

    /// Makes the folder, and removes what was compiled for other versions and settings: nothing will ask for it.
    fn tidy(&self) {
        if let Err(error) = self.make_folders().and_then(|()| self.remove_others()) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "the folder for compiled code cannot be tidied");
        }
    }

    fn remove_others(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_other = name.to_str().is_some_and(|name| is_digest(name) && name != self.compatibility);
            if is_other && entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

/// An entry; nothing of what is larger than any, so that it has no tag.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut entry = Vec::new();
    let file = File::open(path)?;
    if file.metadata()?.len() <= ENTRY_BYTES_MAX {
        file.take(ENTRY_BYTES_MAX).read_to_end(&mut entry)?;
    }
    Ok(entry)
}

/// Whether there is simply nothing there.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
