//! Actions, written only.

use serde::Serialize;
use serde_json::value::RawValue;

use super::{base64, body, extras, json};
use crate::wasm::{Action, FailureKind, Part, Request, Signature};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Wire<'a> {
    Http(Http<'a>),
    Mail(Mail<'a>),
    Tool(Tool<'a>),
    Wait(Wait),
    Done(Done<'a>),
    Failed(Failed<'a>),
    Other(Other<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Http<'a> {
    method: &'a str,
    url: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    headers: &'a [(String, String)],
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sign: Vec<Sign<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_max: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Sign<'a> {
    marker: &'a str,
    algorithm: &'a str,
    encoding: &'a str,
    key: &'a str,
    /// Base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    derive: Vec<String>,
    message: Vec<Piece<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Piece<'a> {
    /// Base64.
    Bytes(String),
    Secret(&'a str),
    Url,
    Body,
    BodyHash(&'a str),
    Header(&'a str),
}

#[derive(Serialize)]
pub(super) struct Mail<'a> {
    to: &'a [String],
    subject: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Tool<'a> {
    connector: &'a str,
    tool: &'a str,
    arguments: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize)]
pub(super) struct Wait {
    seconds: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<Box<RawValue>>,
}

#[derive(Serialize)]
pub(super) struct Done<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remember: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Failed<'a> {
    kind: &'static str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resume: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Box<RawValue>>,
}

#[derive(Serialize)]
pub(super) struct Other<'a> {
    kind: &'a str,
    payload: Box<RawValue>,
}

impl<'a> From<&'a Action> for Wire<'a> {
    fn from(action: &'a Action) -> Self {
        let kept = |text: &Option<String>| text.as_deref().map(json);
        match action {
            Action::Http(request) => Self::Http(request.into()),
            Action::Mail(mail) => Self::Mail(Mail {
                to: &mail.to,
                subject: &mail.subject,
                text: &mail.text,
                thread: mail.thread.as_deref(),
                extras: extras(&mail.extras),
            }),
            Action::Tool(call) => Self::Tool(Tool {
                connector: &call.connector,
                tool: &call.tool,
                arguments: json(&call.arguments),
                timeout_ms: call.timeout_ms,
                extras: extras(&call.extras),
            }),
            Action::Wait(pause) => Self::Wait(Wait { seconds: pause.seconds, resume: kept(&pause.resume) }),
            Action::Done(receipt) => Self::Done(Done {
                reference: receipt.reference.as_deref(),
                note: receipt.note.as_deref(),
                remember: kept(&receipt.remember),
                extras: extras(&receipt.extras),
            }),
            Action::Failed(failure) => Self::Failed(Failed {
                kind: kind(failure.kind),
                reason: &failure.reason,
                after_seconds: failure.after_seconds,
                resume: kept(&failure.resume),
                extras: extras(&failure.extras),
            }),
            Action::Other(extension) => Self::Other(Other { kind: &extension.kind, payload: json(&extension.payload) }),
        }
    }
}

impl<'a> From<&'a Request> for Http<'a> {
    fn from(request: &'a Request) -> Self {
        let (body, body_base64) = body(&request.body);
        Self {
            method: &request.method,
            url: &request.url,
            headers: &request.headers,
            body,
            body_base64,
            sign: request.sign.iter().map(Sign::from).collect(),
            timeout_ms: request.timeout_ms,
            response_max: request.response_max,
            extras: extras(&request.extras),
        }
    }
}

impl<'a> From<&'a Signature> for Sign<'a> {
    fn from(signature: &'a Signature) -> Self {
        Self {
            marker: &signature.marker,
            algorithm: &signature.algorithm,
            encoding: &signature.encoding,
            key: &signature.key,
            derive: signature.derive.iter().map(|bytes| base64(bytes)).collect(),
            message: signature.message.iter().map(Piece::from).collect(),
        }
    }
}

impl<'a> From<&'a Part> for Piece<'a> {
    fn from(part: &'a Part) -> Self {
        match part {
            Part::Bytes(bytes) => Self::Bytes(base64(bytes)),
            Part::Secret(placeholder) => Self::Secret(placeholder),
            Part::Url => Self::Url,
            Part::Body => Self::Body,
            Part::BodyHash(algorithm) => Self::BodyHash(algorithm),
            Part::Header(name) => Self::Header(name),
        }
    }
}

fn kind(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::Retry => "retry",
        FailureKind::Reject => "reject",
        FailureKind::Reconnect => "reconnect",
        FailureKind::Unknown => "unknown",
    }
}
