//! A depot on a real disk.

mod decisions;

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::notification::Name;
use crate::wasm::PLUGIN_BYTES_MAX;

fn digest_of(bytes: &[u8]) -> String {
    file_digest(bytes).unwrap()
}

fn open(root: &Path) -> Opened {
    Depot::open(root).unwrap()
}

fn new() -> (tempfile::TempDir, Depot) {
    let folder = tempfile::tempdir().unwrap();
    let depot = open(&folder.path().join("depot")).depot;
    (folder, depot)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = entries.collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A digest that begins with this digit.
fn digest(number: u8) -> String {
    format!("{number:x}").repeat(64)
}

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(second).unwrap()
}

/// A version that was seen first at the second of its number, and ran last then.
fn version(number: u8, last_active_at: Option<i64>, standing: Standing) -> Version {
    Version {
        digest: digest(number),
        version: format!("1.{number}.0"),
        bytes: 7,
        first_at: at(i64::from(number)),
        last_active_at: last_active_at.map(at),
        standing,
    }
}

fn held() -> Standing {
    Standing::Held { why: "it asks for another address".into() }
}

fn quarantined() -> Standing {
    Standing::Quarantined { why: "it trapped".into(), at: at(99) }
}

fn set(numbers: &[u8]) -> BTreeSet<String> {
    numbers.iter().copied().map(digest).collect()
}

#[test]
fn the_depot_of_a_store_stands_beside_it() {
    assert_eq!(root(Path::new("/var/lib/sb/switchbell.db")), Path::new("/var/lib/sb/switchbell.db.plugins"));
}

#[test]
fn a_new_depot_is_empty_and_its_owners_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/depot");
    let opened = open(&path);
    assert_eq!((opened.history, opened.set_aside.is_none(), mode(&path)), (History::default(), true, 0o700));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    open(&path);
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn a_folder_that_cannot_be_had_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let text = Depot::open(&folder.path().join("file/depot")).unwrap_err().to_string();
    assert!(text.contains("file/depot: the folder for versions of plugins cannot be used: "), "{text}");
    assert!(text.contains("let the server's user write"), "{text}");
}

#[test]
fn what_is_kept_comes_back_byte_for_byte_and_for_nobody_else() {
    let (_folder, depot) = new();
    let (bytes, signature) = (b"\0asm component".as_slice(), "untrusted comment: x\nRWQ...\n");
    let digest = digest_of(bytes);
    depot.keep(&digest, bytes, None).unwrap();
    assert_eq!(depot.bytes(&digest).unwrap(), (bytes.to_vec(), None));
    depot.keep(&digest, bytes, Some(signature)).unwrap();
    depot.keep(&digest, bytes, None).unwrap();
    assert_eq!(depot.bytes(&digest).unwrap(), (bytes.to_vec(), Some(signature.to_owned())));
    assert_eq!(names(depot.root()), [format!("{digest}.wasm"), format!("{digest}.wasm.minisig")]);
    for name in names(depot.root()) {
        assert_eq!(mode(&depot.root().join(name)), 0o600);
    }
}

#[test]
fn what_is_not_what_its_digest_says_is_neither_kept_nor_given_out() {
    let (_folder, depot) = new();
    let digest = digest_of(b"one");
    assert_eq!(depot.keep(&digest, b"two", None).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert!(names(depot.root()).is_empty());
    assert_eq!(depot.bytes(&digest).unwrap_err().kind(), io::ErrorKind::NotFound);
    let path = depot.root().join(format!("{digest}.wasm"));
    for damaged in [b"on".as_slice(), b"", b"two", &vec![0; PLUGIN_BYTES_MAX + 1]] {
        fs::write(&path, damaged).unwrap();
        let error = depot.bytes(&digest).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains(".wasm: its content is not what its name says"), "{error}");
    }
    // Keeping it again mends it.
    depot.keep(&digest, b"one", None).unwrap();
    assert_eq!(depot.bytes(&digest).unwrap().0, b"one");
}

#[test]
fn a_digest_that_could_be_a_path_is_refused() {
    let (_folder, depot) = new();
    for bad in ["", "../../etc/passwd", &digest(10).to_uppercase(), &"a".repeat(63), &"a".repeat(65), &"g".repeat(64)] {
        assert_eq!(depot.bytes(bad).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bad}");
        assert_eq!(depot.keep(bad, b"x", None).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bad}");
    }
}

#[test]
fn a_signature_has_a_largest_size() {
    let (_folder, depot) = new();
    let digest = digest_of(b"x");
    let fits = "s".repeat(SIGNATURE_BYTES_MAX);
    depot.keep(&digest, b"x", Some(&fits)).unwrap();
    assert_eq!(depot.bytes(&digest).unwrap().1, Some(fits.clone()));
    let error = depot.keep(&digest, b"x", Some(&(fits.clone() + "s"))).unwrap_err();
    assert!(error.to_string().contains("more than 4096 bytes"), "{error}");
    fs::write(depot.root().join(format!("{digest}.wasm.minisig")), fits + "s").unwrap();
    assert!(depot.bytes(&digest).unwrap_err().to_string().contains(".minisig: it has more than 4096 bytes"));
}

#[test]
fn a_disk_that_refuses_is_an_error_and_leaves_what_was_there() {
    let (_folder, depot) = new();
    let digest = digest_of(b"x");
    let in_the_way = depot.root().join(format!("{digest}.wasm/full"));
    fs::create_dir_all(&in_the_way).unwrap();
    depot.keep(&digest, b"x", None).unwrap_err();
    assert!(in_the_way.exists());
    assert_eq!(names(depot.root()), [format!("{digest}.wasm")], "nothing half written is left");
}

#[test]
fn pruning_removes_forgotten_versions_and_unfinished_writes_only() {
    let (_folder, depot) = new();
    let (kept, forgotten) = (digest_of(b"kept"), digest_of(b"forgotten"));
    depot.keep(&kept, b"kept", Some("signature")).unwrap();
    depot.keep(&forgotten, b"forgotten", Some("signature")).unwrap();
    depot.save(&History::default()).unwrap();
    for name in [format!("{kept}.wasm.new"), "history.json.new".to_owned()] {
        fs::write(depot.root().join(name), "half").unwrap();
    }
    for name in ["notes.wasm", "history.json.broken"] {
        fs::write(depot.root().join(name), "somebody's").unwrap();
    }
    fs::create_dir(depot.root().join("compiled")).unwrap();
    depot.prune(&BTreeSet::from([kept.clone()])).unwrap();
    let mut expected = vec![format!("{kept}.wasm"), format!("{kept}.wasm.minisig")];
    expected.extend(["compiled", "history.json", "history.json.broken", "notes.wasm"].map(str::to_owned));
    expected.sort();
    assert_eq!(names(depot.root()), expected);
}

fn history() -> History {
    let versions =
        vec![version(1, Some(10), Standing::Good), version(2, None, held()), version(3, Some(30), quarantined())];
    let slack = Kept { active: Some(digest(1)), folder: Some(digest(9)), watched: Some(digest(2)), versions };
    let plugins = [("slack", slack), ("mail", Kept::default())];
    History { plugins: plugins.map(|(name, kept)| (name.parse::<Name>().unwrap(), kept)).into() }
}

#[test]
fn a_history_is_read_as_it_was_saved() {
    let (_folder, depot) = new();
    depot.save(&history()).unwrap();
    let opened = open(depot.root());
    assert!(opened.set_aside.is_none());
    assert_eq!(opened.history, history());
    assert_eq!(mode(&depot.root().join("history.json")), 0o600);
    depot.save(&History::default()).unwrap();
    assert_eq!(open(depot.root()).history, History::default());
}

#[test]
fn a_long_reason_is_cut_not_refused() {
    let (_folder, depot) = new();
    let mut long = history();
    let slack = long.plugins.get_mut("slack").unwrap();
    slack.versions[1].standing = Standing::Held { why: format!("\u{1b}[2J{}\r\nend", "ä".repeat(3_000)) };
    depot.save(&long).unwrap();
    let read = open(depot.root());
    assert!(read.set_aside.is_none());
    let Standing::Held { why } = &read.history.plugins["slack"].versions[1].standing else { panic!("not held") };
    assert!(why.chars().count() == 2_000 && why.starts_with("[2Jä") && why.ends_with('…'), "{why}");
}

#[test]
fn what_could_not_be_read_again_is_not_saved() {
    let (_folder, depot) = new();
    depot.save(&history()).unwrap();
    let mut wrong = history();
    wrong.plugins.get_mut("slack").unwrap().active = Some("../../etc/passwd".into());
    let error = depot.save(&wrong).unwrap_err();
    assert_eq!(error.to_string(), "no history of plugins: plugins.slack.active: is no SHA-256 in lower-case hex");
    let mut large = history();
    let one = large.plugins["slack"].clone();
    for number in 0..HISTORY_BYTES_MAX / 600 {
        large.plugins.insert(format!("p{number}").parse().unwrap(), one.clone());
    }
    assert!(depot.save(&large).unwrap_err().to_string().contains("more than 16777216 bytes"));
    assert_eq!(open(depot.root()).history, history());
}

#[test]
fn a_history_that_cannot_be_read_is_set_aside_and_told_and_stops_nothing() {
    let good = file::write(&history()).unwrap();
    let large = format!("{good}{}", " ".repeat(HISTORY_BYTES_MAX));
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replacen(from, to, 1).into_bytes()
    };
    let one = digest(1);
    for (text, expected) in [
        (b"".to_vec(), "EOF while parsing"),
        (good.as_bytes()[..good.len() / 2].to_vec(), "EOF while parsing"),
        (b"\xff\xfe".to_vec(), "UTF-8"),
        (large.into_bytes(), "it has more than 16777216 bytes"),
        (replaced("\"plugins\"", "\"later\": 1, \"plugins\""), "unknown field `later`"),
        (replaced("\"active\"", "\"later\": 1, \"active\""), "unknown field `later`"),
        (replaced("\"bytes\"", "\"later\": 1, \"bytes\""), "unknown field `later`"),
        (replaced("\"why\"", "\"later\": 1, \"why\""), "unknown field `later`"),
        (replaced("\"good\"", "\"splendid\""), "unknown variant `splendid`"),
        (replaced("\"slack\"", "\"../slack\""), "plugins.../slack: "),
        (
            replaced(&format!("\"active\": \"{one}"), &format!("\"active\": \"/{one}")),
            "plugins.slack.active: is no SHA",
        ),
        (replaced(&format!("\"active\": \"{one}"), &format!("\"active\": \"{}", digest(4))), "is none of its versions"),
        (replaced(&format!("\"folder\": \"{}", digest(9)), "\"folder\": \"x"), "plugins.slack.folder: is no SHA"),
        (replaced(&format!("\"digest\": \"{one}"), "\"digest\": \"x"), "plugins.slack.versions[0].digest: is no SHA"),
        (
            replaced(&format!("\"digest\": \"{}", digest(2)), &format!("\"digest\": \"{one}")),
            "versions[1].digest: is there twice",
        ),
        (replaced("\"1.1.0\"", "\"one\""), "plugins.slack.versions[0].version: \"one\" is no semantic version"),
        (replaced("\"bytes\": 7", "\"bytes\": 33554433"), "versions[0].bytes: is more than a plugin may have"),
        (replaced("\"bytes\": 7", "\"bytes\": -1"), "invalid value"),
        (replaced("1970-01-01T00:00:01Z", "yesterday"), "versions[0].firstAt: \"yesterday\" is no moment"),
        (replaced("1970-01-01T00:00:10Z", "soon"), "versions[0].lastActiveAt: \"soon\" is no moment"),
        (replaced("1970-01-01T00:01:39Z", "once"), "versions[2].standing.quarantined.at: \"once\" is no moment"),
        (replaced("it trapped", "it \\u001b[2J"), "versions[2].standing.quarantined.why: is no line of text"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("history.json"), &text).unwrap();
        let opened = open(folder.path());
        assert_eq!(opened.history, History::default(), "{expected}");
        let told = opened.set_aside.unwrap().to_string();
        assert!(told.contains(expected) && told.contains("set aside as history.json.broken"), "{expected}: {told}");
        assert_eq!(names(folder.path()), ["history.json.broken"]);
        assert_eq!(fs::read(folder.path().join("history.json.broken")).unwrap(), text);
        assert!(open(folder.path()).set_aside.is_none(), "it is told once");
    }
}

#[test]
fn a_history_that_cannot_even_be_set_aside_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("history.json"), "{").unwrap();
    fs::create_dir_all(folder.path().join("history.json.broken/full")).unwrap();
    let told = open(folder.path()).set_aside.unwrap().to_string();
    assert!(told.contains("it cannot be set aside (") && told.contains("will be written over"), "{told}");
}
