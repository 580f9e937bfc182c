//! The HTTP client of a connection, which remembers that an answer by event stream was too large. The library ends
//! the connection over it and only says that it ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::common::client_side_sse::BoxedSseResponse;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse, StreamableHttpResponseLimits,
};

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// Bounds what it reads, and tells.
#[derive(Clone, Debug)]
pub(super) struct Client {
    inner: reqwest::Client,
    too_large: Arc<AtomicBool>,
}

impl Client {
    pub(super) fn new(inner: reqwest::Client) -> Self {
        Self { inner, too_large: Arc::default() }
    }

    /// Set once an event of a stream was too large.
    pub(super) fn too_large(&self) -> Arc<AtomicBool> {
        self.too_large.clone()
    }

    fn watched(&self, stream: BoxedSseResponse) -> BoxedSseResponse {
        let too_large = self.too_large.clone();
        // The error's type is the library's own secret; its text is not.
        stream
            .inspect_err(move |error| {
                if error.to_string().contains("exceeded the maximum size") {
                    too_large.store(true, Ordering::Release);
                }
            })
            .boxed()
    }
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
        auth_header: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let inner = &self.inner;
        match inner.post_message_with_response_limits(uri, message, session_id, auth_header, headers, limits).await? {
            StreamableHttpPostResponse::Sse(stream, session) => {
                Ok(StreamableHttpPostResponse::Sse(self.watched(stream), session))
            }
            response => Ok(response),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.inner.delete_session(uri, session_id, auth_header, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, Failure> {
        self.inner.get_stream(uri, session_id, last_event_id, auth_header, headers).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
        bytes_max: usize,
    ) -> Result<BoxedSseResponse, Failure> {
        let inner = &self.inner;
        let stream = inner
            .get_stream_with_max_sse_event_size(uri, session_id, last_event_id, auth_header, headers, bytes_max)
            .await?;
        Ok(self.watched(stream))
    }
}
