//! What is no plugin, and the directory itself.

use std::os::unix::fs::PermissionsExt;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Uid, geteuid};

use super::super::listing::ENTRIES_MAX;
use super::*;
use crate::wasm::limits::{PLUGIN_BYTES_MAX, PLUGINS_MAX};

#[test]
fn files_that_are_no_plugins_are_ignored() {
    let mut stage = Stage::new();
    for file in [".hidden.wasm", "README.md", "slack.wasm~", "slack.wasm.part", "slack.wasm.minisig"] {
        stage.write(file, b"anything");
    }
    assert_eq!(stage.looks(5), [""; 0]);
}

#[test]
fn mistakes_are_told_once_until_they_are_gone() {
    let mut stage = Stage::new();
    for file in ["Slack.wasm", "slack.cwasm", "slack.wat", "slack.WASM"] {
        stage.write(file, b"anything");
    }
    let told = stage.looks(10);
    let [bad_name, capitals, compiled, text] = told.as_slice() else { panic!("{told:?}") };
    assert!(bad_name.starts_with("Slack.wasm! the file is named for no plugin: "), "{bad_name}");
    assert!(compiled.starts_with("slack.cwasm! compiled code is not loaded, since it cannot be checked"), "{compiled}");
    assert!(capitals.ends_with("its name must end with .wasm in small letters"), "{capitals}");
    assert!(text.ends_with("turn it into a .wasm file with wasm-tools parse"), "{text}");
    assert_eq!(stage.problems().len(), 4);
    stage.remove("slack.cwasm");
    assert_eq!(stage.looks(2), [""; 0]);
    assert_eq!(stage.problems().len(), 3);
    stage.write("slack.cwasm", b"anything");
    assert_eq!(stage.looks(2).len(), 1);
}

#[test]
fn what_is_no_file_is_never_opened() {
    let mut stage = Stage::new();
    fs::create_dir(stage.path("folder.wasm")).unwrap();
    mknodat(CWD, stage.path("pipe.wasm"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let expected = ["folder.wasm! cannot be read: it is no file", "pipe.wasm! cannot be read: it is no file"];
    assert_eq!(stage.looks(5), expected);
    stage.remove("pipe.wasm");
    stage.put("pipe.wasm", "one");
    mknodat(CWD, stage.path("pipe.wasm.minisig"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_eq!(stage.looks(2), ["pipe: one"]);
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let mut stage = Stage::new();
    fs::File::create(stage.path("slack.wasm")).unwrap().set_len(PLUGIN_BYTES_MAX as u64 + 1).unwrap();
    assert_eq!(stage.looks(5), ["slack.wasm! larger than 32 MiB: build it with optimisation for size and strip it"]);
    stage.write("slack.wasm.minisig", b"by me");
    assert_eq!(stage.looks(5), [""; 0]);
    assert_eq!(stage.problems().len(), 1);
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one signed by me"]);
    assert_eq!(stage.problems(), [""; 0]);
}

/// Runs this as a user who may do nothing special.
fn as_anybody<T: Send>(job: impl FnOnce() -> T + Send) -> T {
    let job = || {
        if geteuid().is_root() {
            // Of this thread alone, which ends with the job.
            rustix::thread::set_thread_uid(Uid::from_raw(65534)).unwrap();
        }
        job()
    };
    std::thread::scope(|scope| scope.spawn(job).join().unwrap())
}

fn permit(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_file_that_may_not_be_read_is_a_problem_until_it_may() {
    let mut stage = Stage::new();
    permit(stage.root.path(), 0o755);
    permit(&stage.path(""), 0o755);
    stage.put("slack.wasm", "one");
    permit(&stage.path("slack.wasm"), 0);
    let told = as_anybody(|| stage.looks(5));
    assert_eq!(told, ["slack.wasm! cannot be read: Permission denied (os error 13)"]);
    permit(&stage.path("slack.wasm"), 0o644);
    assert_eq!(as_anybody(|| stage.looks(2)), ["slack: one"]);
}

#[test]
fn files_that_cannot_be_seen_are_not_gone() {
    let mut stage = Stage::new();
    permit(stage.root.path(), 0o755);
    permit(&stage.path(""), 0o755);
    stage.put("slack.wasm", "one");
    assert_eq!(as_anybody(|| stage.looks(2)), ["slack: one"]);
    permit(&stage.path(""), 0o744);
    assert_eq!(as_anybody(|| stage.looks(5)), ["slack.wasm! cannot be read: permission denied"]);
    permit(&stage.path(""), 0o755);
    assert_eq!(as_anybody(|| stage.looks(5)), [""; 0]);
    assert_eq!(stage.problems(), [""; 0]);
}

#[test]
fn a_directory_that_vanishes_takes_no_plugin_with_it() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    stage.put("mail.wasm", "two");
    assert_eq!(stage.looks(2), ["mail: two", "slack: one"]);
    let aside = stage.root.path().join("aside");
    fs::rename(stage.path(""), &aside).unwrap();
    let told = stage.looks(20);
    let [unreadable] = told.as_slice() else { panic!("{told:?}") };
    let expected = "unreadable: the directory of plugins cannot be read: No such file or directory (os error 2); ";
    assert!(unreadable.starts_with(expected), "{unreadable}");
    fs::rename(&aside, stage.path("")).unwrap();
    assert_eq!(stage.looks(5), ["readable"]);
    stage.put("slack.wasm", "three");
    assert_eq!(stage.looks(2), ["slack: three"]);
}

#[test]
fn a_directory_that_comes_back_without_a_plugin_has_lost_it() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    fs::remove_dir_all(stage.path("")).unwrap();
    assert_eq!(stage.looks(2).len(), 1);
    fs::create_dir(stage.path("")).unwrap();
    stage.put("mail.wasm", "two");
    assert_eq!(stage.looks(2), ["readable", "slack gone", "mail: two"]);
}

/// Another file system, which is what an unmounted directory is on.
#[test]
fn a_directory_that_was_unmounted_takes_no_plugin_with_it() {
    let mut stage = Stage::new();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(2), ["slack: one"]);
    stage.remove("slack.wasm");
    stage.folder.device = stage.folder.device.map(|device| device + 1);
    let told = stage.looks(5);
    let [unreadable] = told.as_slice() else { panic!("{told:?}") };
    assert!(unreadable.contains("empty and on another file system than before: was it unmounted?"), "{unreadable}");
    stage.put("slack.wasm", "one");
    assert_eq!(stage.looks(3), ["readable"]);
}

#[test]
fn a_directory_that_is_not_there_at_the_start_is_looked_for() {
    let mut stage = Stage::unseen();
    fs::remove_dir(stage.path("")).unwrap();
    assert_eq!(stage.looks(5).len(), 1);
    fs::create_dir(stage.path("")).unwrap();
    stage.put("slack.wasm", "one");
    assert_eq!(stage.look(), ["readable", "slack: one"]);
}

#[test]
fn of_too_many_files_those_that_are_known_stay() {
    let mut stage = Stage::new();
    stage.put("zulip.wasm", "known");
    assert_eq!(stage.looks(2), ["zulip: known"]);
    for number in 0..PLUGINS_MAX {
        stage.put(&format!("plugin-{number:03}.wasm"), "one of many");
    }
    let told = stage.looks(2);
    let expected = "! the directory holds more than 256 plugins, and plugin-255.wasm is not loaded; remove some";
    assert_eq!((told.len(), told[0].as_str()), (PLUGINS_MAX, expected));
    assert!(told.contains(&"plugin-254: one of many".to_owned()));
    stage.remove("plugin-000.wasm");
    assert_eq!(stage.looks(3), ["plugin-000 gone", "plugin-255: one of many"]);
    assert_eq!(stage.problems(), [""; 0]);
}

#[test]
fn a_directory_that_is_none_for_plugins_is_not_looked_through() {
    let mut stage = Stage::new();
    for number in 0..=ENTRIES_MAX {
        stage.write(&format!("{number}.txt"), b"");
    }
    let told = stage.looks(5);
    let [unreadable] = told.as_slice() else { panic!("{told:?}") };
    assert!(unreadable.starts_with("unreadable: the directory of plugins holds more than 10000 files"), "{unreadable}");
}
