//! What commands print: plain text for people, JSON with the seed's names for programs.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::value::RawValue;

use super::COULD_NOT_RUN;
use crate::inbox::{Attempt, DeliveryView, Mark, Marks};
use crate::notification::Notification;

/// Says why a command could not run.
pub(super) fn fail(why: impl fmt::Display) -> ExitCode {
    tell(format_args!("switchbell: {why}"));
    ExitCode::from(COULD_NOT_RUN)
}

/// A line on standard error. That nobody can read it is no reason to fail otherwise.
pub(super) fn tell(line: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// A line on standard output, for commands that go on whether or not somebody reads.
pub(super) fn show(line: impl fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes text that holds what connectors wrote: characters that steer a terminal, hide or turn text are spelled out.
pub(super) fn print_for_people(text: &str) -> ExitCode {
    let steers = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
    };
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) { harmless.extend(c.escape_unicode()) } else { harmless.push(c) }
    }
    print(harmless)
}

/// Writes to standard output. A reader that has gone (`| head`) is no failure.
pub(super) fn print(text: impl fmt::Display) -> ExitCode {
    let mut out = std::io::stdout().lock();
    let written = write!(out, "{text}").and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => fail(format_args!("cannot print: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

/// Writes a value as JSON.
pub(super) fn print_json(value: &impl Serialize) -> ExitCode {
    match serde_json::to_string_pretty(value) {
        Ok(text) => print(format_args!("{text}\n")),
        Err(error) => fail(format_args!("cannot print: {error}")),
    }
}

/// A notification as every surface spells it (product words of the notifications seed).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NotificationJson<'a> {
    seq: u64,
    workspace_id: &'a str,
    source: &'a str,
    event_id: &'a str,
    name: &'a str,
    timestamp: String,
    received_at: String,
    level: &'static str,
    effective_level: &'static str,
    subject: Option<&'a str>,
    title: &'a str,
    body: Option<&'a str>,
    link: Option<LinkJson<'a>>,
    data: Option<&'a RawValue>,
    read_at: Option<String>,
    read_by: Option<&'a str>,
    acknowledged_at: Option<String>,
    acknowledged_by: Option<&'a str>,
}

#[derive(Serialize)]
struct LinkJson<'a> {
    resource: &'a str,
}

impl<'a> From<&'a (Notification, Marks)> for NotificationJson<'a> {
    fn from((of, marks): &'a (Notification, Marks)) -> Self {
        let event = &of.event;
        let at = |mark: &Option<Mark>| mark.as_ref().map(|mark| mark.at.to_string());
        let by = |mark: &'a Option<Mark>| mark.as_ref().map(|mark| mark.by.name.as_str());
        Self {
            seq: of.seq,
            workspace_id: of.workspace.as_str(),
            source: of.source.as_str(),
            event_id: &event.event_id,
            name: &event.name,
            timestamp: event.timestamp.to_string(),
            received_at: of.received_at.to_string(),
            level: event.level.as_str(),
            effective_level: of.effective_level.as_str(),
            subject: event.subject.as_deref(),
            title: &event.title,
            body: event.body.as_deref(),
            link: event.link.as_deref().map(|resource| LinkJson { resource }),
            data: serde_json::from_str(&event.data).ok(),
            read_at: at(&marks.read),
            read_by: by(&marks.read),
            acknowledged_at: at(&marks.acknowledged),
            acknowledged_by: by(&marks.acknowledged),
        }
    }
}

/// A delivery as every surface spells it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryJson<'a> {
    id: String,
    workspace_id: &'a str,
    route: &'a str,
    target: &'a str,
    plugin: &'a str,
    plugin_version: Option<&'a str>,
    state: &'static str,
    why: Option<&'a str>,
    created_at: String,
    due_at: String,
    next_at: Option<String>,
    attempts: Vec<AttemptJson<'a>>,
    notifications: &'a [u64],
    omitted: u32,
    retry_of: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AttemptJson<'a> {
    number: u32,
    started_at: String,
    ended_at: String,
    outcome: &'static str,
    reason: Option<&'a str>,
    steps: u32,
    plugin_version: Option<&'a str>,
    plugin_digest: Option<&'a str>,
}

impl<'a> From<&'a DeliveryView> for DeliveryJson<'a> {
    fn from(of: &'a DeliveryView) -> Self {
        Self {
            id: of.id.to_string(),
            workspace_id: of.workspace.as_str(),
            route: of.route.as_str(),
            target: &of.target,
            plugin: of.plugin.as_str(),
            plugin_version: of.attempts.last().and_then(|attempt| attempt.plugin_version.as_deref()),
            state: of.state.as_str(),
            why: of.why.as_deref(),
            created_at: of.created_at.to_string(),
            due_at: of.due_at.to_string(),
            next_at: of.next_at.map(|at| at.to_string()),
            attempts: of.attempts.iter().map(AttemptJson::from).collect(),
            notifications: &of.seqs,
            omitted: of.omitted,
            retry_of: of.retry_of.as_ref().map(ToString::to_string),
        }
    }
}

impl<'a> From<&'a Attempt> for AttemptJson<'a> {
    fn from(of: &'a Attempt) -> Self {
        Self {
            number: of.number.get(),
            started_at: of.started_at.to_string(),
            ended_at: of.ended_at.to_string(),
            outcome: of.outcome.as_str(),
            reason: of.reason.as_deref(),
            steps: of.steps,
            plugin_version: of.plugin_version.as_deref(),
            plugin_digest: of.plugin_digest.as_deref(),
        }
    }
}
