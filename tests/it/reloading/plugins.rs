//! Plugins are judged anew by a configuration: what would not be loaded at a start does not run any more.

use rustix::process::Signal;
use serde_json::json;

use super::stage::Stage;

const TRUST: &str = "plugins:\n  trust: [\"minisign:RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\"]\n";

#[tokio::test]
async fn a_plugin_that_is_not_trusted_any_more_does_not_run_and_runs_again_once_it_is() {
    let mut stage = Stage::new().await;
    let mut server = stage.begin();
    stage.add("one");
    assert_eq!(stage.arrived().await.1, "one");
    stage.edit("switchbell.yaml", "plugins:\n", TRUST);
    let says =
        ["plugins.trust changed", "plugin slack does not run any more: ", "plugin versioned does not run any more: "];
    stage.check(&["reload"], 0, &says);
    stage.add("waits");
    assert_eq!(stage.deliveries()[0].1, "blocked");
    assert!(stage.notices().contains(&"plugin.not-loaded".to_owned()));
    stage.edit("switchbell.yaml", TRUST, "plugins:\n");
    stage.check(&["reload"], 0, &["plugins.trust changed"]);
    server.wait_for("a plugin is loaded plugin=versioned");
    assert_eq!(stage.arrived().await.1, "waits");
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn a_plugin_of_another_digest_than_its_pin_does_not_run_any_more() {
    let stage = Stage::new().await;
    let server = stage.begin();
    let pins = format!("plugins:\n  pins: {{ versioned: \"sha256:{}\" }}\n", "0".repeat(64));
    stage.edit("switchbell.yaml", "plugins:\n", &pins);
    let taken = stage.reload();
    let unloaded = taken["unloaded"].as_array().unwrap();
    assert_eq!((unloaded.len(), &unloaded[0]["name"], &unloaded[0]["instead"]), (1, &json!("versioned"), &json!(null)));
    server.kill();
    let server = stage.posting.serve();
    let (code, listed, _) = stage.run(&["plugin", "list", "--json"]);
    assert_eq!(code, 1, "something is wrong with a plugin");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    let versioned = listed.as_array().unwrap().iter().find(|row| row["name"] == "versioned").unwrap();
    assert_ne!(versioned["state"], "runs", "a start comes to the same");
    server.stop(Signal::TERM);
}
