//! Whether a plugin's file is one that the operator lets in: signed by a key that is trusted, and the one that is pinned.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minisign_verify::{Error, Signature};

use crate::config::{KeyId, TrustedKey};
use crate::notification::Name;

/// Bytes of a signature's text: four lines, of which the comments are at most 8 KiB long.
pub const SIGNATURE_BYTES_MAX: usize = 20 * 1024;

/// Why a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// It has no signature.
    Unsigned {
        /// The keys that it could be signed with.
        trusted: Vec<KeyId>,
    },
    /// What stands for its signature is none.
    NoSignature,
    /// It is signed by a key that is not trusted.
    OtherKey {
        /// Which.
        by: KeyId,
        /// Those that are.
        trusted: Vec<KeyId>,
    },
    /// The signature is in the form that minisign had before it hashed files.
    Legacy {
        /// The key that it names.
        by: KeyId,
    },
    /// The signature is not that of these bytes.
    Forged {
        /// The key that it names.
        by: KeyId,
    },
}

impl Untrusted {
    /// What is wrong and what to do, for a person who knows the plugin's file by this name, such as `slack.wasm`.
    pub fn told(&self, file: &str) -> String {
        let again = format!("sign it with `minisign -S -m {file}`");
        match self {
            Self::Unsigned { trusted } => format!(
                "{file} has no signature, and plugins.trust asks for one by {}: {again} and put {file}.minisig beside it",
                one_of(trusted)
            ),
            Self::NoSignature => format!("{file}.minisig is no signature of minisign: {again}"),
            Self::OtherKey { by, trusted } => format!(
                "{file} is signed by key {by}, which is not in plugins.trust (there is {}): {again} with a key that is, or \
                 add the public key of {by} to plugins.trust",
                one_of(trusted)
            ),
            Self::Legacy { by } => format!(
                "{file} is signed by key {by} in the legacy form of minisign, which is not accepted: {again}, without -l"
            ),
            Self::Forged { by } => format!(
                "{file} is not what key {by} signed: it was changed since, or {file}.minisig belongs to another file; copy \
                 both again, or {again}"
            ),
        }
    }
}

/// `key A` or `one of the keys A, B`.
fn one_of(keys: &[KeyId]) -> String {
    let ids = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if keys.len() == 1 { format!("key {ids}") } else { format!("one of the keys {ids}") }
}

/// Which of the keys signed these bytes; none where none is asked for. `signature` is the text of the `.minisig` file.
///
/// # Errors
/// When keys are trusted and none of them signed this.
pub fn verify(bytes: &[u8], signature: Option<&str>, keys: &[TrustedKey]) -> Result<Option<KeyId>, Untrusted> {
    if keys.is_empty() {
        return Ok(None);
    }
    let trusted = || {
        let mut ids: Vec<KeyId> = keys.iter().map(|key| key.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let text = signature.ok_or_else(|| Untrusted::Unsigned { trusted: trusted() })?;
    let by = signer(text).ok_or(Untrusted::NoSignature)?;
    let signature = Signature::decode(text).map_err(|_| Untrusted::NoSignature)?;
    let mut why = Untrusted::OtherKey { by, trusted: trusted() };
    // Ids are chosen by whoever makes a key: two can have the same.
    for key in keys.iter().filter(|key| key.id == by) {
        match key.key.verify(bytes, &signature, false) {
            Ok(()) => return Ok(Some(by)),
            Err(Error::UnexpectedAlgorithm) => why = Untrusted::Legacy { by },
            Err(_) => why = Untrusted::Forged { by },
        }
    }
    Err(why)
}

/// The id of the key that a signature names: its second line is base64 of two bytes of the algorithm, the id, and the rest.
fn signer(text: &str) -> Option<KeyId> {
    if text.len() > SIGNATURE_BYTES_MAX {
        return None;
    }
    let bytes = STANDARD.decode(text.lines().nth(1)?).ok()?;
    bytes.get(2..10)?.try_into().ok().map(KeyId)
}

/// Why a plugin's file is not the one that is pinned; none where it is, or none is. Both are SHA-256 in lower-case hex.
pub fn pin_mistake(plugin: &Name, digest: &str, pin: Option<&str>) -> Option<String> {
    let pin = pin.filter(|pin| *pin != digest)?;
    Some(format!(
        "{plugin}.wasm has the digest sha256:{digest}, and plugins.pins.{plugin} asks for sha256:{pin}: put that file here, or \
         change the pin"
    ))
}

#[cfg(test)]
mod tests;
