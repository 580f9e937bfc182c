//! Where a server keeps things: all that commands which only read need to know.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::load::{self, Folder};
use super::node::{Kind, Node};
use super::raw::RawServer;
use super::read::{Placed, Read};
use super::{Problems, check, variables};
use crate::notification::Name;

/// The keys that are looked at.
const KEYS: [&str; 2] = ["store", "workspaces"];

/// The store of a configuration and the names of its workspaces.
#[derive(Debug)]
pub struct Places {
    /// The SQLite database.
    pub store: PathBuf,
    /// The workspaces.
    pub workspaces: BTreeSet<Name>,
}

/// Reads the places of the operator's file. Nothing else in it is looked at, nor in the workspaces' files: the variables
/// and secrets of the rest are there where the server runs, not where somebody reads its inbox.
///
/// # Errors
/// What is wrong with the file as such, or with these keys.
pub fn places(file: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Places, Problems> {
    let mut report = load::read_file(file);
    let folder = Folder::of(file);
    let raw = load::read_tree(&mut report).and_then(|mut root| {
        keep(&mut root, &KEYS);
        variables::expand(&mut root, environment, &mut report);
        RawServer::read(&root, &mut report)
    });
    let Some(raw) = raw.filter(|_| report.mistakes.is_empty()) else {
        return Err(load::problems(vec![report]));
    };
    let at_files = raw.workspaces.and_then(|path| {
        let value = check::path_of(&path.at, &path.value.0, &mut report).map(|path| folder.shown.join(path))?;
        Some(Placed { at: path.at, value })
    });
    let workspaces = load::workspace_files(at_files.as_ref(), &mut report).into_iter().map(|(name, _)| name).collect();
    let store = raw.store.map(|store| folder.absolute.join(&store.0)).unwrap_or_default();
    if report.mistakes.is_empty() { Ok(Places { store, workspaces }) } else { Err(load::problems(vec![report])) }
}

/// Leaves only these keys at the top.
pub(super) fn keep(root: &mut Node, keys: &[&str]) {
    if let Kind::Mapping(entries) = &mut root.kind {
        entries.retain(|entry| keys.contains(&entry.key.as_str()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchbell.yaml");
        std::fs::write(&file, text).unwrap();
        std::fs::create_dir(folder.path().join("tenants")).unwrap();
        std::fs::write(folder.path().join("tenants/acme.yaml"), "not: [looked, at").unwrap();
        let environment = |name: &str| (name == "DATA").then(|| "from-variable".into());
        match (places(&file, &environment), expected) {
            (Ok(found), Ok(store)) => {
                assert_eq!(found.store, folder.path().join(store), "{text}");
                assert!(found.workspaces.iter().map(Name::as_str).eq(["acme"]), "{text}");
            }
            (Err(problems), Err(says)) => assert!(problems.to_string().contains(says), "{text}: {problems}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn only_the_places_are_looked_at() {
        check("store: sqlite:x.db\nworkspaces: tenants/\n", Ok("x.db"));
        check(
            "store: \"sqlite:${DATA}/x.db\"\nworkspaces: tenants/\nsecrets: { a: { env: NOT_SET } }\n",
            Ok("from-variable/x.db"),
        );
        check("workspaces: tenants/\nplugins: ${NOT_SET}\nunknown: 1\n", Ok("data/switchbell.db"));
    }

    #[test]
    fn what_is_wrong_with_them_is_said() {
        check("workspaces: nowhere/\n", Err("cannot read the folder"));
        check("store: 7\nworkspaces: tenants/\n", Err("store"));
        check("store: sqlite:${NOT_SET}\nworkspaces: tenants/\n", Err("NOT_SET"));
        check("- a list\n", Err("switchbell.yaml"));
    }
}
