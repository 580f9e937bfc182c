//! Whether schemas and the reader of the configuration agree on the form of files.

use std::fs;

use super::{examples, printed, root, validated};

/// What the reader says of mistakes that a schema can know: a key, a type, a word, the form of a text.
const OF_FORM: [&str; 30] = [
    "unknown key",
    "is wanted here, this is",
    "nothing stands here",
    "is missing (",
    "by this version: remove it",
    "\" is out of bounds: write",
    "is no name: ",
    "is no level: ",
    "is no role: ",
    "is no gate: ",
    "is no order: ",
    "is no store",
    "a store is written",
    "is no duration: ",
    "has no unit: ",
    "is no size: ",
    "is no time of day",
    "is no digest: ",
    "this is no key: ",
    "this is no URL",
    "is no address to listen on",
    "unknown grant: ",
    "unknown place: ",
    "cannot be excepted",
    "is nothing that a digest can share",
    "is nothing that can be done: ",
    "may not stand in a name pattern",
    "an empty list",
    "holds no user and no password",
    "an outbox has no query",
];

/// One case of `tests/cases/config`: its files with their texts, and what is said of it.
struct Case {
    name: String,
    files: Vec<(String, String)>,
    expected: String,
    has_environment: bool,
}

/// The cases whose texts need no decoding.
fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("tests/cases/config")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (given, expected) = text.split_once("=== expected\n").unwrap();
        if given.contains('⟦') {
            continue;
        }
        let sections = given.split("=== ").skip(1).filter_map(|section| section.split_once('\n'));
        let files = sections.filter(|(name, _)| name.ends_with(".yaml"));
        found.push(Case {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            files: files.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
            expected: expected.to_owned(),
            has_environment: given.contains("=== env\n"),
        });
    }
    found
}

fn kind(file: &str) -> &'static str {
    if file == "switchbell.yaml" { "server" } else { "workspace" }
}

/// The files of these cases as documents for one of the schemas, each named `CASE FILE`.
fn documents(cases: &[Case], wanted: &str) -> Vec<(String, String)> {
    let all = cases.iter().flat_map(|case| case.files.iter().map(move |file| (case, file)));
    let of_kind = all.filter(|(_, (file, _))| kind(file) == wanted);
    of_kind.map(|(case, (file, text))| (format!("{} {file}", case.name), text.clone())).collect()
}

#[test]
fn what_is_good_fits_the_schema() {
    let good: Vec<_> = cases().into_iter().filter(|case| case.name.starts_with("good-")).collect();
    for file in super::FILES {
        let mut documents = documents(&good, file);
        let shown = examples().into_iter().filter(|(_, kind)| *kind == file);
        documents.extend(shown.map(|(path, _)| (path.display().to_string(), fs::read_to_string(path).unwrap())));
        assert!(documents.len() >= 10, "{}", documents.len());
        let said = validated(&printed(&[file]), &documents);
        for (name, errors) in said["documents"].as_object().unwrap() {
            assert_eq!(errors.as_array().unwrap().len(), 0, "{name}: {errors:#}");
        }
    }
}

#[test]
fn what_is_wrong_with_the_form_of_a_file_does_not_fit_the_schema() {
    let cases: Vec<_> = cases().into_iter().filter(|case| !case.name.starts_with("good-")).collect();
    let (mut refused, mut missed) = (0, Vec::new());
    for file in super::FILES {
        let said = validated(&printed(&[file]), &documents(&cases, file));
        for case in cases.iter().filter(|case| !case.has_environment) {
            for (name, _) in case.files.iter().filter(|(name, _)| kind(name) == file) {
                let lines = case.expected.lines().filter(|line| line.starts_with(&format!("{name}:")));
                let of_form: Vec<_> = lines.filter(|line| OF_FORM.iter().any(|form| line.contains(form))).collect();
                let errors = said["documents"][format!("{} {name}", case.name)].as_array().unwrap();
                match (of_form.is_empty(), errors.is_empty()) {
                    (false, true) => missed.push(format!("{} {name}: {of_form:#?}", case.name)),
                    (false, false) => refused += 1,
                    (true, _) => {}
                }
            }
        }
    }
    assert!(missed.is_empty(), "the schema takes:\n{}", missed.join("\n"));
    assert!(refused >= 40, "only {refused} are refused");
}
