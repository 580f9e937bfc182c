//! From an answer to what is written for it: each event judged, each route decided. Pure.

use std::fmt;

use jiff::Timestamp;

use super::answer::Answer;
use super::event::{Judged, id_of, judge};
use super::notice::Notice;
use crate::config::{Connector, Workspace};
use crate::inbox::{Ended, Entry, Intake};
use crate::notification::{Event, HOST_SOURCE, Level, Name};
use crate::route::{Decision, entry};

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
    /// Events that were dropped.
    pub dropped: Vec<Dropped>,
    /// Whether the last event taken says where it stands, so that reading can go on behind it.
    pub is_positioned: bool,
}

/// An event that broke a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its id, shortened, where it has one.
    pub event_id: Option<String>,
    /// Which rule it broke, and what was found instead.
    pub reason: String,
}

impl fmt::Display for Dropped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.event_id {
            Some(id) => write!(out, "event {id:?} was dropped: {}", self.reason),
            None => write!(out, "an event was dropped: {}", self.reason),
        }
    }
}

/// Judges every event of an answer on its own and decides what each accepted one owes.
///
/// The new position is the answer's cursor, else the last accepted event's own. The answer's cursor does not count when
/// events of it were left behind.
pub fn batch(answer: &Answer<'_>, origin: Origin<'_>) -> Batch {
    let Origin { workspace, connector, received_at, .. } = origin;
    let mut entries = Vec::new();
    let mut decisions = Vec::new();
    let mut dropped = Vec::new();
    let mut own_cursor = None;
    let mut is_positioned = false;
    for &event in &answer.events {
        match judge(event) {
            Ok(Judged { event, cursor }) => {
                is_positioned = cursor.is_some();
                own_cursor = cursor.or(own_cursor);
                let (entry, decided) = received(event, origin);
                entries.push(entry);
                decisions.push(decided);
            }
            Err(reason) => {
                is_positioned = false;
                dropped.push(Dropped { event_id: id_of(event), reason: reason.to_string() });
            }
        }
    }
    let cursor = answer.cursor.clone().filter(|_| answer.events_left == 0).or(own_cursor);
    let intake = Intake {
        is_first: origin.first,
        workspace: workspace.name.clone(),
        source: connector.name.clone(),
        received_at,
        entries,
        notices: Vec::new(),
        cursor,
        ended: Ended::Answered { revision: None, is_backlog: false },
    };
    Batch { intake, decisions, dropped, is_positioned }
}

fn received(event: Event, origin: Origin<'_>) -> (Entry, Vec<Decision>) {
    let Origin { workspace, connector, first, .. } = origin;
    let effective_level = event.level.capped(connector.ceiling);
    if first {
        return (Entry { event, effective_level, owed: Vec::new(), consumers: Vec::new() }, Vec::new());
    }
    entry(event, effective_level, (workspace, &connector.name))
}

/// The host's own notices as they are written, and what was decided about each.
pub fn notices(
    notices: &[Notice],
    (workspace, connector): (&Workspace, &Name),
    now: Timestamp,
) -> (Vec<Entry>, Vec<Vec<Decision>>) {
    let Ok(host) = HOST_SOURCE.parse() else { return (Vec::new(), Vec::new()) };
    let entry_of = |(number, notice): (usize, &Notice)| {
        let event = notice.event(connector, now, number);
        let level = event.level.capped(Level::Urgent);
        entry(event, level, (workspace, &host))
    };
    notices.iter().enumerate().map(entry_of).unzip()
}

#[cfg(test)]
mod tests {
    use super::super::answer;
    use super::*;
    use crate::config;

    const ACME: &str = "members: { a@a.example: admin }
connectors: { crm: { command: run, notifications: { resource: \"acme://notifications\" } } }
consumers: { audit: {}, triage: { when: { level: attention } } }
";

    fn workspace() -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        for path in ["workspaces", "plugins"] {
            std::fs::create_dir(folder.path().join(path)).unwrap();
        }
        let operator = folder.path().join("switchbell.yaml");
        std::fs::write(&operator, "commands: { run: { run: [a], workspaces: [acme] } }\n").unwrap();
        std::fs::write(folder.path().join("workspaces/acme.yaml"), ACME).unwrap();
        let mut loaded = config::load(&operator, &|_| None).unwrap();
        assert!(loaded.aside.is_empty(), "{:?}", loaded.aside);
        loaded.config.workspaces.pop_first().unwrap().1
    }

    #[test]
    fn what_came_before_anyone_asked_joins_no_queue_and_what_comes_then_does() {
        let workspace = workspace();
        let connector = workspace.connectors.values().next().unwrap();
        let text =
            r#"{"events":[{"eventId":"e1","name":"a.b","timestamp":"2026-09-01T18:42:10Z","data":{}}],"cursor":"1"}"#;
        let answer = answer::parse(text).unwrap();
        let joins = |first| {
            let origin = Origin { workspace: &workspace, connector, first, received_at: Timestamp::UNIX_EPOCH };
            let mut batch = batch(&answer, origin);
            assert!(batch.dropped.is_empty(), "{:?}", batch.dropped);
            batch.intake.entries.remove(0).consumers
        };
        assert_eq!(joins(true), []);
        assert_eq!(joins(false), ["audit".parse().unwrap()]);
        // The host's notices are no part of the answer.
        let notice = Notice::Gap { gaps: 1, why: "a reason" };
        let (entries, _) = notices(&[notice], (&workspace, &connector.name), Timestamp::UNIX_EPOCH);
        assert_eq!(entries[0].consumers, ["audit".parse().unwrap(), "triage".parse().unwrap()]);
    }
}
