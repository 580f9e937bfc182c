//! A plugin that opens sockets and reads files.

mod bindings;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use bindings::switchbell::delivery::types::Receipt;

struct Plugin;

impl Guest for Plugin {
    fn describe() -> String {
        r#"{"name":"reaches-out","version":"1.0.0"}"#.into()
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        let label = std::fs::read_to_string(settings).unwrap_or_default();
        Ok(Destination { label, lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, _past: Vec<Effect>) -> Action {
        let reference = std::net::TcpStream::connect(delivery.settings.as_str()).map(|_| "connected".into()).ok();
        Action::Done(Receipt { reference, note: None, remember: None, extras: "{}".into() })
    }
}
