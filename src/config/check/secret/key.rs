//! Keys that sign: those of messages, and those of assertions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;

/// Bytes of a symmetric key behind `whsec_` (Standard Webhooks 1.0.0, "Signature scheme").
const SYMMETRIC_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How every PEM text begins (RFC 7468 §2).
const PEM: &str = "-----BEGIN ";

/// The kinds of private keys that can sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rsa,
    P256,
    Ed25519,
}

/// Checks the key of signatures: text of any form, unless it announces one.
pub(super) fn check_for_signatures(value: &str) -> Result<(), String> {
    if let Some(encoded) = value.strip_prefix("whsec_") {
        let length = decoded(encoded, "whsec_")?.len();
        return SYMMETRIC_BYTES.contains(&length).then_some(()).ok_or_else(|| {
            format!("the key behind `whsec_` is {} to {} bytes long", SYMMETRIC_BYTES.start(), SYMMETRIC_BYTES.end())
        });
    }
    if let Some(encoded) = value.strip_prefix("whsk_") {
        return check_seed(&decoded(encoded, "whsk_")?);
    }
    if value.starts_with("whpk_") {
        return Err("this is a public key, which only verifies: signing needs the private one (`whsk_`)".to_owned());
    }
    if value.trim_start().starts_with(PEM) {
        return match private_key(value)? {
            Kind::Ed25519 => Ok(()),
            Kind::Rsa | Kind::P256 => {
                Err("messages are signed with HMAC-SHA256 or Ed25519: this is a private key of another kind".to_owned())
            }
        };
    }
    Ok(())
}

fn decoded(encoded: &str, prefix: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(encoded).map_err(|_| format!("behind `{prefix}` stands base64 with its `=` at the end"))
}

/// An Ed25519 key behind `whsk_`: the seed (RFC 8032 §5.1.5), alone or with the public key behind it.
fn check_seed(key: &[u8]) -> Result<(), String> {
    let is_pair = |(seed, public): (&[u8], &[u8])| Ed25519KeyPair::from_seed_and_public_key(seed, public).is_ok();
    match key.len() {
        32 => Ok(()),
        64 if key.split_at_checked(32).is_some_and(is_pair) => Ok(()),
        64 => Err("the two halves of the key behind `whsk_` do not belong together".to_owned()),
        _ => Err("the key behind `whsk_` is 32 bytes long, or 64 with its public key".to_owned()),
    }
}

/// The kind of a private key in PEM, if it can sign.
pub(super) fn private_key(pem: &str) -> Result<Kind, String> {
    let Ok(key) = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()) else { return Err(no_private_key(pem)) };
    let der = key.secret_pkcs8_der();
    if Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).is_ok() {
        return Ok(Kind::Ed25519);
    }
    if EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new()).is_ok() {
        return Ok(Kind::P256);
    }
    match RsaKeyPair::from_pkcs8(der) {
        Ok(_) => Ok(Kind::Rsa),
        // The library's words name what is wrong with the key's form, and nothing of the key.
        Err(error) => Err(format!(
            "this private key cannot sign ({error}): a key is RSA of 2048 to 4096 bits, P-256 or Ed25519, in PKCS#8"
        )),
    }
}

fn no_private_key(pem: &str) -> String {
    let remedy = if pem.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") {
        "the private key is encrypted: `openssl pkcs8 -topk8 -nocrypt` writes one that is not"
    } else if pem.contains("-----BEGIN RSA PRIVATE KEY-----") || pem.contains("-----BEGIN EC PRIVATE KEY-----") {
        "this private key is not in PKCS#8: `openssl pkcs8 -topk8 -nocrypt` converts it"
    } else if pem.contains("-----BEGIN PUBLIC KEY-----") || pem.contains("-----BEGIN CERTIFICATE-----") {
        "signing needs the private key, which begins with `-----BEGIN PRIVATE KEY-----`"
    } else if pem.trim_start().starts_with('{') {
        "this is JSON: take the private key in PEM out of it (`private_key`)"
    } else {
        "this is no private key in PEM, which begins with `-----BEGIN PRIVATE KEY-----` and has line ends"
    };
    remedy.to_owned()
}

#[cfg(test)]
mod tests {
    use ring::signature::KeyPair as _;

    use super::*;

    fn pem(label: &str, der: &[u8]) -> String {
        let encoded = STANDARD.encode(der);
        let lines: Vec<&str> = encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
    }

    fn ed25519() -> Vec<u8> {
        Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref().to_vec()
    }

    fn p256() -> Vec<u8> {
        let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        pair.unwrap().as_ref().to_vec()
    }

    fn check(value: &str, expected: Result<(), &str>) {
        match (check_for_signatures(value), expected) {
            (Ok(()), Ok(())) => {}
            (Err(message), Err(part)) => assert!(message.contains(part), "{message}"),
            (found, _) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_key_of_signatures_is_what_it_announces() {
        check("any text that is long enough", Ok(()));
        for (length, expected) in [(23, Err("24 to 64")), (24, Ok(())), (64, Ok(())), (65, Err("24 to 64"))] {
            check(&format!("whsec_{}", STANDARD.encode(vec![7; length])), expected);
        }
        check("whsec_not base64 at all", Err("base64"));
        check("whsec_", Err("24 to 64"));
        check(&format!("whpk_{}", STANDARD.encode([7; 32])), Err("public key"));
        let seed = [7; 32];
        let public = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap().public_key().as_ref().to_vec();
        check(&format!("whsk_{}", STANDARD.encode(seed)), Ok(()));
        check(&format!("whsk_{}", STANDARD.encode([&seed[..], &public].concat())), Ok(()));
        check(&format!("whsk_{}", STANDARD.encode([8; 64])), Err("do not belong together"));
        check(&format!("whsk_{}", STANDARD.encode([8; 33])), Err("32 bytes"));
        check(&pem("PRIVATE KEY", &ed25519()), Ok(()));
        check(&pem("PRIVATE KEY", &p256()), Err("of another kind"));
        check(&pem("PUBLIC KEY", &[1, 2, 3]), Err("needs the private key"));
    }

    #[test]
    fn a_private_key_is_one_that_can_sign() {
        assert_eq!(private_key(&pem("PRIVATE KEY", &ed25519())), Ok(Kind::Ed25519));
        assert_eq!(private_key(&pem("PRIVATE KEY", &p256())), Ok(Kind::P256));
        let check = |pem: &str, part: &str| {
            assert!(private_key(pem).is_err_and(|message| message.contains(part)), "{:?}", private_key(pem));
        };
        check(&pem("PRIVATE KEY", &[48, 3, 2, 1, 0]), "cannot sign");
        check(&pem("RSA PRIVATE KEY", &[1]), "not in PKCS#8");
        check(&pem("EC PRIVATE KEY", &[1]), "not in PKCS#8");
        check(&pem("ENCRYPTED PRIVATE KEY", &[1]), "is encrypted");
        check("{\"private_key\": \"…\"}", "this is JSON");
        check("a text", "no private key in PEM");
        check("-----BEGIN PRIVATE KEY----- MC4CAQ -----END PRIVATE KEY-----", "has line ends");
    }
}
