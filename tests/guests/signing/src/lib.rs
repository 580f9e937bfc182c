//! A plugin that has its requests signed as others do: `like` in its settings says as whom, `stripe` or `aws`.
//!
//! `url` is where they go and `key` signs them; with `old_key`, too, there are two signatures. What `token` says goes into
//! the body. `id` is the access key's id for AWS.

mod bindings;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::{
    Answer, Failure, FailureKind, Part, Receipt, Request, Response, Signature,
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

struct Signing;

impl Guest for Signing {
    fn describe() -> String {
        r#"{"name":"signing","version":"1.0.0"}"#.into()
    }

    fn check(_: String) -> Result<Destination, Vec<Problem>> {
        Ok(Destination { label: "a receiver".into(), lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        match past.last().map(|effect| &effect.answer) {
            None => Action::Http(request(&delivery)),
            Some(Answer::Http(Ok(Response { status: 200..=299, .. }))) => done(),
            Some(Answer::Http(Err(fault))) => rejected(&fault.message),
            _ => rejected("it was not taken"),
        }
    }
}

fn done() -> Action {
    Action::Done(Receipt { reference: None, note: None, remember: None, extras: "{}".into() })
}

fn rejected(reason: &str) -> Action {
    let kind = FailureKind::Reject;
    Action::Failed(Failure { kind, reason: reason.into(), after_seconds: None, resume: None, extras: "{}".into() })
}

struct Settings(Value);

impl Settings {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }
}

fn request(delivery: &Delivery) -> Request {
    let settings = Settings(serde_json::from_str(&delivery.settings).unwrap_or_default());
    let titles: Vec<&str> = delivery.notifications.iter().map(|notification| notification.title.as_str()).collect();
    let body = json!({ "id": delivery.id, "object": "event", "titles": titles, "token": settings.text("token") });
    let request = Request {
        method: "POST".into(),
        url: settings.text("url").unwrap_or_default().into(),
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string().into_bytes(),
        sign: vec![],
        timeout_ms: None,
        response_max: None,
        extras: "{}".into(),
    };
    match settings.text("like") {
        Some("aws") => like_aws(&settings, delivery, request),
        _ => like_stripe(&settings, delivery, request),
    }
}

fn signature(marker: String, key: &str, message: Vec<Part>) -> Signature {
    let (algorithm, encoding) = ("hmac-sha256".to_owned(), "hex".to_owned());
    Signature { marker, algorithm, encoding, key: key.to_owned(), derive: vec![], message }
}

/// `t=SECONDS,v1=…`, over the seconds, a dot and the body as it is sent (docs.stripe.com/webhooks, "Verify manually").
fn like_stripe(settings: &Settings, delivery: &Delivery, mut request: Request) -> Request {
    let seconds = seconds(&delivery.now).to_string();
    let keys = ["key", "old_key"].into_iter().filter_map(|key| settings.text(key));
    let mut value = format!("t={seconds}");
    for (number, key) in keys.enumerate() {
        let marker = format!("signature-{number}-of-stripe");
        value.push_str(&format!(",v1={marker}"));
        let message = vec![Part::Bytes(format!("{seconds}.").into_bytes()), Part::Body];
        request.sign.push(signature(marker, key, message));
    }
    request.headers.push(("stripe-signature".into(), value));
    request
}

/// Where requests are signed for.
const REGION_AND_SERVICE: [&str; 2] = ["eu-central-1", "execute-api"];

/// Signature Version 4 in the header `authorization` (IAM User Guide, "Create a signed AWS API request"). The query in the
/// URL is taken to be canonical.
fn like_aws(settings: &Settings, delivery: &Delivery, mut request: Request) -> Request {
    let moment = delivery.now.split(['.', 'Z']).next().unwrap_or_default().replace(['-', ':'], "") + "Z";
    let date = moment.split('T').next().unwrap_or_default().to_owned();
    let body_hash = hash(&request.body);
    let (_, after_scheme) = request.url.split_once("://").unwrap_or_default();
    let (host, target) = after_scheme.split_once('/').unwrap_or((after_scheme, ""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let names = "content-type;host;x-amz-content-sha256;x-amz-date";
    let canonical = format!(
        "POST\n/{path}\n{query}\ncontent-type:application/json\nhost:{host}\nx-amz-content-sha256:{body_hash}\n\
         x-amz-date:{moment}\n\n{names}\n{body_hash}"
    );
    let [region, service] = REGION_AND_SERVICE;
    let scope = format!("{date}/{region}/{service}/aws4_request");
    let message = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{}", hash(canonical.as_bytes()));
    let marker = "signature-of-aws".to_owned();
    let id = settings.text("id").unwrap_or_default();
    let value = format!("AWS4-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={names}, Signature={marker}");
    let derive = [date.as_str(), region, service, "aws4_request"].map(|step| step.as_bytes().to_vec()).to_vec();
    let signed = signature(marker, settings.text("key").unwrap_or_default(), vec![Part::Bytes(message.into_bytes())]);
    request.sign = vec![Signature { derive, ..signed }];
    let headers = [("x-amz-content-sha256", &body_hash), ("x-amz-date", &moment), ("authorization", &value)];
    request.headers.extend(headers.map(|(name, value)| (name.to_owned(), value.clone())));
    request
}

/// SHA-256 in lower-case hex.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Seconds since 1970 at a moment in UTC.
fn seconds(moment: &str) -> u64 {
    let numbers: Vec<u64> =
        moment.split(['-', 'T', ':', '.', 'Z']).map(|part| part.parse().unwrap_or_default()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers[..] else { return 0 };
    // A year counts from March, so that a leap day is its last; 719,468 days lie between March of year 0 and 1970.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    ((days * 24 + hour) * 60 + minute) * 60 + second
}
