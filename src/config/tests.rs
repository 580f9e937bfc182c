//! Runs the cases of `tests/cases/config/`: each file is one configuration and what is said of it.
//!
//! A line `=== PATH` begins a file of the configuration, `=== PATH/` an empty folder, `=== env` the environment (one
//! `NAME=value` on a line), and `=== expected` what is expected. `⟦9⟧` stands for the character with that hexadecimal
//! number. What a case does not mention is there by itself: a `switchbell.yaml`, the workspace `acme`, and the plugins
//! `mail` and `slack`. With `UPDATE_EXPECT=1` in the environment, what is said now becomes what is expected.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::*;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/config");

/// What is there unless a case mentions the first.
const DEFAULTS: [(&str, &str, &str); 4] = [
    ("=== switchbell.yaml", "switchbell.yaml", "listen: 127.0.0.1:7420\n"),
    ("=== workspaces/", "workspaces/acme.yaml", "members: { admin@example.com: admin }\n"),
    ("=== plugins/", "plugins/mail.wasm", ""),
    ("=== plugins/", "plugins/slack.wasm", ""),
];

#[derive(Debug, Default)]
struct Case {
    files: Vec<(String, String)>,
    environment: BTreeMap<String, String>,
    /// The text up to and with the line `=== expected`.
    given: String,
    expected: String,
}

impl Case {
    fn parse(text: &str) -> Self {
        let (given, expected) = text.split_once("=== expected\n").unwrap_or((text, ""));
        let mut case =
            Self { given: format!("{given}=== expected\n"), expected: expected.to_owned(), ..Self::default() };
        let defaults = DEFAULTS.iter().filter(|(unless, ..)| !given.contains(unless));
        case.files.extend(defaults.map(|&(_, path, content)| (path.to_owned(), content.to_owned())));
        for section in given.split("=== ").skip(1) {
            let (path, content) = section.split_once('\n').unwrap_or((section, ""));
            if path == "env" {
                let pairs = content.lines().filter_map(|line| line.split_once('='));
                case.environment.extend(pairs.map(|(name, value)| (name.to_owned(), unescaped(value))));
            } else {
                case.files.push((path.to_owned(), unescaped(content)));
            }
        }
        case
    }

    /// What is said of the configuration.
    fn run(&self) -> String {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in &self.files {
            let path = folder.path().join(path);
            if path.as_os_str().to_string_lossy().ends_with('/') {
                std::fs::create_dir_all(path).unwrap();
            } else {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        }
        let lookup = |name: &str| self.environment.get(name).cloned();
        let said = match load(&folder.path().join("switchbell.yaml"), &lookup) {
            Ok(Loaded { config, warnings }) => warned(&warnings) + &summary(&config),
            Err(problems) => {
                assert!(!problems.mistakes.is_empty(), "an error has at least one mistake");
                warned(&problems.warnings) + &problems.to_string()
            }
        };
        for value in self.environment.values().filter(|value| value.starts_with("hidden-")) {
            assert!(!said.contains(value.as_str()), "a secret is shown:\n{said}");
        }
        let root = folder.path().display().to_string();
        said.replace(&format!("{root}/"), "").replace(&root, "ROOT")
    }
}

fn warned(warnings: &[Problem]) -> String {
    warnings.iter().fold(String::new(), |text, warning| text + &format!("warning: {warning}"))
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('⟦');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('⟧').expect("`⟦` is closed by `⟧`");
        out.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        out.push_str(rest);
    }
    out
}

/// A good configuration in short.
fn summary(config: &Config) -> String {
    let mut out = String::from("good\n");
    writeln!(out, "listen {} store {}", config.listen, config.store.display()).unwrap();
    writeln!(out, "plugins {} {:?}", config.plugins.directory.display(), config.plugins.limits).unwrap();
    for (name, grant) in &config.plugins.grants {
        writeln!(out, "grant {name} {:?}", grant.http).unwrap();
    }
    for (name, secret) in &config.secrets {
        let Secret { value, place, hosts, workspaces } = secret;
        writeln!(out, "secret {name} {} bytes, {place:?}, hosts {hosts:?}, workspaces {workspaces:?}", value.len())
            .unwrap();
    }
    for workspace in config.workspaces.values() {
        writeln!(out, "workspace {} {:?}", workspace.name, workspace.members).unwrap();
        for Connector { name, transport, outbox, ceiling, poll } in workspace.connectors.values() {
            let transport = match transport {
                Transport::Stdio { run, env, directory } => format!("{run:?} {env:?} in {}", directory.display()),
                Transport::Http { url, bearer } => format!("{url} bearer {bearer:?}"),
            };
            writeln!(out, "  connector {name}: {transport}").unwrap();
            writeln!(out, "    outbox {outbox:?} ceiling {ceiling} {poll:?}").unwrap();
        }
        for route in &workspace.routes {
            writeln!(out, "  route {} of {} when {:?}", route.name, route.owner, route.when).unwrap();
            for Target { id, plugin, settings, places } in &route.deliver {
                let places: Vec<_> = places.iter().map(|(at, p)| format!("{at:?} {}:{}", p.line, p.column)).collect();
                writeln!(out, "    {plugin} {id} {settings} at {}", places.join(", ")).unwrap();
            }
        }
    }
    out
}

fn case_files() -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(CASES).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_case_says_what_is_expected() {
    let mut wrong = Vec::new();
    for file in case_files() {
        let case = Case::parse(&std::fs::read_to_string(&file).unwrap());
        let said = case.run();
        if said == case.expected {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, case.given + &said).unwrap();
        } else {
            wrong.push(format!("{}\n--- expected\n{}--- said\n{said}", file.display(), case.expected));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn cases_are_named_for_what_is_wrong_and_there_are_many() {
    let is_good = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("good-");
    let (good, broken): (Vec<_>, Vec<_>) = case_files().into_iter().partition(is_good);
    for (files, begins) in [(&good, true), (&broken, false)] {
        for file in files {
            let text = std::fs::read_to_string(file).unwrap();
            let says_good = Case::parse(&text).expected.lines().any(|line| line == "good");
            assert_eq!(says_good, begins, "{}", file.display());
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let problems = load(Path::new("nowhere/switchbell.yaml"), &|_| None).unwrap_err();
    assert!(problems.to_string().starts_with("nowhere/switchbell.yaml: cannot be read:"), "{problems}");
}

#[test]
fn defaults_in_files_are_the_defaults_of_the_types() {
    let case = Case::parse("=== switchbell.yaml\npoll: {}\nplugins: { limits: {} }\n=== expected\n");
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in &case.files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(
        folder.path().join("workspaces/acme.yaml"),
        "connectors: { a: { url: 'https://a.example/', ceiling: info } }\n",
    )
    .unwrap();
    let loaded = load(&folder.path().join("switchbell.yaml"), &|_| None).unwrap();
    let connector = loaded.config.workspaces.values().next().unwrap().connectors.values().next().unwrap();
    assert_eq!(connector.poll, Poll::default());
    assert_eq!(loaded.config.plugins.limits, Limits::default());
}

#[test]
fn hostile_files_end_in_a_report_of_bounded_size() {
    let deep = "[".repeat(200_000);
    let aliases = "a: *\n".repeat(100_000);
    let keys: String = (0..60_000).map(|number| format!("k{number}: 1\n")).collect();
    let nested = format!("{}x", "{a: ".repeat(200));
    for text in [deep, aliases, keys, nested, "x".repeat(1 << 20), "x".repeat((1 << 20) + 1)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("switchbell.yaml");
        std::fs::write(&file, &text).unwrap();
        let problems = load(&file, &|_| None).unwrap_err();
        assert!(problems.mistakes.len() <= source::PROBLEMS_MAX + 60, "{}", problems.mistakes.len());
        assert!(problems.to_string().len() < 1 << 20);
    }
}
