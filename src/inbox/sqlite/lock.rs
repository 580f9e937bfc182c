//! One process writes at a time: an advisory lock on a file beside the database, let go by the system when the process
//! ends in whatever way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::private::beside;
use super::{InboxError, errors};

/// How often a lock that another has is tried again. One that was let go may be held a moment longer by a program that was
/// being started just then: it has a copy of every open file until it runs.
const TRIES: u32 = 20;

/// What the file of the lock has behind the name of the database.
pub(super) const ENDING: &str = ".lock";

/// The wait between two tries.
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// The lock; dropping it lets go.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of this database.
    ///
    /// # Errors
    /// [`InboxError::InUse`] when another process has it.
    pub(super) fn take(database: &Path) -> Result<Self, InboxError> {
        let path = lock_path(database);
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.map_err(|error| errors::of_file(database, &error))?;
        let mut tries_left = TRIES;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if tries_left > 0 => std::thread::sleep(BETWEEN_TRIES),
                Err(TryLockError::WouldBlock) => return Err(in_use(database, &mut file)),
                Err(TryLockError::Error(error)) => return Err(errors::of_file(database, &error)),
            }
            tries_left -= 1;
        }
        // The number only makes the other's message better; the lock itself is what counts.
        let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Self { _file: file })
    }
}

fn lock_path(database: &Path) -> PathBuf {
    beside(database, ENDING)
}

fn in_use(database: &Path, file: &mut File) -> InboxError {
    let mut holder = String::new();
    let known = file.take(20).read_to_string(&mut holder).is_ok() && !holder.is_empty();
    let by = if known { format!("process {holder}") } else { "another process".to_owned() };
    let message = format!(
        "store {} is in use by {by}: stop it first, or name another file under `store:` (reading commands work beside it)",
        database.display()
    );
    InboxError::InUse(message)
}
