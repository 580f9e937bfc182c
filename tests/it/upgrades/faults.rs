//! Versions at fault after a restart, after an approval, in a burst; and what a person chose meanwhile.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use super::stand::{FILE, Stand, says};
use crate::support::versioned;

#[tokio::test]
async fn a_version_on_probation_is_watched_after_a_restart_too_also_one_that_was_loaded_without_a_server() {
    let mut stand = Stand::new().await;
    let server = stand.posting.begin();
    server.stop(Signal::TERM);
    let bad = stand.aside("bad.wasm", &versioned("versioned", "1.1.0", "traps"));
    let (code, out, error) = stand.run(&["plugin", "load", &bad]);
    assert_eq!(code, 0, "{out}{error}");
    let server = stand.posting.serve();
    assert_eq!(stand.listed()["probation"]["atFault"], 0);
    server.kill();
    let mut server = stand.posting.serve();
    assert_eq!(stand.deliver(&mut server, "after two starts").await.1, "after two starts");
    let listed = stand.listed();
    assert_eq!((&listed["version"], &listed["others"][0]["standing"]), (&json!("1.0.0"), &json!("quarantined")));
    assert_eq!(listed["probation"], json!(null));
}

#[tokio::test]
async fn all_that_a_version_at_fault_rejected_is_delivered_by_the_one_before_also_of_a_burst() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.put(&versioned("versioned", "1.1.0", "rejects"));
    server.wait_for("another version of a plugin runs");
    let titles: Vec<String> = (0..12).map(|number| format!("burst {number:02}")).collect();
    titles.iter().for_each(|title| stand.posting.add(&["--title", title]));
    let mut arrived = Vec::new();
    for _ in &titles {
        arrived.push(stand.posting.endpoint.next().await.body);
    }
    arrived.sort();
    assert_eq!(arrived, titles);
    assert_eq!(stand.listed()["version"], "1.0.0");
}

#[tokio::test]
async fn a_version_that_was_approved_is_on_probation() {
    let mut stand = Stand::strict().await;
    let mut server = stand.posting.begin();
    // Older, so that it is held; nothing was delivered, so that the gate does not see that it traps.
    stand.put(&versioned("versioned", "0.9.0", "traps"));
    server.wait_for("held until `switchbell plugin approve`");
    let (code, out, error) = stand.run(&["plugin", "approve", "versioned"]);
    assert_eq!(code, 0, "{out}{error}");
    assert_eq!(stand.deliver(&mut server, "approved and at fault").await.1, "approved and at fault");
    assert_eq!(stand.listed()["version"], "1.0.0");
}

#[tokio::test]
async fn with_a_strict_gate_the_file_of_a_version_that_ran_well_is_a_way_back() {
    let mut stand = Stand::strict().await;
    let mut server = stand.posting.begin();
    stand.put(&versioned("versioned", "1.1.0", "plain"));
    says(&server.wait_for("another version of a plugin runs"), &["version=1.1.0"]);
    stand.put(&versioned("versioned", "1.0.0", "plain"));
    says(&server.wait_for("another version of a plugin runs"), &["version=1.0.0"]);
    assert_eq!(stand.listed()["others"][0]["standing"], "good");
    assert_eq!(stand.deliver(&mut server, "back").await.1, "back");
}

#[tokio::test]
async fn a_server_starts_when_the_file_of_a_plugin_in_use_was_removed() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.deliver(&mut server, "before").await;
    server.stop(Signal::TERM);
    fs::remove_file(stand.path(FILE)).unwrap();
    let (code, out, _) = stand.run(&["check"]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["versioned.wasm is not in plugins/: without it, what this target is owed waits"]);
    let mut server = stand.posting.serve();
    stand.posting.add(&["--title", "waits"]);
    server.wait_for("new=1");
    stand.put(&versioned("versioned", "1.0.0", "plain"));
    server.wait_for("a plugin is loaded");
    assert_eq!(stand.posting.endpoint.next().await.body, "waits");
}

#[tokio::test]
async fn a_plugin_that_was_removed_and_comes_back_is_compared_with_the_version_that_ran_last() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.deliver(&mut server, "recorded").await;
    server.wait_for("the attempt is recorded");
    fs::remove_file(stand.path(FILE)).unwrap();
    server.wait_for("a plugin was removed");
    stand.put(&versioned("versioned", "1.1.0", "traps"));
    says(&server.wait_for("versioned.wasm: "), &["fails"]);
    stand.put(&versioned("versioned", "1.1.1", "plain"));
    server.wait_for("a plugin is loaded");
    assert_eq!(stand.deliver(&mut server, "back again").await.1, "back again");
}

#[tokio::test]
async fn a_file_that_was_refused_is_told_again_after_a_restart_and_loaded_once_it_is_right() {
    let stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.put(&versioned("versioned", "1.1.0", "refuses"));
    server.wait_for("versioned.wasm: ");
    server.stop(Signal::TERM);
    let server = stand.posting.serve();
    let listed = stand.listed();
    assert_eq!(listed["version"], "1.0.0");
    says(listed["why"].as_str().unwrap(), &["this version takes no target"]);
    server.stop(Signal::TERM);
}

#[tokio::test]
async fn what_runs_is_written_into_the_folder_when_it_is_loaded_by_hand_and_its_file_is_not_there() {
    let stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "plain"));
    stand.run(&["plugin", "load", &two]);
    stand.run(&["plugin", "rollback", "versioned"]);
    server.wait_for("before=2.0.0");
    let one = stand.aside("one.wasm", &versioned("versioned", "1.0.0", "plain"));
    let (code, out, _) = stand.run(&["plugin", "load", &one]);
    assert_eq!(code, 0);
    says(&out, &["runs already"]);
    assert_eq!(fs::read(stand.path(FILE)).unwrap(), fs::read(one).unwrap());
}

#[tokio::test]
async fn commands_without_a_server_let_in_what_a_server_would() {
    let stand = Stand::new().await;
    let file = fs::read_to_string(stand.path("switchbell.yaml")).unwrap();
    let pin = format!("plugins:\n  pins: {{ versioned: \"sha256:{}\" }}\n", "0".repeat(64));
    stand.posting.world.write("switchbell.yaml", &file.replace("plugins:\n", &pin));
    for command in ["check", "plugin list"] {
        let (code, out, error) = stand.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 1, "{out}{error}");
        says(&format!("{out}{error}"), &["versioned.wasm", "pins"]);
    }
}

#[tokio::test]
async fn a_version_that_is_loaded_and_held_says_what_it_does_otherwise_when_it_is_approved_and_comes_into_the_folder() {
    let mut stand = Stand::strict().await;
    let mut server = stand.posting.begin();
    stand.deliver(&mut server, "recorded").await;
    server.wait_for("the attempt is recorded");
    let other = stand.aside("other.wasm", &versioned("versioned", "1.1.0", "target"));
    let (code, out, _) = stand.run(&["plugin", "load", &other]);
    assert_eq!(code, 1, "{out}");
    says(&out, &["is held", "1 target", "+", "/hook/elsewhere"]);
    assert_ne!(fs::read(stand.path(FILE)).unwrap(), fs::read(&other).unwrap());
    let (code, out, _) = stand.run(&["plugin", "approve", "versioned"]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["runs now", "1 target", "/hook/elsewhere"]);
    assert_eq!(fs::read(stand.path(FILE)).unwrap(), fs::read(&other).unwrap());
}
