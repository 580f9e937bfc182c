//! A plugin whose step never ends.

mod bindings;

use std::hint::black_box;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};

struct Plugin;

impl Guest for Plugin {
    fn describe() -> String {
        r#"{"name":"spins","version":"1.0.0"}"#.into()
    }

    fn check(_settings: String) -> Result<Destination, Vec<Problem>> {
        Ok(Destination { label: "nowhere".into(), lanes: vec![], extras: "{}".into() })
    }

    fn step(_delivery: Delivery, _past: Vec<Effect>) -> Action {
        loop {
            black_box(());
        }
    }
}
