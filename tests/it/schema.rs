//! `switchbell schema` and what is made of it: the schemas beside the examples, the tables in the documents, and what a
//! validator and a language server of other people say with them.

mod editor;
mod forms;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{prepared, root};

/// The kinds of files, by the words of the command line.
const FILES: [&str; 3] = ["server", "workspace", "test"];

/// What the program prints.
fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_switchbell")).arg("schema").args(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every file below a folder that is kept in the repository, hidden ones too.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["node_modules", ".venv", "data", "target", "build"].contains(&name) {
            found.extend(files_below(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The configuration files among the examples, each with the word for its schema: `switchbell.yaml`, and what stands in a
/// folder `workspaces` or `tests`.
fn examples() -> Vec<(PathBuf, &'static str)> {
    let kind = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        let folder = path.parent()?.file_name()?.to_str()?;
        match (name, folder) {
            ("switchbell.yaml", _) => Some("server"),
            (name, "workspaces") if name.ends_with(".yaml") => Some("workspace"),
            (name, "tests") if name.ends_with(".yaml") => Some("test"),
            _ => None,
        }
    };
    let files = files_below(&root().join("examples")).into_iter();
    let found: Vec<_> = files.filter_map(|path| kind(&path).map(|kind| (path, kind))).collect();
    assert!(found.len() >= 4, "{found:?}");
    found
}

/// What `tests/peers/editor/validate.mjs` says of documents, each with its name.
fn validated(schema: &str, documents: &[(String, String)]) -> Value {
    prepared("tests/peers/editor/node_modules/.ready", "deps");
    let documents: Vec<_> = documents.iter().map(|(name, text)| json!({ "name": name, "text": text })).collect();
    let asked = json!({ "schema": serde_json::from_str::<Value>(schema).unwrap(), "documents": documents });
    let mut command = Command::new("node");
    command.arg(root().join("tests/peers/editor/validate.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    serde_json::to_writer(child.stdin.take().unwrap(), &asked).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What was written by the program is what it writes now. With `UPDATE_EXPECT=1` in the environment it becomes that.
fn check_current(path: &Path, current: &str) {
    let text = fs::read_to_string(path).unwrap_or_default();
    if text == current {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_EXPECT").is_some(),
        "{} is not what the program writes: run `make schema`",
        path.display()
    );
    fs::write(path, current).unwrap();
}

/// What a line `# yaml-language-server: $schema=…` names, from the file's folder on.
fn modeline(file: &Path) -> PathBuf {
    let text = fs::read_to_string(file).unwrap();
    let named = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema="));
    let named = named.unwrap_or_else(|| panic!("{}: `# yaml-language-server: $schema=…` is missing", file.display()));
    file.parent().unwrap().join(named)
}

#[test]
fn every_example_names_its_schema_which_is_the_one_that_is_printed() {
    for (file, kind) in examples() {
        check_current(&modeline(&file), &printed(&[kind]));
    }
}

#[test]
fn a_copy_of_the_configuration_to_begin_with_has_its_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("my-bell");
    let status = Command::new("cp").arg("-r").arg(root().join("examples/start")).arg(&copy).status().unwrap();
    assert!(status.success());
    for (name, kind) in [("switchbell.yaml", "server"), ("workspaces/acme.yaml", "workspace")] {
        let schema = modeline(&copy.join(name));
        assert!(schema.starts_with(&copy) && !schema.is_symlink(), "{}", schema.display());
        assert!(fs::read_to_string(&schema).unwrap() == printed(&[kind]), "{}", schema.display());
    }
}

#[test]
fn a_schema_in_the_folder_of_workspaces_is_no_workspace() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("workspaces")).unwrap();
    fs::create_dir_all(folder.path().join("plugins")).unwrap();
    fs::write(folder.path().join("switchbell.yaml"), "listen: 127.0.0.1:0\n").unwrap();
    fs::write(folder.path().join("workspaces/acme.yaml"), "members: { admin@example.com: admin }\n").unwrap();
    for name in [".schema.json", ".schema.yaml"] {
        fs::write(folder.path().join("workspaces").join(name), printed(&["workspace"])).unwrap();
    }
    let loaded = switchbell::config::load(&folder.path().join("switchbell.yaml"), &|_| None).unwrap();
    assert_eq!(loaded.config.workspaces.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["acme"]);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
}

#[test]
fn the_tables_in_the_documents_are_those_that_the_program_prints() {
    for (document, kind) in
        [("docs/configuration.md", "server"), ("docs/admin.md", "workspace"), ("docs/testing-routes.md", "test")]
    {
        let path = root().join(document);
        let text = fs::read_to_string(&path).unwrap();
        let begin = format!("<!-- written by `switchbell schema {kind} --markdown` -->\n");
        let end = "<!-- end -->\n";
        let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{document}: {begin} is missing"));
        let (_, after) = rest.split_once(end).unwrap_or_else(|| panic!("{document}: {end} is missing"));
        let tables = printed(&[kind, "--markdown"]);
        check_current(&path, &format!("{before}{begin}\n{tables}\n{end}{after}"));
    }
}

#[test]
fn a_schema_is_one_of_its_dialect_and_its_examples_and_defaults_fit_it() {
    for file in FILES {
        let said = validated(&printed(&[file]), &[]);
        assert_eq!((&said["schema"], &said["examples"]), (&json!([]), &json!([])), "{file}");
    }
}
