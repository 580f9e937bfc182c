//! How commands ask a server: one on this machine by its control socket, one elsewhere by its address and a token.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::remote::TOKEN_VARIABLE;
use crate::notification::Name;
use crate::serve::control;
use crate::serve::problem::{DROPPED, DetailedJson, NOTHING, ProblemJson};
use crate::serve::shapes::{FROM_HEADER, ListJson, SIGNATURE_HEADER, WorkspaceJson};

/// How long a server may take for one answer: a read with all that follows it at once.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(300);

/// How long a connection to a server elsewhere may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long one stream is read; then it is opened anew, and goes on where it was.
const STREAM_TIME_MAX: Duration = Duration::from_secs(86_400);

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// No server runs on this store.
    NotRunning,
    /// What is asked about is not there, or would be dropped: why.
    Nothing(String),
    /// The server, or the way to it, refuses: why.
    Refused(String),
}

/// Why there is no stream.
#[derive(Debug)]
pub(super) enum NoStream {
    /// The server is away, or cannot do it now: it may come back.
    Away(String),
    /// It refuses: why.
    Refused(String),
}

/// The way to a server: its control socket, or its address and a token.
#[derive(Debug)]
pub(super) struct Control {
    client: reqwest::Client,
    base: String,
    /// What it is called in messages; none for the server that runs on this machine over the same store.
    remote: Option<String>,
}

impl Control {
    /// The way to the server of this store, whether or not one runs.
    pub(super) fn of(store: &Path) -> Result<Self, NoAnswer> {
        let client = reqwest::Client::builder()
            .unix_socket(control::path(store))
            .no_proxy()
            .timeout(ANSWER_TIME_MAX)
            .build()
            .map_err(|error| NoAnswer::Refused(error.to_string()))?;
        // The host is never looked up: the socket is the way.
        Ok(Self { client, base: "http://switchbell".to_owned(), remote: None })
    }

    /// The way to the server at this URL, such as `https://bell.example.com`, with this `Authorization`.
    pub(super) fn at(url: &str, authorization: HeaderValue) -> Result<Self, NoAnswer> {
        let client = reqwest::Client::builder()
            .default_headers(HeaderMap::from_iter([(AUTHORIZATION, authorization)]))
            // A token goes nowhere else.
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIME_MAX)
            .timeout(ANSWER_TIME_MAX)
            .build()
            .map_err(|error| NoAnswer::Refused(error.to_string()))?;
        Ok(Self { client, base: url.to_owned(), remote: Some(url.to_owned()) })
    }

    /// Whether it is a server elsewhere, whose files are not here.
    pub(super) fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Opens a stream of events, which goes on behind the event `last`.
    pub(super) async fn stream(&self, path: &str, last: Option<u64>) -> Result<Response, NoStream> {
        let mut request = self.client.get(self.url(path)).timeout(STREAM_TIME_MAX);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = match self.sent(request).await {
            Ok(response) => response,
            Err(NoAnswer::NotRunning) => return Err(NoStream::Away("no server runs".to_owned())),
            Err(NoAnswer::Nothing(why) | NoAnswer::Refused(why)) => return Err(NoStream::Away(why)),
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let is_passing = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
        let text = response.text().await.unwrap_or_default();
        match self.refused(status, &text) {
            NoAnswer::Nothing(why) | NoAnswer::Refused(why) if is_passing => Err(NoStream::Away(why)),
            NoAnswer::Nothing(why) | NoAnswer::Refused(why) => Err(NoStream::Refused(why)),
            NoAnswer::NotRunning => Err(NoStream::Away("no server runs".to_owned())),
        }
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        self.answer(self.client.get(self.url(path))).await
    }

    /// A list that fits into one answer.
    pub(super) async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, NoAnswer> {
        self.get::<ListJson<T>>(path).await.map(|list| list.items)
    }

    /// What every workspace has under this name, or the one that is meant.
    pub(super) async fn list_of_each<T: DeserializeOwned>(
        &self,
        what: &str,
        only: Option<&Name>,
    ) -> Result<Vec<T>, NoAnswer> {
        let names = match only {
            Some(only) => vec![only.to_string()],
            None => self.list("/v1/workspaces").await?.into_iter().map(|one: WorkspaceJson| one.workspace_id).collect(),
        };
        let mut found = Vec::new();
        for name in names {
            found.extend(self.list(&format!("/v1/workspaces/{name}/{what}")).await?);
        }
        Ok(found)
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        self.answer(self.client.post(self.url(path))).await
    }

    /// Asks without a body for what may be refused for reasons that are more than a text.
    pub(super) async fn post_or<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Result<T, R>, NoAnswer> {
        self.answer_or(self.client.post(self.url(path))).await
    }

    /// Asks with JSON.
    pub(super) async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        asked: &impl Serialize,
    ) -> Result<T, NoAnswer> {
        self.answer(self.json(path, asked)?).await
    }

    /// Asks with JSON for what may be refused for reasons that are more than a text.
    pub(super) async fn post_json_or<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        path: &str,
        asked: &impl Serialize,
    ) -> Result<Result<T, R>, NoAnswer> {
        self.answer_or(self.json(path, asked)?).await
    }

    fn json(&self, path: &str, asked: &impl Serialize) -> Result<RequestBuilder, NoAnswer> {
        let body = serde_json::to_vec(asked).map_err(|error| NoAnswer::Refused(error.to_string()))?;
        Ok(self.client.post(self.url(path)).header(CONTENT_TYPE, "application/json").body(body))
    }

    /// Has a plugin loaded.
    pub(super) async fn load_plugin<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        from: &Path,
        bytes: Vec<u8>,
        signature: Option<&str>,
    ) -> Result<Result<T, R>, NoAnswer> {
        let from = STANDARD.encode(from.to_string_lossy().as_bytes());
        let request = self.client.post(self.url("/v1/plugins")).header(CONTENT_TYPE, "application/wasm");
        let mut request = request.header(FROM_HEADER, from).body(bytes);
        if let Some(signature) = signature {
            request = request.header(SIGNATURE_HEADER, STANDARD.encode(signature));
        }
        self.answer_or(request).await
    }

    /// Whether a server runs: it answers, whatever it says.
    pub(super) async fn is_there(&self) -> Result<bool, NoAnswer> {
        match self.sent(self.client.get(self.url("/healthz"))).await {
            Ok(_) => Ok(true),
            Err(NoAnswer::NotRunning) => Ok(false),
            Err(refused) => Err(refused),
        }
    }

    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, NoAnswer> {
        let (status, text) = self.received(request).await?;
        match status.is_success() {
            true => serde_json::from_str(&text).map_err(|error| self.other_version(&error)),
            false => Err(self.refused(status, &text)),
        }
    }

    async fn answer_or<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        request: RequestBuilder,
    ) -> Result<Result<T, R>, NoAnswer> {
        let (status, text) = self.received(request).await?;
        if status.is_success() {
            return serde_json::from_str(&text).map(Ok).map_err(|error| self.other_version(&error));
        }
        match serde_json::from_str::<DetailedJson<R>>(&text) {
            Ok(detailed) => Ok(Err(detailed.refused)),
            Err(_) => Err(self.refused(status, &text)),
        }
    }

    async fn received(&self, request: RequestBuilder) -> Result<(StatusCode, String), NoAnswer> {
        let response = self.sent(request).await?;
        let status = response.status();
        let text = response.text().await.map_err(|error| NoAnswer::Refused(root(&error)))?;
        Ok((status, text))
    }

    /// What a server says that refuses, unless it does not know what it is asked for.
    fn refused(&self, status: StatusCode, text: &str) -> NoAnswer {
        match serde_json::from_str::<ProblemJson>(text) {
            Ok(problem) if [NOTHING, DROPPED].contains(&problem.kind.as_str()) => NoAnswer::Nothing(problem.detail),
            Ok(problem) if status == StatusCode::UNAUTHORIZED => {
                NoAnswer::Refused(format!("{TOKEN_VARIABLE} (or --token-file): {}", problem.detail))
            }
            Ok(problem) => NoAnswer::Refused(problem.detail),
            Err(_) => self.other_version(&status),
        }
    }

    fn other_version(&self, why: &dyn Display) -> NoAnswer {
        NoAnswer::Refused(match &self.remote {
            None => format!("the running server is of another version than this command ({why}): restart it"),
            Some(url) => format!(
                "{url} does not answer as a Switchbell of this command's version does ({why}): correct the URL, or use \
                 the version that runs there"
            ),
        })
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, NoAnswer> {
        request.send().await.map_err(|error| match &self.remote {
            None if is_nobody(&error) => NoAnswer::NotRunning,
            None => NoAnswer::Refused(format!("the running server cannot be asked: {}", root(&error))),
            Some(url) => NoAnswer::Refused(format!("{url} cannot be reached: {}", root(&error))),
        })
    }
}

/// Whether nobody listens: the socket is not there, was left by a server that is gone, or has a path that is too long for one.
fn is_nobody(error: &reqwest::Error) -> bool {
    use std::io::ErrorKind::{ConnectionRefused, InvalidInput, NotFound};
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && matches!(error.kind(), NotFound | ConnectionRefused | InvalidInput)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// The innermost cause.
pub(super) fn root(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), root)
}
