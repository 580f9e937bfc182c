//! What is answered when something cannot be done: problem details (RFC 9457).

use std::error::Error;

use axum::extract::rejection::QueryRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::desk::Refusal;
use super::inquiry::NoAnswer;
use crate::inbox::InboxError;

/// The media type of [`ProblemJson`].
pub const PROBLEM_MEDIA_TYPE: &str = "application/problem+json";

/// A problem (RFC 9457, section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProblemJson {
    /// What kind it is: `/problems/` and the kind, relative to the server.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong here, and what to do.
    pub detail: String,
}

/// A problem, and what is known of it besides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DetailedJson<T> {
    /// The problem.
    #[serde(flatten)]
    pub problem: ProblemJson,
    /// What is known besides.
    pub refused: T,
}

/// The kind of a problem whose subject is not there.
pub const NOTHING: &str = "/problems/nothing";

/// The kind of a problem whose subject is an event that an inbox would not take.
pub const DROPPED: &str = "/problems/dropped";

/// Why something cannot be done. Its text names the offender, the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// 400: what was asked makes no sense.
    Wrong(String),
    /// 401: nobody knows who asks.
    Unauthenticated(String),
    /// 403: who asks may not do this.
    Forbidden(String),
    /// 404: there is no such thing, or nothing that this caller may know of.
    Unknown(String),
    /// 404: what is asked about is not in the inbox.
    Nothing(String),
    /// 405: the path is there, and not for this method.
    Method(String),
    /// 408: the request did not come in time.
    Late(String),
    /// 409: it cannot be done as things stand.
    Conflict(String),
    /// 413: too much was sent.
    TooLarge(String),
    /// 415: what was sent is of another media type.
    MediaType(String),
    /// 421: what was asked is for a server of another name.
    Misdirected(String),
    /// 422: the files, the version or the settings that it is about are refused.
    Refused(String),
    /// 422: what is asked about is an event that would be dropped.
    Dropped(String),
    /// 429: too often; seconds to wait.
    TooMany(String, u64),
    /// 503: the store, or the server, cannot do it now.
    Unavailable(String),
}

impl Problem {
    fn parts(&self) -> (StatusCode, &'static str, &'static str, &str) {
        match self {
            Self::Wrong(why) => (StatusCode::BAD_REQUEST, "wrong", "The request makes no sense", why),
            Self::Unauthenticated(why) => (StatusCode::UNAUTHORIZED, "unauthenticated", "A good token is needed", why),
            Self::Forbidden(why) => (StatusCode::FORBIDDEN, "forbidden", "This token does not allow it", why),
            Self::Unknown(why) => (StatusCode::NOT_FOUND, "unknown", "There is no such thing", why),
            Self::Nothing(why) => (StatusCode::NOT_FOUND, "nothing", "There is nothing to answer about", why),
            Self::Method(why) => (StatusCode::METHOD_NOT_ALLOWED, "method", "Another method is needed", why),
            Self::Late(why) => (StatusCode::REQUEST_TIMEOUT, "late", "The request took too long", why),
            Self::Conflict(why) => (StatusCode::CONFLICT, "conflict", "It cannot be done as things stand", why),
            Self::TooLarge(why) => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Too much was sent", why),
            Self::Misdirected(why) => {
                (StatusCode::MISDIRECTED_REQUEST, "misdirected", "This server has another name", why)
            }
            Self::MediaType(why) => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "Another media type is needed", why)
            }
            Self::Refused(why) => (StatusCode::UNPROCESSABLE_ENTITY, "refused", "It was refused", why),
            Self::Dropped(why) => (StatusCode::UNPROCESSABLE_ENTITY, "dropped", "The event would be dropped", why),
            Self::TooMany(why, _) => (StatusCode::TOO_MANY_REQUESTS, "too-many", "Too many requests", why),
            Self::Unavailable(why) => {
                (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "It cannot be done right now", why)
            }
        }
    }

    /// The same as JSON.
    pub fn json(&self) -> ProblemJson {
        let (status, kind, title, detail) = self.parts();
        ProblemJson {
            kind: format!("/problems/{kind}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: detail.to_owned(),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.parts().3)
    }
}

impl From<InboxError> for Problem {
    fn from(error: InboxError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Unknown(why) => Self::Unknown(why),
            Refusal::Wrong(why) => Self::Wrong(why),
            Refusal::Forbidden(why) => Self::Forbidden(why),
            Refusal::Conflict(why) => Self::Conflict(why),
            Refusal::Store(error) => error.into(),
        }
    }
}

impl From<NoAnswer> for Problem {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Nothing(why) => Self::Nothing(why),
            NoAnswer::Dropped(why) => Self::Dropped(why),
            NoAnswer::Unknown(why) => Self::Unknown(why),
            NoAnswer::Wrong(why) => Self::Wrong(why),
            NoAnswer::Store(error) => error.into(),
        }
    }
}

impl<T: Serialize> IntoResponse for DetailedJson<T> {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.problem.status).unwrap_or(StatusCode::UNPROCESSABLE_ENTITY);
        let text = serde_json::to_string(&self).unwrap_or_default();
        (status, [(header::CONTENT_TYPE, PROBLEM_MEDIA_TYPE)], text).into_response()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = serde_json::to_string(&self.json()).unwrap_or_default();
        let mut response = (self.parts().0, [(header::CONTENT_TYPE, PROBLEM_MEDIA_TYPE)], text).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Unauthenticated(_) => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"switchbell\""));
            }
            Self::TooMany(_, seconds) => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            _ => {}
        }
        response
    }
}

/// What is wrong with a query: which parameter, and why.
pub(super) fn wrong_query(error: &QueryRejection) -> String {
    Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
