//! The manifest.json of a bundle: its block `_meta["ai.nimblebrain/host"]`, of which the declaration of an outbox is read
//! (notifications seed, "Declare the outbox"; the manifest's reference for `host_version`). Nothing in a manifest is ever a
//! mistake of the configuration: the bundle is somebody else's, and may come later.

use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use super::load::read_bytes;
use super::scalar::quote;
use super::values::{about_outbox, outbox_uri_mistake};

/// Largest manifest, in bytes: as much as a file of the configuration.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// The name of the block.
const BLOCK: &str = "ai.nimblebrain/host";
/// Parts of the block that a manifest may hold and that have no effect in this version.
const WITHOUT_EFFECT: [&str; 2] = ["hooks", "lifecycle"];

/// What a manifest says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Manifest {
    /// The URI of the outbox that it declares, or why there is none to poll: the place in the file and the remedy.
    pub outbox: Result<String, String>,
    /// Which of `hooks` and `lifecycle` it holds.
    pub without_effect: Vec<&'static str>,
}

impl Manifest {
    fn unusable(why: impl Into<String>) -> Self {
        Self { outbox: Err(why.into()), without_effect: Vec::new() }
    }
}

/// Reads a manifest. With `folder`, no file that is not in it or below is read, whatever links say.
pub(super) fn read(file: &Path, folder: Option<&Path>) -> Manifest {
    match bytes(file, folder) {
        Ok(Some(bytes)) => parse(&bytes),
        Ok(None) => Manifest::unusable(format!("larger than {MANIFEST_BYTES_MAX} bytes, the most a manifest may have")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Manifest::unusable("it is not there: put the manifest of the bundle there, or name another file")
        }
        Err(error) => Manifest::unusable(format!("it cannot be read: {error}")),
    }
}

fn bytes(file: &Path, folder: Option<&Path>) -> io::Result<Option<Vec<u8>>> {
    let Some(folder) = folder else { return read_bytes(file, MANIFEST_BYTES_MAX) };
    let file = file.canonicalize()?;
    if !file.starts_with(folder.canonicalize()?) {
        return Err(io::Error::other("it leads out of the folder of the workspace's file; put the file itself there"));
    }
    read_bytes(&file, MANIFEST_BYTES_MAX)
}

fn parse(bytes: &[u8]) -> Manifest {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let root: Value = match serde_json::from_slice(bytes) {
        Ok(root) => root,
        Err(error) => return Manifest::unusable(format!("it is not JSON: {error}")),
    };
    let block = match block(&root) {
        Ok(block) => block,
        Err(why) => return Manifest::unusable(why),
    };
    let is_held = |name: &&str| block.get(*name).is_some_and(|value| !is_empty(value));
    Manifest { outbox: outbox(block), without_effect: WITHOUT_EFFECT.into_iter().filter(is_held).collect() }
}

/// The block, if it is there and of a version that is read.
fn block(root: &Value) -> Result<&Map<String, Value>, String> {
    let root = object(root, "the whole")?;
    let place = format!("_meta[\"{BLOCK}\"]");
    let missing = || {
        format!(
            "{place} is missing, so no outbox is declared: the bundle adds it, with `\"host_version\": \"1.3\"` and \
             `\"notifications\": {{ \"resource\": \"…\" }}`"
        )
    };
    let meta = present(root, "_meta").ok_or_else(missing)?;
    let block = present(object(meta, "_meta")?, BLOCK).ok_or_else(missing)?;
    let block = object(block, &place)?;
    let place = format!("{place}.host_version");
    match present(block, "host_version") {
        Some(Value::String(version)) if is_readable(version) => Ok(block),
        Some(Value::String(version)) => Err(format!(
            "{place} is {}, of which nothing is read: this version of Switchbell reads 1.x, as in `\"1.3\"`",
            quote(version)
        )),
        Some(other) => Err(format!("{place} is {}: it must be a text, as in `\"1.3\"`", kind(other))),
        None => Err(format!("{place} is missing: write `\"host_version\": \"1.3\"`")),
    }
}

/// Whether a version is `1`, `1.3` or the like.
fn is_readable(version: &str) -> bool {
    let mut parts = version.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.next() == Some("1") && parts.all(is_number)
}

fn outbox(block: &Map<String, Value>) -> Result<String, String> {
    let place = format!("_meta[\"{BLOCK}\"].notifications");
    let declared = present(block, "notifications").ok_or_else(|| {
        format!("{place} is missing, so no outbox is declared: the bundle adds `\"notifications\": {{ \"resource\": \"…\" }}`")
    })?;
    let declared = object(declared, &place)?;
    let place = format!("{place}.resource");
    match present(declared, "resource") {
        Some(Value::String(uri)) => match outbox_uri_mistake(uri) {
            Some(why) => Err(format!("{place}: {}{why}", about_outbox(uri, &quote(uri)))),
            None => Ok(uri.clone()),
        },
        Some(other) => Err(format!("{place} is {}: it must be a text, the URI of the outbox", kind(other))),
        None => Err(format!("{place} is missing: write the URI of the outbox, as in `\"acme://notifications\"`")),
    }
}

/// A member that is there; `null` is not.
fn present<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.get(key).filter(|value| !value.is_null())
}

fn object<'a>(value: &'a Value, place: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{place} is {}: it must be an object", kind(value)))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a block: the URI that it declares, or what is said of it.
    fn check(block: &str, expected: Result<&str, &str>) {
        let manifest = parse(format!(r#"{{"name":"x","_meta":{{"ai.nimblebrain/host":{block}}}}}"#).as_bytes());
        match (&manifest.outbox, expected) {
            (Ok(uri), Ok(expected)) => assert_eq!(uri, expected, "{block}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{block}: {why}"),
            _ => panic!("{block}: {manifest:?}"),
        }
    }

    #[test]
    fn every_first_version_is_read_and_what_is_unknown_is_ignored() {
        for version in ["1", "1.0", "1.3", "1.99", "1.3.1"] {
            check(
                &format!(r#"{{"host_version":"{version}","later":[1],"notifications":{{"resource":"a:n","x":{{}}}}}}"#),
                Ok("a:n"),
            );
        }
        for version in [r#""2""#, r#""2.0""#, r#""11""#, r#""0.9""#, r#""1.""#, r#""1.x""#, r#""""#, "1", "1.3", "null"]
        {
            check(
                &format!(r#"{{"host_version":{version},"notifications":{{"resource":"a:n"}}}}"#),
                Err("host_version"),
            );
        }
    }

    #[test]
    fn a_description_that_is_no_text_is_dropped_and_the_declaration_kept() {
        let block = |description| {
            format!(r#"{{"host_version":"1.3","notifications":{{"resource":"a:n","description":{description}}}}}"#)
        };
        for description in [r#""words""#, "7", "null", "[]", "{}"] {
            check(&block(description), Ok("a:n"));
        }
    }

    #[test]
    fn a_declaration_follows_the_rules_of_every_outbox() {
        let block = |declared| format!(r#"{{"host_version":"1.3","notifications":{declared}}}"#);
        check(&block("null"), Err("notifications is missing"));
        check(r#"{"host_version":"1.3"}"#, Err("notifications is missing"));
        check(&block("[]"), Err("notifications is a list"));
        check(&block(r#""a:n""#), Err("notifications is a text"));
        check(&block("{}"), Err("notifications.resource is missing"));
        check(&block(r#"{"resource":7}"#), Err("notifications.resource is a number"));
        check(&block(r#"{"resource":"ui://n"}"#), Err("the scheme ui is reserved"));
        check(&block(r#"{"resource":"a:n?key=hidden"}"#), Err("notifications.resource: an outbox has no query"));
        check(&block(r#"{"resource":"a:n#x"}"#), Err("no fragment"));
        check(&block(r#"{"resource":"notifications"}"#), Err("begins with a scheme"));
        check("7", Err("is a number: it must be an object"));
        check("null", Err("is missing"));
    }

    #[test]
    fn what_is_no_manifest_declares_nothing() {
        for (text, part) in [
            ("", "not JSON"),
            ("{", "line 1 column 1"),
            ("[]", "the whole is a list"),
            ("{}", "is missing"),
            (r#"{"_meta":7}"#, "_meta is a number"),
            ("\u{feff}{}", "is missing"),
            (&"[".repeat(10_000), "not JSON"),
        ] {
            assert!(parse(text.as_bytes()).outbox.is_err_and(|why| why.contains(part)), "{text}");
        }
        assert!(parse(b"{\"\xff\":1}").outbox.is_err_and(|why| why.contains("not JSON")));
    }

    #[test]
    fn hooks_and_lifecycle_are_noticed_only_where_there_are_some() {
        let held = |rest: &str| {
            let text = format!(r#"{{"_meta":{{"ai.nimblebrain/host":{{"host_version":"1.2"{rest}}}}}}}"#);
            parse(text.as_bytes()).without_effect
        };
        assert_eq!(held(r#","hooks":[{}],"lifecycle":{"on_ready":"x"}"#), ["hooks", "lifecycle"]);
        assert!(held(r#","hooks":[],"lifecycle":null"#).is_empty());
        assert!(held("").is_empty());
    }

    #[test]
    fn only_a_file_in_the_folder_that_is_not_too_large_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("workspaces");
        std::fs::create_dir(&inside).unwrap();
        let good = r#"{"_meta":{"ai.nimblebrain/host":{"host_version":"1.3","notifications":{"resource":"a:n"}}}}"#;
        let most = usize::try_from(MANIFEST_BYTES_MAX).unwrap();
        std::fs::write(folder.path().join("outside.json"), good).unwrap();
        let padded = |length: usize| good.to_owned() + &" ".repeat(length - good.len());
        std::fs::write(inside.join("most.json"), padded(most)).unwrap();
        std::fs::write(inside.join("more.json"), padded(most + 1)).unwrap();
        std::os::unix::fs::symlink("../outside.json", inside.join("out.json")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        std::os::unix::fs::symlink("most.json", inside.join("same.json")).unwrap();
        std::fs::create_dir(inside.join("folder.json")).unwrap();
        for (file, expected) in [
            ("most.json", Ok("a:n")),
            ("same.json", Ok("a:n")),
            ("more.json", Err("larger than 1048576 bytes")),
            ("out.json", Err("leads out of the folder")),
            ("up/outside.json", Err("leads out of the folder")),
            ("folder.json", Err("not a regular file")),
            ("none.json", Err("it is not there")),
        ] {
            match (read(&inside.join(file), Some(&inside)).outbox, expected) {
                (Ok(uri), Ok(expected)) => assert_eq!(uri, expected, "{file}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{file}: {why}"),
                (found, _) => panic!("{file}: {found:?}"),
            }
        }
        assert_eq!(read(&inside.join("out.json"), None).outbox.as_deref(), Ok("a:n"));
    }
}
