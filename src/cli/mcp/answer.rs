//! Answers of the server: one message, or a stream of events with a message in each (MCP, "Streamable HTTP").

use futures_util::StreamExt as _;
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use crate::serve::problem::ProblemJson;

/// Largest message that is taken, in bytes: more than a server of ours says.
const MESSAGE_BYTES_MAX: usize = 48 << 20;

/// The messages of an answer, one after the other.
#[derive(Debug)]
pub(super) struct Messages {
    response: Response,
    is_stream: bool,
    /// What came and is not yet a message.
    rest: Vec<u8>,
    /// The data of the event that is coming.
    data: String,
    is_over: bool,
}

/// What an answer is.
#[derive(Debug)]
pub(super) enum Answer {
    /// It has messages.
    Messages(Messages),
    /// The message was taken, and nothing is said.
    Taken,
    /// It is no MCP: why.
    Refused(String),
}

impl Answer {
    pub(super) async fn of(response: Response) -> Self {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let messages = |response, is_stream| {
            Self::Messages(Messages { response, is_stream, rest: Vec::new(), data: String::new(), is_over: false })
        };
        match (kind.as_str(), response.status().is_success()) {
            ("text/event-stream", true) => messages(response, true),
            // What is refused in MCP's own words has a status besides.
            ("application/json", _) => messages(response, false),
            (_, true) => Self::Taken,
            (_, false) => Self::Refused(why_refused(response).await),
        }
    }
}

/// Why a request was refused, as far as the answer says.
async fn why_refused(response: Response) -> String {
    let status = response.status();
    let text = whole(response).await.unwrap_or_default();
    let detail = serde_json::from_str::<ProblemJson>(&text).ok().map(|problem| problem.detail);
    let said =
        detail.or_else(|| Some(text.chars().take(300).collect()).filter(|text: &String| !text.trim().is_empty()));
    let why = said.map_or_else(|| status.to_string(), |said| format!("{said} (HTTP {})", status.as_u16()));
    match status.as_u16() {
        401 => format!("the token in SWITCHBELL_TOKEN is refused: {why}"),
        404 => format!("no MCP server answers there: {why}; check --server"),
        503 => format!("the server cannot answer right now: {why}"),
        _ => format!("the server refuses it: {why}"),
    }
}

async fn whole(response: Response) -> Result<String, String> {
    let mut whole = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        whole.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
        if whole.len() > MESSAGE_BYTES_MAX {
            return Err(format!("the answer has more than {MESSAGE_BYTES_MAX} bytes"));
        }
    }
    String::from_utf8(whole).map_err(|_| "the answer is no text".to_owned())
}

impl Messages {
    /// A header of the answer.
    pub(super) fn header(&self, name: &HeaderName) -> Option<HeaderValue> {
        self.response.headers().get(name).cloned()
    }

    /// The next message, on one line; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<String>, String> {
        loop {
            if let Some(message) = self.ready()? {
                return Ok(Some(one_line(&message)));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.rest.extend_from_slice(&chunk),
                Ok(None) => self.is_over = true,
                Err(error) => return Err(format!("the answer broke off: {error}")),
            }
            if self.rest.len() + self.data.len() > MESSAGE_BYTES_MAX {
                return Err(format!("a message of the server has more than {MESSAGE_BYTES_MAX} bytes"));
            }
        }
    }

    fn ready(&mut self) -> Result<Option<String>, String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| "the answer is no text".to_owned());
        if !self.is_stream {
            let is_whole = self.is_over && !self.rest.is_empty();
            return is_whole.then(|| text(std::mem::take(&mut self.rest))).transpose();
        }
        while let Some(at) = memchr::memchr(b'\n', &self.rest) {
            let line: Vec<u8> = self.rest.drain(..=at).collect();
            let line = text(line)?;
            let line = line.trim_end_matches(['\n', '\r']);
            if line.is_empty() && !self.data.is_empty() {
                return Ok(Some(std::mem::take(&mut self.data)));
            }
            if let Some(data) = line.strip_prefix("data:") {
                if !self.data.is_empty() {
                    self.data.push('\n');
                }
                self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
            }
        }
        Ok(None)
    }
}

/// The same JSON without line ends, which stand between its parts only.
fn one_line(message: &str) -> String {
    message.replace(['\n', '\r'], " ").trim().to_owned()
}

/// Whether a message answers the request with this id.
pub(super) fn answers(message: &Value, id: &Value) -> bool {
    message.get("method").is_none() && message.get("id") == Some(id)
}

/// The words of an error that names no request.
pub(super) fn refusal(message: &Value) -> Option<String> {
    let error = message.get("error").filter(|_| message.get("id").is_none_or(Value::is_null))?;
    let words = error.get("message").and_then(Value::as_str).unwrap_or("without a word");
    Some(format!("the server refuses it: {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(kind: &str, body: &'static str) -> Vec<String> {
        let response = http::Response::builder().header("content-type", kind).body(body).unwrap();
        let Answer::Messages(mut messages) = Answer::of(Response::from(response)).await else { return Vec::new() };
        let mut found = Vec::new();
        while let Some(message) = messages.next().await.unwrap() {
            found.push(message);
        }
        found
    }

    #[tokio::test]
    async fn every_message_comes_on_one_line() {
        let check = async |kind: &str, body: &'static str, expected: &[&str]| {
            assert_eq!(read(kind, body).await, expected, "{body:?}");
        };
        check("application/json", "{\"a\":\n  1.50}\n", &["{\"a\":   1.50}"]).await;
        check("application/json; charset=utf-8", "{}", &["{}"]).await;
        let stream = ": there\r\nid: 1\r\nretry: 3000\r\ndata:\r\n\r\nevent: message\r\ndata: {\"a\":1}\r\n\r\n\
                      data: {\"b\":\ndata: 2}\n\n: there\n\ndata: {\"c\":3}\n";
        check("text/event-stream", stream, &["{\"a\":1}", "{\"b\": 2}"]).await;
        check("text/plain", "Accepted", &[]).await;
    }

    #[tokio::test]
    async fn a_refusal_says_why() {
        let check = async |status: u16, kind: &str, body: &'static str, says: &str| {
            let response = http::Response::builder().status(status).header("content-type", kind).body(body).unwrap();
            let Answer::Refused(why) = Answer::of(Response::from(response)).await else { panic!("{body}") };
            assert_eq!(why, says);
        };
        let problem = r#"{"type":"/problems/unauthenticated","title":"A good token is needed","status":401,"detail":"this token was revoked"}"#;
        let says = "the token in SWITCHBELL_TOKEN is refused: this token was revoked (HTTP 401)";
        check(401, "application/problem+json", problem, says).await;
        check(404, "text/plain", "", "no MCP server answers there: 404 Not Found; check --server").await;
        check(413, "text/plain", "Payload Too Large", "the server refuses it: Payload Too Large (HTTP 413)").await;
    }

    #[test]
    fn an_error_of_no_request_is_a_refusal_of_the_one_that_was_sent() {
        let check = |message: &str, expected: Option<&str>| {
            assert_eq!(refusal(&serde_json::from_str(message).unwrap()).as_deref(), expected, "{message}");
        };
        let says = Some("the server refuses it: no");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#, says);
        check(r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}"#, says);
        check(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no"}}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, None);
    }
}
