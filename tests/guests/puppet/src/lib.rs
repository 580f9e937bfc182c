//! A plugin that does what the settings tell it to: the settings are one JSON string that names a behaviour.
//!
//! One component stands for many ways to misbehave, because each has to be compiled by every test run. What `describe`
//! answers is a padded text in the data segment, which tests overwrite in the built file.

mod behaviour;
mod bindings;

use std::hint::black_box;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::Lane;

/// What `describe` answers, padded so that a test can put another text of up to this size in its place.
static DESCRIPTION: [u8; 512] = padded(br#"{"name":"puppet","version":"1.0.0"}"#);

const fn padded<const LENGTH: usize>(text: &[u8; LENGTH]) -> [u8; 512] {
    let mut bytes = [b' '; 512];
    let mut at = 0;
    while at < LENGTH {
        #[allow(clippy::indexing_slicing, reason = "evaluated at compile time, where a mistake fails the build")]
        {
            bytes[at] = text[at];
        }
        at += 1;
    }
    bytes
}

struct Puppet;

impl Guest for Puppet {
    fn describe() -> String {
        let text = String::from_utf8_lossy(black_box(&DESCRIPTION)).into_owned();
        match text.trim_end() {
            "!trap" => std::process::abort(),
            "!loop" => behaviour::spin(),
            "!huge" => "x".repeat(1 << 20),
            _ => text,
        }
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        match behaviour::name(&settings) {
            "" => Err(vec![
                Problem { path: String::new(), message: "name a behaviour".into() },
                Problem { path: "/line".into(), message: "one\r\nline\u{202e}".into() },
            ]),
            "many-lanes" => Ok(destination("many", 1000)),
            "loop" => behaviour::spin(),
            name => Ok(destination(name, 1)),
        }
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        behaviour::act(&delivery, &past)
    }
}

fn destination(label: &str, lanes: u32) -> Destination {
    let lane =
        |number| Lane { key: format!("{label}{number}"), count: 1, per_seconds: 1, in_flight: 1, ordered: false };
    Destination { label: label.into(), lanes: (0..lanes).map(lane).collect(), extras: "{}".into() }
}
