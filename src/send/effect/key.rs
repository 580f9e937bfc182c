//! Private keys that the host signs with.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};

/// A key of any kind that signs assertions.
pub(super) enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    P256(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// Reads PKCS#8 in PEM (RFC 5958, RFC 7468).
    pub(super) fn read(pem: &str) -> Option<Self> {
        let inner =
            pem.trim().strip_prefix("-----BEGIN PRIVATE KEY-----")?.strip_suffix("-----END PRIVATE KEY-----")?;
        let der = STANDARD.decode(inner.split_ascii_whitespace().collect::<String>()).ok()?;
        let random = SystemRandom::new();
        let rsa = || RsaKeyPair::from_pkcs8(&der).ok().map(Box::new).map(Self::Rsa);
        let p256 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random).ok().map(Self::P256);
        let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).ok().map(Self::Ed25519);
        rsa().or_else(p256).or_else(ed25519)
    }

    /// Its name in a JSON Web Token (RFC 7518 §3.1, RFC 8037).
    pub(super) fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::P256(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// None when the key does not do it, as one that is damaged.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature).ok()?;
                Some(signature)
            }
            Self::P256(key) => key.sign(&random, message).ok().map(|signature| signature.as_ref().to_vec()),
            Self::Ed25519(key) => Some(key.sign(message).as_ref().to_vec()),
        }
    }
}

/// A private key as Standard Webhooks writes it (`whsk_` and base64 of the seed, or of seed and public key), or PKCS#8 in
/// PEM (RFC 8410).
pub(super) fn ed25519_key(text: &str) -> Option<Ed25519KeyPair> {
    if let Some(text) = text.strip_prefix("whsk_") {
        let bytes = STANDARD.decode(text).ok()?;
        return match bytes.split_at_checked(32)? {
            (seed, []) => Ed25519KeyPair::from_seed_unchecked(seed).ok(),
            (seed, public) => Ed25519KeyPair::from_seed_and_public_key(seed, public).ok(),
        };
    }
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(&pkcs8(text)?).ok()
}

/// What is between the lines of a PEM file (RFC 7468).
fn pkcs8(pem: &str) -> Option<Vec<u8>> {
    let inner = pem.trim().strip_prefix("-----BEGIN PRIVATE KEY-----")?.strip_suffix("-----END PRIVATE KEY-----")?;
    STANDARD.decode(inner.split_ascii_whitespace().collect::<String>()).ok()
}
