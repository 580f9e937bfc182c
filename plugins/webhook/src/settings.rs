//! A target's settings: where to post, in which form, signed by what.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::fields::Field;
use switchbell_kit::link;
use switchbell_kit::secret::{identity, is_placeholder};
use switchbell_kit::settings::{Checks, pointer};
use switchbell_kit::types::{Destination, Lane, Problem};

use crate::headers;

/// The longest URL in settings, in characters; a request's may have 8 KiB.
const URL_MAX: usize = 2_048;

/// The most keys that sign one request: the old one, the new one, and one to spare.
pub(crate) const KEYS_MAX: usize = 3;

/// How many requests of a workspace to one URL run at once: enough for an endpoint that answers in a tenth of a second to
/// take eighty a second, and few enough that a slow one is not pressed.
const IN_FLIGHT_MAX: u32 = 8;

/// The forms of a request's body.
const FORMATS: [&str; 3] = ["standard", "cloudevents", "cloudevents-binary"];

/// What signing keys are for.
const ALGORITHMS: [&str; 2] = ["hmac-sha256", "ed25519"];

/// The form of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Standard Webhooks.
    Standard,
    /// CloudEvents in JSON.
    CloudEvents,
    /// CloudEvents with their attributes in headers.
    CloudEventsBinary,
}

/// What a signature is computed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// HMAC with SHA-256: both sides know the key.
    Hmac,
    /// Ed25519: the receiver knows the public key.
    Ed25519,
}

/// Where a delivery goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The URL, or a placeholder of it.
    pub(crate) url: String,
    /// The form of the body.
    pub(crate) format: Format,
    /// Placeholders of the keys that sign.
    pub(crate) keys: Vec<String>,
    /// What the keys are for.
    pub(crate) algorithm: Algorithm,
    /// Further headers: names in lower case, and values or placeholders.
    pub(crate) headers: Vec<(String, String)>,
}

impl Target {
    /// Reads settings, or says everything that is wrong with them.
    #[inline(never)]
    pub(crate) fn read(settings: &str) -> Result<Self, Vec<Problem>> {
        let mut checks = Checks::read(settings, 2)?;
        checks.refuse_unknown(&["url", "format", "signing_key", "algorithm", "headers"]);
        require(&mut checks);
        let url = checks.text("url", url);
        let format = checks.word("format", &FORMATS);
        let keys = keys(&mut checks);
        let algorithm = checks.word("algorithm", &ALGORITHMS);
        let headers = headers::read(&mut checks);
        let target = url.zip(format).map(|(url, format)| Self {
            url,
            format: match format.as_str() {
                "standard" => Format::Standard,
                "cloudevents" => Format::CloudEvents,
                _ => Format::CloudEventsBinary,
            },
            keys,
            algorithm: if algorithm.as_deref() == Some("ed25519") { Algorithm::Ed25519 } else { Algorithm::Hmac },
            headers,
        });
        checks.end(target)
    }

    /// What a person calls it, and what paces it: its URL. Receivers take events in any order, and by how much they ask to
    /// wait, all that is for this URL waits.
    pub(crate) fn destination(&self) -> Destination {
        let label = link::host(&self.url).unwrap_or("webhook").to_owned();
        let key = identity(&self.url);
        let lane = Lane { key, count: 0, per_seconds: 0, in_flight: IN_FLIGHT_MAX, ordered: false };
        Destination { label, lanes: vec![lane], extras: "{}".to_owned() }
    }

    /// What may be a credential of what was written out instead of coming from a secret: the URL, its path with the query,
    /// values of headers. The longest come first.
    pub(crate) fn credentials(&self) -> Vec<&str> {
        let mut found = Vec::new();
        if !is_placeholder(&self.url) {
            let path = self.url.split_once("://").and_then(|(_, rest)| rest.find('/').and_then(|at| rest.get(at..)));
            found.extend([Some(self.url.as_str()), path].into_iter().flatten());
        }
        found.extend(self.headers.iter().map(|(_, value)| value.as_str()).filter(|value| !is_placeholder(value)));
        found.retain(|credential| credential.len() >= CREDENTIAL_MIN);
        found
    }
}

/// The shortest text that is taken for a credential, in bytes: hiding shorter ones would spoil every other text.
const CREDENTIAL_MIN: usize = 12;

fn require(checks: &mut Checks) {
    for (name, remedy) in [("url", "write an https URL, or a secret"), ("format", "write standard or cloudevents")] {
        if !checks.has(name) {
            checks.refuse("", format!("missing: {name}: {remedy}"));
        }
    }
    if checks.has("algorithm") && !checks.has("signing_key") {
        checks.refuse("/algorithm", "there is no signing_key: write one, or leave this out");
    }
}

/// Whether this can be the URL. It is not repeated: it may hold a credential.
fn url(value: &str) -> Result<(), String> {
    if is_placeholder(value) {
        return Ok(());
    }
    if value.chars().count() > URL_MAX {
        return Err(format!("longer than {URL_MAX} characters"));
    }
    let Some(host) = link::host(value) else { return Err("not a URL: write https://…, or a secret".to_owned()) };
    if value.contains(['#', '@']) {
        return Err("leave out user names, passwords and fragments".to_owned());
    }
    let is_https = value.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if is_https || is_this_machine(host) {
        return Ok(());
    }
    Err("not encrypted: write https://…; http is for this machine only (127.0.0.1, localhost)".to_owned())
}

/// Whether it is a loopback address, or its usual name.
fn is_this_machine(host: &str) -> bool {
    let name = host.strip_prefix("[::1]").map_or(host, |_| "localhost").split(':').next().unwrap_or_default();
    name.eq_ignore_ascii_case("localhost") || is_loopback(name)
}

/// 127.0.0.0/8, as four numbers: a name may begin with `127.`, too.
fn is_loopback(name: &str) -> bool {
    name.starts_with("127.") && name.split('.').count() == 4 && name.split('.').all(|part| part.parse::<u8>().is_ok())
}

/// The keys that are good.
fn keys(checks: &mut Checks) -> Vec<String> {
    let items: Vec<(String, Field)> = match checks.fields.get("signing_key").cloned() {
        None => return Vec::new(),
        Some(Field::List(items)) => {
            let place = |number: usize| pointer(&["signing_key", &number.to_string()]);
            items.into_iter().enumerate().map(|(number, item)| (place(number), item)).collect()
        }
        Some(one) => vec![("/signing_key".to_owned(), one)],
    };
    if items.is_empty() || items.len() > KEYS_MAX {
        checks.refuse("/signing_key", format!("write one secret, or a list of 1 to {KEYS_MAX}"));
    }
    let mut keys: Vec<String> = Vec::new();
    for (path, item) in &items {
        match item {
            Field::Text(key) if keys.contains(key) => checks.refuse(path, "named twice: each key signs once"),
            Field::Text(key) if is_placeholder(key) => keys.push(key.clone()),
            // It is not repeated: it may be the key itself.
            _ => checks.refuse(path, "write a secret, such as { secret: hook-key }, whose rule says in: sign"),
        }
    }
    keys
}
