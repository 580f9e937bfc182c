//! The depot: the versions of plugins that are kept on disk, and what became of each.
//!
//! ```text
//! <store>.plugins/            nobody else's (0700)
//!   <sha256>.wasm             a version's component
//!   <sha256>.wasm.minisig     its signature, if it came with one
//!   history.json              which version of each plugin runs, and which ran before it
//!   history.json.broken       a history that could not be read, set aside
//!   compiled/                 compiled code, which the sandbox keeps for itself
//! ```
//!
//! A depot has one owner and waits for the disk: it is used off the async threads.

mod file;
mod history;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::read_file;
use crate::private_file::{UNFINISHED, make_folder, replace};
use crate::wasm::load::file_digest;
pub use history::{FindError, History, IN_USE_KEPT_MAX, Kept, Standing, VERSIONS_KEPT, Version};

/// Largest history, bytes: some two hundred plugins with every version that may be kept, each with a long reason.
pub const HISTORY_BYTES_MAX: usize = 16 << 20;

/// Largest signature, bytes; minisign's have some three hundred.
pub const SIGNATURE_BYTES_MAX: usize = 4 << 10;

/// The folder of compiled code, which the sandbox keeps for itself.
pub const COMPILED: &str = "compiled";

const HISTORY: &str = "history.json";
const BROKEN: &str = "history.json.broken";
const COMPONENT: &str = ".wasm";
const SIGNATURE: &str = ".wasm.minisig";

/// The folder of what is kept of plugins for the store at this path.
pub fn root(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".plugins");
    path.into()
}

/// The versions kept below one folder.
#[derive(Clone, Debug)]
pub struct Depot {
    root: PathBuf,
}

/// What a depot began with.
#[derive(Debug)]
pub struct Opened {
    /// The depot.
    pub depot: Depot,
    /// What became of each plugin so far; empty when there is none, or none that can be read.
    pub history: History,
    /// Why the history that was there is not used, if so.
    pub set_aside: Option<DepotError>,
}

/// What is wrong with a depot.
#[derive(Debug)]
pub enum DepotError {
    /// Its folder cannot be had.
    Folder(PathBuf, io::Error),
    /// Its history cannot be read, and was renamed to what ends with `.broken`.
    History {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        why: String,
        /// Why it could not be renamed, if so: it will be written over.
        kept_its_name: Option<io::Error>,
    },
}

impl fmt::Display for DepotError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path, error) => write!(
                out,
                "{}: the folder for versions of plugins cannot be used: {error}; let the server's user write beside its \
                 store",
                path.display()
            ),
            Self::History { path, why, kept_its_name } => {
                write!(out, "{}: the history of plugins cannot be read ({why}); ", path.display())?;
                match kept_its_name {
                    None => write!(out, "it is set aside as {BROKEN}")?,
                    Some(error) => write!(out, "it cannot be set aside ({error}) and will be written over")?,
                }
                out.write_str(
                    ". The plugins of plugins.directory load as new ones; earlier versions are not known any more",
                )
            }
        }
    }
}

impl std::error::Error for DepotError {}

impl Depot {
    /// Opens the depot below this folder, which is made if it is missing. A history that cannot be read is set aside and
    /// told, never a reason not to start.
    ///
    /// # Errors
    /// When the folder cannot be had.
    pub fn open(root: &Path) -> Result<Opened, DepotError> {
        make_folder(root).map_err(|error| DepotError::Folder(root.to_owned(), error))?;
        let depot = Self { root: root.to_owned() };
        let path = root.join(HISTORY);
        let (history, set_aside) = match read_history(&path) {
            Ok(history) => (history, None),
            Err(why) => {
                let kept_its_name = fs::rename(&path, root.join(BROKEN)).err();
                (History::default(), Some(DepotError::History { path, why, kept_its_name }))
            }
        };
        Ok(Opened { depot, history, set_aside })
    }

    /// The depot below this folder and what became of each plugin, to be read beside a server; none when there is none that
    /// can be read.
    pub fn read(root: &Path) -> Option<(Self, History)> {
        let history = read_history(&root.join(HISTORY)).ok()?;
        Some((Self { root: root.to_owned() }, history))
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Keeps a version, with its signature if it has one; a signature that is there already stays when none is given.
    /// What is kept already, whole, is not written again.
    ///
    /// # Errors
    /// When `bytes` are not what `digest` says, or when they cannot be written; what was there stays.
    pub fn keep(&self, digest: &str, bytes: &[u8], signature: Option<&str>) -> io::Result<()> {
        let path = self.path(digest, COMPONENT)?;
        if file_digest(bytes).as_deref() != Some(digest) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("these bytes are not {digest}")));
        }
        if let Some(signature) = signature {
            if signature.len() > SIGNATURE_BYTES_MAX {
                let said = format!("a signature of more than {SIGNATURE_BYTES_MAX} bytes is none");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, said));
            }
            // First, so that a version that is there always has it.
            replace(&self.path(digest, SIGNATURE)?, signature.as_bytes())?;
        }
        let is_kept = read_file(&path).is_ok_and(|kept| kept == bytes);
        if is_kept { Ok(()) } else { replace(&path, bytes) }
    }

    /// A version's component and its signature.
    ///
    /// # Errors
    /// When it is not kept or cannot be read, or its content is not what its digest says.
    pub fn bytes(&self, digest: &str) -> io::Result<(Vec<u8>, Option<String>)> {
        let path = self.path(digest, COMPONENT)?;
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let bytes = read_file(&path).map_err(told)?;
        if file_digest(&bytes).as_deref() != Some(digest) {
            let said = "its content is not what its name says, it was changed or damaged; load the plugin's file again";
            return Err(told(io::Error::new(io::ErrorKind::InvalidData, said)));
        }
        Ok((bytes, read_signature(&self.path(digest, SIGNATURE)?)?))
    }

    /// Writes the history; it is on disk when this returns.
    ///
    /// # Errors
    /// When it cannot be written, or could not be read again; what was there stays.
    pub fn save(&self, history: &History) -> io::Result<()> {
        replace(&self.root.join(HISTORY), file::write(history)?.as_bytes())
    }

    /// Removes the versions that are not among these digests, and what a write that was cut off left.
    ///
    /// # Errors
    /// The first that could not be removed; the others were.
    pub fn prune(&self, keep: &BTreeSet<String>) -> io::Result<()> {
        let mut failed = Ok(());
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_left = name.to_str().is_some_and(|name| {
                let digest = name.strip_suffix(SIGNATURE).or_else(|| name.strip_suffix(COMPONENT));
                let is_forgotten = digest.is_some_and(|digest| is_digest(digest) && !keep.contains(digest));
                is_forgotten || name.ends_with(UNFINISHED)
            });
            if is_left {
                failed = failed.and(fs::remove_file(entry.path()));
            }
        }
        failed
    }

    fn path(&self, digest: &str, suffix: &str) -> io::Result<PathBuf> {
        if is_digest(digest) {
            return Ok(self.root.join(format!("{digest}{suffix}")));
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{digest:?} is no SHA-256 in lower-case hex")))
    }
}

/// Whether this is a SHA-256 in lower-case hex, so that no path can be made of it.
pub(in crate::wasm) fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The history at this path; an empty one when there is none.
fn read_history(path: &Path) -> Result<History, String> {
    match read_text(path, HISTORY_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(History::default()),
        Err(error) => Err(error.to_string()),
        Ok(text) => file::read(&text),
    }
}

fn read_signature(path: &Path) -> io::Result<Option<String>> {
    match read_text(path, SIGNATURE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        Ok(text) => Ok(Some(text)),
    }
}

fn read_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    if text.len() > bytes_max {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it has more than {bytes_max} bytes")));
    }
    Ok(text)
}
