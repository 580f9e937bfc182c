//! SQLite's refusals, in words that say what to do.

use std::io;
use std::path::Path;

use rusqlite::ErrorCode;

use super::InboxError;

/// A read or write that was refused.
pub(super) fn unavailable(error: rusqlite::Error) -> InboxError {
    let remedy = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "the disk is full: free some space; nothing was lost, and it will be tried again",
        Some(ErrorCode::ReadOnly) => "the disk or the file is read-only: make it writable",
        Some(ErrorCode::SystemIoFailure) => "the disk refused: look at the system's log",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the file is no SQLite database, or damaged: restore it from a backup"
        }
        Some(ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => "it cannot be opened: check path and permissions",
        _ => "the store refused",
    };
    // An error of several statements quotes them all after its first line.
    let error = error.to_string();
    InboxError::Unavailable(format!("{remedy} ({})", error.lines().next().unwrap_or_default()))
}

/// A file or folder that cannot be made or opened.
pub(super) fn of_file(path: &Path, error: &io::Error) -> InboxError {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => "this user may not write there: change the permissions",
        io::ErrorKind::ReadOnlyFilesystem => "the disk is read-only: make it writable",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "the disk is full: free some space",
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "something else has that name"
        }
        _ => "it cannot be made or opened",
    };
    open(path, format_args!("{remedy}, or name another file under `store:` ({error})"))
}

/// The same while opening, which names the file.
pub(super) fn open(path: &Path, error: impl std::fmt::Display) -> InboxError {
    InboxError::Open(format!("store {}: {error}", path.display()))
}
