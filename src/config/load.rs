//! Reads the files and puts the parts together.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::check::{self, Server};
use super::code::Code;
use super::node::Node;
use super::raw::{RawServer, RawWorkspace};
use super::read::{Placed, Read};
use super::source::Report;
use super::unused::Declared;
use super::{Config, Problem, Problems, Workspace, parse};
use super::{credential, variables};
use crate::notification::Name;

/// Largest file, in bytes: far more than anybody writes by hand.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most workspaces of one server.
const WORKSPACES_MAX: usize = 1_000;

/// A good configuration, and what in it deserves a look.
#[derive(Debug)]
pub struct Loaded {
    /// The configuration.
    pub config: Config,
    /// What is no mistake, but probably not meant.
    pub warnings: Vec<Problem>,
}

/// What is read besides the files themselves.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// Looks up environment variables.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
    /// Whether the values of secrets are read.
    pub secrets: Secrets,
    /// What of the folder of plugins.
    pub plugins: PluginFolder,
}

/// Whether the values of secrets are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They are, and each must fit its place.
    Read,
    /// Only what the files say of them is judged: no variable or file of theirs is read, no program is run, and each is
    /// [`SecretValue::NotRead`](super::SecretValue::NotRead). Such a configuration is there to be judged, not to be run.
    NotRead,
}

/// What is expected of the folder of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginFolder {
    /// It is a mistake when it is not there.
    MustBeThere,
    /// It is a warning when it is not there; then no plugin is unknown.
    MayBeAbsent,
    /// Nobody looks: no plugin is unknown.
    NotAsked,
}

/// The environment of this process, for [`load`].
pub fn process_environment(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Loads the operator's file and, beside it, those of the workspaces. `environment` looks up environment variables.
///
/// Nothing is changed on the way: files and secrets are read, and the programs run that secrets come from. That takes as
/// long as they do, at most 10 s for every eight of them.
///
/// # Errors
/// Every mistake at once.
pub fn load(file: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Loaded, Problems> {
    load_with(file, &Reading { environment, secrets: Secrets::Read, plugins: PluginFolder::MustBeThere })
}

/// Loads the files as [`load`] does, and looks at no more around them than `reading` says.
///
/// # Errors
/// Every mistake at once.
pub fn load_with(file: &Path, reading: &Reading<'_>) -> Result<Loaded, Problems> {
    let mut report = read_file(file);
    let mut declared = Declared::default();
    let raw = read_tree(&mut report).and_then(|mut root| {
        variables::expand(&mut root, reading.environment, &mut report);
        declared = Declared::of(&root);
        credential::in_commands(&root, &mut report);
        RawServer::read(&root, &mut report)
    });
    let folder = Folder::of(file);
    let server = raw.map(|raw| check::server(raw, &folder, reading, &mut report));
    let files = match &server {
        Some(server) => workspace_files(server.workspaces.as_ref(), &mut report),
        None => Vec::new(),
    };
    let mut reports = Vec::new();
    let mut workspaces = BTreeMap::new();
    if let Some(server) = &server {
        for (name, file) in &files {
            let mut report = read_file(file);
            let workspace = load_workspace(name, (server, &mut declared), &mut report);
            workspaces.extend(workspace.map(|workspace| (name.clone(), workspace)));
            reports.push(report);
        }
        let names = files.iter().map(|(name, _)| name).collect();
        check::mentioned_workspaces(server, &names, &mut report);
        // A workspace whose file has mistakes may seem to lack what it has.
        if reports.iter().all(|report| report.mistakes.is_empty()) {
            check::granted_tools(&server.tools, &names, &workspaces, &mut report);
            if report.mistakes.is_empty() && !files.is_empty() {
                let there = server.plugins_there.as_ref();
                let is_there =
                    |plugin: &str| there.is_none_or(|(_, names)| names.iter().any(|name| name.as_str() == plugin));
                declared.warn(is_there, &mut report);
            }
        }
    }
    reports.insert(0, report);
    finish(file, server, workspaces, reports)
}

fn load_workspace(name: &Name, (server, declared): (&Server, &mut Declared), report: &mut Report) -> Option<Workspace> {
    report.know_secrets(server.secrets.keys().map(Name::as_str));
    let mut root = read_tree(report)?;
    variables::refuse(&mut root, report);
    declared.uses(&root);
    credential::in_workspace(&root, report);
    let raw = RawWorkspace::read(&root, report)?;
    check::workspace(name, raw, server, report)
}

fn finish(
    file: &Path,
    server: Option<Server>,
    workspaces: BTreeMap<Name, Workspace>,
    reports: Vec<Report>,
) -> Result<Loaded, Problems> {
    let problems = problems(reports);
    match server {
        Some(server) if problems.mistakes.is_empty() => {
            let config = Config {
                file: file.to_owned(),
                listen: server.listen,
                store: server.store,
                plugins: server.plugins,
                mail: server.mail,
                secrets: check::finished_secrets(server.secrets),
                workspaces,
                reads_per_minute_max: server.reads_per_minute_max,
            };
            Ok(Loaded { config, warnings: problems.warnings })
        }
        _ => Err(problems),
    }
}

/// What the reports say, each from top to bottom.
pub(super) fn problems(reports: Vec<Report>) -> Problems {
    let mut problems = Problems { mistakes: Vec::new(), warnings: Vec::new(), omitted: 0, is_unread: false };
    for mut report in reports {
        report.mistakes.sort_by_key(|problem| problem.place);
        report.warnings.sort_by_key(|problem| problem.place);
        problems.mistakes.append(&mut report.mistakes);
        problems.warnings.append(&mut report.warnings);
        problems.omitted += report.omitted;
        problems.is_unread |= report.is_unread;
    }
    problems
}

/// The folder of a file: as a person would name it, and from the root.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub shown: PathBuf,
    pub absolute: PathBuf,
}

impl Folder {
    pub(super) fn of(file: &Path) -> Self {
        let shown = file.parent().unwrap_or_else(|| Path::new("")).to_owned();
        let here = if shown.as_os_str().is_empty() { Path::new(".") } else { &shown };
        let absolute = std::path::absolute(here).unwrap_or_else(|_| here.to_owned());
        Self { shown, absolute }
    }
}

/// The report about a file, with its text; without a text and with a mistake when it cannot be read.
pub(super) fn read_file(file: &Path) -> Report {
    let mut invalid = None;
    let text = match read_bytes(file, FILE_BYTES_MAX) {
        Err(error) => {
            let mut report = unreadable(file, &format!("cannot be read: {error}"));
            report.is_unread = true;
            return report;
        }
        Ok(None) => return unreadable(file, &format!("larger than {FILE_BYTES_MAX} bytes, the most a file may have")),
        Ok(Some(bytes)) if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) => {
            return unreadable(file, "this is UTF-16: save it as UTF-8");
        }
        Ok(Some(bytes)) => String::from_utf8(bytes).unwrap_or_else(|error| {
            let good = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            invalid = Some(good.iter().filter(|&&byte| byte == b'\n').count() + 1);
            String::new()
        }),
    };
    if let Some(line) = invalid {
        return unreadable(file, &format!("line {line} is not UTF-8: save the file as UTF-8"));
    }
    let text = text.strip_prefix('\u{feff}').map_or(text.clone(), str::to_owned);
    Report::new(file.to_owned(), text)
}

fn unreadable(file: &Path, message: &str) -> Report {
    let mut report = Report::new(file.to_owned(), String::new());
    report.mistake_in_whole(Code::UnreadableFile.says(message));
    report
}

/// The bytes of a regular file; none when there are more than `most`.
pub(super) fn read_bytes(file: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(most + 1).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= most);
    Ok(fits.then_some(bytes))
}

/// The tree of a file that has something to say.
pub(super) fn read_tree(report: &mut Report) -> Option<Node> {
    if !report.mistakes.is_empty() {
        return None;
    }
    let root = parse::parse(report);
    if root.as_ref().is_none_or(Node::is_null) && report.mistakes.is_empty() {
        report.mistake_in_whole(Code::EmptyFile.says("this file says nothing: write at least one key"));
        return None;
    }
    root
}

/// Whether a file is a link to what is not in its folder: a workspace's admin must not have other files shown.
fn leads_elsewhere(file: &Path, folder: &Path) -> bool {
    let inside = file.canonicalize().and_then(|file| Ok(file.starts_with(folder.canonicalize()?)));
    inside.is_ok_and(|inside| !inside)
}

/// The workspaces' files with their names, by name.
pub(super) fn workspace_files(folder: Option<&Placed<PathBuf>>, report: &mut Report) -> Vec<(Name, PathBuf)> {
    let Some(folder) = folder else { return Vec::new() };
    let at = &folder.at;
    let entries = std::fs::read_dir(&folder.value).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("cannot read the folder {}: {error}; create it, or name another", folder.display());
            report.mistake(at, Code::BadFolder.says(message));
            return Vec::new();
        }
    };
    let mut files = Vec::new();
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    for file_name in names.iter().filter(|name| !name.starts_with('.')) {
        let path = folder.join(file_name);
        if let Some(stem) = file_name.strip_suffix(".yml") {
            let message = format!("{} is not read: rename it to {stem}.yaml", path.display());
            report.mistake(at, Code::BadFolder.says(message));
        }
        let Some(stem) = file_name.strip_suffix(".yaml").filter(|_| !path.is_dir()) else { continue };
        if leads_elsewhere(&path, &folder.value) {
            let message = format!("{} leads out of the folder: put the file itself there", path.display());
            report.mistake(at, Code::BadFolder.says(message));
            continue;
        }
        match stem.parse() {
            Ok(name) => files.push((name, path)),
            Err(error) => {
                let shown = super::scalar::harmless(file_name).into_owned();
                let text = format!("the file {shown} names no workspace: {error}, before `.yaml`");
                report.mistake(at, Code::BadFolder.says(text));
            }
        }
    }
    if files.is_empty() {
        let text = format!("no workspace: {} holds no NAME.yaml, so nothing is polled", folder.display());
        report.warning(at, Code::NoWorkspace.says(text));
    }
    if files.len() > WORKSPACES_MAX {
        let text = format!("{} workspaces: one server has at most {WORKSPACES_MAX}", files.len());
        report.mistake(at, Code::OutOfBounds.says(text));
        files.truncate(WORKSPACES_MAX);
    }
    files
}
