//! The ways in which files come, change and go.

use super::*;
use crate::notification::Name;
use crate::wasm::limits::PLUGIN_BYTES_MAX;

#[test]
fn what_is_there_at_the_start_is_settled_at_once() {
    let mut stage = Stage::unseen();
    stage.put("slack.wasm", "one");
    stage.put("mail.wasm", "two");
    assert_eq!(stage.look(), ["mail: two", "slack: one"]);
    assert_eq!(stage.looks(20), [""; 0]);
}

#[test]
fn a_file_that_is_dropped_in_is_settled_in_the_second_look() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.look(), [""; 0]);
    assert_eq!(stage.look(), ["slack: one"]);
    assert_eq!(stage.looks(20), [""; 0]);
}

#[test]
fn a_file_that_is_replaced_by_renaming_is_news() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    stage.put("slack.wasm", "two");
    assert_eq!(stage.looks(2), ["slack: two"]);
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
}

#[test]
fn a_file_that_is_copied_in_pieces_is_settled_once_and_whole() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "old");
    assert_eq!(stage.looks(2), ["slack: old"]);
    let new = component("new");
    for end in [0, 3, 9, 10, 60, 100] {
        stage.write("slack.wasm", &new[..end]);
        // A copy may take its time between two pieces.
        assert_eq!(stage.looks(3), [""; 0], "after {end} bytes");
    }
    stage.write("slack.wasm", &new);
    assert_eq!(stage.looks(3), ["slack: new"]);
}

#[test]
fn a_file_that_was_given_its_size_first_is_waited_for() {
    let mut stage = Stage::new();
    let new = component("new");
    let mut growing = vec![0; new.len()];
    for end in [0, 4, 8] {
        growing[..end].copy_from_slice(&new[..end]);
        stage.write("slack.wasm", &growing);
        assert_eq!(stage.looks(3), [""; 0], "after {end} bytes");
    }
    stage.write("slack.wasm", &new);
    assert_eq!(stage.looks(3), ["slack: new"]);
}

#[test]
fn a_link_that_is_swapped_is_news() {
    let mut stage = Stage::new();
    for version in ["one", "two"] {
        fs::write(stage.root.path().join(version), component(version)).unwrap();
    }
    symlink(stage.root.path().join("one"), stage.path("slack.wasm")).unwrap();
    assert_eq!(stage.looks(2), ["slack: one"]);
    symlink(stage.root.path().join("two"), stage.path(".new")).unwrap();
    fs::rename(stage.path(".new"), stage.path("slack.wasm")).unwrap();
    assert_eq!(stage.looks(2), ["slack: two"]);
}

/// As Kubernetes changes a mounted map: each file is a link into `..data`, a link to a folder that is swapped.
#[test]
fn links_through_a_folder_that_is_swapped_are_news() {
    let mut stage = Stage::new();
    for version in ["one", "two"] {
        fs::create_dir(stage.path(&format!("..{version}"))).unwrap();
        stage.write(&format!("..{version}/slack.wasm"), &component(version));
        stage.write(&format!("..{version}/mail.wasm"), &component("the same"));
    }
    symlink("..one", stage.path("..data")).unwrap();
    for file in ["slack.wasm", "mail.wasm"] {
        symlink(format!("..data/{file}"), stage.path(file)).unwrap();
    }
    assert_eq!(stage.looks(2), ["mail: the same", "slack: one"]);
    symlink("..two", stage.path("..new")).unwrap();
    fs::rename(stage.path("..new"), stage.path("..data")).unwrap();
    assert_eq!(stage.looks(2), ["slack: two"]);
}

#[test]
fn a_link_to_nothing_is_a_problem_until_it_leads_somewhere() {
    let mut stage = Stage::new();
    symlink("elsewhere", stage.path("slack.wasm")).unwrap();
    assert_eq!(stage.looks(5), ["slack.wasm! cannot be read: it is a link to nothing"]);
    assert_eq!(stage.problems(), ["slack.wasm: cannot be read: it is a link to nothing"]);
    stage.write("elsewhere", &component("one"));
    assert_eq!(stage.looks(2), ["slack: one"]);
    assert_eq!(stage.problems(), [""; 0]);
}

#[test]
fn the_same_bytes_are_no_news() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    stage.write("slack.wasm", &component("one"));
    assert_eq!(stage.looks(3), [""; 0]);
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(3), [""; 0]);
    fs::File::open(stage.path("slack.wasm")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    assert_eq!(stage.looks(3), [""; 0]);
}

/// As `cp --preserve` and unpacking an archive do.
#[test]
fn a_file_of_the_same_size_with_its_old_time_is_news() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    let modified = fs::metadata(stage.path("slack.wasm")).unwrap().modified().unwrap();
    assert_eq!(stage.looks(2), ["slack: one"]);
    stage.write("slack.wasm", &component("two"));
    fs::File::open(stage.path("slack.wasm")).unwrap().set_modified(modified).unwrap();
    assert_eq!(stage.looks(2), ["slack: two"]);
}

#[test]
fn a_file_that_is_removed_is_gone_in_the_second_look() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    stage.remove("slack.wasm");
    assert_eq!(stage.look(), [""; 0]);
    assert_eq!(stage.look(), ["slack gone"]);
    assert_eq!(stage.looks(5), [""; 0]);
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
}

#[test]
fn a_file_that_is_removed_and_put_back_quickly_was_never_gone() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    for (content, expected) in [("one", vec![]), ("two", vec!["slack: two"])] {
        stage.remove("slack.wasm");
        assert_eq!(stage.look(), [""; 0]);
        stage.put("slack.wasm", content);
        assert_eq!(stage.looks(5), expected);
    }
}

#[test]
fn a_file_that_changes_all_the_time_is_settled_when_it_rests_and_holds_up_nobody() {
    let mut stage = Stage::new();
    for round in 0..50 {
        stage.put("flapping.wasm", &format!("{round}"));
        if round == 20 {
            stage.put("slack.wasm", "one");
        }
        let expected: &[&str] = if round == 21 { &["slack: one"] } else { &[] };
        assert_eq!(stage.look(), expected, "round {round}");
    }
    assert_eq!(stage.looks(2), ["flapping: 49"]);
}

#[test]
fn fifty_files_at_once_are_settled_together() {
    let mut stage = Stage::new();
    for number in 0..50 {
        stage.put(&format!("plugin-{number:02}.wasm"), &number.to_string());
    }
    assert_eq!(stage.look(), [""; 0]);
    let expected: Vec<String> = (0..50).map(|number| format!("plugin-{number:02}: {number}")).collect();
    assert_eq!(stage.look(), expected);
    assert_eq!(stage.looks(3), [""; 0]);
}

/// The largest files there may be, which look like one unfinished section, are read in turns.
#[test]
fn what_is_read_in_one_look_is_bounded() {
    let mut stage = Stage::unseen();
    for name in ["a", "b", "c", "d"] {
        let mut large = b"\x7fELF".to_vec();
        large.resize(PLUGIN_BYTES_MAX - 1, 0);
        stage.write(&format!("{name}.wasm"), &large);
    }
    let size = format!("{} bytes", PLUGIN_BYTES_MAX - 1);
    assert_eq!(stage.look(), [format!("a: {size}"), format!("b: {size}")]);
    assert_eq!(stage.look(), [format!("c: {size}"), format!("d: {size}")]);
    assert_eq!(stage.look(), [""; 0]);
}

#[test]
fn a_file_can_be_told_of_again() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(4), ["slack: one"]);
    stage.folder.tell_again(&"slack".parse().unwrap());
    assert_eq!(stage.looks(4), ["slack: one"]);
}

#[test]
fn only_what_was_settled_last_is_current() {
    let mut stage = Stage::new();
    let slack: Name = "slack".parse().unwrap();
    let is_current = |stage: &Stage, content: &str| stage.folder.is_current(&slack, &digest(&component(content)));
    stage.put("slack.wasm", "one");
    assert!(!is_current(&stage, "one") && !stage.folder.is_watched(&slack));
    assert_eq!(stage.looks(2), ["slack: one"]);
    assert!(is_current(&stage, "one") && stage.folder.is_watched(&slack));
    stage.put("slack.wasm", "two");
    assert_eq!(stage.looks(2), ["slack: two"]);
    assert!(!is_current(&stage, "one") && is_current(&stage, "two"));
    stage.remove("slack.wasm");
    assert_eq!(stage.looks(2), ["slack gone"]);
    assert!(!is_current(&stage, "two") && !stage.folder.is_watched(&slack));
}
