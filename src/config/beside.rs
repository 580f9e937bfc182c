//! A workspace's file that stands somewhere else, judged beside an operator's file as if it were in its folder.

use std::path::Path;

use super::check;
use super::load::{self, Folder, read_file, read_tree};
use super::loaded::{self, Reading};
use super::node::Kind;
use super::raw::{RawServer, RawWorkspace};
use super::read::Read as _;
use super::unused::Declared;
use super::{Problem, Problems, Workspace, variables};
use crate::notification::Name;

/// Which of the two kinds of files one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The operator's.
    Server,
    /// A workspace's.
    Workspace,
}

/// What kind of file this is, by the keys at its top. One whose keys belong to neither is taken for the operator's.
///
/// # Errors
/// Why it cannot be read as a tree of keys.
pub fn file_kind(file: &Path) -> Result<FileKind, Problems> {
    let mut report = read_file(file);
    let Some(root) = read_tree(&mut report) else { return Err(load::problems(vec![report])) };
    let Kind::Mapping(entries) = &root.kind else { return Ok(FileKind::Server) };
    let known = |key: &str| RawWorkspace::SECTION.keys.iter().any(|known| known.name == key);
    let is_workspace = entries.iter().any(|entry| known(&entry.key));
    Ok(if is_workspace { FileKind::Workspace } else { FileKind::Server })
}

/// Loads a workspace from this file, beside the operator's.
///
/// # Errors
/// Every mistake of the operator's file, or else of the workspace's.
pub fn workspace_beside(
    operator: &Path,
    (name, file): (&Name, &Path),
    reading: &Reading<'_>,
) -> Result<(Workspace, Vec<Problem>), Problems> {
    let mut report = read_file(operator);
    let mut declared = Declared::default();
    let raw = read_tree(&mut report).and_then(|mut root| {
        variables::expand(&mut root, reading.environment, &mut report);
        declared = Declared::of(&root);
        RawServer::read(&root, &mut report)
    });
    let server = raw.map(|raw| check::server(raw, &Folder::of(operator), reading, &mut report));
    let Some(server) = server.filter(|_| report.mistakes.is_empty()) else {
        return Err(load::problems(vec![report]));
    };
    let mut report = read_file(file);
    match loaded::workspace(name, (&server, &mut declared), &mut report) {
        Some(workspace) => Ok((workspace, report.warnings)),
        None => Err(load::problems(vec![report])),
    }
}
