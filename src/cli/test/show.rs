//! What came of tests, for people and for programs.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use serde::Serialize;

use super::Done;
use crate::clock::until;
use crate::config::{Expected, duration_text};
use crate::route::trial::{Made, Unmet, target};

/// Every failure, and the count.
pub(super) fn text(done: &[Done<'_>]) -> String {
    let mut out = String::new();
    for one in done.iter().filter(|one| !one.is_good()) {
        let (file, place) = (one.file.file.display(), one.trial.place);
        let _infallible = writeln!(out, "{file}:{}:{}: failed: {}", place.line, place.column, one.trial.name);
        for line in failures(one) {
            let _infallible = writeln!(out, "  {line}");
        }
        out.push('\n');
    }
    let failed = done.iter().filter(|one| !one.is_good()).count();
    let tests = format!("{} test{}", done.len(), if done.len() == 1 { "" } else { "s" });
    let verdict = if failed == 0 { "all passed".to_owned() } else { format!("{failed} failed") };
    out + &format!("{tests}: {verdict}\n")
}

/// What is otherwise than expected, line by line.
pub(super) fn failures(done: &Done<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut told = Vec::new();
    for (place, unmet) in &done.ran.unmet {
        let Some(expected) = done.trial.expected.get(*place) else { continue };
        let (file, at) = (done.file.file.display(), expected.place);
        lines.push(format!("{file}:{}:{}: expected {}", at.line, at.column, wanted(done, expected)));
        lines.push(format!("  {}", got(done, unmet)));
        if let Unmet::Otherwise(made) = unmet {
            told.push(*made);
        }
    }
    let unexpected = done.ran.unexpected.iter().filter(|made| !told.contains(made));
    let unexpected = unexpected.filter_map(|made| done.ran.made.get(*made));
    lines.extend(unexpected.map(|made| format!("not expected: {}", delivery(done, made))));
    lines
}

fn wanted(done: &Done<'_>, expected: &Expected) -> String {
    let route = done.workspace.routes.get(expected.route).map_or("", |route| route.name.as_str());
    let mut text = format!("route {route}");
    for (what, name) in
        [("target", expected.target.as_deref()), ("plugin", expected.plugin.as_ref().map(|p| p.as_str()))]
    {
        if let Some(name) = name {
            let _infallible = write!(text, ", {what} {name}");
        }
    }
    if let Some(at) = expected.at {
        let _infallible = write!(text, ", at {}", moment(done, at));
    }
    if let Some(seqs) = &expected.events {
        let _infallible = write!(text, ", {}", events(seqs));
    }
    if let Some(omitted) = expected.omitted {
        let _infallible = write!(text, ", {omitted} omitted");
    }
    text
}

fn got(done: &Done<'_>, unmet: &Unmet) -> String {
    let made = |place: &usize| done.ran.made.get(*place).map_or_else(String::new, |made| delivery(done, made));
    match unmet {
        Unmet::Otherwise(place) => format!("got {}", made(place)),
        Unmet::Taken(place) => format!("got it once only, and another line expects that: {}", made(place)),
        Unmet::NoMatch(seq, condition) => {
            let (field, asked, found) = (condition.field.as_str(), &condition.asked, &condition.found);
            format!("got nothing: event {seq} does not match: `{field}` asks for {asked}, and it has {found}")
        }
        Unmet::Suppressed(at) => format!("got nothing: it was acknowledged before, at {}", moment(done, *at)),
        Unmet::Waits => "got nothing: it waits still when the test ends; a later `until` shows when it goes".to_owned(),
        Unmet::Nothing => "got nothing".to_owned(),
    }
}

fn delivery(done: &Done<'_>, made: &Made) -> String {
    let route = done.workspace.routes.get(made.to.route).map_or("", |route| route.name.as_str());
    let target = target(done.workspace, made.to);
    let (id, plugin) = target.map_or(("", ""), |target| (target.id.as_str(), target.plugin.as_str()));
    let gone = &made.gone;
    let omitted = if gone.omitted > 0 { format!(" and {} omitted", gone.omitted) } else { String::new() };
    let (at, seqs, way) = (moment(done, gone.at), events(&gone.seqs), gone.way.as_str());
    format!("route {route}, target {id} ({plugin}), at {at}, {seqs}{omitted} ({way})")
}

fn events(seqs: &[u64]) -> String {
    let numbers: Vec<String> = seqs.iter().map(u64::to_string).collect();
    format!("event{} {}", if seqs.len() == 1 { "" } else { "s" }, numbers.join(", "))
}

/// A moment of a test: from its start, and by the calendar.
fn moment(done: &Done<'_>, at: Timestamp) -> String {
    let start = done.trial.start;
    if at < start {
        return at.to_string();
    }
    format!("{} ({at})", duration_text(until(start, at)))
}

/// What came of all tests.
#[derive(Serialize)]
pub(super) struct TestsJson<'a> {
    tests: Vec<TestJson<'a>>,
    failed: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TestJson<'a> {
    file: &'a Path,
    line: usize,
    name: &'a str,
    workspace_id: &'a str,
    passed: bool,
    failures: Vec<String>,
    deliveries: Vec<DeliveryJson<'a>>,
}

#[derive(Serialize)]
struct DeliveryJson<'a> {
    route: &'a str,
    target: &'a str,
    plugin: &'a str,
    at: String,
    events: &'a [u64],
    omitted: u32,
    by: &'static str,
}

impl<'a> TestsJson<'a> {
    pub(super) fn of(done: &'a [Done<'a>]) -> Self {
        let failed = done.iter().filter(|one| !one.is_good()).count();
        Self { tests: done.iter().map(TestJson::of).collect(), failed }
    }
}

impl<'a> TestJson<'a> {
    fn of(done: &'a Done<'a>) -> Self {
        Self {
            file: &done.file.file,
            line: done.trial.place.line,
            name: &done.trial.name,
            workspace_id: done.workspace.name.as_str(),
            passed: done.is_good(),
            failures: failures(done),
            deliveries: done.ran.made.iter().filter_map(|made| DeliveryJson::of(done, made)).collect(),
        }
    }
}

impl<'a> DeliveryJson<'a> {
    fn of(done: &'a Done<'a>, made: &'a Made) -> Option<Self> {
        let target = target(done.workspace, made.to)?;
        Some(Self {
            route: done.workspace.routes.get(made.to.route)?.name.as_str(),
            target: &target.id,
            plugin: target.plugin.as_str(),
            at: made.gone.at.to_string(),
            events: &made.gone.seqs,
            omitted: made.gone.omitted,
            by: made.gone.way.as_str(),
        })
    }
}
