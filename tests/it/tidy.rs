//! The rules of the house that a compiler does not know: layers, sizes, and documents that say what is true.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines of a source file.
const FILE_LINES_MAX: usize = 400;
/// Lines of a function.
const FUNCTION_LINES_MAX: usize = 70;
/// Lines of README.md: one screen and the picture.
const README_LINES_MAX: usize = 80;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder, with its path from the root and its text.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let mut open = vec![root().join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "no Rust file below {folder}");
    found.sort();
    found
}

/// The text before the tests of a file, without comment lines.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    before_tests.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// No file of `folder` but those whose path starts with one of `except` may contain one of `words` in its code.
fn forbid(folder: &str, words: &[&str], except: &[&str], why: &str) {
    let mut breaches = Vec::new();
    for (name, text) in rust_files(folder) {
        if except.iter().any(|path| name.starts_with(path)) || name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        let code = code(&text);
        breaches.extend(words.iter().filter(|word| code.contains(**word)).map(|word| format!("{name}: {word}")));
    }
    assert!(breaches.is_empty(), "{why}:\n{}", breaches.join("\n"));
}

#[test]
fn route_is_pure() {
    let words = ["async ", "tokio", "std::fs", "std::net", "std::io", "std::thread", "fastrand", "::now()", "Clock"];
    forbid("src/route", &words, &[], "route/ decides without I/O, time or chance");
}

#[test]
fn fetch_and_send_never_meet() {
    forbid("src/fetch", &["crate::send"], &[], "fetch/ and send/ share inbox/ and notification.rs only");
    forbid("src/send", &["crate::fetch"], &[], "fetch/ and send/ share inbox/ and notification.rs only");
}

#[test]
fn each_outer_world_has_its_one_place() {
    forbid("src", &["rusqlite"], &["src/inbox/sqlite"], "SQL stands in the store's files");
    forbid("src", &["rmcp::"], &["src/fetch/mcp", "src/serve/mcp"], "MCP types stand in fetch/mcp and serve/mcp");
    forbid("src", &["wasmtime"], &["src/wasm"], "wasmtime stands in wasm/");
    forbid("src", &["lettre"], &["src/send/effect/mail"], "SMTP stands in send/effect/mail");
    forbid("src", &["saphyr"], &["src/config"], "YAML stands in config/");
    forbid(
        "src/wasm",
        &["crate::inbox", "crate::send", "crate::fetch", "reqwest"],
        &[],
        "the sandbox knows no network or store",
    );
}

#[test]
fn domain_types_are_not_serialisable() {
    for place in ["src/inbox", "src/route"] {
        forbid(place, &["serde::", "Serialize", "Deserialize"], &[], "each edge has its own wire types");
    }
    let text = fs::read_to_string(root().join("src/notification.rs")).unwrap();
    assert!(!text.contains("serde"), "notification.rs holds plain values");
}

#[test]
fn only_the_clock_reads_the_time_and_only_the_app_spawns() {
    forbid(
        "src",
        &["Timestamp::now", "SystemTime::now", "Zoned::now"],
        &["src/clock.rs"],
        "wall time comes from clock.rs",
    );
    forbid("src", &["tokio::spawn("], &["src/app.rs"], "tasks that outlive a call belong to app.rs");
}

#[test]
fn nothing_is_left_unfinished() {
    forbid("src", &["todo!(", "unimplemented!(", "dbg!(", "#[ignore"], &[], "unfinished or skipped");
    forbid(
        "tests/it",
        &["#[ignore", "thread::sleep", "time::sleep("],
        &["tests/it/tidy.rs"],
        "tests wait on events and are never skipped",
    );
}

#[test]
fn native_code_is_taken_from_bytes_in_one_place_and_nothing_else_is_unsafe() {
    const PLACE: &str = "src/wasm/compiled/deserialize.rs";
    let words = ["unsafe {", "unsafe fn", "unsafe impl", "unsafe extern", "unsafe(", "unsafe_code"];
    forbid("src", &words, &[PLACE], "unsafe");
    let text = code(&fs::read_to_string(root().join(PLACE)).unwrap());
    let count = |word: &str| text.matches(word).count();
    assert_eq!((count("unsafe {"), count("unsafe_code"), count("unsafe")), (1, 1, 2), "{PLACE} is unsafe once");
    assert!(text.contains("Component::deserialize("));
    forbid(
        "src",
        &["::deserialize(&", "deserialize_file", "deserialize_raw"],
        &[PLACE],
        "native code is taken here only",
    );
}

#[test]
fn files_and_functions_fit_a_reader() {
    let mut breaches = Vec::new();
    for folder in ["src", "plugins", "tests/it", "tests/bench"] {
        for (name, text) in rust_files(folder) {
            let lines = text.lines().count();
            if lines > FILE_LINES_MAX {
                breaches.push(format!("{name}: {lines} lines"));
            }
            breaches
                .extend(long_functions(&text).map(|(at, lines)| format!("{name}:{at}: a function of {lines} lines")));
        }
    }
    assert!(breaches.is_empty(), "too long:\n{}", breaches.join("\n"));
}

/// Line and length of each function that is too long: from its `fn` to the closing brace of the same indentation.
fn long_functions(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let starts = (0..lines.len()).filter(|&at| {
        let line = lines[at].trim_start();
        let signature =
            line.trim_start_matches("pub ").trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ");
        signature.trim_start_matches("const ").trim_start_matches("async ").starts_with("fn ")
    });
    // A function that a trait only declares ends with its signature.
    let starts = starts.filter(|&at| {
        let end = lines[at..].iter().find(|line| line.ends_with(['{', ';', '}']));
        end.is_some_and(|line| !line.ends_with(';'))
    });
    let length = |at: usize| {
        let closing = format!("{}}}", " ".repeat(indentation(lines[at])));
        lines[at..].iter().take_while(|line| **line != closing).count() + 1
    };
    let long = starts.map(|at| (at + 1, length(at))).filter(|&(_, lines)| lines > FUNCTION_LINES_MAX);
    long.collect::<Vec<_>>().into_iter()
}

#[test]
fn documents_name_only_what_is_there() {
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{document}: {error}"));
        for target in links(&text) {
            assert!(root().join(&target).exists(), "{document} links to {target:?}, which is not there");
        }
    }
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(readme.lines().count() <= README_LINES_MAX, "README.md is more than one screen");
    assert!(readme.contains("make demo") && readme.contains("make test"), "README.md names the two commands");
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let stem = name.trim_end_matches(".rs");
        assert!(
            ["main", "lib"].contains(&stem) || map.contains(&format!("`{stem}")),
            "ARCHITECTURE.md does not mention src/{name}"
        );
    }
}

/// The relative targets of Markdown links.
fn links(text: &str) -> Vec<PathBuf> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    local.map(|target| PathBuf::from(target.split('#').next().unwrap())).collect()
}
