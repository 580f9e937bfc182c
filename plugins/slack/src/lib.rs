//! Delivers notifications to Slack, by an incoming webhook or by `chat.postMessage`.
//!
//! An attempt is one request: the first step makes it ([`message`]), the second reads its answer ([`answer`]). Only where
//! the thread of a subject is gone is there a second request, which begins a new one ([`thread`]). Everything a connector
//! wrote is untrusted; [`escape`] and the kit's `link` keep it harmless.

#![no_std]

extern crate alloc;

mod answer;
mod escape;
mod message;
mod request;
mod settings;
mod thread;

use alloc::borrow::ToOwned;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, Destination, Effect, FailureKind, Json, Problem};
use switchbell_kit::{Guest, outcome, settings as kit_settings};

use crate::settings::Target;
use crate::thread::Thread;

/// What the plugin is, as `describe` in `wit/delivery.wit` asks.
const MANIFEST: &str = concat!(
    r#"{"name":"slack","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","summary":"Posts notifications to a Slack channel, by an incoming webhook or as a bot.","settings":"#,
    include_str!("../settings.schema.json"),
    r#","wants":{"http":["hooks.slack.com","slack.com"],"mail":false,"tools":[]},"needs":["memory"],"repeat":"tolerable"}"#,
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
            Err(problems) => return outcome::failed(FailureKind::Reject, &kit_settings::invalid(&problems), None),
        };
        let thread = Thread::of(&target, &delivery);
        match past.as_slice() {
            [] => request::post(&target, &delivery, thread.parent()),
            [effect] if thread.is_gone(&effect.answer) => request::post(&target, &delivery, None),
            [effect] => answer::outcome(&target, effect, &thread),
            [first, effect] if thread.is_gone(&first.answer) => answer::outcome(&target, effect, &thread.begun_anew()),
            _ => outcome::failed(FailureKind::Reject, "the host recorded several effects; an attempt has one", None),
        }
    }
}

switchbell_kit::plugin!(Slack);

#[cfg(test)]
mod tests;
