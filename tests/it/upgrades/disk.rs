//! What the disk can do to versions of plugins: nothing that runs stops, and what could not be done is done later.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::stand::{FILE, Stand, says};
use crate::support::versioned;

const KEPT: &str = "data/switchbell.db.plugins";
const HISTORY: &str = "data/switchbell.db.plugins/history.json";

impl Stand {
    /// Something else is in this place until [`Stand::restore`].
    fn displace(&self, name: &str) {
        fs::rename(self.path(name), self.path("displaced")).unwrap();
    }

    fn restore(&self, name: &str) {
        fs::rename(self.path("displaced"), self.path(name)).unwrap();
    }

    /// The version that is listed as the one that runs, and what is wrong with the file.
    fn runs(&self) -> (Value, String) {
        let listed = self.listed();
        assert_eq!(listed["state"], "runs");
        (listed["version"].clone(), listed["why"].as_str().unwrap_or_default().to_owned())
    }
}

#[tokio::test]
async fn a_folder_that_is_removed_takes_no_plugin_with_it_and_is_watched_when_it_is_back() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.displace("plugins");
    server.wait_for("the directory of plugins");
    assert_eq!(stand.deliver(&mut server, "without a folder").await.1, "without a folder");
    fs::create_dir(stand.path("made")).unwrap();
    fs::write(stand.path("made/versioned.wasm"), versioned("versioned", "1.1.0", "content")).unwrap();
    fs::rename(stand.path("made"), stand.path("plugins")).unwrap();
    server.wait_for("the folder of plugins can be read again");
    server.wait_for("version=1.1.0");
    assert_eq!(stand.deliver(&mut server, "with one").await.1, "with one\n1.1.0");
}

#[tokio::test]
async fn where_no_version_can_be_kept_what_runs_goes_on_and_the_new_one_runs_once_there_is_room() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.displace(KEPT);
    fs::write(stand.path(KEPT), "no folder").unwrap();
    stand.put(&versioned("versioned", "1.1.0", "content"));
    says(&server.wait_for("versioned.wasm: "), &["it cannot be kept in ", "taken up again by itself"]);
    assert_eq!(stand.runs().0, "1.0.0");
    says(&stand.runs().1, &["it cannot be kept in "]);
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "content"));
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 1, "{out}");
    says(&out, &["it cannot be kept in ", "make room, then load it again"]);
    assert_eq!(stand.deliver(&mut server, "as before").await.1, "as before");
    fs::remove_file(stand.path(KEPT)).unwrap();
    stand.restore(KEPT);
    server.wait_for("version=1.1.0");
    assert_eq!(stand.runs(), (json!("1.1.0"), String::new()));
    assert_eq!(stand.deliver(&mut server, "there is room").await.1, "there is room\n1.1.0");
}

#[tokio::test]
async fn where_the_history_cannot_be_written_nothing_changes_until_it_can() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let in_the_way = || fs::create_dir_all(stand.path(HISTORY).join("full")).unwrap();
    stand.displace(HISTORY);
    in_the_way();
    stand.put(&versioned("versioned", "1.1.0", "content"));
    says(&server.wait_for("versioned.wasm: "), &["the history of plugins in ", "cannot be written"]);
    assert_eq!(stand.runs().0, "1.0.0");
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "content"));
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 1, "{out}");
    says(&out, &["the history of plugins in "]);
    assert_eq!(stand.deliver(&mut server, "as before").await.1, "as before");
    fs::remove_dir_all(stand.path(HISTORY)).unwrap();
    stand.restore(HISTORY);
    // What was asked for by hand is in the folder.
    server.wait_for("version=2.0.0");
    assert_eq!(stand.runs(), (json!("2.0.0"), String::new()));
    stand.displace(HISTORY);
    fs::create_dir_all(stand.path(HISTORY).join("full")).unwrap();
    fs::remove_file(stand.path(FILE)).unwrap();
    server.wait_for("cannot be removed");
    assert_eq!(stand.deliver(&mut server, "not removed").await.1, "not removed\n2.0.0");
    fs::remove_dir_all(stand.path(HISTORY)).unwrap();
    stand.restore(HISTORY);
    server.wait_for("a plugin was removed");
}

#[tokio::test]
async fn what_cannot_be_written_into_the_folder_is_not_loaded_by_hand() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "content"));
    fs::create_dir(stand.path("plugins/.versioned.wasm.new")).unwrap();
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 1, "{out}");
    says(&out, &["versioned.wasm: cannot be written: ", "put the file there yourself"]);
    assert_eq!(stand.runs(), (json!("1.0.0"), String::new()));
    assert_eq!(stand.deliver(&mut server, "as before").await.1, "as before");
    fs::remove_dir(stand.path("plugins/.versioned.wasm.new")).unwrap();
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 0, "{out}");
    assert_eq!(stand.deliver(&mut server, "now").await.1, "now\n2.0.0");
}

#[tokio::test]
async fn killed_right_after_a_change_it_starts_with_one_whole_version() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    let two = stand.aside("two.wasm", &versioned("versioned", "2.0.0", "content"));
    let (code, out, _) = stand.run(&["plugin", "load", &two]);
    assert_eq!(code, 0, "{out}");
    server.kill();
    let mut server_after = stand.posting.serve();
    assert_eq!(stand.runs(), (json!("2.0.0"), String::new()));
    assert_eq!(stand.deliver(&mut server_after, "loaded").await.1, "loaded\n2.0.0");
    server = server_after;
    // In the folder, and not yet seen there.
    stand.put(&versioned("versioned", "3.0.0", "content"));
    server.kill();
    server = stand.posting.serve();
    assert_eq!(stand.runs(), (json!("3.0.0"), String::new()));
    stand.put(&versioned("versioned", "4.0.0", "content"));
    server.wait_for("version=4.0.0");
    server.kill();
    server = stand.posting.serve();
    assert_eq!(stand.runs(), (json!("4.0.0"), String::new()));
    assert_eq!(stand.deliver(&mut server, "dropped in").await.1, "dropped in\n4.0.0");
}

#[tokio::test]
async fn killed_in_the_middle_of_a_load_it_starts_with_the_version_before_or_after() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    for number in 1..=5 {
        let before = stand.runs().0;
        let version = format!("2.{number}.0");
        let file = stand.aside("new.wasm", &versioned("versioned", &version, "content"));
        // It is killed at the beginning, before the compiler's answer, and in between.
        std::thread::scope(|scope| {
            let loading = scope.spawn(|| stand.run(&["plugin", "load", &file]));
            if number > 1 {
                server.wait_for(["compiled", "plugin", "compiled", "version="][number % 4]);
            }
            server.kill();
            loading.join().unwrap();
        });
        server = stand.posting.serve();
        let (runs, problem) = stand.runs();
        assert!(runs == before || runs == version.as_str(), "{runs}, not {before} or {version}");
        assert_eq!(problem, "");
    }
    let title = stand.deliver(&mut server, "whole").await.1;
    assert!(title.starts_with("whole"), "{title}");
}

#[tokio::test]
async fn without_a_readable_history_it_starts_with_what_is_in_the_folder() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.put(&versioned("versioned", "1.1.0", "content"));
    server.wait_for("version=1.1.0");
    server.stop(Signal::TERM);
    fs::write(stand.path(HISTORY), "{\"plugins\": {").unwrap();
    let mut server = stand.posting.serve();
    says(&server.said(), &["the history of plugins cannot be read (", "set aside as history.json.broken"]);
    assert_eq!(stand.runs(), (json!("1.1.0"), String::new()));
    assert_eq!(stand.deliver(&mut server, "all the same").await.1, "all the same\n1.1.0");
    let (code, out, _) = stand.run(&["plugin", "rollback", "versioned"]);
    assert_eq!(code, 1);
    says(&out, &["no other good version of versioned ran before"]);
}

#[tokio::test]
async fn compiled_code_that_was_changed_is_compiled_again_and_a_version_that_was_is_not_gone_back_to() {
    let mut stand = Stand::new().await;
    let mut server = stand.posting.begin();
    stand.put(&versioned("versioned", "1.1.0", "content"));
    server.wait_for("version=1.1.0");
    let before = stand.listed()["others"][0]["digest"].as_str().unwrap().to_owned();
    server.stop(Signal::TERM);
    let mut changed = 0;
    for folder in fs::read_dir(stand.path(KEPT).join("compiled")).unwrap() {
        for entry in fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&path, bytes).unwrap();
            changed += 1;
        }
    }
    assert!(changed >= 2);
    let mut server = stand.posting.serve();
    says(&server.said(), &["compiled code is not used: the plugin is compiled again"]);
    assert_eq!(stand.deliver(&mut server, "compiled again").await.1, "compiled again\n1.1.0");
    fs::write(stand.path(KEPT).join(format!("{before}.wasm")), versioned("versioned", "6.6.6", "plain")).unwrap();
    let (code, out, _) = stand.run(&["plugin", "rollback", "versioned"]);
    assert_eq!(code, 1, "{out}");
    says(&out, &["its content is not what its name says"]);
    assert_eq!(stand.deliver(&mut server, "as before").await.1, "as before\n1.1.0");
}
