//! Tests of routes: files that say what comes and what is to be sent then, checked against the routes they are about.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::code::Code;
use super::load::{self, read_file, read_tree};
use super::raw::{EVENTS_MAX, RawExpected, RawTrial, RawTrialEvent, RawTrialMark, RawTrials};
use super::read::{Placed, Read as _};
use super::source::Report;
use super::values::Moment;
use super::{Place, Problems, Workspace, suggest, variables};
use crate::clock::later;
use crate::notification::{HOST_SOURCE, Level, Name};
use crate::route::Acknowledged;

/// Most files of one folder, and of those in it.
const FILES_MAX: usize = 1_000;
/// Deepest folder in a folder.
const DEPTH_MAX: usize = 8;

/// A file of tests.
#[derive(Debug)]
pub struct TrialFile {
    /// The file, as a person would name it.
    pub file: PathBuf,
    /// Whose routes are tested.
    pub workspace: Name,
    /// The tests, in the order of the file.
    pub tests: Vec<Trial>,
}

/// A test: what comes, and what is to be sent then.
#[derive(Debug)]
pub struct Trial {
    /// What it shows.
    pub name: String,
    /// Where it stands.
    pub place: Place,
    /// What durations are counted from.
    pub start: Timestamp,
    /// What comes; the number of each is its place, from 1.
    pub events: Vec<TrialEvent>,
    /// Who acknowledges what.
    pub marks: Vec<TrialMark>,
    /// When nobody looks any more; when nothing waits any more, if there is none.
    pub until: Option<Timestamp>,
    /// The routes that are looked at, by their places; none for all.
    pub routes: Option<Vec<usize>>,
    /// Every delivery that is to be made.
    pub expected: Vec<Expected>,
}

/// What comes.
#[derive(Debug, Clone)]
pub struct TrialEvent {
    /// When it is received.
    pub at: Timestamp,
    /// The connector.
    pub source: Name,
    /// The dotted name.
    pub name: String,
    /// The level, capped by the connector's ceiling.
    pub level: Level,
    /// What it is about.
    pub subject: Option<String>,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct TrialMark {
    /// When.
    pub at: Timestamp,
    /// Of which event, from 1.
    pub event: u64,
    /// By whom.
    pub by: Acknowledged,
}

/// A delivery that is to be made. What it does not say may be anything.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Where it stands.
    pub place: Place,
    /// The route's place.
    pub route: usize,
    /// The target's identity.
    pub target: Option<String>,
    /// The target's plugin.
    pub plugin: Option<Name>,
    /// When.
    pub at: Option<Timestamp>,
    /// The numbers of the events it stands for, in order.
    pub events: Option<Vec<u64>>,
    /// How many more it counts.
    pub omitted: Option<u32>,
}

/// Reads every file of tests (`*.yaml`) in a folder and in those in it, by name.
///
/// # Errors
/// Every mistake of all of them at once. A folder without tests is a mistake.
pub fn trials(folder: &Path, workspaces: &BTreeMap<Name, Workspace>) -> Result<Vec<TrialFile>, Problems> {
    let mut files = Vec::new();
    let mut whole = Report::new(folder.to_owned(), String::new());
    if let Err(error) = collect(folder, 0, &mut files) {
        whole.is_unread = true;
        whole.mistake_in_whole(Code::BadFolder.says(format!("cannot be read: {error}")));
    } else if files.is_empty() {
        whole.mistake_in_whole(Code::BadFolder.says("no test: no file here ends in .yaml"));
    } else if files.len() > FILES_MAX {
        let text = format!("{} files: at most {FILES_MAX} are read at once", files.len());
        whole.mistake_in_whole(Code::OutOfBounds.says(text));
    }
    if !whole.mistakes.is_empty() {
        return Err(load::problems(vec![whole]));
    }
    files.sort();
    let (mut read, mut reports) = (Vec::new(), Vec::new());
    for file in files {
        let mut report = read_file(&file);
        read.extend(trial_file(&file, workspaces, &mut report));
        reports.push(report);
    }
    let problems = load::problems(reports);
    if problems.mistakes.is_empty() { Ok(read) } else { Err(problems) }
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        if path.is_dir() && depth < DEPTH_MAX {
            collect(&path, depth + 1, files)?;
        } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
    Ok(())
}

fn trial_file(file: &Path, workspaces: &BTreeMap<Name, Workspace>, report: &mut Report) -> Option<TrialFile> {
    let mut root = read_tree(report)?;
    variables::refuse(&mut root, report);
    let raw = RawTrials::read(&root, report)?;
    let names = || workspaces.keys().map(Name::as_str);
    let workspace = match &raw.workspace {
        Some(name) => workspaces.get(&name.value).or_else(|| {
            let hint = suggest::hint(name.as_str(), names(), "workspaces");
            report
                .mistake(&name.at, Code::UnknownWorkspace.says(format!("unknown workspace {:?}{hint}", name.as_str())));
            None
        }),
        None if workspaces.len() == 1 => workspaces.values().next(),
        None => {
            let there = names().collect::<Vec<_>>().join(", ");
            report.mistake_in_whole(Code::MissingKey.says(format!("`workspace` is missing: write one of {there}")));
            None
        }
    }?;
    let tests = raw.tests?;
    if tests.is_empty() {
        report.mistake(&tests.at, Code::EmptyFile.says("no test: write at least one"));
    }
    let mut found: Vec<Trial> = Vec::new();
    for raw in &tests.value {
        let Some(test) = Context { workspace, start: Timestamp::UNIX_EPOCH }.trial(raw, report) else { continue };
        if found.iter().any(|other| other.name == test.name) {
            report.mistake(&raw.at, Code::Duplicate.says("two tests have this name: rename one"));
        }
        found.push(test);
    }
    Some(TrialFile { file: file.to_owned(), workspace: workspace.name.clone(), tests: found })
}

/// What a test is checked against.
#[derive(Clone, Copy)]
struct Context<'a> {
    workspace: &'a Workspace,
    start: Timestamp,
}

impl Context<'_> {
    fn trial(self, raw: &Placed<RawTrial>, report: &mut Report) -> Option<Trial> {
        let start = match raw.start.as_ref()?.value {
            Moment::At(at) => at,
            Moment::After(_) => {
                let at = raw.start.as_ref().map_or(&raw.at, |start| &start.at);
                report.mistake(at, "a start is a moment: write one as in `2026-06-01T22:00:00+02:00`");
                return None;
            }
        };
        let context = Self { start, ..self };
        let raw_events = raw.events.as_ref()?;
        if raw_events.len() > EVENTS_MAX as usize {
            let text = format!("{} events: a test has at most {EVENTS_MAX}", raw_events.len());
            report.mistake(&raw_events.at, Code::OutOfBounds.says(text));
            return None;
        }
        let events: Vec<Option<TrialEvent>> = raw_events.iter().map(|event| context.event(event, report)).collect();
        let events: Vec<TrialEvent> = events.into_iter().collect::<Option<_>>()?;
        let marks = raw.acknowledge.as_ref().map_or(&[][..], |marks| &marks.value);
        let marks = marks.iter().filter_map(|mark| context.mark(mark, &events, report)).collect();
        let routes =
            raw.routes.as_ref().map(|routes| routes.iter().filter_map(|route| context.route(route, report)).collect());
        let expected =
            raw.expect.as_ref()?.iter().filter_map(|one| context.expected(one, events.len(), report)).collect();
        let until = raw.until.as_ref().map(|until| context.moment(until.value));
        let name = raw.name.as_ref()?.0.clone();
        Some(Trial { name, place: raw.at.place, start, events, marks, until, routes, expected })
    }

    fn moment(self, moment: Moment) -> Timestamp {
        match moment {
            Moment::At(at) => at,
            Moment::After(after) => later(self.start, after),
        }
    }

    fn event(self, raw: &Placed<RawTrialEvent>, report: &mut Report) -> Option<TrialEvent> {
        let source = raw.source.as_ref()?;
        let connectors = &self.workspace.connectors;
        let ceiling = match connectors.get(&source.value) {
            Some(connector) => connector.ceiling,
            None if source.as_str() == HOST_SOURCE => Level::Urgent,
            None => {
                let known = connectors.keys().map(Name::as_str).chain([HOST_SOURCE]);
                let hint = suggest::hint(source.as_str(), known, "connectors");
                let text = format!("unknown connector {:?}{hint}", source.as_str());
                report.mistake(&source.at, Code::UnknownConnector.says(text));
                return None;
            }
        };
        Some(TrialEvent {
            at: self.moment(raw.moment.as_ref()?.value),
            source: source.value.clone(),
            name: raw.name.as_ref()?.0.clone(),
            level: raw.level.as_ref()?.value.capped(ceiling),
            subject: raw.subject.as_ref().map(|subject| subject.0.clone()),
        })
    }

    fn mark(self, raw: &RawTrialMark, events: &[TrialEvent], report: &mut Report) -> Option<TrialMark> {
        let number = raw.event.as_ref()?;
        let at = self.moment(raw.moment.as_ref()?.value);
        let Some(event) = events.get(number.0 as usize - 1) else {
            report.mistake(&number.at, no_event(number.0, events.len()));
            return None;
        };
        if at < event.at {
            report.mistake(&number.at, format!("event {} comes later: it can be acknowledged from then on", number.0));
        }
        Some(TrialMark { at, event: u64::from(number.0), by: raw.by.as_ref()?.0 })
    }

    fn route(self, name: &Placed<Name>, report: &mut Report) -> Option<usize> {
        let routes = &self.workspace.routes;
        let found = routes.iter().position(|route| route.name == name.value);
        if found.is_none() {
            let hint = suggest::hint(name.as_str(), routes.iter().map(|route| route.name.as_str()), "routes");
            report.mistake(&name.at, Code::UnknownRoute.says(format!("unknown route {:?}{hint}", name.as_str())));
        }
        found
    }

    fn expected(self, raw: &Placed<RawExpected>, events: usize, report: &mut Report) -> Option<Expected> {
        let route = self.route(raw.route.as_ref()?, report)?;
        let targets = self.workspace.routes.get(route).map_or(&[][..], |route| &route.deliver);
        if let Some(target) = raw.target.as_ref().filter(|id| !targets.iter().any(|target| target.id == id.0)) {
            let hint =
                suggest::hint(&target.0, targets.iter().map(|target| target.id.as_str()), "targets of the route");
            report.mistake(&target.at, Code::UnknownTarget.says(format!("unknown target {:?}{hint}", target.0)));
        }
        if let Some(plugin) = raw.plugin.as_ref().filter(|name| !targets.iter().any(|one| one.plugin == name.value)) {
            let known = targets.iter().map(|target| target.plugin.as_str());
            let hint = suggest::hint(plugin.as_str(), known, "plugins of the route");
            report.mistake(&plugin.at, Code::UnknownPlugin.says(format!("unknown plugin {:?}{hint}", plugin.as_str())));
        }
        let mut numbers = Vec::new();
        for number in raw.events.as_ref().map_or(&[][..], |numbers| &numbers.value) {
            if number.0 as usize > events {
                report.mistake(&number.at, no_event(number.0, events));
            }
            numbers.push(u64::from(number.0));
        }
        numbers.sort_unstable();
        Some(Expected {
            place: raw.at.place,
            route,
            target: raw.target.as_ref().map(|target| target.0.clone()),
            plugin: raw.plugin.as_ref().map(|plugin| plugin.value.clone()),
            at: raw.moment.as_ref().map(|at| self.moment(at.value)),
            events: raw.events.as_ref().map(|_| numbers),
            omitted: raw.omitted.as_ref().map(|omitted| omitted.0),
        })
    }
}

fn no_event(number: u32, events: usize) -> String {
    format!("there is no event {number}: this test has {events}, numbered from 1")
}
