//! Hot loading through the whole program: what comes into the folder of plugins, what commands change, and what a restart
//! begins with.

mod disk;
mod faults;
mod many;
mod stand;

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{prepared, versioned, versioned_with};
use stand::{FILE, Stand, says};

fn guest(name: &str) -> Vec<u8> {
    fs::read(prepared(&format!("dist/guests/{name}.wasm"), "guests")).unwrap()
}

#[tokio::test]
async fn a_replaced_file_takes_effect_without_a_restart_and_every_attempt_names_its_version() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    assert_eq!(stand.deliver(&mut server, "one").await, ("/hook".to_owned(), "one".to_owned()));
    stand.put(&versioned("versioned", "1.1.0", "content"));
    says(&server.wait_for("another version of a plugin runs"), &["version=1.1.0", "before=1.0.0"]);
    assert_eq!(stand.deliver(&mut server, "two").await.1, "two\n1.1.0");
    let seen: Vec<String> = stand.attempts().into_iter().map(|(version, _)| version).collect();
    assert_eq!(seen, ["1.1.0", "1.0.0"]);
    let listed = stand.listed();
    assert_eq!((&listed["version"], &listed["state"]), (&json!("1.1.0"), &json!("runs")));
    assert_eq!((&listed["others"][0]["version"], &listed["others"][0]["standing"]), (&json!("1.0.0"), &json!("good")));
}

#[tokio::test]
async fn a_file_that_is_removed_blocks_its_deliveries_until_one_is_there_again() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    fs::remove_file(stand.path(FILE)).unwrap();
    server.wait_for("a plugin was removed");
    let (_, out, _) = stand.run(&["inbox", "list"]);
    says(&out, &["plugin.not-loaded"]);
    stand.posting.add(&["--title", "waits"]);
    server.wait_for("new=1");
    stand.put(&versioned("versioned", "2.0.0", "plain"));
    server.wait_for("a plugin is loaded");
    assert_eq!(stand.posting.endpoint.next().await.body, "waits");
}

#[tokio::test]
async fn a_file_that_is_no_good_leaves_the_running_version_in_place_and_is_told() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let good = versioned("versioned", "1.0.0", "plain");
    for (bytes, expected) in [
        (b"\0asm\x01\0\0\0".to_vec(), "a core module, not a component"),
        (good[..good.len() / 2].to_vec(), "not a valid component"),
        (versioned("another", "1.0.0", "plain"), "describes itself as another"),
        (versioned("versioned", "1.1.0", "describe-traps"), "describe"),
        (versioned("versioned", "1.1.0", "describe-loops"), "describe"),
        (versioned("versioned", "1.1.0", "refuses"), "this version takes no target"),
        (versioned("versioned", "one", "plain"), "version"),
        (b"<html>".to_vec(), "it looks like a page of the web"),
        (guest("other-world"), "not switchbell:delivery/plugin@"),
        (guest("foreign-import"), "imports what no plugin gets ("),
    ] {
        stand.put(&bytes);
        says(&server.wait_for("versioned.wasm: "), &[expected]);
        let listed = stand.listed();
        assert_eq!((&listed["version"], &listed["state"]), (&json!("1.0.0"), &json!("runs")));
        says(listed["why"].as_str().unwrap(), &[expected]);
    }
    assert_eq!(stand.deliver(&mut server, "still there").await.1, "still there");
    stand.put(&versioned("versioned", "1.1.0", "plain"));
    server.wait_for("another version of a plugin runs");
    assert_eq!(stand.listed()["why"], Value::Null);
}

#[tokio::test]
async fn commands_load_roll_back_and_list_beside_a_server_and_without_one() {
    let mut stand = Stand::new().await;
    let server = stand.posting.begin();
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "content"));
    let (code, out, error) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 0, "{out}{error}");
    says(&out, &["versioned 2.0.0 (", "runs now; before it 1.0.0 ("]);
    assert_eq!(fs::read(stand.path(FILE)).unwrap(), fs::read(&two).unwrap());
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 0);
    says(&out, &["runs already"]);
    let (code, out, _) = stand.run(&["plugin", "rollback", "versioned"]);
    assert_eq!(code, 0);
    says(&out, &["versioned 1.0.0 (", "before it 2.0.0 ("]);
    let (code, out, _) = stand.run(&["plugin", "rollback", "versioned", "3"]);
    assert_eq!(code, 1);
    says(&out, &["unknown version \"3\" (there are: 1.0.0 ("]);
    let (code, out, _) = stand.run(&["plugin", "rollback", "nobody"]);
    assert_eq!(code, 1);
    says(&out, &["no version of a plugin nobody is kept"]);
    let (code, out, _) = stand.run(&["plugin", "list"]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["versioned", "1.0.0", "runs", "versioned 2.0.0 (", ": good; ran until"]);
    server.stop(Signal::TERM);

    // The folder still holds 2.0.0, which was set aside.
    let mut server = stand.posting.serve();
    assert_eq!(stand.deliver(&mut server, "after a restart").await.1, "after a restart");
    server.stop(Signal::TERM);

    let (code, out, error) = stand.run(&["plugin", "rollback", "versioned", "2.0.0"]);
    assert_eq!(code, 0, "{out}{error}");
    says(&error, &["no server runs"]);
    let mut server = stand.posting.serve();
    assert_eq!(stand.deliver(&mut server, "again").await.1, "again\n2.0.0");
    server.stop(Signal::TERM);
    let three = stand.aside("three.wasm", &versioned("versioned", "3.0.0", "plain"));
    let (code, out, _) = stand.run(&["plugin", "load", &three]);
    assert_eq!(code, 0);
    says(&out, &["versioned 3.0.0 ("]);
    let mut server = stand.posting.serve();
    assert_eq!(stand.deliver(&mut server, "third").await.1, "third");
}

#[tokio::test]
async fn a_strict_gate_holds_what_goes_elsewhere_until_it_is_approved() {
    let mut stand = Stand::strict().await;
    let mut server = stand.posting.begin();
    stand.deliver(&mut server, "recorded").await;
    server.wait_for("the attempt is recorded");
    stand.put(&versioned("versioned", "1.1.0", "target"));
    server.wait_for("held until `switchbell plugin approve`");
    assert_eq!(stand.deliver(&mut server, "held").await.0, "/hook");
    let listed = stand.listed();
    assert_eq!((&listed["version"], &listed["others"][0]["standing"]), (&json!("1.0.0"), &json!("held")));
    let (code, out, error) = stand.run(&["plugin", "approve", "versioned"]);
    assert_eq!(code, 0, "{out}{error}");
    says(&out, &["versioned 1.1.0 (", "runs now"]);
    assert_eq!(stand.deliver(&mut server, "approved").await.0, "/hook/elsewhere");
    server.stop(Signal::TERM);
    let mut server = stand.posting.serve();
    assert_eq!(stand.deliver(&mut server, "approved for good").await.0, "/hook/elsewhere");
}

#[tokio::test]
async fn an_attempt_that_waits_goes_on_on_the_version_that_it_began_on_also_after_a_restart() {
    let mut stand = Stand::with("{ url: \"AT/hook\", wait: 5 }").await;
    stand.put(&versioned("versioned", "1.0.0", "waits"));
    let mut server = stand.posting.begin();
    stand.posting.add(&["--title", "waited for"]);
    assert_eq!(stand.posting.endpoint.next().await.target, "/hook");
    server.wait_for("the attempt goes on in");
    stand.put(&versioned("versioned", "2.0.0", "waits"));
    server.wait_for("another version of a plugin runs");
    server.stop(Signal::TERM);
    let mut server = stand.posting.serve();
    let after = stand.posting.endpoint.next().await;
    assert_eq!(after.target, "/hook/after");
    says(&after.body, &["1.0.0 resumes", r#"{"version":"1.0.0"}"#]);
    server.wait_for("INFO delivered");
    assert_eq!(stand.attempts()[0].0, "1.0.0");
    assert_eq!(stand.listed()["version"], "2.0.0");
}

#[tokio::test]
async fn the_same_version_with_other_bytes_and_a_version_that_goes_back_are_let_in_and_told() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let rebuilt =
        versioned_with(&[("name", "versioned"), ("version", "1.0.0"), ("behaviour", "plain"), ("repeat", "harmless")]);
    let rebuilt = stand.aside("rebuilt.wasm", &rebuilt);
    let (code, out, _) = stand.run(&["plugin", "load", &rebuilt]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["version 1.0.0 is another file than the one that runs"]);
    let older = stand.aside("older.wasm", &versioned("versioned", "0.9.0", "plain"));
    let (code, out, _) = stand.run(&["plugin", "load", &older]);
    assert_eq!(code, 0, "{out}");
    says(&out, &["goes back from 1.0.0 to 0.9.0"]);
    assert_eq!(stand.deliver(&mut server, "all the same").await.1, "all the same");
}

#[tokio::test]
async fn a_version_that_traps_is_rolled_back_by_itself_and_what_it_failed_is_delivered_by_the_one_before() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    // Nothing was delivered yet, so that the gate has nothing to compare.
    let bad = versioned("versioned", "1.1.0", "traps");
    stand.put(&bad);
    server.wait_for("another version of a plugin runs");
    assert_eq!(stand.deliver(&mut server, "delivered all the same").await.1, "delivered all the same");
    says(&server.said(), &["a version of a plugin is at fault, the one before runs again"]);
    let listed = stand.listed();
    let other = &listed["others"][0];
    assert_eq!(
        (&listed["version"], &other["version"], &other["standing"]),
        (&json!("1.0.0"), &json!("1.1.0"), &json!("quarantined"))
    );
    let (_, out, _) = stand.run(&["inbox", "list", "--json"]);
    let inbox: Value = serde_json::from_str(&out).unwrap();
    let told = inbox.as_array().unwrap().iter().find(|one| one["name"] == "plugin.rolled-back").unwrap();
    says(told["body"].as_str().unwrap(), &["stopped itself", "switchbell plugin load FILE"]);
    let versions: Vec<String> = stand.attempts().into_iter().map(|(version, _)| version).collect();
    assert_eq!(versions, ["1.1.0", "1.0.0"]);
    server.stop(Signal::TERM);

    // A preview is made by what runs.
    let (code, out, error) = stand.run(&["preview", "--seq", "1"]);
    assert_eq!(code, 0, "{out}{error}");
    says(&out, &["1.0.0"]);

    // It does not come again by itself, neither at a start nor when its file is put there again; by hand it does.
    let mut server = stand.posting.serve();
    assert_eq!(stand.listed()["version"], "1.0.0");
    stand.put(&versioned("versioned", "1.0.1", "plain"));
    server.wait_for("another version of a plugin runs");
    stand.put(&bad);
    says(&server.wait_for("versioned.wasm: "), &["this version was at fault and is not loaded by itself any more"]);
    let (code, out, _) = stand.run(&["plugin", "rollback", "versioned", "1.1.0"]);
    assert_eq!(code, 1);
    says(&out, &["was at fault", "`switchbell plugin load FILE` loads it all the same"]);
    let by_hand = stand.aside("bad.wasm", &bad);
    let (_, out, _) = stand.run(&["plugin", "load", &by_hand]);
    says(&out, &["1.1.0"]);
}
