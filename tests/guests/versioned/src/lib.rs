//! A plugin of any name and version, so that tests have many versions of many plugins without compiling one.
//!
//! Its name, its version, its behaviour and what repeating it means stand as padded texts in the data of the built file,
//! each once, between `<versioned KEY:` and `>`; `patch.rs` beside this folder puts others in their place. The settings of
//! a target are `{"url": "http://…", "wait": 5}`; `wait` is for the behaviour `waits` alone.

mod behaviour;
mod bindings;

use std::hint::black_box;

use bindings::exports::switchbell::delivery::plugin::{Action, Delivery, Destination, Effect, Guest, Problem};

static NAME: &str = "<versioned name:versioned                                                              >";
static VERSION: &str = "<versioned version:1.0.0                                                            >";
static BEHAVIOUR: &str = "<versioned behaviour:plain                   >";
static REPEAT: &str = "<versioned repeat:tolerable >";

/// What a field says now. The compiler must not know it, because it is another in the patched file.
fn field(text: &'static str) -> &'static str {
    let value = black_box(text).split_once(':').map_or("", |(_, value)| value);
    value.trim_end_matches('>').trim()
}

/// The version that this file was made to be.
pub(crate) fn version() -> &'static str {
    field(VERSION)
}

struct Versioned;

impl Guest for Versioned {
    fn describe() -> String {
        let needs = match field(BEHAVIOUR) {
            "describe-traps" => std::process::abort(),
            "describe-loops" => behaviour::spin(),
            "remembers" => r#"["memory"]"#,
            _ => "[]",
        };
        let (name, version, repeat) = (field(NAME), version(), field(REPEAT));
        format!(r#"{{"name":"{name}","version":"{version}","repeat":"{repeat}","needs":{needs}}}"#)
    }

    fn check(settings: String) -> Result<Destination, Vec<Problem>> {
        let problem = |path: &str, message: &str| vec![Problem { path: path.into(), message: message.into() }];
        if field(BEHAVIOUR) == "refuses" {
            return Err(problem("/url", "this version takes no target"));
        }
        let url = behaviour::url(&settings).ok_or_else(|| problem("/url", "write `url: http://…`"))?;
        Ok(Destination { label: url, lanes: vec![], extras: "{}".into() })
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        behaviour::act(field(BEHAVIOUR), &delivery, &past)
    }
}
