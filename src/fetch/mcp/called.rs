//! A call of a tool in the protocol's words, and what came of it in ours.

use std::time::Duration;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, RequestMetaObject};
use serde_json::{Map, Value, json};

use super::fault::Faults;
use crate::fetch::outbox::ReadError;
use crate::tools::{Call, Said, Stage, Trouble};

/// Who a call is made for, in its `_meta`: keys with a prefix of our own (MCP, "General fields", `_meta`).
const ON_BEHALF_OF: &str = "switchbell/on-behalf-of";
/// The delivery that a call belongs to, in its `_meta`.
const DELIVERY: &str = "switchbell/delivery";

pub(super) fn request(call: Call<'_>) -> CallToolRequestParams {
    let mut meta = RequestMetaObject::new();
    for (key, value) in [(ON_BEHALF_OF, call.on_behalf_of), (DELIVERY, call.delivery)] {
        meta.insert(key.to_owned(), Value::String(value.to_owned()));
    }
    let mut request = CallToolRequestParams::new(call.tool.to_owned()).with_arguments(call.arguments);
    request.meta = Some(meta);
    request
}

/// What a tool answered; without what a request over HTTP carried, where `faults` know it.
pub(super) fn said(answer: CallToolResponse, faults: Option<&Faults>) -> Result<Said, Trouble> {
    match answer {
        CallToolResponse::Complete(result) => Ok(complete(result, faults)),
        CallToolResponse::InputRequired(_) => Err(refused(
            "input-required",
            "the tool asks a person for more before it does anything; nobody is there to answer, so give it all it needs \
             in its arguments",
        )),
        _ => Err(Trouble {
            stage: Stage::Unanswered,
            ..refused(
                "task",
                "the server made a task of the call, which it was not asked for; what becomes of it is not known",
            )
        }),
    }
}

fn complete(result: CallToolResult, faults: Option<&Faults>) -> Said {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut said = Map::from_iter([("content".to_owned(), json!(content))]);
    said.extend(structured_content.map(|structured| ("structuredContent".to_owned(), structured)));
    if let Some(faults) = faults {
        said.values_mut().for_each(|value| masked(value, faults));
    }
    Said { is_error: is_error.unwrap_or_default(), content: said }
}

/// Takes secrets out of every text. JSON that was read is not nested deeper than its reader allows.
fn masked(value: &mut Value, faults: &Faults) {
    match value {
        Value::String(text) => *text = faults.masked_echo(text),
        Value::Array(items) => items.iter_mut().for_each(|item| masked(item, faults)),
        Value::Object(members) => members.values_mut().for_each(|member| masked(member, faults)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Too many calls are under way.
pub(super) fn busy(waited: Duration) -> Trouble {
    let seconds = waited.as_secs();
    Trouble {
        stage: Stage::Unsent,
        ..refused("busy", &format!("other calls of this connector's tools were under way for {seconds} s"))
    }
}

/// Why there is no connection to call over. Nothing was asked of a tool.
pub(super) fn unready(error: &ReadError) -> Trouble {
    let trouble = trouble(error);
    match trouble.stage {
        // A server that refuses us is not reached otherwise by trying.
        Stage::Refused => trouble,
        Stage::Unsent | Stage::Unanswered => Trouble { stage: Stage::Unsent, ..trouble },
    }
}

/// Why a call brought no answer.
pub(super) fn trouble(error: &ReadError) -> Trouble {
    let (stage, code) = how_far(error);
    let status = match error {
        ReadError::Http { status, .. } => Some(*status),
        // As a server would say it that was asked without a sign-in.
        ReadError::Reauthorize(_) => Some(401),
        _ => None,
    };
    let message = match error {
        ReadError::Refused { message, .. } if message.is_empty() => "the server refused the call".to_owned(),
        ReadError::Refused { message, .. } => message.clone(),
        ReadError::TooLarge { bytes_max } => format!("the answer has more than {bytes_max} bytes"),
        error => error.to_string(),
    };
    Trouble { stage, code, message, status, retry_after: error.retry_after() }
}

/// What stands before a server says by 503 that it passed nothing on; by other errors it may have, and lost the answer.
fn how_far(error: &ReadError) -> (Stage, String) {
    let (stage, code) = match error {
        ReadError::Refused { code, .. } => return (Stage::Refused, format!("mcp{code}")),
        ReadError::Http { status, .. } => {
            let may_be_done = matches!(status, 200..=299 | 500..) && *status != 503;
            return (if may_be_done { Stage::Unanswered } else { Stage::Refused }, format!("http-{status}"));
        }
        ReadError::NotFound(_) => (Stage::Refused, "not-found"),
        ReadError::Reauthorize(_) => (Stage::Refused, "sign-in"),
        ReadError::NotConnected(_) => (Stage::Unsent, "connect"),
        ReadError::NoToken(_) => (Stage::Unsent, "no-token"),
        ReadError::Timeout { .. } => (Stage::Unanswered, "timeout"),
        ReadError::Disconnected(_) => (Stage::Unanswered, "disconnected"),
        ReadError::TooLarge { .. } => (Stage::Unanswered, "too-large"),
        ReadError::NotMcp(_) | ReadError::NoText => (Stage::Unanswered, "not-mcp"),
    };
    (stage, code.to_owned())
}

fn refused(code: &str, message: &str) -> Trouble {
    let (code, message) = (code.to_owned(), message.to_owned());
    Trouble { stage: Stage::Refused, code, message, status: None, retry_after: None }
}
