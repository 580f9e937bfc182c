//! A target's settings: which agent, how it is reached, and what it is told.

mod arguments;
mod reader;
mod values;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::secret::is_placeholder;
use switchbell_kit::types::{Destination, Lane, Problem};

pub(crate) use arguments::fill;

/// How an agent is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Agent2Agent 1.0 over JSON-RPC, or 0.3 where the server knows no other.
    A2a,
    /// The Responses API of OpenAI, in the background.
    Responses,
    /// The Chat Completions API of OpenAI.
    Chat,
    /// The Messages API of Anthropic.
    Messages,
    /// A tool of a connector.
    Mcp,
}

impl Protocol {
    const ALL: [Self; 5] = [Self::A2a, Self::Responses, Self::Chat, Self::Messages, Self::Mcp];

    /// Its name in settings.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A2a => "a2a",
            Self::Responses => "openai",
            Self::Chat => "openai-chat",
            Self::Messages => "anthropic",
            Self::Mcp => "mcp",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Whether it is one request to a model, at a base URL that has a usual value.
    fn is_a_models(self) -> bool {
        matches!(self, Self::Responses | Self::Chat | Self::Messages)
    }

    /// Whether a run is asked for until it ends.
    fn is_polled(self) -> bool {
        matches!(self, Self::A2a | Self::Responses)
    }

    /// Whether it takes a setting of this name.
    fn takes(self, setting: &str) -> bool {
        match setting {
            "url" | "api_key" | "api_key_header" => self != Self::Mcp,
            "model" | "max_tokens" => self.is_a_models(),
            "poll" => self.is_polled(),
            "connector" | "tool" | "arguments" => self == Self::Mcp,
            _ => true,
        }
    }

    /// The base URL where the settings name none.
    fn usual_url(self) -> Option<&'static str> {
        match self {
            Self::Responses | Self::Chat => Some("https://api.openai.com/v1"),
            Self::Messages => Some("https://api.anthropic.com"),
            Self::A2a | Self::Mcp => None,
        }
    }

    fn usual_header(self) -> &'static str {
        if self == Self::Messages { "x-api-key" } else { "authorization" }
    }
}

/// How often a run is asked for, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Poll {
    /// The first pause; later ones are half of the time since the start.
    pub(crate) first: u32,
    /// The longest pause.
    pub(crate) most: u32,
    /// When asking ends and a person is told.
    pub(crate) give_up: u32,
}

impl Poll {
    /// Runs take from seconds to hours: a short one is known at once, a long one with little traffic.
    const USUAL: Self = Self { first: 2, most: 300, give_up: 12 * 3_600 };
}

/// A tool that starts an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) connector: String,
    pub(crate) name: String,
    /// A JSON object in which `{prompt}`, `{notification}` and others stand for what they name.
    pub(crate) arguments: String,
}

/// The agent of a target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) protocol: Protocol,
    /// The endpoint (a2a) or the base URL, without a slash at its end; empty for a tool.
    pub(crate) url: String,
    /// The admin's instruction.
    pub(crate) prompt: String,
    /// The model; empty where the protocol has none.
    pub(crate) model: String,
    /// The key, or its placeholder.
    pub(crate) api_key: Option<String>,
    /// The header for the key, in lower case.
    pub(crate) api_key_header: String,
    /// The most tokens of an answer.
    pub(crate) max_tokens: Option<u32>,
    pub(crate) poll: Poll,
    /// Whether the answer goes into the inbox.
    pub(crate) report: bool,
    pub(crate) tool: Option<Tool>,
}

impl Agent {
    /// Reads settings, or says everything that is wrong with them.
    pub(crate) fn read(settings: &str) -> Result<Self, Vec<Problem>> {
        reader::read(settings)
    }

    /// What a person calls it, and what shares the pauses that it asks for: whatever uses the same key at one place.
    pub(crate) fn destination(&self) -> Destination {
        let host = if is_placeholder(&self.url) { "a secret URL" } else { values::host(&self.url) };
        let (label, place) = match &self.tool {
            Some(Tool { connector, name, .. }) => {
                (format!("tool {name} of {connector}"), format!("{connector}/{name}"))
            }
            None if self.model.is_empty() => (format!("agent at {host}"), self.url.clone()),
            None => (format!("{} at {host}", self.model), format!("{host}/{}", self.model)),
        };
        let key = self.api_key.as_deref().map(identity).unwrap_or_default();
        let key = format!("{} {} {key}", self.protocol.name(), identity(&place));
        let lane = Lane { key, count: 0, per_seconds: 0, in_flight: 0, ordered: false };
        Destination { label, lanes: alloc::vec![lane], extras: "{}".to_owned() }
    }

    /// The text without the key, where the key was written out instead of coming from a secret: an echo of it must not
    /// reach the delivery's history.
    pub(crate) fn without_key(&self, text: &str) -> String {
        match &self.api_key {
            Some(key) if !is_placeholder(key) => text.replace(key.as_str(), "[hidden]"),
            _ => text.to_owned(),
        }
    }
}

/// What tells one value from another without showing it: the placeholder, or a hash of the value.
fn identity(value: &str) -> String {
    if is_placeholder(value) { value.to_owned() } else { format!("{:016x}", crate::hash::of(&[value])) }
}
