//! Whether schemas and the reader of the configuration agree on the form of files.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use switchbell::config::{duration, load};

use super::{examples, printed, root, validated};

/// What the reader says of mistakes that a schema can know: a key, a type, a word, the form of a text.
const OF_FORM: [&str; 29] = [
    "[unknown-key]",
    "[unsupported-key]",
    "[misplaced-key]",
    "[wrong-type]",
    "is missing (",
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
    "an outbox has no query",
];

/// What is no mapping with texts as keys never gets so far as to be held against a schema.
fn is_of_form(line: &str) -> bool {
    OF_FORM.iter().any(|form| line.contains(form)) && !line.contains("cannot be a key")
}

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
        assert!(documents.len() >= 7, "{}", documents.len());
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
                let of_form: Vec<_> = lines.filter(|line| is_of_form(line)).collect();
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

/// A configuration for each key that tells its bounds; `{}` is where its value stands.
const BOUNDED: [(&str, &str); 15] = [
    ("poll.floor", "poll: { floor: {}, base: {}, ceiling: 1d }"),
    ("poll.ceiling", "poll: { floor: 10ms, base: 10ms, ceiling: {} }"),
    ("poll.max_age", "poll: { max_age: {} }"),
    ("retention.age", "retention: { age: {}, dedupe: 3650d }"),
    ("retention.dedupe", "poll: { max_age: 1m }\nretention: { age: 1h, dedupe: {} }"),
    ("plugins.limits.memory", "plugins: { limits: { memory: {} } }"),
    ("plugins.limits.step_cpu", "plugins: { limits: { step_cpu: {} } }"),
    ("plugins.limits.attempt_time", "plugins: { limits: { attempt_time: {} } }"),
    ("routes.deliver.after", "after: {}"),
    ("routes.deliver.after.wait", "after: { wait: {} }"),
    ("routes.deliver.collect.wait", "collect: { by: subject, wait: {} }"),
    ("routes.deliver.at_most.per", "at_most: { count: 5, per: {} }"),
    ("routes.deliver.retry.first", "retry: { first: {}, most: 24h, give_up: 30d }"),
    ("routes.deliver.retry.most", "retry: { first: 100ms, most: {}, give_up: 30d }"),
    ("routes.deliver.retry.give_up", "retry: { first: 100ms, most: 100ms, give_up: {} }"),
];

/// The keys of a schema whose descriptions tell bounds, as in "`1s` to `7d`", with them.
fn bounds(schema: &Value, path: &str, found: &mut Vec<(String, String, String)>) {
    let description = schema["description"].as_str().unwrap_or_default();
    let mut words = description.split('`').skip(1);
    while let (Some(least), Some(between), Some(most)) = (words.next(), words.next(), words.clone().next()) {
        if between == " to " {
            found.push((path.to_owned(), least.to_owned(), most.to_owned()));
        }
    }
    for key in ["items", "then", "additionalProperties"] {
        if schema[key].is_object() {
            bounds(&schema[key], path, found);
        }
    }
    for (key, inner) in schema["properties"].as_object().into_iter().flatten() {
        bounds(inner, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
    }
}

/// The values just out of bounds.
fn beyond(least: &str, most: &str) -> [String; 2] {
    if let Ok(least) = duration(least) {
        let millisecond = Duration::from_millis(1);
        return [least - millisecond, duration(most).unwrap() + millisecond]
            .map(|out| format!("{}ms", out.as_millis()));
    }
    assert_eq!((least, most), ("1MiB", "1GiB"));
    ["1023KiB".to_owned(), "1048577KiB".to_owned()]
}

/// Whether a configuration with this text in the operator's file, or in a target, is good.
fn is_good(key: &str, text: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir_all(folder.path().join("workspaces")).unwrap();
    fs::create_dir_all(folder.path().join("plugins")).unwrap();
    write("plugins/slack.wasm", "");
    let target = key.starts_with("routes.");
    write("switchbell.yaml", if target { "listen: 127.0.0.1:0\n" } else { text });
    let target = format!(
        "members: {{ a@b.example: admin }}\nroutes:\n  - name: a\n    owner: a@b.example\n    deliver:\n      - plugin: \
         slack\n        {}\n",
        if target { text } else { "order: strict" }
    );
    write("workspaces/acme.yaml", &target);
    load(&folder.path().join("switchbell.yaml"), &|_| None).is_ok_and(|loaded| loaded.aside.is_empty())
}

#[test]
fn the_bounds_that_a_key_tells_are_those_that_are_kept() {
    let mut found = Vec::new();
    for file in super::FILES {
        bounds(&serde_json::from_str(&printed(&[file])).unwrap(), "", &mut found);
    }
    let keys: Vec<_> = found.iter().map(|(key, ..)| key.as_str()).collect();
    assert!(BOUNDED.iter().all(|(key, _)| keys.contains(key)), "{keys:?}");
    for (key, least, most) in &found {
        let (_, text) =
            BOUNDED.iter().find(|(bounded, _)| bounded == key).unwrap_or_else(|| panic!("{key} is not tried"));
        for value in [least, most] {
            assert!(is_good(key, &text.replace("{}", value)), "{key}: {value} is refused");
        }
        for value in beyond(least, most) {
            assert!(!is_good(key, &text.replace("{}", &value)), "{key}: {value} is taken");
        }
    }
}
