//! Runs the cases of `tests/cases/config/`: each file is one configuration and what is said of it.
//!
//! A line `=== PATH` begins a file of the configuration, `=== PATH/` an empty folder, `=== env` the environment (one
//! `NAME=value` on a line), and `=== expected` what is expected. `⟦9⟧` stands for the character with that hexadecimal
//! number, `¿` in the environment for a byte that is not Unicode. What a case does not mention is there by itself: a `switchbell.yaml`, the workspace `acme`, and the plugins
//! `mail` and `slack`. With `UPDATE_EXPECT=1` in the environment, what is said now becomes what is expected.

mod parts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::*;

mod reading;

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
        let lookup = |name: &str| self.environment.get(name).map(|value| environment_value(value));
        let file = folder.path().join("switchbell.yaml");
        let said = match load(&file, &lookup).and_then(Loaded::whole) {
            Ok((config, warnings)) => told(&file, &[], &warnings) + &summary(&config),
            Err(problems) => {
                assert!(!problems.mistakes.is_empty(), "an error has at least one mistake");
                let omitted =
                    if problems.omitted > 0 { format!("and {} more\n", problems.omitted) } else { String::new() };
                told(&file, &problems.mistakes, &problems.warnings) + &omitted
            }
        };
        for value in self.environment.values().filter(|value| value.starts_with("hidden-")) {
            assert!(!said.contains(value.as_str()), "a secret is shown:\n{said}");
        }
        let root = folder.path().display().to_string();
        said.replace(&format!("{root}/"), "").replace(&root, "ROOT")
    }
}

/// What a case writes, as the environment holds it; `¿` stands for a byte that no Unicode text has.
fn environment_value(text: &str) -> OsString {
    let parts: Vec<&[u8]> = text.split('¿').map(str::as_bytes).collect();
    OsString::from_vec(parts.join(&0xff))
}

/// As `switchbell check` shows it.
fn told(file: &Path, mistakes: &[Problem], warnings: &[Problem]) -> String {
    in_order(file, mistakes, warnings).into_iter().map(|(how, problem)| problem.told(how)).collect()
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
    let Plugins { gate, trust, pins, .. } = &config.plugins;
    if (*gate, trust.len(), pins.len()) != (GateMode::Report, 0, 0) {
        let keys: Vec<_> = trust.iter().map(|key| key.id.to_string()).collect();
        writeln!(out, "gate {} keys {keys:?} pins {pins:?}", gate.as_str()).unwrap();
    }
    for (name, grant) in &config.plugins.grants {
        writeln!(out, "grant {name} {:?}", grant.http).unwrap();
        if (grant.mail, &grant.tools[..], &grant.workspaces[..]) != (false, &[], &[]) {
            let tools: Vec<_> =
                grant.tools.iter().map(|t| format!("{}:{}/{}", t.workspace, t.connector, t.tool)).collect();
            writeln!(out, "  mail {} tools {tools:?} workspaces {:?}", grant.mail, grant.workspaces).unwrap();
        }
    }
    for (name, secret) in &config.secrets {
        let Secret { place, hosts, workspaces, .. } = secret;
        let length = secret.fixed().unwrap_or_default().len();
        writeln!(out, "secret {name} {length} bytes, {place:?}, hosts {hosts:?}, workspaces {workspaces:?}").unwrap();
        if let SecretValue::Token(token) = &secret.value {
            writeln!(out, "  {}", token_summary(token)).unwrap();
        }
    }
    if let Some(mail) = &config.mail {
        writeln!(out, "{mail:?}").unwrap();
    }
    for workspace in config.workspaces.values() {
        writeln!(out, "workspace {} {:?}", workspace.name, workspace.members).unwrap();
        for connector in workspace.connectors.values() {
            let Connector { name, transport, is_of_catalog: _, outbox, push, not_polled, ceiling, poll } = connector;
            let transport = match transport {
                Transport::Stdio { run, env, directory } => format!("{run:?} {env:?} in {}", directory.display()),
                Transport::Http { url, auth, headers, private } => {
                    format!("{url} auth {auth:?} headers {headers:?} private {private}")
                }
            };
            writeln!(out, "  connector {name}: {transport}").unwrap();
            writeln!(out, "    outbox {outbox:?} ceiling {ceiling} {poll:?}").unwrap();
            if let Some(push) = push {
                writeln!(out, "    {push:?}").unwrap();
            }
            if let Some(why) = not_polled {
                writeln!(out, "    not polled: {why}").unwrap();
            }
        }
        for route in &workspace.routes {
            writeln!(out, "  route {} of {} when {:?}", route.name, route.owner, route.when).unwrap();
            for Target { id, plugin, settings, places, timing, retry, on_unknown, is_strict } in &route.deliver {
                let places: Vec<_> = places.iter().map(|(at, p)| format!("{at:?} {}:{}", p.line, p.column)).collect();
                writeln!(out, "    {plugin} {id} {settings} at {}", places.join(", ")).unwrap();
                if !timing.is_plain() {
                    writeln!(out, "      {timing:?}").unwrap();
                }
                if (*retry, *on_unknown, *is_strict) != Default::default() {
                    writeln!(out, "      {retry:?} on unknown {on_unknown:?} strict {is_strict}").unwrap();
                }
            }
        }
    }
    out
}

fn token_summary(token: &TokenSource) -> String {
    let grant = match &token.grant {
        TokenGrant::ClientCredentials { client_id, client_secret } => {
            format!("client {client_id:?}, secret of {} bytes", client_secret.len())
        }
        TokenGrant::RefreshToken { client_id, client_secret, refresh_token } => {
            let secret = client_secret.as_ref().map(String::len);
            format!("client {client_id:?}, secret of {secret:?} bytes, refresh token of {} bytes", refresh_token.len())
        }
        TokenGrant::JwtBearer { issuer, subject, key, key_id } => {
            format!("issuer {issuer:?}, subject {subject:?}, key {key_id:?} of {} bytes", key.len())
        }
    };
    let TokenSource { token_url, private, scopes, audience, .. } = token;
    format!("from {token_url} private {private}: {grant}, scopes {scopes:?}, audience {audience:?}")
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
    assert!(broken.len() >= 60 && good.len() >= 5, "{} broken, {} good", broken.len(), good.len());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let problems = load(Path::new("nowhere/switchbell.yaml"), &|_| None).unwrap_err();
    assert!(problems.to_string().starts_with("nowhere/switchbell.yaml: cannot be read:"), "{problems}");
}

/// What is said of an operator's file of these bytes.
fn said_of(bytes: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("switchbell.yaml");
    std::fs::write(&file, bytes).unwrap();
    load(&file, &|_| None).unwrap_err().to_string().replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn a_file_that_is_no_text_or_too_large_says_so() {
    for (bytes, expected) in [
        (b"a: 1\nb: \xe4\n".to_vec(), "switchbell.yaml: line 2 is not UTF-8: save the file as UTF-8\n"),
        (b"\xff\xfea\0".to_vec(), "switchbell.yaml: this is UTF-16: save it as UTF-8\n"),
        (vec![b'#'; (1 << 20) + 1], "switchbell.yaml: larger than 1048576 bytes, the most a file may have\n"),
        (vec![b'#'; 1 << 20], "switchbell.yaml: this file says nothing: write at least one key\n"),
    ] {
        assert_eq!(said_of(&bytes), expected);
    }
}

#[test]
fn a_value_may_be_as_long_as_a_header_and_its_line_end_is_not_part_of_it() {
    let load_secret = |length: usize, end: &str| {
        let folder = tempfile::tempdir().unwrap();
        for path in ["workspaces", "plugins"] {
            std::fs::create_dir(folder.path().join(path)).unwrap();
        }
        let file = folder.path().join("switchbell.yaml");
        std::fs::write(folder.path().join("key"), "k".repeat(length) + end).unwrap();
        std::fs::write(&file, "secrets: { key: { file: key, in: connector, hosts: [a.example] } }\n").unwrap();
        let loaded = load(&file, &|_| None);
        loaded.map(|loaded| loaded.config.secrets.into_values().next().unwrap().fixed().unwrap().len()).ok()
    };
    assert_eq!(load_secret(16, "\n"), Some(16));
    assert_eq!(load_secret(15, "\n"), None);
    assert_eq!(load_secret(8 << 10, "\r\n"), Some(8 << 10));
    assert_eq!(load_secret((8 << 10) + 1, ""), None);
    assert_eq!(load_secret(20, "\n\n"), None);
}

#[test]
fn defaults_in_files_are_the_defaults_of_the_types() {
    let case = Case::parse(
        "=== switchbell.yaml\npoll: {}\nplugins: { limits: {} }\n=== workspaces/acme.yaml\n\
         connectors: { a: { url: 'https://a.example/' } }\n",
    );
    let said = case.run();
    assert!(said.contains(&format!("{:?}", Poll::default())), "{said}");
    assert!(said.contains(&format!("{:?}", Limits::default())), "{said}");
}

#[test]
fn hostile_files_end_in_a_report_of_bounded_size() {
    let keys: String = (0..60_000).map(|number| format!("k{number}: 1\n")).collect();
    for text in [
        "[".repeat(200_000),
        "{a: ".repeat(200),
        "a: *\n".repeat(100_000),
        "\ta: 1\n".repeat(100_000),
        "a: &a [*a, *a]\n".repeat(1_000),
        keys,
        "x".repeat(1 << 20),
    ] {
        let said = said_of(text.as_bytes());
        let mistakes = said.lines().filter(|line| line.starts_with("switchbell.yaml")).count();
        assert!((1..=source::PROBLEMS_MAX + 1).contains(&mistakes), "{mistakes}");
        assert!(said.len() < 1 << 19, "{}", said.len());
    }
}

#[test]
fn a_workspace_full_of_patterns_is_still_judged() {
    let connectors: String = (0..100).map(|n| format!("  c{n}: {{ url: 'https://a.example/' }}\n")).collect();
    let sources: String = (0..50).map(|n| format!("\"*{n}?\",")).collect();
    let route = |n| {
        format!("  - {{ name: r{n}, owner: a, when: {{ source: [{sources}] }}, deliver: [{{ plugin: slack }}] }}\n")
    };
    let routes: String = (0..200).map(route).collect();
    let case = format!("=== workspaces/acme.yaml\nmembers: {{ a: admin }}\nconnectors:\n{connectors}routes:\n{routes}");
    assert!(Case::parse(&case).run().lines().any(|line| line == "good"));
}

#[test]
fn a_mangled_file_is_judged_without_a_panic() {
    let mut random = fastrand::Rng::with_seed(11);
    let names = [
        "good-everything",
        "good-a-catalog",
        "good-every-way-to-sign-in",
        "good-timing",
        "good-mail",
        "good-tokens-that-are-fetched",
    ];
    for name in names {
        let good = Case::parse(&std::fs::read_to_string(format!("{CASES}/{name}.txt")).unwrap());
        for _ in 0..200 {
            let mut case = Case { files: good.files.clone(), environment: good.environment.clone(), ..Case::default() };
            case.files.iter_mut().for_each(|(_, text)| mangle(text, &mut random));
            assert!(!case.run().is_empty());
        }
    }
}

fn mangle(text: &mut String, random: &mut fastrand::Rng) {
    let pieces =
        ["*", "&a ", "- ", ": ", "\n", "\t", "{", "]", "\"", "'", "#", "| ", "${", "é", "? ", "!x ", "---\n", "0"];
    for _ in 0..random.usize(1..4) {
        let ends: Vec<usize> = text.char_indices().map(|(index, _)| index).collect();
        let Some(&at) = random.choice(&ends) else { return };
        if random.bool() {
            text.insert_str(at, random.choice(pieces).unwrap());
        } else {
            text.remove(at);
        }
    }
}
