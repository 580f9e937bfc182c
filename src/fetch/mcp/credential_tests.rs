//! What signs a request: headers of the connector's own, and tokens that are renewed.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use serde_json::json;

use super::credential::Credential;
use super::http::{Endpoint, Signature};
use super::http_tests::{Got, Site, TOKEN, check, common, json_answer, legacy, modern, patient, secret, text};
use super::*;
use crate::config::{Auth, Poll, Transport};
use crate::notification::Level;

/// An outbox with headers of its own.
fn outbox_with(
    url: &str,
    headers: &[(&str, &str)],
    values: &[(&str, &str)],
    auth: Auth,
    private: bool,
) -> Result<McpOutbox, ReadError> {
    let headers = headers.iter().map(|&(name, secret)| (name.to_owned(), secret.parse().unwrap())).collect();
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Http { url: url.parse().unwrap(), auth, headers, private },
        outbox: Some("acme://n".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Info,
        poll: Poll::default(),
    };
    let secrets = values.iter().map(|&(name, value)| (name.parse().unwrap(), secret(value))).collect();
    McpOutbox::new(&"acme".parse().unwrap(), &connector, &common(&secrets, patient()))
}

#[tokio::test]
async fn headers_of_the_connector_are_sent_with_every_request_and_never_told() {
    let read = |got: &Got| {
        let key = got.headers["x-key"].to_str().unwrap();
        let error = json!({"code": -32603, "message": format!("the key {key} is no good")});
        json_answer(200, &json!({"jsonrpc": "2.0", "id": got.message["id"], "error": error}))
    };
    let site = Site::start(move |got, _| legacy(got, "s-1", read)).await;
    let (headers, values) =
        ([("x-key", "key"), ("authorization", "basic")], [("key", "k-4711-4711"), ("basic", "Basic abcdef")]);
    let mut outbox = outbox_with(&site.url, &headers, &values, Auth::None, false).unwrap();
    let error = outbox.read("acme://n").await.unwrap_err().to_string();
    assert_eq!(error, "the server answered with the error -32603: the key *** is no good");
    let is_asked = || site.log.lock().unwrap().iter().any(|got| got.method == Method::GET);
    while !is_asked() {
        tokio::task::yield_now().await;
    }
    outbox.close().await;
    let log = site.log.lock().unwrap().clone();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        assert!(log.iter().any(|got| got.method == method), "{method}");
    }
    for got in log {
        let header = |name: &str| {
            got.headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for (name, value) in [
            ("x-key", "k-4711-4711"),
            ("authorization", "Basic abcdef"),
            ("x-tenant-id", "acme"),
            ("x-workspace-id", "acme"),
        ] {
            assert_eq!(header(name), [value], "{name} of {}", got.method);
        }
    }
    assert!(!format!("{outbox:?}").contains("4711"));
}

#[test]
fn headers_that_cannot_be_sent_are_told_when_the_outbox_is_made() {
    let check = |name: &str, value: Option<&str>, auth: Auth, expected: &str| {
        let values = value.map(|value| vec![("key", value), ("token", TOKEN)]).unwrap_or_default();
        let made = outbox_with("https://mcp.example/", &[(name, "key")], &values, auth, false);
        assert_eq!(made.unwrap_err().to_string(), expected);
    };
    check("x-key", None, Auth::None, "the secret \"key\" is not there: add it to `secrets`");
    let broken = "the header `x-key` cannot be sent: the secret \"key\" holds a line break, or what else no header can hold; \
                  correct its value";
    check("x-key", Some("one\ntwo"), Auth::None, broken);
    check("x key", Some("fine"), Auth::None, "the header `x key` cannot be sent: this is no name of a header");
    for name in ["x-tenant-id", "x-workspace-id", "accept", "mcp-session-id", "last-event-id", "host", "content-length"]
    {
        let expected =
            format!("the header `{name}` cannot be sent: Switchbell sets it itself; take it out of `headers`");
        check(name, Some("fine"), Auth::None, &expected);
    }
    let twice = "the header `authorization` cannot be sent: `auth` sets it already; take one of the two out";
    check("authorization", Some("fine"), Auth::Bearer("token".parse().unwrap()), twice);
}

#[tokio::test]
async fn a_name_leads_to_private_addresses_only_where_the_operator_says_so() {
    let site = Site::start(|got, _| modern(got, |got| text(got, "fine"))).await;
    let by_name = site.url.replace("127.0.0.1", "localhost");
    let outbox = |private| outbox_with(&by_name, &[], &[], Auth::None, private).unwrap();
    check(outbox(false), Err("the host's name leads to a private address")).await;
    assert!(site.log.lock().unwrap().is_empty());
    check(outbox(true), Ok("fine")).await;
}

/// Hands out `t-1-…`, then `t-2-…` once the one before was refused, up to `most`.
#[derive(Debug)]
struct Counted {
    number: std::sync::atomic::AtomicU32,
    most: u32,
}

impl credential::Tokens for Counted {
    fn token(&self) -> BoxFuture<'_, Result<String, ReadError>> {
        let number = self.number.load(std::sync::atomic::Ordering::SeqCst);
        async move { Ok(format!("t-{number}-s3cret")) }.boxed()
    }

    fn refused<'a>(&'a self, token: &'a str, challenge: Option<&'a str>) -> BoxFuture<'a, Result<(), ReadError>> {
        assert_eq!(challenge, Some("Bearer error=\"invalid_token\""));
        let number = self.number.load(std::sync::atomic::Ordering::SeqCst);
        let refused = async move {
            if token != format!("t-{number}-s3cret") {
                // Another request was quicker to tell.
                return Ok(());
            }
            if number == self.most {
                return Err(ReadError::Reauthorize("sign in again".to_owned()));
            }
            self.number.store(number + 1, std::sync::atomic::Ordering::SeqCst);
            Ok(())
        };
        refused.boxed()
    }
}

#[tokio::test]
async fn a_token_that_is_refused_is_renewed_once_and_the_request_made_again() {
    // Each token is good until the read after the next.
    let site = Site::start(|got, before| {
        let reads = before.iter().filter(|got| got.message["method"] == "resources/read").count();
        let needed = if reads == 0 { "Bearer t-2-s3cret" } else { "Bearer t-3-s3cret" };
        if got.headers.get("authorization").is_none_or(|token| token != needed) {
            return (StatusCode::UNAUTHORIZED, [("www-authenticate", "Bearer error=\"invalid_token\"")])
                .into_response();
        }
        legacy(got, "s-1", |got| {
            let error = json!({"code": -32603, "message": format!("good: {needed}")});
            json_answer(200, &json!({"jsonrpc": "2.0", "id": got.message["id"], "error": error}))
        })
    })
    .await;
    let tokens = Arc::new(Counted { number: 1.into(), most: 3 });
    let signature = Signature { credential: Credential::Tokens(tokens), headers: BTreeMap::new() };
    let (workspace, url) = ("acme".parse().unwrap(), site.url.parse().unwrap());
    let waits = patient().waits();
    let endpoint = Endpoint::new(&workspace, &url, false, signature, &BTreeMap::new(), &Clients::new(), waits).unwrap();
    let mut outbox = McpOutbox::over(Arc::new(Link::new(Way::to(endpoint, patient()), Era::default())));
    for _ in 0..2 {
        let error = outbox.read("acme://n").await.unwrap_err().to_string();
        assert_eq!(error, "the server answered with the error -32603: good: Bearer ***");
    }
    site.log.lock().unwrap().clear();
    assert_eq!(outbox.read("acme://n").await, Err(ReadError::Reauthorize("sign in again".to_owned())));
    outbox.close().await;
}
