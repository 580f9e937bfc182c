//! A plugin that does harm in the way its settings name: `does` says which, the other keys say with what.
//!
//! What takes more than it is given is in `greed`, what answers nonsense in `nonsense`, what reaches for places and
//! secrets that are not its own in `reach`.

mod answers;
mod bindings;
mod greed;
mod nonsense;
mod reach;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};
use serde_json::Value;

struct Hostile;

impl Guest for Hostile {
    fn describe() -> String {
        r#"{"name":"hostile","version":"1.0.0","summary":"Does harm","needs":["memory"],"repeat":"tolerable"}"#.into()
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        let settings = Settings::read(&settings);
        match settings.text("does") {
            "check-loop" => greed::spin(),
            "check-trap" => std::process::abort(),
            "check-allocate" => greed::allocate(),
            "check-many-lanes" => Ok(nonsense::destination(10_000, "lane")),
            "check-long-lane" => Ok(nonsense::destination(1, &"x".repeat(1 << 20))),
            "check-huge-label" => Ok(Destination { label: "l".repeat(1 << 20), ..nonsense::destination(0, "") }),
            "check-bad-extras" => Ok(Destination { extras: "{".into(), ..nonsense::destination(0, "") }),
            "check-many-problems" => Err(nonsense::problems(20_000)),
            "check-no-problem" => Err(vec![]),
            "absurd-lanes" => Ok(nonsense::destination(8, "absurd")),
            _ => Ok(nonsense::destination(0, "")),
        }
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        let settings = Settings::read(&delivery.settings);
        let asked = Asked { does: settings.text("does"), settings: &settings, delivery: &delivery, past: &past };
        let action = greed::act(&asked).or_else(|| nonsense::act(&asked)).or_else(|| reach::act(&asked));
        action.unwrap_or_else(|| answers::rejected(&format!("no such behaviour: {}", asked.does)))
    }
}

/// A target's settings.
struct Settings(Value);

impl Settings {
    fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// The text of a key, empty when there is none.
    fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// One step.
struct Asked<'a> {
    does: &'a str,
    settings: &'a Settings,
    delivery: &'a Delivery,
    past: &'a [Effect],
}
