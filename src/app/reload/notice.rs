//! What a workspace is told of mistakes in its own file: notices in its inbox, from the source `switchbell`, that routes may
//! match like anything else.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use jiff::Timestamp;
use serde_json::json;

use crate::config::{Problem, Problems, Workspace};
use crate::inbox::{Ended, Entry, Intake};
use crate::notification::{Event, HOST_SOURCE, Level, Name};
use crate::route::entry;
use crate::text;

/// Mistakes that a notice spells out; the others are counted.
const MISTAKES_SHOWN: usize = 5;

/// Longest body, in characters, as of every notification.
const BODY_CHARS_MAX: usize = 2_000;

/// What there is to tell of a file with mistakes. `workspace` is what goes on; none where nothing does.
pub(super) fn mistakes(
    name: &Name,
    problems: &Problems,
    workspace: Option<&Workspace>,
    now: Timestamp,
) -> Option<Intake> {
    let count = problems.mistakes.len() + problems.omitted;
    let what_goes_on = match workspace {
        Some(_) => {
            "The workspace goes on with the file as it was before, and with the members it had: who was taken out is still let in."
        }
        None => "The workspace is set aside until then: it is not polled, and what it is owed waits.",
    };
    let remedy = format!("{what_goes_on} `switchbell check` shows every mistake with what to write instead.");
    let shown: String = problems.mistakes.iter().take(MISTAKES_SHOWN).map(line).collect();
    let more = count.saturating_sub(MISTAKES_SHOWN);
    let shown = if more > 0 { format!("{shown}and {more} more\n") } else { shown };
    let room = BODY_CHARS_MAX.saturating_sub(remedy.chars().count() + 1);
    let event = Event {
        event_id: format!("configuration.mistakes:{}", now.as_millisecond()),
        name: "configuration.mistakes".to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: None,
        title: match count {
            1 => "the file of this workspace has a mistake".to_owned(),
            count => format!("the file of this workspace has {count} mistakes"),
        },
        body: Some(format!("{}\n{remedy}", text::lines(shown.trim_end(), room))),
        link: None,
        data: json!({ "mistakes": count, "aside": workspace.is_none() }).to_string(),
        content: None,
    };
    intake(name, workspace, event)
}

/// What there is to tell once it has none any more.
pub(super) fn good(workspace: &Workspace, now: Timestamp) -> Option<Intake> {
    let event = Event {
        event_id: format!("configuration.good:{}", now.as_millisecond()),
        name: "configuration.good".to_owned(),
        timestamp: now,
        level: Level::Attention,
        subject: None,
        title: "the file of this workspace is good again".to_owned(),
        body: Some("It is followed from now on.".to_owned()),
        link: None,
        data: "{}".to_owned(),
        content: None,
    };
    intake(&workspace.name, Some(workspace), event)
}

/// Tells one trouble from another.
pub(super) fn trouble(problems: &Problems, goes_on: bool) -> u64 {
    let mut hasher = DefaultHasher::new();
    goes_on.hash(&mut hasher);
    for Problem { place, path, message, .. } in &problems.mistakes {
        (place, path, message).hash(&mut hasher);
    }
    problems.omitted.hash(&mut hasher);
    hasher.finish()
}

/// A mistake in one line. The file is the workspace's own, wherever the operator keeps it.
fn line(problem: &Problem) -> String {
    let place = problem.place.map_or_else(String::new, |place| format!("line {}: ", place.line));
    let path = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
    format!("{place}{path}{}\n", problem.message)
}

fn intake(name: &Name, workspace: Option<&Workspace>, event: Event) -> Option<Intake> {
    let source: Name = HOST_SOURCE.parse().ok()?;
    let now = event.timestamp;
    let entry = match workspace {
        Some(workspace) => entry(event, Level::Attention, (workspace, &source)).0,
        None => Entry { event, effective_level: Level::Attention, owed: Vec::new(), consumers: Vec::new() },
    };
    Some(Intake {
        workspace: name.clone(),
        source,
        received_at: now,
        entries: vec![entry],
        notices: Vec::new(),
        cursor: None,
        is_first: false,
        ended: Ended::Answered { revision: None, is_backlog: false },
    })
}
