//! Files for nobody else, replaced whole and on disk when a write returns: small ones with secrets in them
//! ([`PrivateFile`]), and any other ([`replace`]).

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Largest file, in bytes: tokens are a few kilobytes.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// How long another's lock is waited for: longer than any renewal may take.
const LOCK_TIME_MAX: Duration = Duration::from_secs(75);
/// How often the lock is asked for.
const LOCK_TRY_EVERY: Duration = Duration::from_millis(50);

/// Where such a file is: in a folder of a folder, both for nobody else.
#[derive(Clone, Debug)]
pub struct PrivateFile {
    path: PathBuf,
}

/// Tells one state of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    inode: u64,
    modified: (i64, i64),
    bytes: u64,
}

/// Nobody else changes the file while this lives, in this process or another.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl PrivateFile {
    /// The file at this path; nothing is touched yet.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file's state now; none when there is no file.
    pub fn stamp(&self) -> Option<Stamp> {
        fs::metadata(&self.path).ok().map(|found| stamp_of(&found))
    }

    /// What is in the file; none when there is no file.
    ///
    /// # Errors
    /// When it cannot be read, or is larger than any such file.
    pub fn read(&self) -> io::Result<Option<(String, Stamp)>> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let found = file.metadata()?;
        if found.len() > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
        }
        Ok(Some((io::read_to_string(file)?, stamp_of(&found))))
    }

    /// Replaces the file. Whoever calls it holds the lock.
    ///
    /// # Errors
    /// When it cannot be written; what was there stays.
    pub async fn replace(&self, text: String) -> io::Result<()> {
        let this = self.clone();
        tokio::task::spawn_blocking(move || this.write(&text)).await.map_err(io::Error::other)?
    }

    fn write(&self, text: &str) -> io::Result<()> {
        self.make_folder()?;
        replace(&self.path, text.as_bytes())
    }

    /// Waits until nobody else holds the lock: neither here nor in another process.
    ///
    /// # Errors
    /// When it cannot be had: why.
    pub async fn lock(&self) -> Result<Lock, String> {
        let path = self.path.with_extension("lock");
        let said = |error: &dyn fmt::Display| format!("the lock {} cannot be had: {error}", path.display());
        self.make_folder().map_err(|error| said(&error))?;
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = opened.map_err(|error| said(&error))?;
        let taken = async {
            loop {
                match file.try_lock() {
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(LOCK_TRY_EVERY).await,
                    Err(TryLockError::Error(error)) => return Err(error),
                    Ok(()) => return Ok(()),
                }
            }
        };
        match tokio::time::timeout(LOCK_TIME_MAX, taken).await {
            Ok(Ok(())) => Ok(Lock { _file: file }),
            Ok(Err(error)) => Err(said(&error)),
            Err(_) => Err(said(&"another process holds it")),
        }
    }

    /// The file's folder and the one above it, for nobody else.
    fn make_folder(&self) -> io::Result<&Path> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let all = folder.parent().unwrap_or(folder);
        for folder in [all, folder] {
            make_folder(folder)?;
        }
        Ok(folder)
    }
}

/// What the name of a file ends with while it is written.
pub const UNFINISHED: &str = ".new";

/// Makes sure that there is a folder for nobody else, and what is missing above it.
///
/// # Errors
/// When it cannot be made, or kept from others.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Replaces a file, for nobody else, whole: it is on disk when this returns. One writer of a path at a time; what one that
/// was cut off left (`<path>.new`) is written over.
///
/// # Errors
/// When it cannot be written; what was there stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(UNFINISHED);
    let new = PathBuf::from(new);
    let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may be what fills the disk.
        let _ = fs::remove_file(&new);
    }
    written?;
    File::open(path.parent().unwrap_or(path))?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn stamp_of(found: &fs::Metadata) -> Stamp {
    Stamp { inode: found.ino(), modified: (found.mtime(), found.mtime_nsec()), bytes: found.len() }
}
