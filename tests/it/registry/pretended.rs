//! Registries that are none: what they send is bounded, verified, and gets no credentials that it should not.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Author;
use crate::support::versioned;

const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Paths with their queries, and the credentials that came with them.
type Asked = Vec<(String, Option<String>)>;

type Answers = dyn Fn(&str, &HeaderMap) -> Response + Send + Sync;

/// A server that answers as it is told, and what it was asked: path, query, and credentials.
struct Pretended {
    address: String,
    asked: Arc<Mutex<Asked>>,
}

impl Pretended {
    async fn start(answers: impl Fn(&str, &HeaderMap) -> Response + Send + Sync + 'static) -> Self {
        let asked: Arc<Mutex<Asked>> = Arc::default();
        let (answers, seen): (Arc<Answers>, _) = (Arc::new(answers), Arc::clone(&asked));
        let handler = async move |request: Request| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            let credentials = request.headers().get(header::AUTHORIZATION).map(|it| it.to_str().unwrap().to_owned());
            seen.lock().unwrap_or_else(PoisonError::into_inner).push((path.clone(), credentials));
            answers(&path, request.headers())
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(handler)).await.unwrap() });
        Self { address, asked }
    }

    fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.address)
    }

    fn asked(&self) -> Vec<(String, Option<String>)> {
        self.asked.lock().unwrap().clone()
    }
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn plugin() -> Vec<u8> {
    versioned("pager", "1.2.3", "plain")
}

fn manifest(layers: &Value) -> Value {
    json!({"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": {}, "layers": layers})
}

fn layer(digest: &str, size: usize) -> Value {
    json!({"mediaType": "application/wasm", "digest": digest, "size": size})
}

fn good() -> Value {
    manifest(&json!([layer(&digest(&plugin()), plugin().len())]))
}

/// Answers with this manifest and this blob.
fn with(manifest: Value, blob: Vec<u8>) -> impl Fn(&str, &HeaderMap) -> Response + Send + Sync + 'static {
    move |path, _| match path {
        path if path.contains("/manifests/") => manifest.to_string().into_response(),
        path if path.contains("/blobs/") => blob.clone().into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_what_its_digest_says_is_not_loaded() {
    let author = Author::new();
    let other = versioned("pager", "6.6.6", "plain");
    let registry = Pretended::start(with(good(), other)).await;
    author.cannot_load(&registry.reference("pager:1"), "what the registry sent is not sha256:").await;
    let registry = Pretended::start(with(good(), plugin())).await;
    author.loads(&registry.reference("pager:1")).await;
    let pinned = format!("pager@sha256:{}", "1".repeat(64));
    author.cannot_load(&registry.reference(&pinned), "sent another manifest than the digest says").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_plugin_or_too_large_is_not_loaded() {
    let author = Author::new();
    let endless =
        || Body::from_stream(futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 1 << 16])));
    for (answer, expected) in [
        (json!("text"), "the registry sent no manifest"),
        (manifest(&json!([])), r#"it has "no layer" where one layer of type application/wasm belongs"#),
        (manifest(&json!([{"mediaType": "application/tar", "digest": "x", "size": 1}])), "application/tar"),
        (json!({"manifests": [], "schemaVersion": 2}), "it is an index of several artifacts"),
        (manifest(&json!([layer(&digest(b""), (32 << 20) + 1)])), "larger than 32 MiB"),
        (manifest(&json!([layer("../../x", 1)])), "a digest is sha256: and 64 hexadecimal digits"),
    ] {
        let registry = Pretended::start(with(answer, plugin())).await;
        author.cannot_load(&registry.reference("pager:1"), expected).await;
    }
    let registry = Pretended::start(move |_, _| Response::new(endless())).await;
    author.cannot_load(&registry.reference("pager:1"), "the registry sends more than 1048576 bytes").await;
    let registry = Pretended::start(move |path, _| match path {
        path if path.contains("/manifests/") => good().to_string().into_response(),
        _ => Response::new(endless()),
    });
    author.cannot_load(&registry.await.reference("pager:1"), "the registry sends more than 33554432 bytes").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_fetched_where_the_registry_says() {
    let author = Author::new();
    let challenge = r#"Bearer realm="/token",service="here""#;
    let (blob, blobs) = (plugin(), good());
    let registry = Pretended::start(move |path, headers| {
        if path.starts_with("/token") {
            return json!({"token": "of-the-day"}).to_string().into_response();
        }
        if headers.get(header::AUTHORIZATION).is_none_or(|value| value != "Bearer of-the-day") {
            let host = headers[header::HOST].to_str().unwrap();
            let challenge = challenge.replace("/token", &format!("http://{host}/token"));
            return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
        }
        with(blobs.clone(), blob.clone())(path, headers)
    });
    let registry = registry.await;
    author.loads(&registry.reference("pager:1")).await;
    let token = |asked: &[(String, Option<String>)]| asked.iter().find(|(path, _)| path.starts_with("/token")).cloned();
    let path = "/token?scope=repository%3Apager%3Apull&service=here".to_owned();
    assert_eq!(token(&registry.asked()), Some((path.clone(), None)));
    registry.asked.lock().unwrap().clear();
    author.logs_in(&registry.address, "bWU6eA==");
    author.loads(&registry.reference("pager:1")).await;
    assert_eq!(token(&registry.asked()), Some((path, Some("Basic bWU6eA==".into()))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_go_nowhere_without_encryption() {
    let author = Author::new();
    let registry = Pretended::start(|_, _| {
        let challenge = r#"Bearer realm="http://tokens.example/token",service="here""#;
        (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
    });
    let registry = registry.await;
    author.logs_in(&registry.address, "bWU6eA==");
    let expected = "leads to tokens.example without encryption; credentials are not sent there";
    author.cannot_load(&registry.reference("pager:1"), expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blob_may_be_kept_elsewhere_which_gets_no_credentials() {
    let author = Author::new();
    let storage = Pretended::start(|_, _| plugin().into_response()).await;
    // The same machine by another name is another place.
    let elsewhere = storage.address.replace("127.0.0.1", "localhost");
    let registry = Pretended::start(move |path, headers| match path {
        _ if !headers.contains_key(header::AUTHORIZATION) => {
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Basic realm=x")]).into_response()
        }
        path if path.contains("/manifests/") => good().to_string().into_response(),
        path => {
            let place = format!("http://{elsewhere}{path}");
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, place)]).into_response()
        }
    });
    let registry = registry.await;
    author.logs_in(&registry.address, "bWU6eA==");
    author.loads(&registry.reference("pager:1")).await;
    let asked = storage.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(_, credentials)| credentials.is_none()), "{asked:?}");
}
