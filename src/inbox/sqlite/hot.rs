//! The statements that the writing thread keeps at hand.

use rusqlite::{Connection, Params, Statement};

use super::InboxError;
use super::errors::unavailable;

/// The statements that every delivery's life runs, kept at hand: finding each by its text, time and again, is a twentieth of
/// the writer's work.
#[derive(Default)]
pub(super) struct Hot<'c> {
    pub(super) insert_seen: Prepared<'c>,
    pub(super) insert_notification: Prepared<'c>,
    pub(super) insert_in_flight: Prepared<'c>,
    pub(super) insert_waiting: Prepared<'c>,
    pub(super) end_plainly: Prepared<'c>,
    pub(super) insert_attempt: Prepared<'c>,
}

/// A statement, once it was run.
#[derive(Default)]
pub(super) struct Prepared<'c>(Option<Statement<'c>>);

impl<'c> Prepared<'c> {
    /// Runs `sql`, which is the same each time; returns how many rows it changed.
    pub(super) fn execute(
        &mut self,
        connection: &'c Connection,
        sql: &str,
        values: impl Params,
    ) -> Result<usize, InboxError> {
        let statement = match &mut self.0 {
            Some(statement) => statement,
            none => none.insert(connection.prepare(sql).map_err(unavailable)?),
        };
        statement.execute(values).map_err(unavailable)
    }
}
