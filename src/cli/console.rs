//! Shows what happens to a person who watches: what was read, which routes matched and why, what was delivered.

use std::fmt::Write;
use std::sync::Arc;

use super::output::show;
use crate::config::Config;
use crate::inbox::delivery::Outcome;
use crate::notification::{Event, Level, Name};
use crate::route::{Condition, Decision, Facts, Field};
use crate::telemetry::{Happening, Observer, rounded};

/// Prints to standard output.
#[derive(Debug)]
pub(super) struct Console {
    config: Arc<Config>,
}

impl Console {
    pub(super) fn new(config: Arc<Config>) -> Self {
        Self { config }
    }

    fn told(&self, what: &Happening) -> String {
        match what {
            Happening::Read { source, events, bootstrap, next_in, .. } => {
                let what = match (bootstrap, events) {
                    (true, _) => "first read: found the place to start from".to_owned(),
                    (false, 1) => "1 event".to_owned(),
                    (false, count) => format!("{count} events"),
                };
                format!("read         {source}: {what}; next read in {}", rounded(*next_in))
            }
            Happening::ReadFailed { source, reason, next_in, .. } => {
                format!("not read     {source}: {reason}; trying again in {}", rounded(*next_in))
            }
            Happening::Deferred { source, .. } => {
                format!("deferred     {source}: its workspace has made as many reads as it may in a minute")
            }
            Happening::Gap { source, .. } => format!("gap          {source}: events were missed"),
            Happening::Dropped { source, reason, .. } => format!("dropped      {source}: {reason}"),
            Happening::Accepted { workspace, seq, source, event, effective_level, decisions } => {
                self.accepted(workspace, *seq, source, event, *effective_level, decisions)
            }
            Happening::Attempted {
                seq, more, route, plugin, attempt, outcome, reason, state, took, next_in, ..
            } => {
                let more = if *more == 0 { String::new() } else { format!(" and {more} more") };
                let reason = reason.as_deref().map_or_else(String::new, |reason| format!(": {reason}"));
                let head = match outcome {
                    Outcome::Delivered => "delivered   ".to_owned(),
                    other => format!("{other:<12}", other = other.as_str()),
                };
                let next = match next_in {
                    Some(next_in) => format!("; {state}, next attempt in {}", rounded(*next_in)),
                    None if *outcome == Outcome::Delivered => String::new(),
                    None => format!("; {state}"),
                };
                format!("{head} #{seq}{more} {route} -> {plugin}, attempt {attempt}, {}{reason}{next}", rounded(*took))
            }
            Happening::Paused { seq, route, plugin, attempt, next_in, .. } => {
                let when =
                    next_in.map_or_else(|| "at the next start".to_owned(), |wait| format!("in {}", rounded(wait)));
                format!("waiting      #{seq} {route} -> {plugin}, attempt {attempt}; it goes on {when}")
            }
            Happening::Moved { seq, route, plugin, state, .. } => {
                format!("{:<12} #{seq} {route} -> {plugin}; no attempt was made", state.as_str())
            }
        }
    }

    fn accepted(
        &self,
        workspace: &Name,
        seq: u64,
        source: &Name,
        event: &Event,
        effective_level: Level,
        decisions: &[Decision],
    ) -> String {
        let capped = if event.level == effective_level {
            String::new()
        } else {
            format!(" (the source says {}, its ceiling is {effective_level})", event.level)
        };
        let mut text = format!("#{seq:<11} {} · {effective_level}{capped} · {}", event.name, event.title);
        let Some(workspace) = self.config.workspaces.get(workspace) else {
            return text;
        };
        let subject = event.subject.as_deref();
        let facts = Facts { source, name: &event.name, effective_level, subject };
        for decision in decisions {
            let Some(route) = workspace.routes.get(decision.route) else { continue };
            let verdict = if decision.matches() { "matches" } else { "no" };
            let conditions = workspace.router.explain(decision.route, &facts);
            let why: Vec<String> = conditions.iter().map(why).collect();
            let why = if why.is_empty() { "it asks nothing".to_owned() } else { why.join(", ") };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n             route {:<14} {verdict:<8} {why}", route.name.as_str());
        }
        text
    }
}

impl Observer for Console {
    fn happened(&self, what: &Happening) {
        // An empty read says nothing that the next one will not.
        if !matches!(what, Happening::Read { events: 0, bootstrap: false, .. }) {
            show(self.told(what));
        }
    }
}

fn why(condition: &Condition) -> String {
    let mark = if condition.holds { "✓" } else { "✗" };
    let field = match condition.field {
        Field::Source => "source ",
        Field::Name => "name ",
        Field::Not => "",
        Field::Subject => "subject ",
        Field::Level => "level ",
    };
    format!("{mark} {field}{} (is {})", condition.asked, condition.found)
}
