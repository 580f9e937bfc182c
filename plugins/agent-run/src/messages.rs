//! The Messages API of Anthropic (docs.anthropic.com/en/api/messages): one request, one answer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery};

use crate::input::Input;
use crate::json::{Object, Value};
use crate::request::Ask;
use crate::settings::Agent;
use crate::verdict::{Answered, Said};

/// The version of the API.
const VERSION: &str = "2023-06-01";

/// The most tokens of an answer where the settings do not say, which the API asks for: about as much as a model writes in
/// the 30 seconds that the host waits.
const TOKENS_USUAL: u32 = 1_024;

/// Asks the model.
pub(crate) fn start(agent: &Agent, delivery: &Delivery, key: &str) -> Action {
    let input = Input::new(&agent.prompt, delivery);
    let message = Object::new().text("role", "user").text("content", &input.content).end();
    let body = Object::new()
        .text("model", &agent.model)
        .raw("max_tokens", &agent.max_tokens.unwrap_or(TOKENS_USUAL).to_string())
        .text("system", &input.instruction)
        .raw("messages", &format!("[{message}]"))
        .end();
    let ask = Ask::new(agent, delivery).with("anthropic-version", VERSION).with("idempotency-key", key);
    ask.post("/v1/messages", body)
}

/// What a message says; none when it is none.
pub(crate) fn read(message: Value<'_>) -> Option<Said> {
    let content = message.get("content")?;
    let id = message.text_at(&["id"])?;
    let text = content.items().filter_map(|block| block.text_at(&["text"])).collect::<Vec<_>>().join("\n");
    let note = match message.text_at(&["stop_reason"]).as_deref() {
        Some("refusal") => {
            let words = if text.is_empty() { String::new() } else { format!(": {text}") };
            return Some(Said::Over(format!("the model refused{words}")));
        }
        Some("max_tokens" | "model_context_window_exceeded") => Some("the answer was cut at the most tokens"),
        Some("tool_use" | "pause_turn") => Some("the model asked for a tool, which nobody runs here"),
        _ => None,
    };
    Some(Said::Answered(Answered { reference: Some(id), text, note }))
}
