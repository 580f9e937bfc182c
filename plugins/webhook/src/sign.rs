//! The headers of Standard Webhooks: id, timestamp and signatures, in each format.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::http::header;
use switchbell_kit::time;
use switchbell_kit::types::{Delivery, Part, Request, Signature};

use crate::settings::{Algorithm, Target};

/// Adds the headers. Without keys there is an id and a timestamp, but no signature. `None` if the delivery does not say
/// when the attempt began.
pub(crate) fn signed(target: &Target, delivery: &Delivery, mut request: Request) -> Option<Request> {
    let timestamp = time::seconds(&delivery.now)?.to_string();
    let markers = markers(target.keys.len(), &request.headers);
    request.headers.push(header("webhook-id", &delivery.id));
    request.headers.push(header("webhook-timestamp", &timestamp));
    if markers.is_empty() {
        return Some(request);
    }
    let (version, algorithm) = match target.algorithm {
        Algorithm::Hmac => ("v1", "hmac-sha256"),
        Algorithm::Ed25519 => ("v1a", "ed25519"),
    };
    // Several signatures, such as by an old key and a new one, are separated by spaces.
    let value: Vec<String> = markers.iter().map(|marker| format!("{version},{marker}")).collect();
    request.headers.push(header("webhook-signature", &value.join(" ")));
    let before = format!("{}.{timestamp}.", delivery.id);
    let signature = |(marker, key): (&String, &String)| Signature {
        marker: marker.clone(),
        algorithm: algorithm.to_string(),
        encoding: "base64".to_string(),
        key: key.clone(),
        derive: vec![],
        message: vec![Part::Bytes(before.clone().into_bytes()), Part::Body],
    };
    request.sign = markers.iter().zip(&target.keys).map(signature).collect();
    Some(request)
}

/// What stands for each signature until the host has computed it: texts that occur in no other header, whatever an event
/// has written there.
fn markers(count: usize, headers: &[(String, String)]) -> Vec<String> {
    let occurs = |beginning: &str| headers.iter().any(|(_, value)| value.contains(beginning));
    let mut number = 0_u32;
    while occurs(&format!("signature-{number}-")) {
        number += 1;
    }
    (1..=count).map(|key| format!("signature-{number}-{key}")).collect()
}
