//! The Chat Completions API of OpenAI, which many servers of models and agents speak: one request, one answer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery};

use crate::input::Input;
use crate::json::{Object, Value};
use crate::request::Ask;
use crate::settings::Agent;
use crate::verdict::{Answered, Said};

/// Asks the model. The instruction is a `system` message, which OpenAI takes for `developer` and all others know.
pub(crate) fn start(agent: &Agent, delivery: &Delivery, key: &str) -> Action {
    let input = Input::new(&agent.prompt, delivery);
    let message = |role: &str, text: &str| Object::new().text("role", role).text("content", text).end();
    let messages = format!("[{},{}]", message("system", &input.instruction), message("user", &input.content));
    let body = Object::new().text("model", &agent.model).raw("messages", &messages);
    let body = match agent.max_tokens {
        Some(tokens) => body.raw("max_completion_tokens", &tokens.to_string()),
        None => body,
    };
    Ask::new(agent, delivery).with("idempotency-key", key).post("/chat/completions", body.end())
}

/// What a completion says; none when it is none.
pub(crate) fn read(completion: Value<'_>) -> Option<Said> {
    let choice = completion.get("choices")?.items().next()?;
    let message = choice.get("message")?;
    let id = completion.text_at(&["id"]);
    let reason = choice.text_at(&["finish_reason"]);
    if let Some(refusal) = message.text_at(&["refusal"]) {
        return Some(Said::Over(format!("the model refused: {refusal}")));
    }
    let note = match reason.as_deref() {
        Some("content_filter") => {
            return Some(Said::Over(String::from("the answer was held back by a content filter")));
        }
        Some("length") => Some("the answer was cut at the most tokens"),
        Some("tool_calls" | "function_call") => Some("the model asked for a tool, which nobody runs here"),
        _ => None,
    };
    Some(Said::Answered(Answered { reference: id, text: content(message), note }))
}

/// The message's text: one, or in parts.
fn content(message: Value<'_>) -> String {
    let Some(content) = message.get("content") else { return String::new() };
    let parts = || content.items().filter_map(|part| part.text_at(&["text"])).collect::<Vec<_>>().join("\n");
    content.text().unwrap_or_else(parts)
}
