//! From an answer to what is written for it: each event judged, each route decided. Pure.

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::answer::Answer;
use super::event::{Judged, id_of, judge};
use crate::config::{Connector, Workspace};
use crate::inbox::{Ended, Entry, Intake};
use crate::notification::Event;
use crate::route::{Decision, Facts, owed};

/// Where and when an answer came.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The workspace, with its routes.
    pub workspace: &'a Workspace,
    /// The connector, with its ceiling.
    pub connector: &'a Connector,
    /// Whether this is the first answer, whose events owe nothing: they happened before anyone asked.
    pub first: bool,
    /// When it came.
    pub received_at: Timestamp,
}

/// What an answer comes to.
#[derive(Clone, Debug)]
pub struct Batch {
    /// What is written. Its cursor is the new position; none leaves it as it is.
    pub intake: Intake,
    /// What was decided about the routes, for each entry of the intake.
    pub decisions: Vec<Vec<Decision>>,
    /// Why events were dropped, each with its id where it has one.
    pub dropped: Vec<String>,
}

/// Judges every event of an answer on its own and decides what each accepted one owes.
///
/// The new position is the answer's cursor, else the last accepted event's own. The answer's cursor does not count when
/// events of it were left behind.
pub fn batch(answer: &Answer<'_>, origin: Origin<'_>) -> Batch {
    let Origin { workspace, connector, received_at, .. } = origin;
    let mut entries = Vec::with_capacity(answer.events.len());
    let mut decisions = Vec::with_capacity(answer.events.len());
    let mut dropped = Vec::new();
    let mut own_cursor = None;
    for &event in &answer.events {
        match judge(event) {
            Ok(Judged { event, cursor }) => {
                own_cursor = cursor.or(own_cursor);
                let (entry, decided) = entry(event, origin);
                entries.push(entry);
                decisions.push(decided);
            }
            Err(reason) => dropped.push(named(event, &reason.to_string())),
        }
    }
    let cursor = answer.cursor.clone().filter(|_| answer.events_left == 0).or(own_cursor);
    let (workspace, source) = (workspace.name.clone(), connector.name.clone());
    let ended = Ended::Answered { revision: None };
    let intake = Intake { workspace, source, received_at, entries, notices: Vec::new(), cursor, ended };
    Batch { intake, decisions, dropped }
}

fn entry(event: Event, origin: Origin<'_>) -> (Entry, Vec<Decision>) {
    let Origin { workspace, connector, first, received_at } = origin;
    let effective_level = event.level.capped(connector.ceiling);
    let facts =
        Facts { source: &connector.name, name: &event.name, effective_level, subject: event.subject.as_deref() };
    let decisions = if first { Vec::new() } else { workspace.router.select(&facts) };
    let owed = owed(&decisions, &workspace.routes, received_at);
    (Entry { event, effective_level, owed }, decisions)
}

fn named(event: &RawValue, reason: &str) -> String {
    match id_of(event) {
        Some(id) => format!("event {id:?} was dropped: {reason}"),
        None => format!("an event was dropped: {reason}"),
    }
}
