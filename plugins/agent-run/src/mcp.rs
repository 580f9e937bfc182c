//! A tool of a connector: the host calls it with the connector's own credential.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use switchbell_kit::outcome;
use switchbell_kit::types::FailureKind::{Reconnect, Reject, Retry, Unknown};
use switchbell_kit::types::{Action, Delivery, FailureKind, Fault, Reach, ToolAnswer, ToolCall};

use crate::input::Input;
use crate::json::Value;
use crate::refusal::{Refusal, said};
use crate::settings::{Agent, fill};
use crate::verdict::{Answered, Said};

/// Calls the tool.
pub(crate) fn start(agent: &Agent, delivery: &Delivery, key: &str) -> Action {
    let Some(tool) = &agent.tool else {
        return outcome::failed(FailureKind::Reject, "the settings name no tool", None);
    };
    let input = Input::new(&agent.prompt, delivery);
    let arguments = fill(&tool.arguments, |word| match word {
        "{prompt}" => input.instruction.clone(),
        "{notification}" => input.content.clone(),
        "{input}" => input.in_one(),
        "{on_behalf_of}" => delivery.on_behalf_of.clone(),
        _ => key.to_owned(),
    });
    Action::Tool(ToolCall {
        connector: tool.connector.clone(),
        tool: tool.name.clone(),
        arguments,
        timeout_ms: None,
        extras: "{}".to_owned(),
    })
}

/// What came of the call.
pub(crate) fn read(answer: &Result<ToolAnswer, Fault>) -> Said {
    match answer {
        Ok(answer) => answered(answer),
        Err(fault) => Said::Refused(refusal(fault)),
    }
}

fn answered(answer: &ToolAnswer) -> Said {
    let content = Value::new(&answer.content);
    let text = text(content);
    if answer.is_error {
        let words = if text.is_empty() { String::new() } else { format!(": {text}") };
        return Said::Over(format!("the tool says that it failed{words}"));
    }
    let note = answer.truncated.then_some("the tool's answer was too large to keep");
    Said::Answered(Answered { reference: content.text_at(&["structuredContent", "id"]), text, note })
}

/// The texts of the result, or else its structured content.
fn text(content: Value<'_>) -> String {
    let items = content.get("content").into_iter().flat_map(Value::items);
    let texts = items.filter_map(|item| item.text_at(&["text"])).collect::<Vec<_>>().join("\n");
    match content.get("structuredContent") {
        Some(structured) if texts.is_empty() => structured.raw().to_owned(),
        _ => texts,
    }
}

/// A connector that says no has begun nothing. What is wrong with a call stays wrong, but for who asks and how often.
fn refusal(fault: &Fault) -> Refusal {
    let kind = match (fault.reach, fault.status) {
        (Reach::Refused, Some(401 | 403)) => Reconnect,
        (Reach::Refused, Some(408 | 425 | 429 | 503)) => Retry,
        (Reach::Refused, _) if fault.after_seconds.is_some() => Retry,
        (Reach::Denied | Reach::Refused, _) => Reject,
        (Reach::Unsent, _) => Retry,
        (Reach::Unanswered, _) => Unknown,
    };
    Refusal { after_seconds: fault.after_seconds, ..Refusal::new(kind, said(fault)) }
}
