//! What would be sent, for people: nothing here ever held a secret's value.

use http::HeaderName;
use url::Url;

use super::secret::Seals;
use crate::config::{Secret, SecretPlace};
use crate::notification::Name;
use crate::send::record::action_to_json;
use crate::wasm::{Action, Request, Signature};

/// An action as JSON (see [`crate::send::record`]) as it would be sent: `[secret NAME]` stands where the host would put a
/// secret's value in, `[signature by NAME]` where it would put a signature.
pub fn shown(action: &Action, seals: &Seals<'_>) -> String {
    let json = match action {
        Action::Http(request) => action_to_json(&Action::Http(as_sent(request, seals))),
        other => action_to_json(other),
    };
    seals.with_names(&json, mark)
}

fn mark(name: &Name) -> String {
    format!("[secret {name}]")
}

/// The request as the guard would write it, but for the values of secrets.
fn as_sent(request: &Request, seals: &Seals<'_>) -> Request {
    // A whole URL that is a secret is none before its value is in.
    let url = Url::parse(&request.url).map_or_else(|_| request.url.clone(), |url| url.to_string());
    let header = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).map_or_else(|_| name.clone(), |name| name.to_string());
        let value = seals.get(value).map_or_else(|| signed(value, &request.sign, seals), of_header);
        (name, value)
    };
    let headers = request.headers.iter().map(header).collect();
    Request { url, headers, sign: Vec::new(), ..request.clone() }
}

fn of_header((name, secret): (&Name, &Secret)) -> String {
    match &secret.place {
        SecretPlace::Header { prefix: Some(prefix), .. } => format!("{prefix} {}", mark(name)),
        SecretPlace::Basic => format!("Basic {}", mark(name)),
        _ => mark(name),
    }
}

fn signed(value: &str, signatures: &[Signature], seals: &Seals<'_>) -> String {
    let written = |value: String, signature: &Signature| match seals.get(&signature.key) {
        Some((name, _)) if !signature.marker.is_empty() => {
            value.replace(&signature.marker, &format!("[signature by {name}]"))
        }
        _ => value,
    };
    signatures.iter().fold(value.to_owned(), written)
}
