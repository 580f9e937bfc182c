//! The HTTP client of a connection: it says with each request who asks, signs it, paces the streams that a server ends,
//! and remembers what the library behind it would not tell.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use reqwest::StatusCode;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};

use super::again::Waits;
use super::clients::Pair;
use super::credential::Credential;
use super::fault::Faults;
use super::heard::Heard;
use super::lines::as_number;
use super::streams::{Kind, Streams};
use super::tap::Tap;
use super::{tap, verbatim};
use crate::fetch::outbox::ReadError;

pub(super) type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Cloning it is the same client.
#[derive(Clone, Debug)]
pub(super) struct Client {
    inner: Pair,
    credential: Credential,
    /// Ours, on every request.
    headers: Arc<[(HeaderName, HeaderValue)]>,
    faults: Faults,
    heard: Arc<Heard>,
    streams: Arc<Streams>,
    /// Takes what of a push queue must stay as it came.
    tap: Option<Arc<Tap>>,
}

impl Client {
    pub(super) fn new(
        inner: Pair,
        credential: Credential,
        headers: Arc<[(HeaderName, HeaderValue)]>,
        faults: Faults,
        waits: Waits,
    ) -> Self {
        let heard = Arc::new(Heard::default());
        let streams = Arc::new(Streams::new(waits, Arc::clone(&heard)));
        Self { inner, credential, headers, faults, heard, streams, tap: None }
    }

    /// The same, with what is a push queue's taken out by this.
    pub(super) fn tapped(self, tap: Option<Arc<Tap>>) -> Self {
        Self { tap, ..self }
    }

    pub(super) fn heard(&self) -> Arc<Heard> {
        Arc::clone(&self.heard)
    }

    /// The headers of a request: what the library wants, and ours over it.
    fn with_ours(&self, mut headers: Headers) -> Headers {
        headers.extend(self.headers.iter().cloned());
        headers
    }

    /// Makes a request with the token of the moment; once more with another should that one be refused.
    async fn signed<T, F>(&self, request: impl Fn(Option<String>) -> F + Send) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>> + Send,
    {
        let token = self.token_told(self.credential.token().await)?;
        let answer = request(token.clone()).await;
        let (Some(token), Err(failure)) = (token, &answer) else {
            return answer;
        };
        let Some(challenge) = refusal(failure) else {
            return answer;
        };
        let another = self.credential.after_refusal(&token, challenge.as_deref()).await;
        let Some(another) = self.token_told(another)? else {
            return answer;
        };
        let answer = request(Some(another)).await;
        match self.credential.refused_again() {
            Some(error) if answer.as_ref().is_err_and(|failure| refusal(failure).is_some()) => {
                Err(StreamableHttpError::Io(io::Error::other(error)))
            }
            _ => answer,
        }
    }

    fn token_told(&self, token: Result<Option<String>, ReadError>) -> Result<Option<String>, Failure> {
        let token = token.map_err(|error| StreamableHttpError::Io(io::Error::other(error)))?;
        if let Some(token) = &token {
            self.faults.hide(token);
        }
        Ok(token)
    }

    async fn open_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        headers: Headers,
        bytes_max: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        let headers = self.with_ours(headers);
        self.signed(|token| {
            let (inner, uri, session_id) = (self.inner.streams.clone(), Arc::clone(&uri), session_id.clone());
            let (last_event_id, headers) = (last_event_id.clone(), headers.clone());
            async move {
                inner
                    .get_stream_with_max_sse_event_size(uri, session_id, last_event_id, token, headers, bytes_max)
                    .await
            }
        })
        .await
    }

    fn tapped_stream(&self, stream: BoxedSseResponse) -> BoxedSseResponse {
        match &self.tap {
            Some(tap) => tap::tapped(stream, Arc::clone(tap)),
            None => stream,
        }
    }

    /// Brings an answer into the form the library expects: it waits in vain for an answer with another id.
    fn correlated(
        &self,
        asked: Option<RequestId>,
        answer: StreamableHttpPostResponse,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        match (asked, answer) {
            (_, StreamableHttpPostResponse::Sse(stream, session)) => {
                let stream = self.tapped_stream(self.streams.watched(stream, Kind::Answer));
                Ok(StreamableHttpPostResponse::Sse(stream, session))
            }
            // An error that answers a request by itself is meant for it, whatever its id.
            (Some(asked), StreamableHttpPostResponse::Json(JsonRpcMessage::Error(error), session)) => {
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error.error, Some(asked)), session))
            }
            (Some(asked), StreamableHttpPostResponse::Json(JsonRpcMessage::Response(answer), _))
                if answer.id != asked && as_number(&answer.id).as_ref() != Some(&asked) =>
            {
                let what =
                    "the server answered with the id of another request; an answer carries the id of its request";
                Err(StreamableHttpError::Io(io::Error::other(ReadError::NotMcp(what.to_owned()))))
            }
            (_, answer) => Ok(answer),
        }
    }
}

/// The challenge of an answer that refuses the token, if it has one; none for other failures.
fn refusal(failure: &Failure) -> Option<Option<String>> {
    match failure {
        StreamableHttpError::AuthRequired(error) => Some(Some(error.www_authenticate_header.clone())),
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401").then_some(None),
        StreamableHttpError::Client(error) => (error.status() == Some(StatusCode::UNAUTHORIZED)).then_some(None),
        _ => None,
    }
}

/// Whether a message is only about hints: its failure is nobody's trouble.
fn is_about_hints(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    matches!(request.request, ClientRequest::SubscribeRequest(_) | ClientRequest::SubscriptionsListenRequest(_))
}

fn opens_a_stream(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Request(request) = message else { return false };
    match &request.request {
        ClientRequest::SubscriptionsListenRequest(_) => true,
        ClientRequest::CustomRequest(request) => request.method == tap::LISTEN,
        _ => false,
    }
}

fn begins_a_session(message: &ClientJsonRpcMessage) -> bool {
    let JsonRpcMessage::Notification(notification) = message else { return false };
    matches!(notification.notification, ClientNotification::InitializedNotification(_))
}

impl StreamableHttpClient for Client {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, headers, limits).await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let headers = self.with_ours(headers);
        let (is_trouble, is_beginning) = (!is_about_hints(&message), begins_a_session(&message));
        let client = if opens_a_stream(&message) { &self.inner.streams } else { &self.inner.answers };
        let (mut asked, mut verbatim) = (None, None);
        if let JsonRpcMessage::Request(request) = &message {
            asked = Some(request.id.clone());
            verbatim = self.tap.clone().filter(|tap| tap.asks(request));
        }
        let answer = self
            .signed(|token| {
                let (inner, uri, message) = (client.clone(), Arc::clone(&uri), message.clone());
                let (session_id, headers, verbatim) = (session_id.clone(), headers.clone(), verbatim.clone());
                async move {
                    if let Some(tap) = verbatim {
                        return verbatim::post(&inner, &uri, &message, (session_id, token, headers), &tap).await;
                    }
                    inner.post_message_with_response_limits(uri, message, session_id, token, headers, limits).await
                }
            })
            .await
            .and_then(|answer| self.correlated(asked, answer));
        match &answer {
            Ok(_) if is_beginning => self.heard.session_began(),
            Err(failure) if is_trouble => self.heard.trouble(self.faults.of_http(failure)),
            _ => {}
        }
        answer
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let headers = self.with_ours(headers);
        self.signed(|token| {
            let (inner, uri, headers) = (self.inner.answers.clone(), Arc::clone(&uri), headers.clone());
            let session_id = Arc::clone(&session_id);
            async move { inner.delete_session(uri, session_id, token, headers).await }
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failure> {
        let bytes_max = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, headers, bytes_max).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        headers: Headers,
        bytes_max: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        let kind = self.streams.kind(last_event_id.as_deref());
        loop {
            self.streams.turn(kind).await;
            let (uri, session_id) = (Arc::clone(&uri), session_id.clone());
            let failure =
                match self.open_stream(uri, session_id, last_event_id.clone(), headers.clone(), bytes_max).await {
                    Ok(stream) => return Ok(self.tapped_stream(self.streams.watched(stream, kind))),
                    Err(failure) => failure,
                };
            if kind == Kind::Answer {
                return Err(failure);
            }
            let ReadError::Http { status: 408 | 429 | 500.., retry_after } = self.faults.of_http(&failure) else {
                if matches!(failure, StreamableHttpError::Client(ref error) if error.status().is_none()) {
                    continue;
                }
                // The library takes this as the last word on streams, and the connection goes on without one.
                return Err(StreamableHttpError::ServerDoesNotSupportSse);
            };
            self.streams.not_before(kind, retry_after.unwrap_or_default());
        }
    }
}
