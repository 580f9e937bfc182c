//! Delivers notifications by mail, as plain text.
//!
//! An attempt is one mail action, for the recipients that are left ([`progress`]): the host makes a transaction for each,
//! and [`answer`] reads what came of them. Everything a connector wrote is untrusted; [`subject`] and [`body`] keep it in
//! its place.

#![no_std]

extern crate alloc;

mod address;
mod answer;
mod body;
mod progress;
mod settings;
mod subject;
mod write;

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, Destination, Effect, FailureKind, Json, Message, Problem};
use switchbell_kit::{Guest, json, outcome, settings as kit_settings};

use crate::progress::Progress;
use crate::settings::Target;

/// What the plugin is, as `describe` in `wit/delivery.wit` asks.
const MANIFEST: &str = concat!(
    r#"{"name":"mail","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","summary":"Sends notifications by mail, through the operator's relay.","settings":"#,
    include_str!("../settings.schema.json"),
    r#","wants":{"http":[],"mail":true,"tools":[]},"needs":[],"repeat":"tolerable"}"#,
);

/// The plugin.
pub struct Mail;

impl Guest for Mail {
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
        if delivery.notifications.is_empty() {
            return outcome::failed(FailureKind::Reject, "the delivery holds no notification", None);
        }
        let progress = Progress::read(delivery.resume.as_deref());
        let left = progress.left(&target.to);
        match past.as_slice() {
            // The settings name nobody any more who is left.
            [] if left.is_empty() => answer::end(progress, &[]),
            [] => Action::Mail(message(&target, &delivery, left)),
            [effect] => answer::outcome(progress, &left, &effect.answer),
            _ => outcome::failed(FailureKind::Reject, "the host recorded several effects; an attempt has one", None),
        }
    }
}

fn message(target: &Target, delivery: &Delivery, to: Vec<String>) -> Message {
    let (subject, text) = (target.subject.fill(delivery), body::render(delivery));
    Message { to, subject, text, thread: thread(delivery), extras: "{}".to_owned() }
}

/// Mails of one route about one subject are one thread. Written as a JSON list, so that no two of them come out the same.
fn thread(delivery: &Delivery) -> Option<String> {
    let about = subject::common(delivery, |notification| notification.subject.as_deref())?;
    let parts = [&*delivery.workspace, &*delivery.route, about];
    Some(json::list(parts.map(json::text)))
}

switchbell_kit::plugin!(Mail);

#[cfg(test)]
mod tests;
