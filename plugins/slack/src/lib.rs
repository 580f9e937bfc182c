//! Delivers notifications to Slack, by an incoming webhook or by `chat.postMessage`.
//!
//! An attempt is one request: the first step makes it ([`message`]), the second reads its answer ([`answer`]).
//! Everything a connector wrote is untrusted; [`escape`] and [`link`] keep it harmless.

#![no_std]

extern crate alloc;

mod answer;
mod escape;
mod fields;
mod link;
mod message;
mod request;
mod settings;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, Destination, Effect, FailureKind, Json, Problem};
use switchbell_kit::{Guest, outcome};

use crate::settings::Target;

/// What the plugin is, as `describe` in `wit/delivery.wit` asks.
const MANIFEST: &str = concat!(
    r#"{"name":"slack","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","summary":"Posts notifications to a Slack channel, by an incoming webhook or as a bot.","settings":"#,
    include_str!("../settings.schema.json"),
    r#","wants":{"http":["hooks.slack.com","slack.com"],"mail":false,"tools":[]},"needs":[],"repeat":"tolerable"}"#,
);

/// The plugin.
pub struct Slack;

impl Guest for Slack {
    fn describe() -> Json {
        MANIFEST.to_owned()
    }

    fn check(settings: Json) -> Result<Destination, Vec<Problem>> {
        Target::read(&settings).map(|target| target.destination())
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let target = match Target::read(&delivery.settings) {
            Ok(target) => target,
            Err(problems) => return outcome::failed(FailureKind::Reject, &invalid(&problems), None),
        };
        match past.as_slice() {
            [] => request::first(&target, &delivery),
            [effect] => answer::outcome(&target, &effect.answer),
            _ => outcome::failed(FailureKind::Reject, "the host recorded several effects; an attempt has one", None),
        }
    }
}

/// Says what is wrong with settings that passed no check.
fn invalid(problems: &[Problem]) -> alloc::string::String {
    match problems {
        [] => "the settings are not valid".to_owned(),
        [first, ..] => format!("the settings are not valid: {}: {}", first.path, first.message),
    }
}

switchbell_kit::plugin!(Slack);

#[cfg(test)]
mod tests;
