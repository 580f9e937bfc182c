//! The one request of an attempt.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use switchbell_kit::http::{self, header};
use switchbell_kit::outcome;
use switchbell_kit::types::{Action, Delivery, FailureKind, Request};

use crate::settings::{Format, Target};
use crate::{cloudevents, sign, standard};

/// How long to wait for the endpoint, in milliseconds: Standard Webhooks asks for 15 to 30 seconds.
const TIMEOUT_MS: u32 = 30_000;

/// How much of an answer is worth having, in bytes: a few words of it are quoted.
const ANSWER_MAX: u32 = 16 * 1024;

/// The largest body, in bytes: the host sends no larger one. A digest is smaller (its content has 256 KiB), so one request
/// holds any; what should ever be beyond is counted as omitted.
pub(crate) const BODY_MAX: usize = 1024 * 1024;

/// What is kept for what stands around a digest's notifications, in bytes.
const AROUND_MAX: usize = 16 * 1024;

/// A body, and the headers that go with its form.
pub(crate) struct Payload {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// The notifications that a body has room for.
pub(crate) struct Fitting {
    /// As JSON, oldest first.
    pub(crate) items: Vec<String>,
    /// How many there are besides.
    pub(crate) omitted: u64,
}

/// Takes as many of a digest's notifications as one body holds.
pub(crate) fn fitting(all: impl Iterator<Item = String>, omitted: u32) -> Fitting {
    let mut room = BODY_MAX - AROUND_MAX;
    let mut fitting = Fitting { items: Vec::new(), omitted: u64::from(omitted) };
    for item in all {
        match room.checked_sub(item.len() + 1) {
            Some(rest) => {
                room = rest;
                fitting.items.push(item);
            }
            None => {
                room = 0;
                fitting.omitted += 1;
            }
        }
    }
    fitting
}

/// Posts the delivery.
pub(crate) fn first(target: &Target, delivery: &Delivery) -> Action {
    if delivery.notifications.is_empty() {
        return outcome::failed(FailureKind::Reject, "the delivery holds no notification", None);
    }
    let payload = match target.format {
        Format::Standard => {
            Payload { headers: vec![header("content-type", "application/json")], body: standard::body(delivery) }
        }
        Format::CloudEvents => cloudevents::structured(delivery),
        Format::CloudEventsBinary => cloudevents::binary(delivery),
    };
    if payload.body.len() > BODY_MAX {
        let reason = format!("the body would have {} bytes; at most {BODY_MAX}", payload.body.len());
        return outcome::failed(FailureKind::Reject, &reason, None);
    }
    let mut headers = payload.headers;
    headers.extend(target.headers.iter().cloned());
    let request = http::post(target.url.clone(), headers, payload.body.into_bytes(), TIMEOUT_MS);
    match sign::signed(target, delivery, Request { response_max: Some(ANSWER_MAX), ..request }) {
        Some(request) => Action::Http(request),
        None => outcome::failed(FailureKind::Reject, "the host does not say when the attempt began", None),
    }
}
