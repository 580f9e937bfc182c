//! Answers, written and read.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{body, extras, from_body, is_false, json};
use crate::wasm;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Wire {
    Http(Came<Response>),
    Mail(Came<Mailed>),
    Tool(Came<ToolAnswer>),
    Resumed(Resumed),
    Other(Came<Box<RawValue>>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Came<T> {
    Ok(T),
    Fault(Fault),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Response {
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Fault {
    reach: Reach,
    code: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after_seconds: Option<u32>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Reach {
    Denied,
    Unsent,
    Refused,
    Unanswered,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Mailed {
    message_id: String,
    recipients: Vec<Recipient>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipient {
    address: String,
    /// Why not; none when the relay accepted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fault: Option<Fault>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ToolAnswer {
    #[serde(default, skip_serializing_if = "is_false")]
    is_error: bool,
    content: Box<RawValue>,
    #[serde(default, skip_serializing_if = "is_false")]
    truncated: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resumed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resume: Option<Box<RawValue>>,
}

impl From<&wasm::Answer> for Wire {
    fn from(answer: &wasm::Answer) -> Self {
        match answer {
            wasm::Answer::Http(answer) => Self::Http(came(answer, response)),
            wasm::Answer::Mail(answer) => Self::Mail(came(answer, mailed)),
            wasm::Answer::Tool(answer) => Self::Tool(came(answer, |answer| ToolAnswer {
                is_error: answer.is_error,
                content: json(&answer.content),
                truncated: answer.truncated,
            })),
            wasm::Answer::Resumed(resume) => Self::Resumed(Resumed { resume: resume.as_deref().map(json) }),
            wasm::Answer::Other(answer) => Self::Other(came(answer, |payload| json(payload))),
        }
    }
}

impl TryFrom<Wire> for wasm::Answer {
    type Error = String;

    fn try_from(wire: Wire) -> Result<Self, String> {
        Ok(match wire {
            Wire::Http(Came::Ok(answer)) => Self::Http(Ok(wasm::Response {
                status: answer.status,
                headers: answer.headers,
                body: from_body(answer.body, answer.body_base64)?,
                truncated: answer.truncated,
                extras: answer.extras.map_or_else(|| "{}".to_owned(), text),
            })),
            Wire::Mail(Came::Ok(mailed)) => Self::Mail(Ok(wasm::Mailed {
                message_id: mailed.message_id,
                recipients: mailed.recipients.into_iter().map(wasm::Recipient::from).collect(),
            })),
            Wire::Tool(Came::Ok(answer)) => Self::Tool(Ok(wasm::ToolAnswer {
                is_error: answer.is_error,
                content: text(answer.content),
                truncated: answer.truncated,
            })),
            Wire::Other(Came::Ok(payload)) => Self::Other(Ok(text(payload))),
            Wire::Resumed(Resumed { resume }) => Self::Resumed(resume.map(text)),
            Wire::Http(Came::Fault(fault)) => Self::Http(Err(fault.into())),
            Wire::Mail(Came::Fault(fault)) => Self::Mail(Err(fault.into())),
            Wire::Tool(Came::Fault(fault)) => Self::Tool(Err(fault.into())),
            Wire::Other(Came::Fault(fault)) => Self::Other(Err(fault.into())),
        })
    }
}

fn came<A, T>(answer: &Result<A, wasm::Fault>, ok: impl FnOnce(&A) -> T) -> Came<T> {
    match answer {
        Ok(answer) => Came::Ok(ok(answer)),
        Err(fault) => Came::Fault(fault.into()),
    }
}

fn response(answer: &wasm::Response) -> Response {
    let (body, body_base64) = body(&answer.body);
    let (status, headers, truncated) = (answer.status, answer.headers.clone(), answer.truncated);
    Response { status, headers, body, body_base64, truncated, extras: extras(&answer.extras) }
}

fn mailed(mailed: &wasm::Mailed) -> Mailed {
    let recipient = |recipient: &wasm::Recipient| Recipient {
        address: recipient.address.clone(),
        fault: recipient.outcome.as_ref().err().map(Fault::from),
    };
    Mailed { message_id: mailed.message_id.clone(), recipients: mailed.recipients.iter().map(recipient).collect() }
}

impl From<Recipient> for wasm::Recipient {
    fn from(recipient: Recipient) -> Self {
        Self { address: recipient.address, outcome: recipient.fault.map_or(Ok(()), |fault| Err(fault.into())) }
    }
}

impl From<&wasm::Fault> for Fault {
    fn from(fault: &wasm::Fault) -> Self {
        let reach = match fault.reach {
            wasm::Reach::Denied => Reach::Denied,
            wasm::Reach::Unsent => Reach::Unsent,
            wasm::Reach::Refused => Reach::Refused,
            wasm::Reach::Unanswered => Reach::Unanswered,
        };
        let (code, message) = (fault.code.clone(), fault.message.clone());
        Self { reach, code, message, status: fault.status, after_seconds: fault.after_seconds }
    }
}

impl From<Fault> for wasm::Fault {
    fn from(fault: Fault) -> Self {
        let reach = match fault.reach {
            Reach::Denied => wasm::Reach::Denied,
            Reach::Unsent => wasm::Reach::Unsent,
            Reach::Refused => wasm::Reach::Refused,
            Reach::Unanswered => wasm::Reach::Unanswered,
        };
        let Fault { code, message, status, after_seconds, .. } = fault;
        Self { reach, code, message, status, after_seconds }
    }
}

fn text(json: Box<RawValue>) -> String {
    Box::<str>::from(json).into_string()
}
