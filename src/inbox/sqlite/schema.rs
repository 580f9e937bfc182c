//! The schema, by numbered migrations; `PRAGMA user_version` counts those applied.

use rusqlite::Connection;

use super::InboxError;
use super::errors::unavailable;

/// In order; one that was released is never edited.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
];

/// Whether each row's references are looked up as it is written. That finds mistakes of this module, which tests are for; a
/// store in use is spared a fifth of the work of a write.
const ENFORCES_KEYS: bool = cfg!(debug_assertions);

/// Brings a store that is open for writing up to this version's schema. Foreign keys are not enforced meanwhile: a table
/// that is replaced is referred to by others. Afterwards they are, where [`ENFORCES_KEYS`].
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
    connection.pragma_update(None, "foreign_keys", ENFORCES_KEYS).map_err(unavailable)
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

    /// A store of the second schema with a delivery in every state that it had. The third is in flight.
    fn of_the_second_schema() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(MIGRATIONS[0]).unwrap();
        connection.execute_batch(MIGRATIONS[1]).unwrap();
        connection.pragma_update(None, "user_version", 2).unwrap();
        connection
            .execute_batch(
                "INSERT INTO store VALUES (1, '0badcafe', 4);
                 INSERT INTO workspace VALUES (1, 'acme', 2), (2, 'other', 1);
                 INSERT INTO source (id, workspace, name) VALUES (1, 1, 'crm'), (2, 2, 'crm');
                 INSERT INTO notification (id, source, event_id, name, timestamp, received_at, level, effective_level, title, data)
                 SELECT column1, column2, 'e', 'domain.active', '2026-01-01T00:00:00Z', 100, 0, 0, 'a title', '{}'
                 FROM (VALUES ((1 << 40) + 1, 1), ((1 << 40) + 2, 1), ((2 << 40) + 1, 2));
                 INSERT INTO delivery VALUES
                     (1, (1 << 40) + 1, 'news', 't', 'slack', 'pending', 100, 100, 100, 0, NULL, NULL, NULL),
                     (2, (1 << 40) + 1, 'news', 'u', 'slack', 'retrying', 100, 100, 900, 2, 'unknown', NULL, NULL),
                     (4, (1 << 40) + 2, 'news', 't', 'slack', 'in_flight', 100, 100, NULL, 1, NULL, 4, 150),
                     (5, (1 << 40) + 2, 'news', 'u', 'slack', 'delivered', 100, 100, NULL, 1, 'delivered', NULL, NULL),
                     (9, (2 << 40) + 1, 'news', 't', 'mail', 'dead', 100, 100, NULL, 3, 'reject', NULL, NULL);
                 INSERT INTO attempt (delivery, number, started_at, ended_at, outcome, steps)
                 VALUES (2, 1, 100, 110, 'retry', 1), (5, 1, 100, 110, 'delivered', 1);",
            )
            .unwrap();
        connection
    }

    #[test]
    fn deliveries_of_the_second_schema_go_on_where_they_stood() {
        let mut connection = of_the_second_schema();
        migrate(&mut connection).unwrap();
        let texts = |sql: &str| -> Vec<String> {
            let mut statement = connection.prepare(sql).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
        };
        let found = texts(
            "SELECT concat_ws(' ', d.id, w.name, t.route, t.name, d.plugin, d.state, d.due_at, ifnull(d.next_at, '-'), d.attempts,
                              ifnull(d.last_outcome, '-'), ifnull(d.epoch, '-'), ifnull(d.started_at, '-'))
             FROM delivery d JOIN target t ON t.id = d.target JOIN workspace w ON w.id = t.workspace ORDER BY d.id",
        );
        let expected = [
            "1 acme news t slack pending 100 100 0 - - -",
            "2 acme news u slack retrying 100 900 2 unknown - -",
            "4 acme news t slack in_flight 100 - 1 - 4 150",
            "5 acme news u slack delivered 100 - 1 delivered - -",
            "9 other news t mail dead 100 - 3 reject - -",
        ];
        assert_eq!(found, expected);
        assert_eq!(
            texts("SELECT route || ' ' || name FROM target ORDER BY workspace, name"),
            ["news t", "news u", "news t"]
        );
        assert_eq!(texts("SELECT outcome FROM attempt ORDER BY delivery"), ["retry", "delivered"]);
        let broken: Vec<String> = texts("SELECT \"table\" FROM pragma_foreign_key_check");
        assert!(broken.is_empty(), "{broken:?}");
        let last: i64 = connection
            .query_row("SELECT seq FROM sqlite_sequence WHERE name = 'delivery'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(last, 9, "no number is used twice");
    }

    #[test]
    fn attempts_of_the_fourth_schema_go_on_with_what_was_kept_for_them_by_nobody_known() {
        let mut connection = of_the_second_schema();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        for migration in &MIGRATIONS[2..4] {
            connection.execute_batch(migration).unwrap();
        }
        connection.pragma_update(None, "user_version", 4).unwrap();
        connection
            .execute_batch(
                r#"UPDATE delivery SET resume = '{"run":7}', flags = 1 WHERE id = 4;
                   INSERT INTO memory (target, subject, value, version, updated_at) VALUES (1, 'a', '1', 3, 100);"#,
            )
            .unwrap();
        migrate(&mut connection).unwrap();
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let select = "SELECT resume, resume_version, plugin_digest, flags FROM delivery WHERE id = 4";
        let found: (String, Option<String>, Option<String>, i64) = connection.query_row(select, [], row).unwrap();
        assert_eq!(found, (r#"{"run":7}"#.to_owned(), None, None, 1 | super::super::claim::TOLD_MEMORY));
        let others: i64 =
            connection.query_row("SELECT sum(flags) FROM delivery WHERE id <> 4", [], |row| row.get(0)).unwrap();
        assert_eq!(others, 0, "what has not begun is told by its target's word");
        let select = "SELECT value, plugin_version FROM memory";
        let found: (String, Option<String>) =
            connection.query_row(select, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        assert_eq!(found, ("1".to_owned(), None));
        assert_eq!(super::super::read::plugins_in_use(&connection).unwrap(), []);
    }

    #[test]
    fn a_store_from_before_there_were_queues_begins_with_none_and_with_no_content() {
        let mut connection = of_the_second_schema();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        for migration in &MIGRATIONS[2..7] {
            connection.execute_batch(migration).unwrap();
        }
        connection.pragma_update(None, "user_version", 7).unwrap();
        migrate(&mut connection).unwrap();
        let (workspace, triage) = ("acme".parse::<crate::notification::Name>().unwrap(), "triage".parse().unwrap());
        assert_eq!(super::super::queues::queues(&connection, &workspace).unwrap(), []);
        let queue = (workspace.clone(), triage);
        assert_eq!(super::super::queues::pending(&connection, &queue, 0, 9).unwrap(), Default::default());
        let one = super::super::read::notification(&connection, &workspace, 1).unwrap().unwrap();
        assert_eq!((one.event.event_id.as_str(), one.event.content), ("e", None));
    }

    #[test]
    fn an_attempt_of_the_second_schema_that_was_cut_off_goes_on() {
        let mut connection = of_the_second_schema();
        migrate(&mut connection).unwrap();
        let now = jiff::Timestamp::from_millisecond(5_000).unwrap();
        let store = super::super::adopt::begin_epoch(&mut connection, now).unwrap();
        assert_eq!((&*store.tag, store.epoch), ("0badcafe", 5));
        assert_ne!(store.key, [0; 32], "it gets a key");
        let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?));
        let select = "SELECT state, next_at, attempts, flags, started_at FROM delivery WHERE id = 4";
        let flags = super::super::claim::CUT_OFF | super::super::claim::TOLD_MEMORY;
        let found: (String, i64, i64, i64, i64) = connection.query_row(select, [], row).unwrap();
        assert_eq!(found, ("waiting".to_owned(), 5_000, 1, flags, 150));
    }
}
