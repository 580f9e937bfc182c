//! Connections to the database, by what they are for.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::errors::unavailable;
use super::{InboxError, schema};

/// How long a statement waits for another process that reads or checkpoints.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Pages that the writer keeps at hand, in KiB: the inner pages of all trees of a store with some million rows.
const CACHE_KIB: i64 = 16 * 1024;

/// Statements kept prepared: more than the store has.
const STATEMENTS_MAX: usize = 128;

pub(super) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, InboxError> {
    let connection = Connection::open_with_flags(path, flags).map_err(unavailable)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(unavailable)?;
    // A statement would be planned anew each time other values are bound to it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(unavailable)?;
    Ok(connection)
}

/// Read-only by `query_only` rather than by the open flags, because reading a WAL may have to make its index.
pub(super) fn connect_reader(path: &Path) -> Result<Connection, InboxError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "query_only", true).map_err(unavailable)?;
    Ok(connection)
}

/// A connection that copies the log. It has to have read once to know that there is one.
pub(super) fn connect_copier(path: &Path) -> Result<Connection, InboxError> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(unavailable)?;
    connection.pragma_query_value(None, "schema_version", |_| Ok(())).map_err(unavailable)?;
    Ok(connection)
}

pub(super) fn prepare_to_write(connection: &mut Connection) -> Result<(), InboxError> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0)).map_err(unavailable)?;
    if mode != "wal" {
        let message =
            format!("the file system does not allow a write-ahead log (journal mode is {mode}): use a local disk");
        return Err(InboxError::Open(message));
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(unavailable)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(unavailable)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    schema::migrate(connection)
}
