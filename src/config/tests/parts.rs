//! Workspaces with mistakes beside others, and what a configuration was read from.

use std::collections::BTreeSet;
use std::path::Path;

use super::super::{Reading, Running, Texts, load, read_files};
use crate::notification::Name;

/// A folder with an operator's file and these workspaces.
fn folder_of(operator: &str, workspaces: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for path in ["workspaces", "plugins"] {
        std::fs::create_dir(folder.path().join(path)).unwrap();
    }
    std::fs::write(folder.path().join("switchbell.yaml"), operator).unwrap();
    for (name, text) in workspaces {
        std::fs::write(folder.path().join(format!("workspaces/{name}.yaml")), text).unwrap();
    }
    folder
}

const GOOD: &str = "members: { a@a.example: admin }\n";
const BAD: &str = "members: { a@a.example: king }\n";

fn names<'a>(of: impl Iterator<Item = &'a Name>) -> String {
    of.map(Name::as_str).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_workspace_whose_file_has_mistakes_is_left_out_and_the_others_are_not() {
    let folder = folder_of("poll: { budget_per_minute: 7 }\n", &[("acme", GOOD), ("bad", BAD), ("globex", GOOD)]);
    let file = folder.path().join("switchbell.yaml");
    let loaded = load(&file, &|_| None).unwrap();
    assert_eq!(names(loaded.config.workspaces.keys()), "acme globex");
    assert_eq!((names(loaded.config.aside.iter()), names(loaded.aside.keys())), ("bad".to_owned(), "bad".to_owned()));
    assert!(loaded.aside.values().all(|problems| problems.to_string().contains("bad.yaml:1:")));
    let whole = loaded.whole().unwrap_err();
    assert_eq!(whole.mistakes.len(), 1, "{whole}");
    std::fs::write(&file, "pol: 1\n").unwrap();
    let refused = load(&file, &|_| None).unwrap_err().to_string();
    assert!(refused.contains("switchbell.yaml:1:1"), "a mistake of the operator is everybody's: {refused}");
}

#[test]
fn a_workspace_goes_on_with_the_text_before_where_that_is_good_still() {
    let folder = folder_of("{}\n", &[("acme", "connectors: { c: { command: run, ceiling: info } }\n")]);
    let (file, acme) = (folder.path().join("switchbell.yaml"), folder.path().join("workspaces/acme.yaml"));
    let operator = |commands: &str| std::fs::write(&file, format!("commands: {{ {commands} }}\n")).unwrap();
    operator("run: { run: [a], workspaces: [acme] }");
    let first = load(&file, &|_| None).unwrap();
    std::fs::write(&acme, BAD).unwrap();
    let listen = "127.0.0.1:7420".parse().unwrap();
    let read = |texts| {
        read_files(&file, &Reading::of_all(&|_| None), Some(Running { texts, listen, plugins: &BTreeSet::new() }))
            .loaded
            .unwrap()
    };
    let second = read(&first.texts);
    assert_eq!(second.config.workspaces.values().next().map(|acme| acme.connectors.len()), Some(1));
    assert_eq!((names(second.older.keys()), second.aside.len()), ("acme".to_owned(), 0));
    assert!(second.older.values().all(|problems| problems.to_string().contains("acme.yaml:1:")));
    // What it ran on is judged beside what the operator says now.
    operator("other: { run: [a], workspaces: [acme] }");
    let third = read(&second.texts);
    assert_eq!((third.config.workspaces.len(), names(third.config.aside.iter())), (0, "acme".to_owned()));
    std::fs::write(&acme, GOOD).unwrap();
    assert_eq!(read(&third.texts).config.workspaces.len(), 1);
}

#[test]
fn whatever_a_configuration_is_read_from_is_known() {
    let operator = "secrets: { key: { file: keys/key, in: connector, hosts: [a.example] } }\ncatalog: { crm: { url: \
                    'https://a.example/mcp', manifest: crm.json } }\n";
    let acme = "connectors: { c: { url: 'https://a.example', notifications: { manifest: c/manifest.json } } }\n";
    let folder = folder_of(operator, &[("acme", acme), ("bad", BAD)]);
    let reading = read_files(&folder.path().join("switchbell.yaml"), &Reading::of_all(&|_| None), None);
    let here = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
    let read: Vec<String> = reading.files.paths().map(here).collect();
    assert_eq!(
        read,
        [
            "crm.json",
            "keys/key",
            "plugins",
            "switchbell.yaml",
            "workspaces",
            "workspaces/acme.yaml",
            "workspaces/bad.yaml",
            "workspaces/c/manifest.json",
        ]
    );
    assert!(reading.loaded.is_err(), "what is missing is watched, too");
}

#[test]
fn what_may_be_reached_depends_on_where_the_process_listens() {
    let acme = "connectors: { c: { url: 'http://127.0.0.1:9/mcp' } }\n";
    let folder = folder_of("listen: 127.0.0.1:7420\n", &[("acme", acme)]);
    let aside = |listen: &str| {
        let running = Running { texts: &Texts::new(), listen: listen.parse().unwrap(), plugins: &BTreeSet::new() };
        let read = read_files(&folder.path().join("switchbell.yaml"), &Reading::of_all(&|_| None), Some(running))
            .loaded
            .unwrap();
        assert_eq!(read.config.listen.to_string(), "127.0.0.1:7420");
        read.aside.len()
    };
    assert_eq!((aside("127.0.0.1:7421"), aside("0.0.0.0:7420")), (0, 1));
}

#[test]
fn a_plugin_that_is_used_already_is_known_while_its_file_is_not_there() {
    let acme = "members: { a@example.com: admin }\nroutes: [{ name: news, owner: a@example.com, deliver: [{ plugin: slack }] }]\n";
    let folder = folder_of("listen: 127.0.0.1:7420\n", &[("acme", acme)]);
    let aside = |plugins: &[&str]| {
        let plugins = plugins.iter().map(|name| name.parse().unwrap()).collect();
        let running = Running { texts: &Texts::new(), listen: "127.0.0.1:7420".parse().unwrap(), plugins: &plugins };
        let read = read_files(&folder.path().join("switchbell.yaml"), &Reading::of_all(&|_| None), Some(running));
        read.loaded.unwrap().aside.len()
    };
    assert_eq!((aside(&[]), aside(&["slack"])), (1, 0));
}
