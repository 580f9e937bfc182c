//! Posts notifications to a URL: as Standard Webhooks ([`standard`]) or as CloudEvents 1.0 ([`cloudevents`]), signed by
//! keys that only the host knows ([`sign`]).
//!
//! An attempt is one request: the first step makes it, the second reads its answer ([`answer`]). The delivery's id goes
//! with it and stays the same, so that a receiver knows what it has already.

#![no_std]

extern crate alloc;

mod answer;
mod cloudevents;
mod headers;
mod percent;
mod request;
mod settings;
mod sign;
mod standard;

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, Destination, Effect, FailureKind, Json, Problem};
use switchbell_kit::{Guest, outcome, settings as kit_settings};

use crate::settings::Target;

/// What the plugin is, as `describe` in `wit/delivery.wit` asks.
const MANIFEST: &str = concat!(
    r#"{"name":"webhook","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","summary":"Posts notifications to a URL, as Standard Webhooks or CloudEvents.","settings":"#,
    include_str!("../settings.schema.json"),
    r#","wants":{"http":[],"mail":false,"tools":[]},"needs":["data"],"repeat":"harmless"}"#,
);

/// The plugin.
pub struct Webhook;

impl Guest for Webhook {
    fn describe() -> Json {
        MANIFEST.to_owned()
    }

    fn check(settings: Json) -> Result<Destination, Vec<Problem>> {
        Target::read(&settings).map(|target| target.destination())
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let target = match Target::read(&delivery.settings) {
            Ok(target) => target,
            Err(problems) => return outcome::failed(FailureKind::Reject, &kit_settings::invalid(&problems), None),
        };
        match past.as_slice() {
            [] => request::first(&target, &delivery),
            [effect] => answer::outcome(&target, effect),
            _ => outcome::failed(FailureKind::Reject, "the host recorded several effects; an attempt has one", None),
        }
    }
}

switchbell_kit::plugin!(Webhook);

#[cfg(test)]
mod tests;
