//! Which new versions of plugins are let in: the gate's strictness and the keys that sign them.

use std::fmt;

use minisign_verify::PublicKey;

/// What becomes of a new version of a plugin that does something else than the running one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GateMode {
    /// It is loaded, and the difference is reported.
    #[default]
    Report,
    /// It waits for an operator's approval.
    Strict,
}

impl GateMode {
    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Strict => "strict",
        }
    }
}

/// The id of a key of minisign, as its program shows it: hexadecimal digits in upper case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:X}", u64::from_le_bytes(self.0))
    }
}

/// A public key of minisign that plugins may be signed with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedKey {
    /// Which.
    pub id: KeyId,
    /// The key.
    pub key: PublicKey,
}
