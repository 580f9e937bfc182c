//! What a configuration was read from, and how each file stood right before it was read: so whatever changes later is seen
//! without reading anything, and nothing that changes meanwhile is missed.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The files and folders of one reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files(BTreeMap<PathBuf, Stand>);

/// How a file or a folder stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stand {
    /// It cannot be seen.
    Missing,
    /// A file, whatever links lead to it. The time of the last change of state cannot be set, so that a file copied with
    /// its old time is seen, too.
    File { device: u64, inode: u64, bytes: u64, modified: (i64, i64), changed: (i64, i64) },
    /// The names in a folder that end so, in order.
    Folder { ends: &'static [&'static str], names: Vec<String> },
}

impl Files {
    /// Notes a file that is about to be read; the first time counts.
    pub(super) fn note(&mut self, file: &Path) {
        if let Entry::Vacant(entry) = self.0.entry(file.to_owned()) {
            entry.insert(Stand::of_file(file));
        }
    }

    /// Notes a folder of which the names are about to be read that end in one of these ways.
    pub(super) fn note_folder(&mut self, folder: &Path, ends: &'static [&'static str]) {
        if let Entry::Vacant(entry) = self.0.entry(folder.to_owned()) {
            entry.insert(Stand::of_folder(folder, ends));
        }
    }

    /// Takes in those of another report; what was noted first counts.
    pub(super) fn join(&mut self, others: Self) {
        for (file, stand) in others.0 {
            self.0.entry(file).or_insert(stand);
        }
    }

    /// The same files as they stand now.
    #[must_use]
    pub fn now(&self) -> Self {
        let stand = |(path, before): (&PathBuf, &Stand)| {
            let now = match before {
                Stand::Folder { ends, .. } => Stand::of_folder(path, ends),
                Stand::Missing | Stand::File { .. } => Stand::of_file(path),
            };
            (path.clone(), now)
        };
        Self(self.0.iter().map(stand).collect())
    }

    /// Those that stand otherwise than in `before`.
    pub fn changed_since<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = &'a Path> {
        self.0.iter().filter(|(path, stand)| before.0.get(*path) != Some(*stand)).map(|(path, _)| path.as_path())
    }

    /// The files and folders.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

impl Stand {
    fn of_file(path: &Path) -> Self {
        let Ok(of) = fs::metadata(path) else { return Self::Missing };
        Self::File {
            device: of.dev(),
            inode: of.ino(),
            bytes: of.size(),
            modified: (of.mtime(), of.mtime_nsec()),
            changed: (of.ctime(), of.ctime_nsec()),
        }
    }

    fn of_folder(path: &Path, ends: &'static [&'static str]) -> Self {
        let is_meant = |name: &String| !name.starts_with('.') && ends.iter().any(|end| name.ends_with(end));
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(is_meant).collect();
        names.sort_unstable();
        Self::Folder { ends, names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&Path), expected: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for file in ["a", "real", "list/one.yaml"] {
            fs::create_dir_all(at(file).parent().unwrap()).unwrap();
            fs::write(at(file), "1").unwrap();
        }
        std::os::unix::fs::symlink(at("real"), at("link")).unwrap();
        let mut files = Files::default();
        for file in ["a", "link", "not-there"] {
            files.note(&at(file));
        }
        files.note_folder(&at("list"), &[".yaml"]);
        assert_eq!(files.now(), files);
        change(folder.path());
        let now = files.now();
        let changed: Vec<_> = now.changed_since(&files).map(|path| path.file_name().unwrap()).collect();
        assert_eq!(changed, expected);
    }

    #[test]
    fn a_file_that_is_written_replaced_removed_or_made_is_seen() {
        check(|_| {}, &[]);
        check(|folder| fs::write(folder.join("a"), "22").unwrap(), &["a"]);
        check(
            |folder| {
                fs::write(folder.join("new"), "2").unwrap();
                fs::rename(folder.join("new"), folder.join("a")).unwrap();
            },
            &["a"],
        );
        check(|folder| fs::remove_file(folder.join("a")).unwrap(), &["a"]);
        check(|folder| fs::write(folder.join("not-there"), "").unwrap(), &["not-there"]);
    }

    #[test]
    fn a_link_that_leads_elsewhere_is_seen() {
        let swap = |folder: &Path| {
            fs::write(folder.join("other"), "1").unwrap();
            fs::remove_file(folder.join("link")).unwrap();
            std::os::unix::fs::symlink(folder.join("other"), folder.join("link")).unwrap();
        };
        check(swap, &["link"]);
    }

    #[test]
    fn a_folder_is_its_names_and_what_an_editor_leaves_there_is_none() {
        check(|folder| fs::write(folder.join("list/two.yaml"), "").unwrap(), &["list"]);
        check(|folder| fs::remove_file(folder.join("list/one.yaml")).unwrap(), &["list"]);
        check(|folder| fs::write(folder.join("list/.two.yaml.swp"), "").unwrap(), &[]);
        check(|folder| fs::write(folder.join("list/two.yaml~"), "").unwrap(), &[]);
    }
}
