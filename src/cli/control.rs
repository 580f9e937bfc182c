//! How commands ask a server that runs on this machine.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::serve::control;
use crate::serve::problem::{DROPPED, DetailedJson, NOTHING, ProblemJson};
use crate::serve::shapes::{FROM_HEADER, ListJson, SIGNATURE_HEADER};

/// How long a server may take for one answer: a read with all that follows it at once.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(300);

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

/// A server's control socket.
#[derive(Debug)]
pub(super) struct Control {
    client: reqwest::Client,
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
        Ok(Self { client })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        answer(self.client.get(url(path))).await
    }

    /// A list that fits into one answer.
    pub(super) async fn list<T: DeserializeOwned>(&self, path: &str) -> Result<Vec<T>, NoAnswer> {
        self.get::<ListJson<T>>(path).await.map(|list| list.items)
    }

    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str) -> Result<T, NoAnswer> {
        answer(self.client.post(url(path))).await
    }

    /// Asks without a body for what may be refused for reasons that are more than a text.
    pub(super) async fn post_or<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Result<T, R>, NoAnswer> {
        answer_or(self.client.post(url(path))).await
    }

    /// Asks with JSON.
    pub(super) async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        asked: &impl Serialize,
    ) -> Result<T, NoAnswer> {
        answer(self.json(path, asked)?).await
    }

    /// Asks with JSON for what may be refused for reasons that are more than a text.
    pub(super) async fn post_json_or<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        path: &str,
        asked: &impl Serialize,
    ) -> Result<Result<T, R>, NoAnswer> {
        answer_or(self.json(path, asked)?).await
    }

    fn json(&self, path: &str, asked: &impl Serialize) -> Result<RequestBuilder, NoAnswer> {
        let body = serde_json::to_vec(asked).map_err(|error| NoAnswer::Refused(error.to_string()))?;
        Ok(self.client.post(url(path)).header(CONTENT_TYPE, "application/json").body(body))
    }

    /// Has a plugin loaded.
    pub(super) async fn load_plugin<T: DeserializeOwned, R: DeserializeOwned>(
        &self,
        from: &Path,
        bytes: Vec<u8>,
        signature: Option<&str>,
    ) -> Result<Result<T, R>, NoAnswer> {
        let from = STANDARD.encode(from.to_string_lossy().as_bytes());
        let request = self.client.post(url("/v1/plugins")).header(CONTENT_TYPE, "application/wasm");
        let mut request = request.header(FROM_HEADER, from).body(bytes);
        if let Some(signature) = signature {
            request = request.header(SIGNATURE_HEADER, STANDARD.encode(signature));
        }
        answer_or(request).await
    }

    /// Whether a server runs: it answers, whatever it says.
    pub(super) async fn is_there(&self) -> Result<bool, NoAnswer> {
        match sent(self.client.get(url("/healthz"))).await {
            Ok(_) => Ok(true),
            Err(NoAnswer::NotRunning) => Ok(false),
            Err(refused) => Err(refused),
        }
    }
}

/// The host is never looked up: the socket is the way.
fn url(path: &str) -> String {
    format!("http://switchbell{path}")
}

async fn answer<T: DeserializeOwned>(request: RequestBuilder) -> Result<T, NoAnswer> {
    let (status, text) = received(request).await?;
    match status.is_success() {
        true => serde_json::from_str(&text).map_err(|error| other_version(&error)),
        false => Err(refused(status, &text)),
    }
}

async fn answer_or<T: DeserializeOwned, R: DeserializeOwned>(
    request: RequestBuilder,
) -> Result<Result<T, R>, NoAnswer> {
    let (status, text) = received(request).await?;
    if status.is_success() {
        return serde_json::from_str(&text).map(Ok).map_err(|error| other_version(&error));
    }
    match serde_json::from_str::<DetailedJson<R>>(&text) {
        Ok(detailed) => Ok(Err(detailed.refused)),
        Err(_) => Err(refused(status, &text)),
    }
}

async fn received(request: RequestBuilder) -> Result<(StatusCode, String), NoAnswer> {
    let response = sent(request).await?;
    let status = response.status();
    let text = response.text().await.map_err(|error| NoAnswer::Refused(root(&error)))?;
    Ok((status, text))
}

/// What a server says that refuses, unless it does not know what it is asked for.
fn refused(status: StatusCode, text: &str) -> NoAnswer {
    match serde_json::from_str::<ProblemJson>(text) {
        Ok(problem) if [NOTHING, DROPPED].contains(&problem.kind.as_str()) => NoAnswer::Nothing(problem.detail),
        Ok(problem) => NoAnswer::Refused(problem.detail),
        Err(_) => other_version(&status),
    }
}

fn other_version(why: &dyn Display) -> NoAnswer {
    NoAnswer::Refused(format!("the running server is of another version than this command ({why}): restart it"))
}

async fn sent(request: RequestBuilder) -> Result<Response, NoAnswer> {
    request.send().await.map_err(|error| match is_nobody(&error) {
        true => NoAnswer::NotRunning,
        false => NoAnswer::Refused(format!("the running server cannot be asked: {}", root(&error))),
    })
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
fn root(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => root(source),
        None => error.to_string(),
    }
}
