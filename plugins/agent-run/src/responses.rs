//! The Responses API of OpenAI, in the background (developers.openai.com/api/docs/guides/background): the answer comes at
//! once with an id, and is asked for until it is complete.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use switchbell_kit::types::{Action, Delivery};

use crate::input::Input;
use crate::json::{Object, Value};
use crate::request::{Ask, segment};
use crate::settings::Agent;
use crate::verdict::{Answered, Said};

/// The longest value of the API's metadata, in characters.
const METADATA_MAX: usize = 512;

/// Begins a response.
pub(crate) fn start(agent: &Agent, delivery: &Delivery, key: &str) -> Action {
    let input = Input::new(&agent.prompt, delivery);
    let value = |text: &str| switchbell_kit::text::cut(text, METADATA_MAX);
    let metadata = Object::new()
        .text("on_behalf_of", &value(&delivery.on_behalf_of))
        .text("workspace", &value(&delivery.workspace))
        .text("route", &value(&delivery.route))
        .text("delivery", &value(&delivery.id))
        .end();
    let body = Object::new()
        .text("model", &agent.model)
        .text("instructions", &input.instruction)
        .text("input", &input.content)
        .raw("background", "true")
        .raw("store", "true")
        .raw("metadata", &metadata);
    let body = match agent.max_tokens {
        Some(tokens) => body.raw("max_output_tokens", &tokens.to_string()),
        None => body,
    };
    Ask::new(agent, delivery).with("idempotency-key", key).post("/responses", body.end())
}

/// Asks for a response.
pub(crate) fn ask(agent: &Agent, delivery: &Delivery, id: &str) -> Action {
    Ask::new(agent, delivery).get(&format!("/responses/{}", segment(id)))
}

/// What a response says; none when it is none.
pub(crate) fn read(response: Value<'_>) -> Option<Said> {
    let id = response.text_at(&["id"])?;
    let output = response.get("output");
    // Servers that answer at once may leave the status out.
    let status = response.text_at(&["status"]).or_else(|| output.map(|_| String::from("completed")))?;
    let why = |path: &[&str]| response.text_at(path).map(|why| format!(": {why}")).unwrap_or_default();
    Some(match status.as_str() {
        "queued" | "in_progress" => Said::Running(id),
        "completed" => match refusal(output) {
            Some(refusal) => Said::Over(format!("the model refused: {refusal}")),
            None => answered(id, output, None),
        },
        "incomplete" => match response.text_at(&["incomplete_details", "reason"]).as_deref() {
            Some("max_output_tokens") => answered(id, output, Some("the answer was cut at the most tokens")),
            _ => Said::Over(format!("response {id} is incomplete{}", why(&["incomplete_details", "reason"]))),
        },
        "failed" => Said::Over(format!("response {id} failed{}", why(&["error", "message"]))),
        "cancelled" | "canceled" => Said::Over(format!("response {id} was cancelled")),
        _ => return None,
    })
}

fn answered(id: String, output: Option<Value<'_>>, note: Option<&'static str>) -> Said {
    let text = contents(output).filter_map(|content| content.text_at(&["text"])).collect::<Vec<_>>().join("\n");
    Said::Answered(Answered { reference: Some(id), text, note })
}

fn refusal(output: Option<Value<'_>>) -> Option<String> {
    contents(output).find_map(|content| content.text_at(&["refusal"]))
}

/// What messages hold; what the model thought and called is left out.
fn contents(output: Option<Value<'_>>) -> impl Iterator<Item = Value<'_>> {
    let messages = output.into_iter().flat_map(Value::items);
    let messages = messages.filter(|item| item.text_at(&["type"]).as_deref() == Some("message"));
    messages.flat_map(|message| message.get("content").into_iter().flat_map(Value::items))
}
