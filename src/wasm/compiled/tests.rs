//! The store with real components: what may be loaded from it, and what never is.

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::config::Limits;
use crate::wasm::guests::{guest, puppet_describing};
use crate::wasm::load::file_digest;
use crate::wasm::{LoadError, Plugin, Sandbox, Settings};

const KEY: [u8; 32] = [7; 32];

/// A sandbox that keeps compiled code in this folder.
fn sandbox(folder: &Path, change: impl FnOnce(&mut Settings)) -> Sandbox {
    let mut settings = Settings {
        threads: NonZeroUsize::new(1),
        key: Some(KEY),
        compiled: Some(folder.to_owned()),
        ..Settings::new(Limits::default())
    };
    change(&mut settings);
    Sandbox::new(settings).unwrap()
}

/// Loads with a compiler that is there.
async fn load(folder: &Path, bytes: &[u8]) -> Result<Plugin, LoadError> {
    sandbox(folder, |_| {}).load(bytes.to_vec()).await
}

/// Loads what is kept, and nothing else: there is no compiler.
async fn load_kept(folder: &Path, bytes: &[u8]) -> Result<Plugin, LoadError> {
    let without = |settings: &mut Settings| settings.compiler = Compiler::Child("/no/such/compiler".into());
    sandbox(folder, without).load(bytes.to_vec()).await
}

fn needs_compiler(loaded: Result<Plugin, LoadError>) {
    let text = loaded.unwrap_err().to_string();
    assert!(text.contains("no process could be started to compile it (/no/such/compiler: "), "{text}");
}

fn twin() -> Vec<u8> {
    puppet_describing(r#"{"name":"twin","version":"2.0.0"}"#)
}

fn digest(bytes: &[u8]) -> String {
    file_digest(bytes).unwrap()
}

fn compatibility_of(folder: &Path) -> String {
    sandbox(folder, |_| {}).0.compatibility.clone()
}

fn entry(folder: &Path, bytes: &[u8]) -> PathBuf {
    folder.join(compatibility_of(folder)).join(format!("{}.cwasm", digest(bytes)))
}

/// A folder in which the puppet's code is kept, and the path of that.
async fn kept() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    load(folder.path(), &guest("puppet")).await.unwrap();
    let path = entry(folder.path(), &guest("puppet"));
    (folder, path)
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

#[tokio::test]
async fn what_was_compiled_once_needs_no_compiler_again() {
    let (folder, path) = kept().await;
    let written = fs::metadata(&path).unwrap().ino();
    let plugin = load_kept(folder.path(), &guest("puppet")).await.unwrap();
    assert_eq!((plugin.manifest().name.as_str(), plugin.digest()), ("puppet", digest(&guest("puppet")).as_str()));
    assert_eq!(plugin.size(), guest("puppet").len());
    assert_eq!((plugin.interface(), plugin.imports().is_empty()), ("switchbell:delivery/plugin@0.1.0", false));
    assert_eq!(fs::metadata(&path).unwrap().ino(), written);
    needs_compiler(load_kept(folder.path(), &twin()).await);
}

#[tokio::test]
async fn the_store_is_for_nobody_else() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("a/compiled");
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    load(&folder, &guest("puppet")).await.unwrap();
    let path = entry(&folder, &guest("puppet"));
    assert_eq!((mode(&folder), mode(path.parent().unwrap()), mode(&path)), (0o700, 0o700, 0o600));
}

#[tokio::test]
async fn nothing_is_kept_without_a_folder_for_it() {
    let settings = Settings::new(Limits::default());
    assert!((settings.compiled.is_none(), settings.compiler.clone()) == (true, Compiler::Thread));
    let sandbox = Sandbox::new(settings).unwrap();
    sandbox.load(guest("puppet")).await.unwrap();
    sandbox.prune_compiled(&BTreeSet::new()).unwrap();
}

/// Spoils a kept entry in a way: it is not loaded, and with a compiler it is made anew and loaded from then on.
async fn spoiled(what: &str, spoil: impl AsyncFnOnce(&Path, Vec<u8>) -> Vec<u8>) {
    let (folder, path) = kept().await;
    let good = fs::read(&path).unwrap();
    let bad = spoil(folder.path(), good.clone()).await;
    assert_ne!(bad, good, "{what}");
    for has_compiler in [false, true] {
        fs::write(&path, &bad).unwrap();
        if has_compiler {
            let plugin = load(folder.path(), &guest("puppet")).await.unwrap();
            assert_eq!(plugin.manifest().name.as_str(), "puppet", "{what}");
        } else {
            needs_compiler(load_kept(folder.path(), &guest("puppet")).await);
            assert!(!path.exists(), "{what} is still there");
        }
    }
    assert_eq!(fs::read(&path).unwrap(), good, "{what}");
    load_kept(folder.path(), &guest("puppet")).await.unwrap();
}

#[tokio::test]
async fn a_truncated_or_changed_entry_is_made_anew() {
    for length in [0, 1, 31, 32, 33, 4_000] {
        spoiled("cut off", async |_, good| good[..length].to_vec()).await;
    }
    spoiled("without its end", async |_, good| good[..good.len() - 1].to_vec()).await;
    spoiled("with more", async |_, good| [good, vec![0]].concat()).await;
    for place in [0, 31, 32, 40, 100_000] {
        spoiled("one bit changed", async |_, mut good| {
            good[place] ^= 1;
            good
        })
        .await;
    }
    spoiled("without a tag", async |_, good| good[32..].to_vec()).await;
}

#[tokio::test]
async fn code_of_another_component_store_or_engine_is_never_loaded() {
    spoiled("another component", async |folder, _| {
        load(folder, &twin()).await.unwrap();
        fs::read(entry(folder, &twin())).unwrap()
    })
    .await;
    spoiled("another component's code", async |folder, good| {
        load(folder, &twin()).await.unwrap();
        [&good[..32], &fs::read(entry(folder, &twin())).unwrap()[32..]].concat()
    })
    .await;
    spoiled("another key", async |_, _| {
        let other = tempfile::tempdir().unwrap();
        let keyed = sandbox(other.path(), |settings| settings.key = Some([8; 32]));
        keyed.load(guest("puppet")).await.unwrap();
        fs::read(entry(other.path(), &guest("puppet"))).unwrap()
    })
    .await;
    spoiled("another engine", async |_, _| {
        let other = tempfile::tempdir().unwrap();
        let larger = sandbox(other.path(), |settings| settings.limits.memory_bytes_max = 128 << 20);
        larger.load(guest("puppet")).await.unwrap();
        let compatibility = larger.0.compatibility.clone();
        assert_ne!(compatibility, compatibility_of(other.path()));
        fs::read(other.path().join(compatibility).join(format!("{}.cwasm", digest(&guest("puppet"))))).unwrap()
    })
    .await;
}

#[tokio::test]
async fn an_entry_larger_than_any_is_not_read() {
    let (folder, path) = kept().await;
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(64 << 30).unwrap();
    needs_compiler(load_kept(folder.path(), &guest("puppet")).await);
    assert!(!path.exists());
}

#[tokio::test]
async fn code_that_the_engine_refuses_in_spite_of_its_tag_is_made_anew() {
    let (folder, path) = kept().await;
    let good = fs::read(&path).unwrap();
    sandbox(folder.path(), |_| {}).0.compiled.as_ref().unwrap().put(&digest(&guest("puppet")), &Code(vec![1, 2, 3]));
    needs_compiler(load_kept(folder.path(), &guest("puppet")).await);
    load(folder.path(), &guest("puppet")).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), good);
}

#[tokio::test]
async fn what_is_kept_is_checked_as_what_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let refused = [
        guest("foreign-import"),
        guest("reaches-out"),
        guest("forged-types"),
        guest("other-world"),
        guest("other-shape"),
        puppet_describing("{}"),
        puppet_describing("!trap"),
    ];
    for bytes in refused {
        let compiled = load(folder.path(), &bytes).await.unwrap_err();
        let sandbox = sandbox(folder.path(), |_| {});
        let code = compiler::native(&sandbox.0.engine, &bytes).unwrap();
        sandbox.0.compiled.as_ref().unwrap().put(&digest(&bytes), &Code(code));
        assert_eq!(load_kept(folder.path(), &bytes).await.unwrap_err(), compiled);
    }
}

#[tokio::test]
async fn what_no_plugin_imports_or_exports_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["foreign-import", "other-world"] {
        load(folder.path(), &guest(name)).await.unwrap_err();
    }
    load(folder.path(), b"\0asm\x0d\0\x01\0").await.unwrap_err();
    assert!(names(&folder.path().join(compatibility_of(folder.path()))).is_empty());
}

#[tokio::test]
async fn a_disk_that_refuses_costs_a_compilation_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "in the way").unwrap();
    let nowhere = folder.path().join("file/compiled");
    load(&nowhere, &guest("puppet")).await.unwrap();
    needs_compiler(load_kept(&nowhere, &guest("puppet")).await);
    sandbox(&nowhere, |_| {}).prune_compiled(&BTreeSet::new()).unwrap();

    // A write that fails at its end.
    let path = entry(folder.path(), &guest("puppet"));
    fs::create_dir_all(path.join("full")).unwrap();
    load(folder.path(), &guest("puppet")).await.unwrap();
    assert_eq!(names(path.parent().unwrap()), [path.file_name().unwrap().to_str().unwrap()], "nothing half written");
}

#[tokio::test]
async fn what_was_compiled_for_other_versions_goes_with_the_first_load() {
    let (folder, path) = kept().await;
    let old = folder.path().join("0123456789abcdef".repeat(4));
    fs::create_dir(&old).unwrap();
    fs::write(old.join("x.cwasm"), "old").unwrap();
    fs::create_dir(folder.path().join("notes")).unwrap();
    fs::write(folder.path().join("f".repeat(64)), "a file").unwrap();
    let sandbox = sandbox(folder.path(), |_| {});
    assert!(old.exists(), "nothing is touched before");
    sandbox.load(guest("puppet")).await.unwrap();
    let mut expected = vec![compatibility_of(folder.path()), "f".repeat(64), "notes".to_owned()];
    expected.sort();
    assert_eq!(names(folder.path()), expected);
    assert!(path.exists());
}

#[tokio::test]
async fn pruning_removes_what_no_plugin_needs_any_more() {
    let (folder, path) = kept().await;
    load(folder.path(), &twin()).await.unwrap();
    let within = path.parent().unwrap();
    fs::write(within.join("half.cwasm.new"), "half").unwrap();
    fs::write(within.join("notes"), "somebody's").unwrap();
    let sandbox = sandbox(folder.path(), |_| {});
    sandbox.prune_compiled(&BTreeSet::from([digest(&guest("puppet"))])).unwrap();
    let mut expected = vec![format!("{}.cwasm", digest(&guest("puppet"))), "notes".to_owned()];
    expected.sort();
    assert_eq!(names(within), expected);
    load_kept(folder.path(), &guest("puppet")).await.unwrap();
}

#[tokio::test]
async fn plugins_that_are_loaded_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<Vec<u8>> = (0..6)
        .map(|number| puppet_describing(&format!(r#"{{"name":"plugin-{}","version":"1.0.0"}}"#, number % 3)))
        .collect();
    let sandbox = sandbox(folder.path(), |_| {});
    let loading = files.iter().map(|bytes| sandbox.load(bytes.clone()));
    for loaded in futures_util::future::join_all(loading).await {
        loaded.unwrap();
    }
    for bytes in &files {
        load_kept(folder.path(), bytes).await.unwrap();
    }
    assert_eq!(names(&folder.path().join(compatibility_of(folder.path()))).len(), 3);
}

#[test]
fn code_depends_on_the_settings_of_the_engine_and_on_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let of = |change: &dyn Fn(&mut Settings)| sandbox(folder.path(), change).0.compatibility.clone();
    let usual = of(&|_| {});
    assert!(usual.len() == 64 && usual.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(usual, of(&|settings| settings.kept_instances_max = 1));
    assert_eq!(usual, of(&|settings| settings.key = None));
    assert_ne!(usual, of(&|settings| settings.limits.memory_bytes_max = 1 << 30));
}

/// Loads with one of the compilers that fail, each in its way.
async fn failing(compiler: &str, bounds: CompileBounds) -> String {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/compilers").join(compiler);
    let failing = sandbox(folder.path(), |settings| {
        settings.compiler = Compiler::Child(program);
        settings.compile_bounds = bounds;
    });
    let refused = failing.load(guest("puppet")).await.unwrap_err().to_string();
    assert!(names(&folder.path().join(compatibility_of(folder.path()))).is_empty());
    refused
}

#[tokio::test]
async fn a_compiler_that_fails_is_told_with_what_it_said() {
    for (compiler, expected) in [
        ("answers-nonsense", "the host could not load it: the process that compiles it is of another version"),
        ("fails", "the compiler failed on it (exit status: 3: the disk is on fire): build it again"),
        ("fails-silently", "the compiler failed on it (exit status: 3): build it again"),
        ("complains-endlessly", "the compiler failed on it (exit status: 3: !!!!!!"),
        ("is-killed", "the host could not load it: the process that compiles it was killed, perhaps because"),
        ("lacks-memory", "compiling it passed the memory limit of 4 GiB: build it smaller"),
        ("lacks-threads", "the host could not load it: the process that compiles it got no thread"),
        ("answers-endlessly", "compiling it passed the code size limit of 256 MiB: build it smaller"),
    ] {
        let told = failing(compiler, CompileBounds::default()).await;
        assert!(told.starts_with(expected) && told.len() < 700, "{compiler}: {told}");
    }
}

#[tokio::test]
async fn a_compiler_that_takes_too_long_is_ended() {
    let bounds = CompileBounds { time_max: std::time::Duration::from_millis(300), ..CompileBounds::default() };
    for compiler in ["never-ends", "hears-nothing"] {
        let told = failing(compiler, bounds).await;
        assert_eq!(
            told,
            "compiling it passed the time limit of 300 ms: load it again when the machine is less busy, or build it smaller"
        );
    }
}

#[tokio::test]
async fn a_load_that_nobody_waits_for_any_more_makes_room_for_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/compilers/never-ends");
    let sandbox = sandbox(folder.path(), |settings| settings.compiler = Compiler::Child(program));
    let permits = || sandbox.0.compile.available_permits();
    let mut load = Box::pin(sandbox.load(guest("puppet")));
    while permits() == 1 {
        assert!(futures_util::poll!(&mut load).is_pending());
        tokio::task::yield_now().await;
    }
    drop(load);
    assert_eq!(permits(), 1);
}
