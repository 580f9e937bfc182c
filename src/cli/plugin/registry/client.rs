//! The part of the OCI distribution API (specification 1.1) that plugins need: manifests and blobs, by name and digest.
//!
//! Everything that a registry sends is bounded, and credentials go to the registry itself and to the service for tokens
//! that it names, never without encryption.

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use url::Url;

use super::credentials::{Credentials, Known};
use super::reference::{Reference, is_this_machine};

/// How long a connection may take, and how long a registry may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The largest manifest, bytes; one with a signature has some 2 KiB.
const MANIFEST_BYTES_MAX: usize = 1 << 20;

/// The largest answer of a service for tokens, bytes.
const TOKEN_BYTES_MAX: usize = 64 << 10;

/// So much of what a registry says is shown, characters.
const SAID_LENGTH_MAX: usize = 300;

/// Redirects in a row; a blob is often kept elsewhere.
const REDIRECTS_MAX: usize = 5;

/// What is to be done in a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Pull,
    Push,
}

/// One repository of a registry.
pub(super) struct Client {
    client: reqwest::Client,
    base: Url,
    repository: String,
    access: Access,
    known: Known,
    authorization: Option<HeaderValue>,
}

/// What a service for tokens answers; one of the two, as the specification has it.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Client {
    pub(super) fn new(reference: &Reference, access: Access, known: Known) -> Result<Self, String> {
        let client = reqwest::Client::builder()
            .connect_timeout(SILENCE_MAX)
            .read_timeout(SILENCE_MAX)
            .redirect(Policy::custom(|attempt| if may_follow(&attempt) { attempt.follow() } else { attempt.stop() }))
            .user_agent(concat!("switchbell/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| error.to_string())?;
        let (base, repository) = (reference.base()?, reference.repository().to_owned());
        Ok(Self { client, base, repository, access, known, authorization: None })
    }

    /// The manifest that a tag or a digest names.
    pub(super) async fn manifest(&mut self, pointer: &str, media_type: &str) -> Result<Vec<u8>, String> {
        let url = self.url(&format!("manifests/{pointer}"))?;
        let response = self.send(&|client| client.get(url.clone()).header(ACCEPT, media_type)).await?;
        let response = successful(response, "nothing is there by this name").await?;
        whole(response, MANIFEST_BYTES_MAX).await
    }

    /// A blob of at most so many bytes. It is not verified.
    pub(super) async fn blob(&mut self, digest: &str, bytes_max: usize) -> Result<Vec<u8>, String> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let response = self.send(&|client| client.get(url.clone())).await?;
        whole(successful(response, "the registry lost the plugin's bytes").await?, bytes_max).await
    }

    /// Puts a blob there, unless it is.
    pub(super) async fn put_blob(&mut self, digest: &str, bytes: Vec<u8>) -> Result<(), String> {
        let there = self.url(&format!("blobs/{digest}"))?;
        if self.send(&|client| client.head(there.clone())).await?.status().is_success() {
            return Ok(());
        }
        let begin = self.url("blobs/uploads/")?;
        let begun = self.send(&|client| client.post(begin.clone())).await?;
        let begun = successful(begun, "the registry takes no upload for this repository").await?;
        let location = begun.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        let place = location.and_then(|location| self.base.join(location).ok());
        let mut place = place.ok_or("the registry did not say where to upload to")?;
        self.check_protected(&place)?;
        place.query_pairs_mut().append_pair("digest", digest);
        let upload = |client: &reqwest::Client| {
            client.put(place.clone()).header(CONTENT_TYPE, "application/octet-stream").body(bytes.clone())
        };
        successful(self.send(&upload).await?, "the upload is lost").await.map(drop)
    }

    pub(super) async fn put_manifest(&mut self, tag: &str, media_type: &str, text: Vec<u8>) -> Result<(), String> {
        let url = self.url(&format!("manifests/{tag}"))?;
        let put =
            |client: &reqwest::Client| client.put(url.clone()).header(CONTENT_TYPE, media_type).body(text.clone());
        successful(self.send(&put).await?, "the registry takes no manifest for this repository").await.map(drop)
    }

    fn url(&self, path: &str) -> Result<Url, String> {
        self.base.join(&format!("{}/{path}", self.repository)).map_err(|error| error.to_string())
    }

    /// Asks, and asks again with credentials where the registry wants some.
    async fn send(&mut self, request: &dyn Fn(&reqwest::Client) -> RequestBuilder) -> Result<Response, String> {
        let response = self.send_once(request(&self.client)).await?;
        if response.status() != StatusCode::UNAUTHORIZED || self.authorization.is_some() {
            return Ok(response);
        }
        let challenges = response.headers().get_all(WWW_AUTHENTICATE);
        let challenges: Vec<String> = challenges.iter().filter_map(|it| it.to_str().ok()).map(str::to_owned).collect();
        let bearer = challenges.iter().find_map(|challenge| scheme(challenge, "bearer"));
        let is_basic = challenges.iter().any(|challenge| scheme(challenge, "basic").is_some());
        self.authorization = match (bearer, &self.known) {
            (Some(challenge), _) => Some(self.token(challenge).await?),
            (None, Known::These(credentials)) if is_basic => {
                self.check_protected(&self.base)?;
                Some(basic(credentials)?)
            }
            (None, _) => return Err(self.refused()),
        };
        let response = self.send_once(request(&self.client)).await?;
        if response.status() == StatusCode::UNAUTHORIZED { Err(self.refused()) } else { Ok(response) }
    }

    async fn send_once(&self, request: RequestBuilder) -> Result<Response, String> {
        let mut request = request.build().map_err(|error| error.to_string())?;
        // What is uploaded may be kept by somebody else, whom the URL itself lets in.
        if request.url().origin() == self.base.origin()
            && let Some(authorization) = &self.authorization
        {
            request.headers_mut().insert(AUTHORIZATION, authorization.clone());
        }
        self.client.execute(request).await.map_err(|error| no_answer(&error))
    }

    /// Has the service for tokens that a challenge names (Docker Registry v2 token authentication) give one out.
    async fn token(&self, challenge: &str) -> Result<HeaderValue, String> {
        let realm = parameter(challenge, "realm").and_then(|realm| Url::parse(&realm).ok());
        let mut realm = realm.ok_or("the registry did not say where to get a token")?;
        self.check_protected(&realm)?;
        let actions = if self.access == Access::Push { "pull,push" } else { "pull" };
        realm.query_pairs_mut().append_pair("scope", &format!("repository:{}:{actions}", self.repository));
        if let Some(service) = parameter(challenge, "service") {
            realm.query_pairs_mut().append_pair("service", &service);
        }
        let mut request = self.client.request(Method::GET, realm);
        if let Known::These(credentials) = &self.known {
            request = request.header(AUTHORIZATION, basic(credentials)?);
        }
        let response = request.send().await.map_err(|error| no_answer(&error))?;
        if matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(self.refused());
        }
        let response = successful(response, "there is no service for tokens where the registry says").await?;
        let answer = whole(response, TOKEN_BYTES_MAX).await?;
        // What does not parse may be half a token, and is not quoted.
        let token = serde_json::from_slice::<Token>(&answer).ok().and_then(|token| token.token.or(token.access_token));
        let token = token.ok_or("the service for tokens gave none")?;
        sensitive(&format!("Bearer {token}"))
    }

    /// Whether credentials may be sent there.
    fn check_protected(&self, url: &Url) -> Result<(), String> {
        let is_local = is_this_machine(&self.base) && is_this_machine(url);
        if url.scheme() == "https" || is_local {
            return Ok(());
        }
        let place = url.host_str().unwrap_or_default();
        Err(format!("the registry leads to {place} without encryption; credentials are not sent there"))
    }

    /// Why nobody lets this in, and what to do.
    fn refused(&self) -> String {
        match &self.known {
            Known::These(credentials) => {
                format!("the registry refuses {:?}, or does not let that user do this; log in again", credentials.user)
            }
            Known::None(file) => format!(
                "the registry wants credentials, and there are none for it in {}: log in with docker, podman or oras",
                file.display()
            ),
            Known::Helper(file) => format!(
                "the registry wants credentials, and {} leaves them to a credential helper, which is not asked; log in \
                 without one: auths must hold them",
                file.display()
            ),
        }
    }
}

fn may_follow(attempt: &Attempt<'_>) -> bool {
    let is_safe = |url: &Url| url.scheme() == "https" || is_this_machine(url);
    let came_safely = attempt.previous().iter().all(is_this_machine) || attempt.url().scheme() == "https";
    attempt.previous().len() <= REDIRECTS_MAX && is_safe(attempt.url()) && came_safely
}

/// What follows the name of a scheme in a challenge (RFC 9110 §11.6.1).
fn scheme<'c>(challenge: &'c str, name: &str) -> Option<&'c str> {
    let (scheme, rest) = challenge.trim().split_once(' ').unwrap_or((challenge.trim(), ""));
    scheme.eq_ignore_ascii_case(name).then_some(rest)
}

/// A parameter of a challenge: `key="value"` or `key=value`, after commas that stand in no quotes.
fn parameter(challenge: &str, key: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some((name, after)) = rest.split_once('=') {
        let (value, next) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if name.trim().trim_start_matches(',').trim().eq_ignore_ascii_case(key) {
            return Some(value.trim().to_owned());
        }
        rest = next;
    }
    None
}

fn basic(credentials: &Credentials) -> Result<HeaderValue, String> {
    use base64::Engine as _;
    let pair = format!("{}:{}", credentials.user, credentials.password);
    sensitive(&format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair)))
}

fn sensitive(value: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(value).map_err(|_| "the token fits into no header")?;
    value.set_sensitive(true);
    Ok(value)
}

/// What kept an answer from coming, without the URL, which may hold a token.
fn no_answer(error: &reqwest::Error) -> String {
    let mut reason: &dyn std::error::Error = error;
    while let Some(cause) = reason.source() {
        reason = cause;
    }
    format!("the registry cannot be reached: {reason}")
}

/// The answer, if it is good; else what the registry says. `missing` explains that something is not there.
async fn successful(response: Response, missing: &str) -> Result<Response, String> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let said = whole(response, MANIFEST_BYTES_MAX).await.unwrap_or_default();
    let said = crate::text::line(&String::from_utf8_lossy(&said), SAID_LENGTH_MAX);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    Err(match status {
        StatusCode::NOT_FOUND => format!("{missing} (HTTP 404{said})"),
        StatusCode::FORBIDDEN => format!("the registry does not allow that (HTTP 403{said})"),
        status => format!("the registry answers HTTP {}{said}", status.as_u16()),
    })
}

/// A whole body of at most so many bytes.
async fn whole(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| no_answer(&error))? {
        if bytes.len() + chunk.len() > bytes_max {
            return Err(format!("the registry sends more than {bytes_max} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let challenge = r#"Bearer realm="https://auth.example/token?a=b,c",service="registry.example", scope=x"#;
        let challenge = scheme(challenge, "bearer").unwrap();
        assert_eq!(parameter(challenge, "realm").unwrap(), "https://auth.example/token?a=b,c");
        assert_eq!(parameter(challenge, "service").unwrap(), "registry.example");
        assert_eq!((parameter(challenge, "scope").unwrap().as_str(), parameter(challenge, "error")), ("x", None));
        assert_eq!(scheme("basic realm=\"x\"", "bearer"), None);
        assert_eq!(parameter("realm=\"cut", "realm"), None);
    }
}
