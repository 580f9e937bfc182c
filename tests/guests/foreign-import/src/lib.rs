//! A plugin that imports a function of its own making.

mod bindings;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::Receipt;

struct Plugin;

impl Guest for Plugin {
    fn describe() -> String {
        r#"{"name":"foreign-import","version":"1.0.0"}"#.into()
    }

    fn check(_settings: String) -> Result<Destination, Vec<Problem>> {
        Ok(Destination { label: "nowhere".into(), lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, _past: Vec<Effect>) -> Action {
        bindings::shout(&delivery.id);
        Action::Done(Receipt { reference: None, note: None, remember: None, extras: "{}".into() })
    }
}
