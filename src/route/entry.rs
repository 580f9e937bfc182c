//! From an event to what is written for it: its routes are decided, and with them what it owes, and whose queues
//! it joins.

use super::{Decision, Facts, owed};
use crate::config::Workspace;
use crate::inbox::Entry;
use crate::notification::{Event, Level, Name};

/// An event of `source` as it is written, and what was decided about each route.
pub fn entry(event: Event, effective_level: Level, (workspace, source): (&Workspace, &Name)) -> (Entry, Vec<Decision>) {
    let facts = Facts { source, name: &event.name, effective_level, subject: event.subject.as_deref() };
    let decisions = workspace.router.select(&facts);
    let owed = owed(&decisions, &workspace.routes);
    let consumers = workspace.consumers.of(&facts);
    (Entry { event, effective_level, owed, consumers }, decisions)
}
