//! What tells a file from what it was before, without reading it, and reading it so that it is one of the two.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::wasm::catalog::trust::SIGNATURE_BYTES_MAX;
use crate::wasm::limits::PLUGIN_BYTES_MAX;

/// Which file stands under a name, and in which state.
///
/// The link has a part of its own, so that one that now leads elsewhere is seen even where size and times agree. The time
/// of the last change of state (`ctime`) cannot be set, so that a file copied with its old time is seen, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    entry: Result<Identity, ErrorKind>,
    target: Result<Identity, ErrorKind>,
    signature: Option<Identity>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    is_file: bool,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<Metadata> for Identity {
    fn from(of: Metadata) -> Self {
        Self {
            device: of.dev(),
            inode: of.ino(),
            is_file: of.is_file(),
            size: of.size(),
            modified: (of.mtime(), of.mtime_nsec()),
            changed: (of.ctime(), of.ctime_nsec()),
        }
    }
}

impl Stamp {
    /// The stamp of the file at `path`; none when there is nothing, which is more than that it cannot be seen.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let identity = |metadata: io::Result<Metadata>| metadata.map(Identity::from).map_err(|error| error.kind());
        let entry = identity(fs::symlink_metadata(path));
        if entry == Err(ErrorKind::NotFound) {
            return None;
        }
        let signature = identity(fs::metadata(signature_path(path))).ok();
        Some(Self { entry, target: identity(fs::metadata(path)), signature })
    }

    /// Whether both are the same file in the same state, whatever their signatures.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        (self.entry, self.target) == (other.entry, other.target)
    }

    /// Whether this file can be read and is not too large, as far as the stamp says.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn readable(&self) -> Result<(), Unreadable> {
        match self.target {
            Err(ErrorKind::NotFound) if self.entry.is_ok() => {
                Err(Unreadable::Because("it is a link to nothing".into()))
            }
            Err(kind) => Err(Unreadable::Because(kind.to_string())),
            Ok(identity) if !identity.is_file => Err(Unreadable::Because("it is no file".into())),
            Ok(identity) if identity.size > PLUGIN_BYTES_MAX as u64 => Err(Unreadable::TooLarge),
            Ok(_) => Ok(()),
        }
    }
}

/// Why a file was not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is larger than a plugin may be.
    TooLarge,
    /// It changed meanwhile.
    Changed,
    /// For this reason.
    Because(String),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        Self::Because(error.to_string())
    }
}

/// A file, and the text of the signature beside it.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) signature: Option<String>,
}

/// Reads the file that has this stamp.
///
/// # Errors
/// When it cannot be read, or does not have this stamp any more after it was read.
pub(super) fn read(path: &Path, stamp: &Stamp) -> Result<Content, Unreadable> {
    stamp.readable()?;
    let file = open(path)?;
    if Ok(Identity::from(file.metadata()?)) != stamp.target {
        return Err(Unreadable::Changed);
    }
    let mut bytes = Vec::new();
    file.take(PLUGIN_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let signature = read_signature(&signature_path(path));
    // What was read is one state of the file only if it is still in that state.
    if Stamp::of(path).as_ref() == Some(stamp) { Ok(Content { bytes, signature }) } else { Err(Unreadable::Changed) }
}

/// The text of a signature; one that is no text or too long is passed on as far as it goes, and fits nothing.
fn read_signature(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(())?;
    file.take(SIGNATURE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Opens a file. A pipe that took its place would otherwise wait for a writer.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)
}

/// Where the signature of the file at `path` is.
fn signature_path(path: &Path) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".minisig");
    path.into()
}
