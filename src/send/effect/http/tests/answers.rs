//! What answers are understood as.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

async fn answered(method: &str, answer: impl Into<Vec<u8>>) -> Result<Response, Fault> {
    let peer = Peer::open(answer, Then::Close).await;
    ask(&client(), SLACK, Request { method: method.to_owned(), ..post(peer.url("/"), "") }).await
}

async fn check(method: &str, answer: &str, status: u16, body: &str) {
    let response = answered(method, answer).await.unwrap_or_else(|fault| panic!("{answer:?}: {}", fault.message));
    assert_eq!((response.status, String::from_utf8_lossy(&response.body).as_ref()), (status, body), "{answer:?}");
}

async fn refused(answer: impl Into<Vec<u8>>, says: &str) {
    let fault = answered("POST", answer).await.expect_err(says);
    assert_eq!((fault.reach, fault.code.as_str()), (Reach::Unanswered, "no-answer"));
    assert!(fault.message.contains(says), "{:?} does not say {says:?}", fault.message);
}

#[tokio::test]
async fn answers_of_every_kind_are_read_to_their_end() {
    check("POST", OK, 200, "ok").await;
    check("POST", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 200, "ok")
        .await;
    check("POST", "HTTP/1.1 200 OK\r\n\r\nuntil closed", 200, "until closed").await;
    check("POST", "HTTP/1.0 200 OK\r\n\r\nuntil closed", 200, "until closed").await;
    check(
        "POST",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\na: b\r\n\r\nHTTP/1.1 201 C\r\ncontent-length: 0\r\n\r\n",
        201,
        "",
    )
    .await;
    check("POST", "HTTP/1.1 204 No Content\r\n\r\n", 204, "").await;
    check("POST", "HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", 304, "").await;
    check("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", 200, "").await;
    check("POST", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\n\r\nok", 200, "ok").await;
    check("POST", "HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n", 302, "").await;
}

#[tokio::test]
async fn headers_are_told_in_lower_case() {
    let response =
        answered("GET", "HTTP/1.1 200 OK\r\nX-A: 1\r\nRetry-After: 7\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let expected = [("x-a", "1"), ("retry-after", "7"), ("content-length", "0")];
    assert_eq!(response.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn answers_that_could_be_read_in_two_ways_are_refused() {
    refused("", "closed before the end").await;
    refused("HTTP/1.1 200 OK\r\ncontent-le", "closed before the end").await;
    refused("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok", "closed before the end").await;
    refused("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", "closed before the end").await;
    refused("220 mail.example ESMTP\r\n\r\n", "not HTTP/1.1").await;
    refused("HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", "changes the protocol").await;
    refused("HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok", "length").await;
    refused("HTTP/1.1 200 OK\r\ncontent-length: 2, 3\r\n\r\nok", "length").await;
    refused("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", "is chunked").await;
    refused("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "chunks").await;
}

#[tokio::test]
async fn huge_headers_are_an_error_and_not_memory() {
    let with = |headers: String| format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n");
    let many = |count: usize| with((0..count).map(|number| format!("x-{number}: y\r\n")).collect());
    assert_eq!(answered("GET", many(99)).await.unwrap().headers.len(), 100);
    refused(many(100), "more than 100 headers").await;
    let long = |bytes: usize| with(format!("x: {}\r\n", "y".repeat(bytes)));
    assert_eq!(answered("GET", long(exchange::HEAD_BYTES_MAX - 100)).await.unwrap().status, 200);
    refused(long(2 * exchange::HEAD_BYTES_MAX), "larger than 64 KiB").await;
    refused("HTTP/1.1 100 Continue\r\n\r\n".repeat(exchange::HEAD_BYTES_MAX / 10), "larger than 64 KiB").await;
}

#[tokio::test]
async fn a_body_is_kept_up_to_what_was_asked_for_and_the_rest_is_not_read() {
    let endless = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nok";
    for (answer, response_max, body, truncated, connections) in [
        (OK, None, "ok", false, 1),
        (OK, Some(2), "ok", false, 1),
        (OK, Some(1), "o", true, 1),
        (OK, Some(0), "", true, 1),
        (endless, Some(1), "o", true, 2),
    ] {
        let (client, peer) = (client(), Peer::open(answer, Then::Stay).await);
        for _ in 0..2 {
            let request = Request { response_max, ..post(peer.url("/"), "hello") };
            let response = ask(&client, SLACK, request).await.unwrap();
            assert_eq!(
                (response.body.as_slice(), response.truncated),
                (body.as_bytes(), truncated),
                "{response_max:?}"
            );
        }
        assert_eq!(peer.connections(), connections, "{answer:?} {response_max:?}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_all_was_sent_counts_and_ends_the_connection() {
    let (mut ours, mut theirs) = tokio::io::duplex(1024);
    let other_side = async {
        theirs.read_exact(&mut [0; 1024]).await.unwrap();
        theirs.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    };
    let ((), answered) = tokio::join!(other_side, exchange(&mut ours, vec![b'x'; 64 * 1024], http::Method::POST, 100));
    let (response, reusable) = answered.unwrap();
    assert_eq!((response.status, reusable), (413, false));
}
