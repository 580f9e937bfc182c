//! A request over HTTP whose answer must stay as it comes. The library would read it into values first.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, StreamableHttpError, StreamableHttpPostResponse,
};

use super::MESSAGE_BYTES_MAX;
use super::client::Failure;
use super::tap::{Taken, Tap};

/// Who asks: the session, the token and all other headers.
type Asking = (Option<Arc<str>>, Option<String>, HashMap<HeaderName, HeaderValue>);

/// Makes a request; `tap` takes the result.
pub(super) async fn post(
    client: &reqwest::Client,
    uri: &str,
    message: &ClientJsonRpcMessage,
    (session, token, headers): Asking,
    tap: &Tap,
) -> Result<StreamableHttpPostResponse, Failure> {
    let mut request = client.post(uri).header(ACCEPT, "text/event-stream, application/json");
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    request = request.headers(HeaderMap::from_iter(headers));
    let has_session = session.is_some();
    if let Some(session) = session {
        request = request.header("Mcp-Session-Id", session.as_ref());
    }
    let response = request.json(message).send().await.map_err(StreamableHttpError::Client)?;
    let status = response.status();
    if let Some(failure) = refused(status, response.headers(), has_session) {
        return Err(failure);
    }
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_stream = content_type.as_deref().is_some_and(|of| of.trim_start().starts_with("text/event-stream"));
    let mut pieces = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(piece) = pieces.next().await {
        body.extend_from_slice(&piece.map_err(StreamableHttpError::Client)?);
        if body.len() > MESSAGE_BYTES_MAX {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: MESSAGE_BYTES_MAX });
        }
        while let Some(event) = is_stream.then(|| event(&mut body)).flatten() {
            if let Some(answer) = answer(tap, event.as_bytes()) {
                return Ok(StreamableHttpPostResponse::Json(answer, None));
            }
        }
    }
    let answer = if is_stream { None } else { answer(tap, &body) };
    match answer {
        Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, None)),
        None if !status.is_success() => {
            Err(StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()))
        }
        None => Err(StreamableHttpError::UnexpectedContentType(content_type)),
    }
}

fn refused(status: StatusCode, headers: &HeaderMap, has_session: bool) -> Option<Failure> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Some(match text(WWW_AUTHENTICATE) {
            Some(challenge) if status == StatusCode::UNAUTHORIZED => {
                StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))
            }
            _ => StreamableHttpError::UnexpectedServerResponse(format!("HTTP {status}").into()),
        }),
        StatusCode::NOT_FOUND if has_session => Some(StreamableHttpError::SessionExpired),
        _ if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() => {
            Some(HttpStatusError::new(status.as_u16(), text(RETRY_AFTER)).into())
        }
        _ => None,
    }
}

/// An answer, without a result that was taken; none where it is none.
fn answer(tap: &Tap, message: &[u8]) -> Option<ServerJsonRpcMessage> {
    match tap.takes(message) {
        Taken::Answer(answer) => Some(*answer),
        Taken::Whole => None,
        Taken::Nothing => {
            let message = serde_json::from_slice(message).ok()?;
            matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)).then_some(message)
        }
    }
}

/// The data of the first whole event, which is taken out of `body` (WHATWG, "Server-sent events").
fn event(body: &mut Vec<u8>) -> Option<String> {
    let end = ["\n\n", "\r\n\r\n", "\r\r"].iter().filter_map(|blank| {
        let at = body.windows(blank.len()).position(|window| window == blank.as_bytes())?;
        Some(at + blank.len())
    });
    let end = end.min()?;
    let event: Vec<u8> = body.drain(..end).collect();
    let text = String::from_utf8_lossy(&event).replace("\r\n", "\n").replace('\r', "\n");
    let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
    let data: Vec<&str> = data.map(|data| data.strip_prefix(' ').unwrap_or(data)).collect();
    Some(data.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_taken_one_by_one_and_whole() {
        let mut body = b": hello\n\nevent: message\ndata: {\"a\":\ndata: 1}\n\r\n\r\ndata:x\r\n\r\ndata: ha".to_vec();
        assert_eq!(event(&mut body).as_deref(), Some(""));
        assert_eq!(event(&mut body).as_deref(), Some("{\"a\":\n1}"));
        let rest: Vec<String> = std::iter::from_fn(|| event(&mut body)).filter(|data| !data.is_empty()).collect();
        assert_eq!((rest, body), (vec!["x".to_owned()], b"data: ha".to_vec()));
    }
}
