//! Files that are no plugins, and what is said about them.

use std::path::Path;

use super::*;
use crate::notification::Name;
use crate::wasm::guests::puppet_describing;
use crate::wasm::limits::PLUGINS_MAX;
use crate::wasm::{Catalog, LoadError, PLUGIN_BYTES_MAX, Repeat};

async fn refused(bytes: Vec<u8>) -> LoadError {
    sandbox().load(bytes).await.unwrap_err()
}

#[tokio::test]
async fn a_plugin_describes_itself() {
    let plugin = puppet().await;
    let manifest = plugin.manifest();
    assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("puppet", "1.0.0"));
    assert_eq!(manifest.repeat, Repeat::Tolerable);
    assert!(plugin.digest().len() == 64 && plugin.digest().bytes().all(|byte| byte.is_ascii_hexdigit()));
}

#[tokio::test]
async fn what_is_no_component_is_refused_with_what_to_do() {
    let truncated = guest("puppet")[..5000].to_vec();
    for (what, bytes, expected) in [
        ("nothing", vec![], "not WebAssembly: "),
        ("garbage", b"GIF89a".to_vec(), "not WebAssembly: "),
        ("a core module", b"\0asm\x01\0\0\0".to_vec(), "a core module, not a component: build it for wasm32-wasip2"),
        ("an unknown version", b"\0asm\x09\0\x01\0".to_vec(), "not a valid component ("),
        ("a truncated component", truncated, "not a valid component ("),
        (
            "an empty component",
            b"\0asm\x0d\0\x01\0".to_vec(),
            "exports nothing, not switchbell:delivery/plugin@0.1.0: ",
        ),
        ("a huge file", vec![0; PLUGIN_BYTES_MAX + 1], "larger than 32 MiB: "),
    ] {
        let text = refused(bytes).await.to_string();
        assert!(text.starts_with(expected), "{what}: {text}");
    }
}

#[tokio::test]
async fn native_code_is_refused() {
    let compiled = sandbox().0.engine.precompile_component(b"\0asm\x0d\0\x01\0").unwrap();
    assert_eq!(refused(compiled).await, LoadError::Precompiled);
}

#[tokio::test]
async fn sockets_and_files_are_refused_by_name() {
    let LoadError::ForeignImports { names, remedy } = refused(guest("reaches-out")).await else { panic!("loaded") };
    for interface in ["wasi:sockets/tcp@", "wasi:filesystem/types@", "wasi:filesystem/preopens@"] {
        assert!(names.iter().any(|name| name.starts_with(interface)), "{interface} in {names:?}");
    }
    assert!(names.iter().all(|name| name.starts_with("wasi:sockets/") || name.starts_with("wasi:filesystem/")));
    assert!(remedy.contains("answers an http, mail or tool action") && remedy.contains("std::net"));
}

#[tokio::test]
async fn a_function_of_the_plugins_own_is_refused_by_name() {
    let text = refused(guest("foreign-import")).await.to_string();
    assert!(
        text.starts_with("imports what no plugin gets (shout): the host links no function but inert WASI"),
        "{text}"
    );
}

#[tokio::test]
async fn a_function_hidden_among_the_contracts_types_is_refused() {
    let LoadError::ForeignImports { names, .. } = refused(guest("forged-types")).await else { panic!("loaded") };
    assert_eq!(names, ["switchbell:delivery/types@0.1.0"]);
}

#[tokio::test]
async fn another_contract_is_refused_with_both_versions() {
    assert_eq!(
        refused(guest("other-world")).await.to_string(),
        "exports switchbell:delivery/plugin@0.9.0, not switchbell:delivery/plugin@0.1.0: it was built for a newer \
         contract, 0.9.0, and this host speaks 0.1; update this host, or build it against this host's wit/delivery.wit"
    );
}

#[tokio::test]
async fn other_types_are_refused_with_the_function() {
    let text = refused(guest("other-shape")).await.to_string();
    let expected = "exports switchbell:delivery/plugin with other types (check: ";
    assert!(text.starts_with(expected), "{text}");
}

#[tokio::test]
async fn a_description_that_describes_nothing_is_refused() {
    for (description, expected) in [
        ("!trap", "describe failed: the plugin stopped itself (it panicked or aborted)"),
        ("!loop", "describe failed: the plugin passed its CPU time limit of 100 ms a step"),
        ("!huge", "describe answers no plugin's description: it is 1048576 bytes long; at most 256 KiB"),
        ("hello", "describe answers no plugin's description: it is no JSON: expected value at line 1 column 1"),
        ("{}", "describe answers no plugin's description: name: is missing; version: is missing"),
        (
            r#"{"name":"puppet","version":"one"}"#,
            "describe answers no plugin's description: version: \"one\" is no semantic version such as 1.2.3",
        ),
    ] {
        assert_eq!(refused(puppet_describing(description)).await.to_string(), expected);
    }
}

fn write(directory: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(directory.join(name), bytes).unwrap();
}

#[tokio::test]
async fn a_catalog_loads_what_is_good_and_names_what_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    write(path, "puppet.wasm", &guest("puppet"));
    write(path, "twin.wasm", &puppet_describing(r#"{"name":"twin","version":"2.0.0"}"#));
    write(path, "slack.wasm", &guest("puppet"));
    write(path, "broken.wasm", b"broken");
    write(path, "Bad_Name.wasm", &guest("puppet"));
    write(path, ".hidden.wasm", b"half a copy");
    write(path, "readme.txt", b"no plugin");
    std::fs::create_dir(path.join("folder.wasm")).unwrap();
    let (catalog, problems) = Catalog::open(sandbox(), path).await;
    assert_eq!(catalog.names().map(Name::as_str).collect::<Vec<_>>(), ["puppet", "twin"]);
    assert_eq!(catalog.get(&"puppet".parse().unwrap()).unwrap().digest(), puppet().await.digest());
    assert!(catalog.get(&"slack".parse().unwrap()).is_none());
    let problems: Vec<_> = problems
        .iter()
        .map(|problem| (problem.path.strip_prefix(path).unwrap().to_str().unwrap(), problem.message.as_str()))
        .collect();
    let [bad_name, broken, folder, slack] = problems.as_slice() else { panic!("{problems:?}") };
    assert!(bad_name.0 == "Bad_Name.wasm" && bad_name.1.starts_with("the file is named for no plugin: "));
    assert!(broken.0 == "broken.wasm" && broken.1.starts_with("not WebAssembly: "));
    assert_eq!(*folder, ("folder.wasm", "cannot be read: it is no file"));
    assert_eq!(*slack, ("slack.wasm", "describes itself as puppet: name the file puppet.wasm, or the plugin slack"));
}

#[tokio::test]
async fn a_directory_that_is_not_there_is_one_problem() {
    let (catalog, problems) = Catalog::open(sandbox(), Path::new("/no/such/directory")).await;
    assert_eq!((catalog.names().count(), problems.len()), (0, 1));
    assert!(problems[0].to_string().starts_with("/no/such/directory: the directory of plugins cannot be read: "));
}

#[tokio::test]
async fn a_directory_of_too_many_plugins_loads_the_first() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..=PLUGINS_MAX {
        write(directory.path(), &format!("plugin-{number:03}.wasm"), b"broken");
    }
    let (_, problems) = Catalog::open(sandbox(), directory.path()).await;
    let (last, others) = problems.split_last().unwrap();
    assert!(last.message.starts_with("not loaded: the directory holds more than 256 plugins"), "{last}");
    assert!(others.len() == PLUGINS_MAX && others.iter().all(|problem| problem.message.starts_with("not WebAssembly")));
}
