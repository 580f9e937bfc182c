//! Reads files into reports and trees.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::code::Code;
use super::files::Files;
use super::node::Node;
use super::read::Placed;
use super::source::Report;
use super::{Problems, parse};
use crate::notification::Name;

/// Largest file, in bytes: far more than anybody writes by hand.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most workspaces of one server.
const WORKSPACES_MAX: usize = 1_000;

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
    let mut files = Files::default();
    files.note(file);
    let mut report = read_text(file);
    report.files = files;
    report
}

fn read_text(file: &Path) -> Report {
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
    report.files.note_folder(&folder.value, &[".yaml", ".yml"]);
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
