//! What becomes of a connection whose server ends, refuses or spoils its event streams.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::http_tests::{Got, Site, check, legacy, modern, outbox_at, text};
use super::*;

fn hasty() -> Times {
    Times { again: Duration::from_millis(1), again_max: Duration::from_millis(8), ..Times::default() }
}

fn stream(body: impl Into<Body>) -> Response {
    ([("content-type", "text/event-stream")], body.into()).into_response()
}

/// A stream that breaks off.
fn broken(said: &'static str) -> Body {
    let said = futures_util::stream::iter([Ok(said), Err(io::Error::other("gone"))]);
    Body::from_stream(said)
}

fn gets(site: &Site) -> usize {
    site.log.lock().unwrap().iter().filter(|got| got.method == Method::GET).count()
}

async fn until(done: impl Fn() -> bool) {
    let until = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), until).await.unwrap();
}

/// A server from before 2026-07-28 whose own stream is `answer`.
async fn site(answer: impl Fn() -> Response + Clone + Send + Sync + 'static) -> Site {
    Site::start(move |got, before| match got.method {
        Method::GET => answer(),
        _ => legacy(got, "s-1", |got| text(got, &before.len().to_string())),
    })
    .await
}

/// Servers and what they answer to the request for their stream.
fn answers(status: u16, retry_after: Option<&'static str>) -> impl Fn() -> Response + Clone {
    move || {
        let mut response = StatusCode::from_u16(status).unwrap().into_response();
        if let Some(wait) = retry_after {
            response.headers_mut().insert("retry-after", wait.parse().unwrap());
        }
        response
    }
}

#[tokio::test]
async fn a_server_that_has_no_stream_is_not_asked_for_it_again() {
    for status in [405, 404, 400, 401, 403, 406, 301] {
        let site = site(answers(status, None)).await;
        let mut outbox = outbox_at(&site.url, hasty());
        outbox.read("acme://n").await.unwrap();
        until(|| gets(&site) == 1).await;
        for _ in 0..5 {
            outbox.read("acme://n").await.unwrap();
        }
        assert_eq!(gets(&site), 1, "{status}");
        outbox.close().await;
    }
    let page = site(|| ([("content-type", "text/html")], "<html>").into_response()).await;
    let mut outbox = outbox_at(&page.url, hasty());
    outbox.read("acme://n").await.unwrap();
    until(|| gets(&page) == 1).await;
    outbox.close().await;
}

#[tokio::test]
async fn a_stream_that_ends_breaks_or_cannot_be_had_now_is_asked_for_again_and_reads_go_on() {
    async fn goes_on(name: &str, answer: impl Fn() -> Response + Clone + Send + Sync + 'static) {
        let site = site(answer).await;
        let mut outbox = outbox_at(&site.url, hasty());
        outbox.read("acme://n").await.unwrap();
        until(|| gets(&site) >= 6).await;
        for _ in 0..3 {
            outbox.read("acme://n").await.unwrap();
        }
        outbox.close().await;
        let methods = site.methods();
        assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 1, "{name} cost the connection");
    }
    goes_on("an end at once", || stream("")).await;
    goes_on("an end at once, and a wish to be asked at once", || stream("retry: 0\n\n")).await;
    goes_on("an end after an event with an id", || stream("id: 1\nretry: 0\ndata:\n\n")).await;
    goes_on("a break", || stream(broken(": hello\n\n"))).await;
    goes_on("an error", answers(500, None)).await;
    goes_on("a pause", answers(503, Some("0"))).await;
    goes_on("too many", answers(429, None)).await;
}

#[tokio::test]
async fn a_server_that_ends_every_stream_at_once_is_not_stormed() {
    for answer in [|| stream(""), || stream("id: 1\nretry: 0\ndata:\n\n"), || stream(broken(": hello\n\n"))] {
        let site = site(answer).await;
        // Longer than the test can last: nothing but the first turn, which is at once, may come.
        let hour = Duration::from_secs(3_600);
        let mut outbox = outbox_at(&site.url, Times { again: hour, again_max: hour, ..hasty() });
        outbox.read("acme://n").await.unwrap();
        until(|| gets(&site) == 1).await;
        for _ in 0..200 {
            outbox.read("acme://n").await.unwrap();
        }
        assert_eq!(gets(&site), 1);
        outbox.close().await;
    }
}

#[tokio::test]
async fn an_answer_whose_stream_ends_early_is_taken_up_again_by_its_last_event() {
    let site = Site::start(|got, before| {
        let read = before.iter().find(|got| got.message["method"] == "resources/read");
        match (&got.method, read) {
            (&Method::GET, Some(read)) if got.headers.get("last-event-id").is_some_and(|id| id == "7") => {
                let text = json!({"contents": [{"uri": "acme://n", "text": "at last"}]});
                let answer = json!({"jsonrpc": "2.0", "id": read.message["id"], "result": text});
                stream(format!("id: 8\ndata: {answer}\n\n"))
            }
            (&Method::GET, _) => StatusCode::METHOD_NOT_ALLOWED.into_response(),
            _ => legacy(got, "s-1", |_| stream("id: 7\ndata:\n\n")),
        }
    })
    .await;
    check(outbox_at(&site.url, hasty()), Ok("at last")).await;
}

#[tokio::test]
async fn events_that_are_no_answer_are_told_as_what_they_are() {
    let read = |event: Value, ends: bool| {
        move |got: &Got, _: &[Got]| {
            let mut event = event.clone();
            if event["id"] == "mine" {
                event["id"] = got.message["id"].clone();
            }
            let said = format!("data: {}\n\n", event.as_str().map_or_else(|| event.to_string(), str::to_owned));
            modern(got, |_| {
                let rest = futures_util::stream::iter([Ok::<_, io::Error>(said.clone())]);
                if ends {
                    return stream(Body::from_stream(rest));
                }
                stream(Body::from_stream(futures_util::StreamExt::chain(rest, futures_util::stream::pending())))
            })
        }
    };
    let times = Times { read: Duration::from_millis(300), ..hasty() };
    for ends in [true, false] {
        for (event, expected) in [
            (json!("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\\ud83d\"}}"), "an event that is not JSON ("),
            (json!("hello"), "an event that is not JSON (expected value at line 1 column 1), and no answer"),
            (json!({"id": "mine", "result": {}}), "an event that is JSON but no message of MCP, and no answer"),
            (json!({"jsonrpc": "2.0", "id": 4711, "result": {}}), "an answer with the id of another request"),
        ] {
            let site = Site::start(read(event, ends)).await;
            check(outbox_at(&site.url, times), Err(expected)).await;
        }
    }
}
