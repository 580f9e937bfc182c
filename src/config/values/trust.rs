//! `gate`, `trust` and `pins` of plugins.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minisign_verify::PublicKey;

use super::super::read::FromText;
use super::super::schema::{Form, Words, word};
use super::super::{GateMode, KeyId, TrustedKey};

impl FromText for GateMode {
    const WANTED: &'static str = "`report` or `strict`";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        word(text).ok_or_else(|| {
            format!(
                "{quoted} is no gate: write report (a version that does something else is loaded, and told) or strict (it \
                 waits for an approval)"
            )
        })
    }

    fn form() -> Form {
        Form::words::<Self>()
    }
}

impl Words for GateMode {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        let about = |mode: Self| match mode {
            Self::Report => "A version that does something else is loaded, and told.",
            Self::Strict => "A version that does something else waits for an approval.",
        };
        [Self::Report, Self::Strict].map(|mode| (mode.as_str(), mode, about(mode))).into()
    }
}

/// An entry of `trust`.
#[derive(Debug, Clone)]
pub(in crate::config) struct KeyEntry(pub TrustedKey);

const KEY_FORM: &str = "write `minisign:` and the second line of minisign.pub, as in `minisign:RWQ…`";

/// Bytes of a public key: two of the algorithm, eight of its id, thirty-two of the key.
const KEY_BYTES: usize = 42;

impl FromText for KeyEntry {
    const WANTED: &'static str = "a public key such as `minisign:RWQ…`";

    /// Never quotes the text: people paste the secret key by mistake.
    fn from_text(text: &str, _: &str) -> Result<Self, String> {
        let Some(encoded) = text.strip_prefix("minisign:") else {
            return Err(format!("this is no key: {KEY_FORM}"));
        };
        let bytes = STANDARD.decode(encoded.trim()).map_err(|_| format!("this is no base64: {KEY_FORM}"))?;
        if bytes.len() != KEY_BYTES {
            let what = if bytes.len() > KEY_BYTES { "; a secret key never stands here" } else { "" };
            return Err(format!("this is no public key of minisign, which has {KEY_BYTES} bytes{what}: {KEY_FORM}"));
        }
        let key = PublicKey::from_base64(encoded.trim());
        let key = key.map_err(|_| format!("this is no public key of minisign: {KEY_FORM}"))?;
        let id = bytes.get(2..10).and_then(|id| id.try_into().ok()).map(KeyId);
        let id = id.ok_or_else(|| KEY_FORM.to_owned())?;
        Ok(Self(TrustedKey { id, key }))
    }

    fn form() -> Form {
        const EXAMPLE: &str = "minisign:RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3";
        Form::pattern(format!(r"minisign:\s*[A-Za-z0-9+\/]{{{}}}\s*", KEY_BYTES / 3 * 4), &[EXAMPLE])
    }
}

/// An entry of `pins`: the SHA-256 of a plugin's file, 64 hexadecimal digits in lower case.
#[derive(Debug, Clone)]
pub(in crate::config) struct Pin(pub String);

impl FromText for Pin {
    const WANTED: &'static str = "a digest such as `sha256:…` with 64 hexadecimal digits";

    fn from_text(text: &str, quoted: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("sha256:").unwrap_or_default();
        if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(format!(
                "{quoted} is no digest: write `sha256:` and 64 hexadecimal digits, as `switchbell plugin inspect FILE` \
                 shows them"
            ));
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }

    fn form() -> Form {
        const EXAMPLE: &str = "sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0";
        Form::pattern("sha256:[0-9A-Fa-f]{64}", &[EXAMPLE])
    }
}
