//! Has an agent look into notifications, over Agent2Agent, the APIs of OpenAI and Anthropic, or a tool of a connector.
//!
//! A delivery is one run. An attempt starts it ([`run`]), and where the protocol says that it goes on, waits and asks for
//! it until it ends; its id is kept in `resume`, so that nothing starts it twice. The admin's prompt is the instruction;
//! what connectors wrote goes in as framed data ([`input`]).

#![no_std]

extern crate alloc;

mod a2a;
mod chat;
mod hash;
mod input;
mod json;
mod mcp;
mod messages;
mod progress;
mod refusal;
mod request;
mod responses;
mod run;
mod settings;
mod verdict;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery, Destination, Effect, FailureKind, Json, Problem};
use switchbell_kit::{Guest, outcome};

use crate::settings::Agent;

/// What the plugin is, as `describe` in `wit/delivery.wit` asks.
const MANIFEST: &str = concat!(
    r#"{"name":"agent-run","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","summary":"Has an agent look into notifications: A2A, OpenAI, Anthropic, or an MCP tool.","settings":"#,
    include_str!("../settings.schema.json"),
    r#","wants":{"http":["api.openai.com","api.anthropic.com"],"mail":false,"tools":[]},"needs":["data"],"#,
    r#""repeat":"harmful","agent":true}"#,
);

/// The plugin.
pub struct AgentRun;

impl Guest for AgentRun {
    fn describe() -> Json {
        MANIFEST.to_owned()
    }

    fn check(settings: Json) -> Result<Destination, Vec<Problem>> {
        Agent::read(&settings).map(|agent| agent.destination())
    }

    fn step(delivery: Delivery, past: Vec<Effect>) -> Action {
        match Agent::read(&delivery.settings) {
            Ok(_) if delivery.notifications.is_empty() => {
                outcome::failed(FailureKind::Reject, "the delivery holds no notification", None)
            }
            Ok(agent) => run::step(&agent, &delivery, &past),
            Err(problems) => outcome::failed(FailureKind::Reject, &invalid(&problems), None),
        }
    }
}

/// Says what is wrong with settings that passed no check.
fn invalid(problems: &[Problem]) -> String {
    match problems {
        [] => "the settings are not valid".to_owned(),
        [first, ..] => format!("the settings are not valid: {}: {}", first.path, first.message),
    }
}

switchbell_kit::plugin!(AgentRun);

#[cfg(test)]
mod tests;
