//! The schema, by numbered migrations; `PRAGMA user_version` counts those applied.

use rusqlite::Connection;

use super::InboxError;
use super::errors::unavailable;

/// In order; one that was released is never edited.
const MIGRATIONS: [&str; 3] =
    [include_str!("schema/0001.sql"), include_str!("schema/0002.sql"), include_str!("schema/0003.sql")];

/// Brings a store that is open for writing up to this version's schema. Foreign keys are not enforced meanwhile: a table
/// that is replaced is referred to by others. Afterwards they are.
///
/// # Errors
/// When the store was written by a newer version, or refuses the change.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), InboxError> {
    connection.pragma_update(None, "foreign_keys", false).map_err(unavailable)?;
    let applied = version(connection)?;
    for (number, migration) in (1_i64..).zip(MIGRATIONS).skip(applied) {
        let transaction = connection.transaction().map_err(unavailable)?;
        transaction.execute_batch(migration).map_err(unavailable)?;
        transaction.pragma_update(None, "user_version", number).map_err(unavailable)?;
        transaction.commit().map_err(unavailable)?;
    }
    connection.pragma_update(None, "foreign_keys", true).map_err(unavailable)
}

/// Makes sure that a store opened only to read has this version's schema.
///
/// # Errors
/// When it does not.
pub(super) fn require_current(connection: &Connection) -> Result<(), InboxError> {
    if version(connection)? == MIGRATIONS.len() {
        Ok(())
    } else {
        let message = "the store has an older schema: start `switchbell serve` once, which brings it up to date";
        Err(InboxError::Open(message.to_owned()))
    }
}

fn version(connection: &Connection) -> Result<usize, InboxError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(unavailable)?;
    match usize::try_from(found) {
        Ok(known) if known <= MIGRATIONS.len() => Ok(known),
        _ => Err(InboxError::Open(format!(
            "the store has schema {found}, but this switchbell knows {} at most: use the version that wrote it, or a newer one",
            MIGRATIONS.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_the_first_schema_is_brought_up_to_date_with_what_is_in_it() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        connection
            .execute_batch(
                "INSERT INTO workspace (id, name) VALUES (1, 'acme');
                            INSERT INTO source (workspace, name, cursor) VALUES (1, 'crm', 'p:7');",
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        require_current(&connection).unwrap();
        let (workspace, source) = ("acme".parse().unwrap(), "crm".parse().unwrap());
        let reading = super::super::read::reading(&connection, &workspace, &source).unwrap();
        assert_eq!((reading.cursor.as_deref(), reading.failures, reading.is_backlog), (Some("p:7"), 0, false));
    }
}
