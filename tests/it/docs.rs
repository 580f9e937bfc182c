//! The documents: every configuration they show is good, every command is one, every key and link is there.
//!
//! A `yaml` block whose first line is `# switchbell.yaml` or `# workspaces/NAME.yaml` is such a file. One with `, in a
//! route` after its name is a part of a route. A workspace's file goes with the operator's file that stands before it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::Ed25519KeyPair;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::{prepared, root};

/// What stands for an operator's file that is not shown.
const OPERATOR: &str = "listen: 127.0.0.1:0\n";
/// What stands for a workspace's file that is not shown.
const WORKSPACE: &str = "members: { admin@example.com: admin }\n";
/// What stands in a manifest that is not shown.
const MANIFEST: &str = r#"{ "_meta": { "ai.nimblebrain/host": { "host_version": "1.3",
    "notifications": { "resource": "shown://notifications" } } } }"#;
/// What stands for the value of a secret.
const VALUE: &str = "a-token-for-the-documents";
/// What stands around a part of a route.
const AROUND_A_ROUTE: &str = "members: { admin@example.com: admin }
connectors: { registrar: { url: \"https://mcp.example.com/mcp\" }, desk: { url: \"https://desk.example.com/mcp\" } }
routes:
  - name: shown
    owner: admin@example.com
";

/// The documents that users read, by their paths from the root.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        found.push(Path::new("docs").join(entry.unwrap().file_name()));
    }
    for folder in ["plugins", "examples"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let readme = Path::new(folder).join(entry.unwrap().file_name()).join("README.md");
            found.extend(root().join(&readme).exists().then_some(readme));
        }
    }
    found
}

fn text(document: &Path) -> String {
    fs::read_to_string(root().join(document)).unwrap_or_else(|error| panic!("{}: {error}", document.display()))
}

/// The fenced blocks of a document in one of these languages, in order.
fn blocks(text: &str, languages: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((languages.contains(&language), String::new())),
            (Some(_), Some((wanted, block))) => {
                found.extend(wanted.then(|| std::mem::take(block)));
                open = None;
            }
            (None, Some((_, block))) => block.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    found
}

/// The pairs of files, operator's and workspace's, that a document shows.
fn configurations(text: &str) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for block in blocks(text, &["yaml"]) {
        let name = block.lines().next().unwrap_or_default();
        if name == "# switchbell.yaml" {
            pairs.push((block, WORKSPACE.to_owned()));
        } else if name.starts_with("# workspaces/") {
            let workspace = if name.ends_with(", in a route") { in_a_route(&block) } else { block };
            match pairs.last_mut().filter(|(_, workspace)| workspace == WORKSPACE) {
                Some(pair) => pair.1 = workspace,
                None => {
                    let operator = pairs.last().map_or(OPERATOR, |(operator, _)| operator).to_owned();
                    pairs.push((operator, workspace));
                }
            }
        } else {
            panic!("a yaml block names no file in its first line: {name}");
        }
    }
    pairs
}

fn in_a_route(part: &str) -> String {
    part.lines().fold(AROUND_A_ROUTE.to_owned(), |whole, line| whole + "    " + line + "\n")
}

/// The plain words after each `key: ` of a text.
fn values<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c));
    text.split(key).skip(1).map(move |rest| rest.split(is_end).next().unwrap()).filter(|value| !value.is_empty())
}

/// The folder of a configuration, with the plugins that documents name, the files of its secrets and its manifests.
fn folder(operator: &str, workspace: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("switchbell.yaml", operator);
    write("workspaces/acme.yaml", workspace);
    let key = private_key();
    values(operator, "file: ").for_each(|name| write(name, if name.ends_with(".pem") { &key } else { VALUE }));
    // What stands for the programs that write values.
    write("bin/pass", &format!("#!/bin/sh\necho {VALUE}\n"));
    fs::set_permissions(folder.path().join("bin/pass"), fs::Permissions::from_mode(0o755)).unwrap();
    values(operator, "manifest: ").for_each(|name| write(name, MANIFEST));
    values(workspace, "manifest: ").for_each(|name| write(&format!("workspaces/{name}"), MANIFEST));
    fs::create_dir_all(folder.path().join("plugins")).unwrap();
    let plugins = fs::read_dir(prepared("dist/plugins", "plugins")).unwrap().map(|entry| entry.unwrap().path());
    for from in plugins.chain([prepared("dist/guests/smallest.wasm", "guests")]) {
        fs::copy(&from, folder.path().join("plugins").join(from.file_name().unwrap())).unwrap();
    }
    if operator.contains("trust: [\"minisign:") {
        write("switchbell.yaml", &signed(operator, folder.path()));
    }
    folder
}

/// Signs the plugins of a folder, and names the key and the digests in the place of those that are shown.
fn signed(operator: &str, folder: &Path) -> String {
    let minisign = |arguments: &[&str]| {
        let mut command = Command::new("minisign");
        let status = command.args(arguments).current_dir(folder).stdout(Stdio::null()).status();
        assert!(status.expect("minisign is missing: `make debian` installs it").success(), "{arguments:?}");
    };
    minisign(&["-G", "-W", "-f", "-p", "key.pub", "-s", "key"]);
    let plugins = fs::read_dir(folder.join("plugins")).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    for plugin in &plugins {
        minisign(&["-S", "-s", "key", "-m", plugin.to_str().unwrap()]);
    }
    let key = fs::read_to_string(folder.join("key.pub")).unwrap().lines().nth(1).unwrap().to_owned();
    let shown = |start: &str, length: usize| {
        let at = operator.find(start).unwrap() + start.len();
        operator[at..at + length].to_owned()
    };
    let digest = Sha256::digest(fs::read(folder.join("plugins/smallest.wasm")).unwrap());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let operator = operator.replace(&shown("\"minisign:", key.len()), &key);
    operator.replace(&shown("\"sha256:", digest.len()), &digest)
}

/// A private key in PEM (PKCS#8), made anew.
fn private_key() -> String {
    let der = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

fn switchbell() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.env("NO_COLOR", "1").env_remove("SWITCHBELL_CONFIG");
    command
}

/// Checks the configuration: no mistake, and no warning but of programs that are not on this machine and of what is not used
/// in the part that is shown.
fn check(document: &Path, operator: &str, workspace: &str) {
    let folder = folder(operator, workspace);
    let mut command = switchbell();
    command.arg("--config").arg(folder.path().join("switchbell.yaml")).arg("check");
    for name in values(operator, " env: ").chain(values(operator, "${")) {
        let host = values(&operator[operator.find(name).unwrap()..], "hosts: [").next().unwrap_or("127.0.0.1");
        let value = match name.rsplit('_').next() {
            Some("WEBHOOK") => format!("https://{host}/services/secret"),
            Some("LOGIN") => format!("user:{VALUE}"),
            _ => VALUE.to_owned(),
        };
        command.env(name, value);
    }
    let path = env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.path().join("bin").display()));
    let Output { status, stdout, .. } = command.output().unwrap();
    let said = String::from_utf8(stdout).unwrap();
    // A document shows parts: what uses a thing may stand in another.
    let is_expected = |line: &str| line.ends_with("[no-program]") || line.contains("[unused-");
    let warned = said.lines().any(|line| line.contains(": warning: ") && !is_expected(line));
    assert!(status.success() && !warned, "{}:\n{operator}\n{workspace}\n{said}", document.display());
}

#[test]
fn every_configuration_that_a_document_shows_is_good() {
    let mut shown = 0;
    for document in documents() {
        for (operator, workspace) in configurations(&text(&document)) {
            check(&document, &operator, &workspace);
            shown += 1;
        }
    }
    assert!(shown >= 8, "only {shown} configurations are shown");
}

#[test]
fn the_configuration_to_begin_with_is_good() {
    let file = |name: &str| text(&Path::new("examples/start").join(name));
    check(Path::new("examples/start"), &file("switchbell.yaml"), &file("workspaces/acme.yaml"));
}

/// The arguments of a line that calls the program.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let mut words = line.split_whitespace().take_while(|word| !["#", "|", "&&", ";", ">"].contains(word));
    let is_program = |word: &&str| {
        *word == "switchbell" || word.ends_with("/debug/switchbell") || word.ends_with("/release/switchbell")
    };
    let command = words.next().map(|first| if first == "$" { words.next() } else { Some(first) })??;
    is_program(&command).then(|| words.collect())
}

#[test]
fn every_command_that_a_document_shows_is_one() {
    let mut shown = 0;
    for document in documents() {
        for block in blocks(&text(&document), &["console", "sh", "bash"]) {
            // What stands behind `--` is another program's.
            for mut arguments in block.replace("\\\n", " ").lines().filter_map(arguments) {
                arguments.truncate(arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len()));
                let output = switchbell().args(&arguments).arg("--help").output().unwrap();
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}: {arguments:?}: {error}", document.display());
                shown += 1;
            }
        }
    }
    assert!(shown >= 5, "only {shown} commands are shown");
}

#[test]
fn every_key_of_the_configuration_is_described() {
    let folder = fs::read_dir(root().join("src/config/raw")).unwrap();
    let files = folder.map(|entry| Path::new("src/config/raw").join(entry.unwrap().file_name()));
    let declared: String = files.chain([PathBuf::from("src/config/raw.rs")]).map(|file| text(&file)).collect();
    let described = text(Path::new("docs/configuration.md")) + &text(Path::new("docs/admin.md"));
    let words: BTreeSet<&str> = described.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let is_declaration = |line: &&str| line.contains("\" => ") || line.contains("not yet: [");
    let lines = declared.lines().filter(is_declaration);
    // The default of a key stands behind its type and is no key.
    let keys = lines.flat_map(|line| line.split(", Default(").next().unwrap().split('"').skip(1).step_by(2));
    let missing: Vec<&str> = keys.filter(|key| !words.contains(key)).collect();
    assert!(missing.is_empty(), "the documents do not say what these are: {missing:?}");
}

#[test]
fn the_plugin_that_the_documents_show_is_the_one_that_is_built() {
    let shown = blocks(&text(Path::new("docs/plugins.md")), &["rust"]);
    assert_eq!(shown, [text(Path::new("tests/guests/smallest/src/lib.rs"))]);
}

#[test]
fn every_link_leads_to_something() {
    for document in documents() {
        let text = text(&document);
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains("://") && !target.starts_with('#')) {
            let path = root().join(&document).parent().unwrap().join(target.split('#').next().unwrap());
            assert!(path.exists(), "{} links to {target}, which is not there", document.display());
        }
    }
}
