//! Signatures that the real minisign makes.

use std::path::Path;
use std::process::Command;

use minisign_verify::PublicKey;
use tempfile::TempDir;

use super::*;

/// A folder with key pairs and a file.
struct Signer(TempDir);

/// What the plugin's file holds.
const BYTES: &[u8] = b"\0asm and what else a plugin holds";

impl Signer {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("slack.wasm"), BYTES).unwrap();
        Self(folder)
    }

    fn run(&self, arguments: &[&str]) {
        let mut command = Command::new("minisign");
        let output = command.args(arguments).current_dir(self.path()).output();
        let output = output.expect("minisign is not installed; make deps installs it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// A new pair of keys of this name.
    fn key(&self, name: &str) -> TrustedKey {
        self.run(&["-G", "-W", "-p", &format!("{name}.pub"), "-s", &format!("{name}.key")]);
        let text = std::fs::read_to_string(self.path().join(format!("{name}.pub"))).unwrap();
        let (comment, encoded) = text.trim().split_once('\n').unwrap();
        let bytes = STANDARD.decode(encoded).unwrap();
        let key =
            TrustedKey { id: KeyId(bytes[2..10].try_into().unwrap()), key: PublicKey::from_base64(encoded).unwrap() };
        assert!(comment.ends_with(&format!(" {}", key.id)), "the program shows the id in another way: {comment}");
        key
    }

    /// The text of a signature of the file by the keys of this name.
    fn sign(&self, key: &str, more: &[&str]) -> String {
        self.run(&[&["-S", "-s", &format!("{key}.key"), "-m", "slack.wasm"], more].concat());
        std::fs::read_to_string(self.path().join("slack.wasm.minisig")).unwrap()
    }
}

#[test]
fn what_a_trusted_key_signed_is_let_in() {
    let signer = Signer::new();
    let (one, other) = (signer.key("one"), signer.key("other"));
    let signature = signer.sign("other", &[]);
    assert_eq!(verify(BYTES, Some(&signature), &[one.clone(), other.clone()]), Ok(Some(other.id)));
    let same_id = TrustedKey { id: other.id, ..one };
    assert_eq!(verify(BYTES, Some(&signature), &[same_id, other.clone()]), Ok(Some(other.id)));
    let windows = signature.replace('\n', "\r\n");
    assert_eq!(verify(BYTES, Some(&windows), std::slice::from_ref(&other)), Ok(Some(other.id)));
}

#[test]
fn without_keys_anything_goes() {
    for signature in [None, Some(""), Some("nonsense")] {
        assert_eq!(verify(BYTES, signature, &[]), Ok(None));
    }
}

#[test]
fn what_no_trusted_key_signed_is_refused_with_the_remedy() {
    let signer = Signer::new();
    let (one, other) = (signer.key("one"), signer.key("other"));
    let (signed, legacy) = (signer.sign("one", &[]), signer.sign("one", &["-l"]));
    let commented = signed.replace("file:slack.wasm", "file:other.wasm");
    assert_ne!(signed, commented);
    let too_long = format!("{signed}{}", "x".repeat(SIGNATURE_BYTES_MAX));
    let (id, both) = (one.id, [one.clone(), other.clone()]);
    let only_other = vec![other.id];
    for (bytes, signature, keys, expected) in [
        (BYTES, None, &both[1..], Untrusted::Unsigned { trusted: only_other.clone() }),
        (BYTES, Some(&signed), &both[1..], Untrusted::OtherKey { by: id, trusted: only_other }),
        (b"\0asm and more".as_slice(), Some(&signed), &both[..], Untrusted::Forged { by: id }),
        (BYTES, Some(&commented), &both[..], Untrusted::Forged { by: id }),
        (BYTES, Some(&legacy), &both[..], Untrusted::Legacy { by: id }),
        (BYTES, Some(&too_long), &both[..], Untrusted::NoSignature),
        (BYTES, Some(&"".to_owned()), &both[..], Untrusted::NoSignature),
        (BYTES, Some(&signed.lines().take(3).collect::<Vec<_>>().join("\n")), &both[..], Untrusted::NoSignature),
    ] {
        let refused = verify(bytes, signature.map(String::as_str), keys).unwrap_err();
        assert_eq!(refused, expected);
        let told = refused.told("slack.wasm");
        assert!(told.starts_with("slack.wasm") && told.contains("`minisign -S -m slack.wasm`"), "{told}");
        let names_keys = !matches!(refused, Untrusted::NoSignature);
        assert!(!names_keys || told.contains(&id.to_string()) || told.contains(&other.id.to_string()), "{told}");
    }
}

#[test]
fn no_part_of_a_signature_can_be_changed() {
    let signer = Signer::new();
    let key = signer.key("one");
    let signature = signer.sign("one", &[]);
    let comment = signature.lines().next().unwrap().len();
    for at in (comment + 1..signature.len()).step_by(7) {
        let mut changed = signature.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(verify(BYTES, Some(&changed), std::slice::from_ref(&key)).is_err(), "{changed}");
    }
}

#[test]
fn another_file_than_the_pinned_one_is_named_with_both_digests() {
    let plugin = "slack".parse().unwrap();
    assert_eq!(pin_mistake(&plugin, "aa", None), None);
    assert_eq!(pin_mistake(&plugin, "aa", Some("aa")), None);
    let told = pin_mistake(&plugin, "aa", Some("bb")).unwrap();
    for part in ["slack.wasm has the digest sha256:aa", "plugins.pins.slack asks for sha256:bb", "change the pin"] {
        assert!(told.contains(part), "{told}");
    }
}
