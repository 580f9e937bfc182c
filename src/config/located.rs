//! Where things stand in a file that was loaded before, for what is found out about them later.

use std::collections::BTreeMap;
use std::path::Path;

use super::load::{read_file, read_tree};
use super::node::{Kind, Node};
use super::source::Report;
use super::{Place, Problem};
use crate::notification::Name;

/// The places of one file, as it is now.
#[derive(Debug)]
pub struct Located {
    report: Report,
    /// By path, such as `routes[2].deliver[0].plugin`: where a value begins, or the key of an entry that has a name.
    places: BTreeMap<String, Place>,
}

impl Located {
    /// Reads a file of the configuration. One that cannot be read has no places. `secrets` are names that may be shown.
    pub fn read<'n>(file: &Path, secrets: impl Iterator<Item = &'n Name>) -> Self {
        let mut report = read_file(file);
        report.know_secrets(secrets.map(Name::as_str));
        let root = read_tree(&mut report);
        let mut places = BTreeMap::new();
        if let Some(root) = &root {
            note(root, &mut places);
        }
        Self { report, places }
    }

    /// Where the value with this path begins; none when there is none.
    pub fn place(&self, path: &str) -> Option<Place> {
        self.places.get(path).copied()
    }

    /// Adds what the file tells to a problem with something in it: its place, by its path, unless it has one, and the line.
    pub fn complete(&self, problem: &mut Problem) {
        problem.place = problem.place.or_else(|| self.nearest(&problem.path));
        if problem.source_line.is_none() {
            problem.source_line = problem.place.and_then(|place| self.report.source_line(place));
        }
    }

    /// The place of a path, or of the nearest one around it.
    fn nearest(&self, path: &str) -> Option<Place> {
        let mut path = path;
        loop {
            if let Some(place) = self.place(path) {
                return Some(place);
            }
            path = path.get(..path.rfind(['.', '['])?)?;
        }
    }
}

fn note(node: &Node, places: &mut BTreeMap<String, Place>) {
    match &node.kind {
        Kind::List(items) => items.iter().for_each(|item| note(item, places)),
        Kind::Mapping(entries) => entries.iter().for_each(|entry| note(&entry.value, places)),
        Kind::Scalar(_) | Kind::Reported => {}
    }
    places.insert(node.at.path.to_string(), node.at.place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Code;

    fn problem(path: &str, place: Option<Place>) -> Problem {
        let (file, message) = ("x.yaml".into(), String::new());
        Problem { code: Code::BadSettings, file, place, path: path.to_owned(), message, source_line: None }
    }

    #[test]
    fn what_is_found_out_later_gets_its_place_and_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("acme.yaml");
        std::fs::write(&file, "routes:\n  - name: a\n    when: { name: [x, y.*] }\n    with: { token: hunter2 }\n")
            .unwrap();
        let located = Located::read(&file, std::iter::empty());
        let check = |path: &str, place: Option<Place>, expected: &str| {
            let mut found = problem(path, place);
            located.complete(&mut found);
            let line = found.source_line.map(|line| format!("{}\n{}^", line.text, " ".repeat(line.caret)));
            assert_eq!(line.as_deref(), Some(expected), "{path}");
        };
        check("routes[0].when.name[1]", None, "    when: { name: [x, y.*] }\n                      ^");
        check("routes[0].when.name[7].more", None, "    when: { name: [x, y.*] }\n                  ^");
        check("nowhere", Some(Place { line: 4, column: 20 }), "    with: { token: *** }\n                   ^");
        assert_eq!(located.place("routes[0].when.level"), None);
        let mut found = problem("nowhere", None);
        Located::read(Path::new("nowhere.yaml"), std::iter::empty()).complete(&mut found);
        assert_eq!(found, problem("nowhere", None));
    }
}
