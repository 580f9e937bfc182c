//! `switchbell plugin`: what is said of files that are plugins and of files that are none, with and without a configuration.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::{Sink, World, operator, prepared, run, versioned, workspace};

async fn world() -> (Sink, World) {
    let sink = Sink::start().await;
    let commands = "{ outbox: { run: [cat], workspaces: [acme] } }";
    let world = World::new(&sink, commands, &World::stdio_connector());
    (sink, world)
}

fn guest(name: &str) -> PathBuf {
    prepared(&format!("dist/guests/{name}.wasm"), "guests")
}

/// Inspects a file in a folder without a configuration.
fn inspect_alone(file: &Path, more: &[&str]) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchbell"));
    command.args(["plugin", "inspect"]).arg(file).args(more).current_dir(folder.path()).env_remove("SWITCHBELL_CONFIG");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn says(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "it does not say {expected:?}: {text}");
    }
}

#[test]
fn a_plugin_is_shown_without_a_configuration() {
    let slack = prepared("dist/plugins/slack.wasm", "plugins");
    let (code, out, error) = inspect_alone(&slack, &[]);
    assert_eq!(code, 0, "{error}");
    says(&out, &["slack", "sha256:", " KiB (", "switchbell:delivery/delivery-plugin@0.1.0", "tolerable"]);
    says(
        &out,
        &["http: hooks.slack.com, slack.com", "unknown: there is no switchbell.yaml here; --config FILE names one"],
    );
    assert!(!out.contains("wanted, but not granted") && !out.contains("warning"), "{out}");

    let (code, out, _) = inspect_alone(&slack, &["--json"]);
    let seen: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &seen["name"], &seen["config"], &seen["missing"]),
        (0, &json!("slack"), &json!(null), &json!(null))
    );
    assert_eq!(seen["wants"]["http"], json!(["hooks.slack.com", "slack.com"]));
    assert_eq!(seen["size"], std::fs::metadata(&slack).unwrap().len());
    assert_eq!(seen["digest"].as_str().unwrap().len(), 64);
    assert!(seen["settings"].is_object() && seen["warnings"] == json!([]), "{seen}");
}

#[test]
fn what_a_plugin_imports_and_how_its_file_must_be_called_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other-name.wasm");
    std::fs::copy(guest("puppet"), &file).unwrap();
    let (code, out, _) = inspect_alone(&file, &[]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["wasi:cli/stderr@0.2.", "wasi:random/random@0.2.", "needs", "nothing", "summary", "none"]);
    says(&out, &["warning: in the folder of plugins the file must be called puppet.wasm"]);
}

#[test]
fn a_plugin_of_any_version_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pager.wasm");
    std::fs::write(&file, versioned("pager", "4.5.6-rc.1", "plain")).unwrap();
    let (code, out, error) = inspect_alone(&file, &[]);
    assert_eq!(code, 0, "{error}");
    says(&out, &["pager", "4.5.6-rc.1", "tolerable"]);
}

#[test]
fn a_file_that_is_no_plugin_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let whole = std::fs::read(guest("puppet")).unwrap();
    for (file, expected) in [
        (write("core.wasm", b"\0asm\x01\0\0\0"), "a core module, not a component: build it for wasm32-wasip2"),
        (write("text.wasm", b"hello\n"), "not WebAssembly: it looks like a text; put the component"),
        (write("wat.wasm", b"(component)"), "it looks like WebAssembly in its text format, which wasm-tools parse"),
        (write("page.wasm", b"<!doctype html>"), "it looks like a page of the web, perhaps of a download that failed"),
        (write("empty.wasm", b""), "it looks like an empty file"),
        (write("short.wasm", &whole[..whole.len() / 2]), "not a valid component ("),
        (write("huge.wasm", &vec![0; (32 << 20) + 1]), "larger than 32 MiB"),
        (guest("other-world"), "it was built for a newer contract, 0.9.0, and this host speaks 0.1; update this host"),
        (write("old.wasm", &older()), "it was built for an older contract, 0.0.9, and this host speaks 0.1; build it"),
        (guest("other-shape"), "with other types (check: "),
        (guest("foreign-import"), "imports what no plugin gets (shout)"),
        (guest("reaches-out"), "remove the code that opens files, sockets or HTTP connections (std::fs, std::net"),
    ] {
        let (code, out, error) = inspect_alone(&file, &[]);
        assert_eq!((code, error.as_str()), (1, ""), "{out}");
        says(&out, &[&file.display().to_string(), expected]);
        let (code, out, _) = inspect_alone(&file, &["--json"]);
        let seen: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((code, seen["file"].as_str()), (1, file.to_str()));
        says(seen["error"].as_str().unwrap(), &[expected]);
        assert_eq!(seen["digest"].is_string(), !file.ends_with("huge.wasm"), "{seen}");
    }
    let (code, _, error) = inspect_alone(&folder.path().join("nowhere.wasm"), &[]);
    assert_eq!(code, 2);
    says(&error, &["nowhere.wasm: cannot be read"]);
    let (code, _, error) = inspect_alone(folder.path(), &[]);
    assert_eq!(code, 2);
    says(&error, &["it is no file"]);
}

/// A component of a version of the contract before the first.
fn older() -> Vec<u8> {
    let mut bytes = std::fs::read(guest("other-world")).unwrap();
    let (from, to) = (b"delivery/plugin@0.9.0", b"delivery/plugin@0.0.9");
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from) {
            bytes[at..at + from.len()].copy_from_slice(to);
        }
    }
    bytes
}

#[tokio::test]
async fn wants_are_compared_with_what_the_configuration_grants() {
    let (sink, world) = world().await;
    let slack = world.path("plugins/slack.wasm");
    let (code, out, _) = run(&world, &sink, &["plugin", "inspect", slack.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}");
    let granted = format!("http: http://{}", sink.address());
    says(&out, &[&format!("granted, but not wanted: {granted}")]);
    says(
        &out,
        &["wanted, but not granted: http: hooks.slack.com, slack.com", "to grant it, have", "switchbell.yaml say:"],
    );
    let lines = out.split_once("say:\n\n").unwrap().1.to_owned();
    assert!(lines.starts_with("plugins:\n  grants:\n    slack:\n      http: ["), "{lines}");

    let seen = world.json(&sink, &["plugin", "inspect", slack.to_str().unwrap()]);
    assert_eq!(seen["missing"], json!({"http": ["hooks.slack.com", "slack.com"], "mail": false, "tools": []}));
    assert_eq!(seen["unwanted"]["http"], json!([format!("http://{}", sink.address())]));
    assert_eq!(seen["yaml"], lines);

    // The lines are what the file has to say.
    let text = operator(&sink, "{ outbox: { run: [cat], workspaces: [acme] } }");
    let start = text.find("plugins:\n").unwrap();
    let end = text.find("secrets:\n").unwrap();
    world.write("switchbell.yaml", &format!("{}{lines}{}", &text[..start], &text[end..]));
    let seen = world.json(&sink, &["plugin", "inspect", slack.to_str().unwrap()]);
    assert_eq!((&seen["missing"]["http"], &seen["yaml"]), (&json!([]), &json!(null)));
    let (_, out, _) = run(&world, &sink, &["plugin", "inspect", slack.to_str().unwrap()]);
    assert!(!out.contains("wanted, but not granted"), "{out}");
}

#[tokio::test]
async fn a_configuration_with_mistakes_is_no_answer() {
    let (sink, world) = world().await;
    world.write("switchbell.yaml", "plugins: { grants: { slack: { http: [a/b] } } }\n");
    for arguments in [&["plugin", "list"][..], &["plugin", "inspect", "plugins/slack.wasm"]] {
        let (code, _, error) = run(&world, &sink, arguments);
        assert_eq!(code, 2, "{error}");
        says(&error, &["a path cannot be granted"]);
    }
}

#[tokio::test]
async fn the_folder_of_plugins_is_listed_with_what_does_not_load_and_who_uses_it() {
    let (sink, world) = world().await;
    // Neither the secrets nor the variables of the server are needed.
    let text = operator(&sink, "{}").replace("SLACK_OPS", "NOT_SET_ANYWHERE");
    world.write("switchbell.yaml", &text);
    let (code, out, _) = run(&world, &sink, &["plugin", "list"]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["NAME", "VERSION", "slack", "loads", "acme: everything"]);

    std::fs::copy(guest("puppet"), world.path("plugins/puppet.wasm")).unwrap();
    std::fs::copy(guest("reaches-out"), world.path("plugins/reaches-out.wasm")).unwrap();
    world.write("plugins/text.wasm", "no component");
    let routes = workspace(&World::stdio_connector(), "{}")
        + "      - { id: page, plugin: pager, with: { key: x } }\n      - { plugin: text, with: { key: x } }\n";
    world.write("workspaces/acme.yaml", &routes);
    let (code, out, _) = run(&world, &sink, &["plugin", "list"]);
    assert_eq!(code, 1, "{out}");
    says(
        &out,
        &["puppet", "1.0.0", "no target", "does not load", "missing", "text.wasm: not WebAssembly", "pager.wasm: "],
    );
    says(&out, &["reaches-out.wasm: imports what no plugin gets"]);

    let (code, out, _) = run(&world, &sink, &["plugin", "list", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&out).unwrap();
    let summary = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["state"].as_str().unwrap().to_owned());
    let expected = [
        ("puppet", "loads"),
        ("slack", "loads"),
        ("reaches-out", "does-not-load"),
        ("text", "does-not-load"),
        ("pager", "missing"),
    ];
    let expected = expected.map(|(name, state)| (name.to_owned(), state.to_owned()));
    assert_eq!((code, rows.iter().map(summary).collect::<Vec<_>>()), (1, expected.to_vec()));
    assert_eq!(rows[1]["usedBy"], json!([{"workspace": "acme", "route": "everything", "target": null}]));
    assert_eq!(rows[4]["usedBy"], json!([{"workspace": "acme", "route": "everything", "target": "page"}]));
    assert_eq!((rows[3]["digest"].as_str().unwrap().len(), &rows[3]["version"]), (64, &json!(null)));
    assert_eq!(rows[4]["digest"], json!(null));
    assert!(rows[0]["why"].is_null() && rows[3]["why"].as_str().unwrap().contains("not WebAssembly"));
}

#[tokio::test]
async fn an_empty_folder_has_no_plugins() {
    let (sink, world) = world().await;
    std::fs::remove_file(world.path("plugins/slack.wasm")).unwrap();
    world.write("workspaces/acme.yaml", "members: { admin@example.com: admin }\n");
    let (code, out, _) = run(&world, &sink, &["plugin", "list"]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["no plugins in", "plugins"]);
}
