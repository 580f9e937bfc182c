//! Why a request of the extension is refused, as JSON-RPC says it.

use std::fmt;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::EXTENSION;
use crate::inbox::InboxError;

/// Codes of JSON-RPC 2.0, section 5.1, and of MCP 2026-07-28.
const INVALID_REQUEST: i32 = -32_600;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
const HEADER_MISMATCH: i32 = -32_020;
const MISSING_CAPABILITY: i32 = -32_021;
const UNSUPPORTED_REVISION: i32 = -32_022;
/// Whose queue it would be is not known: as servers of this extension say it.
const NO_CONSUMER: i32 = -32_001;

/// Why a request is refused, and what to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    code: i32,
    message: String,
    data: Option<Value>,
    status: StatusCode,
}

#[derive(Serialize)]
struct AnswerJson<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: ErrorJson<'a>,
}

#[derive(Serialize)]
struct ErrorJson<'a> {
    code: i32,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: &'a Option<Value>,
}

impl Refusal {
    /// Refused in the words of JSON-RPC alone; the way over HTTP went well.
    fn within(code: i32, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string(), data: None, status: StatusCode::OK }
    }

    /// The request as such is wrong, and HTTP says so, too.
    fn bad(code: i32, message: impl fmt::Display) -> Self {
        Self { status: StatusCode::BAD_REQUEST, ..Self::within(code, message) }
    }

    pub(super) fn invalid_request(why: impl fmt::Display) -> Self {
        Self::bad(INVALID_REQUEST, why)
    }

    pub(super) fn invalid_params(why: impl fmt::Display) -> Self {
        Self::within(INVALID_PARAMS, why)
    }

    /// What every request of this revision has in its `_meta` is not there.
    pub(super) fn missing_meta(keys: &[&str]) -> Self {
        let keys = keys.join(", ");
        Self::bad(INVALID_PARAMS, format_args!("params._meta: these are missing, or of another type: {keys}"))
    }

    pub(super) fn header_mismatch(why: impl fmt::Display) -> Self {
        Self::bad(HEADER_MISMATCH, why)
    }

    pub(super) fn unsupported_revision(requested: &str, supported: &[&str]) -> Self {
        let data = Some(json!({ "requested": requested, "supported": supported }));
        Self { data, ..Self::bad(UNSUPPORTED_REVISION, "Unsupported protocol version") }
    }

    /// The client has not said that it knows the extension. Since 2026-07-28 HTTP says so, too.
    pub(super) fn missing_capability(is_inline: bool) -> Self {
        let why = format!(
            "Missing required client capability: put {{\"extensions\":{{\"{EXTENSION}\":{{}}}}}} into \
             params._meta[\"io.modelcontextprotocol/clientCapabilities\"] of every request of this extension"
        );
        let data = Some(json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } }));
        let status = if is_inline { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        Self { data, status, ..Self::within(MISSING_CAPABILITY, why) }
    }

    pub(super) fn no_consumer(why: impl fmt::Display) -> Self {
        Self::within(NO_CONSUMER, why)
    }

    pub(super) fn internal(why: impl fmt::Display) -> Self {
        Self::within(INTERNAL_ERROR, why)
    }

    /// The answer to the request with this id.
    pub(super) fn answer(&self, id: &RawValue) -> Response {
        let Self { code, message, data, status } = self;
        let answer = AnswerJson { jsonrpc: "2.0", id, error: ErrorJson { code: *code, message, data } };
        match serde_json::to_string(&answer) {
            Ok(text) => (*status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }

    #[cfg(test)]
    pub(super) fn parts(&self) -> (i32, u16, &str, Option<&Value>) {
        (self.code, self.status.as_u16(), &self.message, self.data.as_ref())
    }
}

impl From<InboxError> for Refusal {
    fn from(error: InboxError) -> Self {
        Self::internal(format_args!("the queue cannot be reached right now: {error}; try again later"))
    }
}
