//! Signatures: computed by the host with keys that no plugin sees, over the request as it is sent.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::{digest, hmac};
use url::Url;

use super::super::denied;
use super::super::key::ed25519_key;
use super::filling::Filling;
use super::header::Header;
use crate::config::SecretPlace;
use crate::text::hex;
use crate::wasm::{Fault, Part, Signature};

/// Most signatures of one request: rotation needs two or three.
const SIGNATURES_MAX: usize = 8;
/// Shortest marker, bytes: what is shorter stands by chance in what is no marker.
const MARKER_BYTES_MIN: usize = 8;
/// Most steps of deriving a key; AWS Signature Version 4 has four.
const DERIVE_MAX: usize = 8;
/// Most bytes of one signed message: a whole body, and room for the rest.
const MESSAGE_BYTES_MAX: usize = 2 << 20;

/// The request as it is going to be sent.
pub(super) struct Sent<'r> {
    pub(super) url: &'r Url,
    pub(super) body: &'r [u8],
}

/// Computes each signature and writes it where its marker stands.
pub(super) fn signed(
    signatures: &[Signature],
    sent: &Sent<'_>,
    headers: &mut [Header],
    filling: &mut Filling<'_>,
) -> Result<(), Fault> {
    if signatures.len() > SIGNATURES_MAX {
        return Err(wrong(format!("a request has at most {SIGNATURES_MAX} signatures")));
    }
    let written = signatures
        .iter()
        .map(|signature| Ok((signature.marker.as_str(), one(signature, (sent, headers, signatures), filling)?)))
        .collect::<Result<Vec<_>, Fault>>()?;
    for (marker, signature) in written {
        // Never in a header with a secret: whether a guessed part of it stands there would tell what it is.
        let mut places = headers.iter_mut().filter(|header| !header.is_secret && header.value.contains(marker));
        let (Some(header), None) = (places.next(), places.next()) else {
            return Err(wrong("the marker of a signature stands in exactly one header".to_owned()));
        };
        if header.value.matches(marker).count() != 1 {
            return Err(wrong("the marker of a signature stands once in its header".to_owned()));
        }
        header.value = header.value.replace(marker, &signature);
    }
    Ok(())
}

fn one(
    signature: &Signature,
    (sent, headers, all): (&Sent<'_>, &[Header], &[Signature]),
    filling: &mut Filling<'_>,
) -> Result<String, Fault> {
    if signature.marker.len() < MARKER_BYTES_MIN || signature.derive.len() > DERIVE_MAX {
        return Err(wrong(format!(
            "a marker has at least {MARKER_BYTES_MIN} bytes, and a key is derived in at most {DERIVE_MAX} steps"
        )));
    }
    let overlaps = |other: &&Signature| other.marker.contains(&signature.marker);
    if all.iter().filter(overlaps).count() != 1 {
        return Err(wrong("each signature needs a marker of its own, none a part of another".to_owned()));
    }
    let key = key(&signature.key, filling)?;
    let message = message(&signature.message, (sent, headers, all), filling)?;
    let signature_bytes = match signature.algorithm.as_str() {
        "hmac-sha256" => hmac_sha256(&secret_bytes(&key)?, &signature.derive, &message),
        "ed25519" if signature.derive.is_empty() => ed25519(&key, &message)?,
        "ed25519" => return Err(wrong("the key of an ed25519 signature is not derived".to_owned())),
        other => return Err(wrong(format!("the algorithm {other:?} is not one of hmac-sha256, ed25519"))),
    };
    match signature.encoding.as_str() {
        "hex" => Ok(hex(&signature_bytes)),
        "base64" => Ok(STANDARD.encode(&signature_bytes)),
        "base64url" => Ok(URL_SAFE_NO_PAD.encode(&signature_bytes)),
        other => Err(wrong(format!("the encoding {other:?} is not one of hex, base64, base64url"))),
    }
}

fn key(placeholder: &str, filling: &mut Filling<'_>) -> Result<String, Fault> {
    let found = filling.value(placeholder, "the key of a signature", |place| *place == SecretPlace::Sign)?;
    found
        .map(|(value, _)| value.to_owned())
        .ok_or_else(|| wrong("the key of a signature is the placeholder of a secret with `in: sign`".to_owned()))
}

/// What is signed. A header that still waits for a signature cannot be part of one.
fn message(
    parts: &[Part],
    (sent, headers, all): (&Sent<'_>, &[Header], &[Signature]),
    filling: &mut Filling<'_>,
) -> Result<Vec<u8>, Fault> {
    let mut message = Vec::new();
    for part in parts {
        match part {
            Part::Bytes(bytes) => message.extend_from_slice(bytes),
            Part::Secret(placeholder) => message.extend_from_slice(key(placeholder, filling)?.as_bytes()),
            Part::Url => message.extend_from_slice(sent.url.as_str().as_bytes()),
            Part::Body => message.extend_from_slice(sent.body),
            Part::BodyHash(hash) if hash == "sha256" => {
                message.extend_from_slice(hex(digest::digest(&digest::SHA256, sent.body).as_ref()).as_bytes());
            }
            Part::BodyHash(other) => return Err(wrong(format!("the body's hash {other:?} is not sha256"))),
            Part::Header(name) => {
                let is_meant = |header: &&Header| header.name.as_str().eq_ignore_ascii_case(name);
                let header = headers.iter().find(is_meant);
                let header = header.ok_or_else(|| wrong(format!("the request has no header {name:?} to sign")))?;
                let value = &header.value;
                if !header.is_secret && all.iter().any(|signature| value.contains(&signature.marker)) {
                    return Err(wrong(format!("header {name} holds a signature and cannot be signed itself")));
                }
                message.extend_from_slice(value.as_bytes());
            }
        }
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(wrong(format!("a signed message has at most {MESSAGE_BYTES_MAX} bytes")));
        }
    }
    Ok(message)
}

/// The bytes of a symmetric key: what follows `whsec_` is base64 (Standard Webhooks, "Signature scheme"); anything else is
/// taken as it is.
fn secret_bytes(key: &str) -> Result<Vec<u8>, Fault> {
    match key.strip_prefix("whsec_") {
        Some(text) => STANDARD.decode(text).map_err(|_| wrong("the key behind `whsec_` is no base64".to_owned())),
        None => Ok(key.as_bytes().to_vec()),
    }
}

fn hmac_sha256(key: &[u8], derive: &[Vec<u8>], message: &[u8]) -> Vec<u8> {
    let step = |key: Vec<u8>, text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text).as_ref().to_vec();
    let derived = derive.iter().fold(key.to_vec(), |key, text| step(key, text));
    step(derived, message)
}

fn ed25519(key: &str, message: &[u8]) -> Result<Vec<u8>, Fault> {
    let pair = ed25519_key(key)
        .ok_or_else(|| wrong("the key of an ed25519 signature is `whsk_` and base64, or PKCS#8 in PEM".to_owned()))?;
    Ok(pair.sign(message).as_ref().to_vec())
}

fn wrong(message: String) -> Fault {
    denied("signature", message)
}
