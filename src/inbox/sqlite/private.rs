//! The files of a store are their owner's alone: whoever else has an account on the machine reads no inbox and no key.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// What may be done with a file, by its owner.
const FILE_MODE: u32 = 0o600;
/// What may be done with a folder, by its owner.
const FOLDER_MODE: u32 = 0o700;
/// What others than the owner may do.
const OTHERS: u32 = 0o077;

/// What SQLite, and the lock, put behind the name of the database. The files of SQLite are made with what the database allows.
const ENDINGS: [&str; 4] = ["", "-wal", "-shm", super::lock::ENDING];

/// Makes the folder of a database, if it is not there. One that is there stays as it is.
pub(super) fn make_folder(database: &Path) -> io::Result<()> {
    match database.parent() {
        Some(folder) => DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder),
        None => Ok(()),
    }
}

/// Makes the file of a database, if it is not there, and lets nobody else into those that are. It must not be opened besides by
/// this process: closing a file lets go of the locks that SQLite has on it.
pub(super) fn keep(database: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(database) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for ending in ENDINGS {
        let path = beside(database, ending);
        if let Err(error) = tighten(&path) {
            tracing::warn!(path = %path.display(), %error, "others than its owner may read a file of the store: allow nobody else to");
        }
    }
    Ok(())
}

fn tighten(path: &Path) -> io::Result<()> {
    let mode = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?.permissions().mode(),
    };
    if mode & OTHERS == 0 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS)) }
}

/// A file beside the database.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::inbox::sqlite::SqliteInbox;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// With the umask that systems usually have, SQLite would let everybody read.
    #[test]
    fn the_files_of_a_store_are_their_owners_alone_also_when_they_were_not() {
        let place = tempfile::tempdir().unwrap();
        let database = place.path().join("data/switchbell.db");
        let inbox = SqliteInbox::open(&database, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(mode(&place.path().join("data")), 0o700);
        for ending in ENDINGS {
            assert_eq!(mode(&beside(&database, ending)), 0o600, "{ending:?}");
        }
        drop(inbox);
        fs::set_permissions(place.path().join("data"), Permissions::from_mode(0o755)).unwrap();
        let left = ["", "-wal", super::super::lock::ENDING].map(|ending| beside(&database, ending));
        for path in &left {
            drop(OpenOptions::new().append(true).create(true).open(path).unwrap());
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        let _inbox = SqliteInbox::open(&database, Timestamp::UNIX_EPOCH).unwrap();
        for ending in ENDINGS {
            assert_eq!(mode(&beside(&database, ending)), 0o600, "{ending:?}");
        }
        assert_eq!(mode(&place.path().join("data")), 0o755, "a folder that was there is its owner's business");
    }
}
