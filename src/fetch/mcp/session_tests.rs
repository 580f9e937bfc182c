//! How a session is opened, and opened anew once it expired.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::http_tests::{Got, Site, json_answer, legacy, modern, text};
use super::*;

#[tokio::test]
async fn a_session_that_expired_is_opened_anew_within_the_read() {
    let site = Site::start(|got, before| {
        let reads = before.iter().filter(|got| got.message["method"] == "resources/read").count();
        let session = if reads == 0 { "s-1" } else { "s-2" };
        legacy(got, session, |got| match (reads, got.headers.get("mcp-session-id")) {
            (0, _) => text(got, "one"),
            (_, Some(session)) if session == "s-2" => text(got, "two"),
            _ => StatusCode::NOT_FOUND.into_response(),
        })
    })
    .await;
    let mut outbox = site.outbox();
    assert_eq!(outbox.read("acme://n").await, Ok("one".to_owned()));
    assert_eq!(outbox.read("acme://n").await, Ok("two".to_owned()));
    outbox.close().await;
}

#[tokio::test]
async fn a_session_that_expires_again_and_again_is_a_failed_read_and_no_loop() {
    let site = Site::start(|got, before| {
        let reads = before.iter().filter(|got| got.message["method"] == "resources/read").count();
        legacy(got, "s-1", |got| if reads == 0 { text(got, "one") } else { StatusCode::NOT_FOUND.into_response() })
    })
    .await;
    let mut outbox = site.outbox();
    outbox.read("acme://n").await.unwrap();
    let count = |method: &str| site.methods().iter().filter(|found| *found == method).count();
    assert_eq!((count("initialize"), count("resources/read")), (1, 1));
    let error = outbox.read("acme://n").await.unwrap_err().to_string();
    assert!(error.contains("Session expired"), "{error}");
    assert_eq!((count("initialize"), count("resources/read")), (2, 3), "opened anew once, and asked once more");
    outbox.read("acme://n").await.unwrap_err();
    assert_eq!((count("initialize"), count("resources/read")), (4, 5), "a new connection, and the same");
    outbox.close().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_anew_is_told_with_the_wait_asked_for() {
    let site =
        Site::start(|got, before| {
            let reads = before.iter().filter(|got| got.message["method"] == "resources/read").count();
            match got.message["method"].as_str() {
                Some("initialize") if reads > 0 => {
                    (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "30")]).into_response()
                }
                _ => legacy(got, "s-1", |got| {
                    if reads == 0 { text(got, "one") } else { StatusCode::NOT_FOUND.into_response() }
                }),
            }
        })
        .await;
    let mut outbox = site.outbox();
    outbox.read("acme://n").await.unwrap();
    let error = outbox.read("acme://n").await.unwrap_err();
    assert_eq!(error, ReadError::Http { status: 503, retry_after: Some(Duration::from_secs(30)) });
    outbox.close().await;
}

#[tokio::test]
async fn the_wait_a_server_asks_for_is_handed_on_from_every_step() {
    let steps = ["server/discover", "initialize", "notifications/initialized", "resources/read"];
    for (status, revision) in [(429, None), (503, None), (429, Some("2025-11-25")), (503, Some("2025-11-25"))] {
        for step in steps {
            if step == "server/discover" && revision.is_some() {
                continue;
            }
            let site = Site::start(move |got, _| {
                if got.message["method"] == step {
                    return (StatusCode::from_u16(status).unwrap(), [("retry-after", "120")]).into_response();
                }
                legacy(got, "s-1", |got| text(got, "fine"))
            })
            .await;
            let mut outbox = site.outbox().remembering(revision.map(str::to_owned));
            let error = outbox.read("acme://n").await.unwrap_err();
            outbox.close().await;
            let expected = ReadError::Http { status, retry_after: Some(Duration::from_secs(120)) };
            assert_eq!(error, expected, "{step} after {revision:?}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_known_from_before_is_not_asked_for_discovery_again() {
    let site = Site::start(|got, _| legacy(got, "s-1", |got| text(got, "fine"))).await;
    let mut outbox = site.outbox().remembering(Some("2025-06-18".to_owned()));
    outbox.read("acme://n").await.unwrap();
    outbox.close().await;
    assert_eq!(site.methods(), ["initialize", "notifications/initialized", "resources/read"]);
    assert_eq!(outbox.revision().as_deref(), Some("2025-11-25"), "what was spoken last");
}

fn refuse(got: &Got) -> Response {
    let error = json!({"code": -32600, "message": "Bad Request: no such revision"});
    json_answer(400, &json!({"jsonrpc": "2.0", "id": got.message["id"], "error": error}))
}

/// Speaks the revision before the newest, and no other.
fn old(got: &Got) -> Response {
    match got.headers.get("mcp-session-id") {
        None if got.message["method"] == "resources/read" => refuse(got),
        _ => legacy(got, "s-1", |got| text(got, "old")),
    }
}

/// Speaks the newest revision, and no other.
fn new(got: &Got) -> Response {
    match got.headers.get("mcp-session-id") {
        Some(_) => refuse(got),
        None => modern(got, |got| text(got, "new")),
    }
}

#[tokio::test]
async fn a_server_that_came_to_speak_another_revision_is_asked_anew_what_it_speaks() {
    type Server = fn(&Got) -> Response;
    let speaks: [(Server, Server); 2] = [(new, old), (old, new)];
    for (first, second) in speaks {
        let site = Site::start(move |got, before| {
            let was_read = before.iter().any(|got| got.message["method"] == "resources/read");
            if was_read { second(got) } else { first(got) }
        })
        .await;
        let mut outbox = site.outbox();
        let was = outbox.read("acme://n").await.unwrap();
        let spoken = outbox.revision();
        let mut refused = 0;
        let is = loop {
            match outbox.read("acme://n").await {
                Ok(text) => break text,
                Err(error) => assert!(error.to_string().contains("no such revision"), "{error}"),
            }
            refused += 1;
            assert!(refused <= REFUSALS_MAX);
        };
        assert_ne!((was, spoken), (is, outbox.revision()));
        assert_eq!(refused, REFUSALS_MAX);
        outbox.close().await;
    }
}
