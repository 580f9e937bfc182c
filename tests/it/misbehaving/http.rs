//! Servers that misbehave over streamable HTTP.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use switchbell::fetch::mcp::Times;
use tokio::net::TcpListener;
use tokio::time::interval;

use super::stage::{Setting, Stage, hasty, patient};
use crate::support::misbehaving::{
    Bad, Era, Got, Outbox, Site, Wayward, contents, endless, error, events, json_of, pieces, result, status, with,
};

pub(super) const HOUR: Duration = Duration::from_secs(3_600);

/// Between two pieces of an answer.
const APART: Duration = Duration::from_millis(50);

/// Reads that bring nothing in an hour: the waits grow to five minutes, spread by a fifth.
pub(super) const READS_AN_HOUR_MAX: usize = 18;

pub(super) async fn stage(era: Era, times: Times) -> (Site, Stage) {
    let site = Site::start(era).await;
    let stage = Stage::start(&Setting::over_http(&site, times));
    (site, stage)
}

/// Reads fail for this reason so many times, and the first good one brings what happened meanwhile; in both eras.
pub(super) async fn check(bad: Bad, times: Times, failures: u32, says: &[&str]) {
    for era in [Era::Sessions, Era::Stateless] {
        check_in(era, bad, times, failures, says).await;
    }
}

async fn check_in(era: Era, bad: Bad, times: Times, failures: u32, says: &[&str]) {
    let (site, mut stage) = stage(era, times).await;
    stage.begins().await;
    site.misbehave(bad);
    site.happen("one");
    stage.fails(&site, failures, says).await;
    site.behave();
    stage.recovers(failures, "one", "c-1").await;
    stage.stop().await;
}

/// The server does well enough: reads bring what happened, and no more of them are made.
pub(super) async fn bears(era: Era, bad: Bad) -> Site {
    let (site, mut stage) = stage(era, patient()).await;
    site.misbehave(bad);
    stage.begins().await;
    site.happen("one");
    stage.recovers(0, "one", "c-1").await;
    let asked = site.outbox.calls("resources/read");
    for turn in stage.turns_of(HOUR).await {
        assert!(turn.worked().notices.is_empty());
    }
    let reads = site.outbox.calls("resources/read") - asked;
    assert!(reads <= READS_AN_HOUR_MAX, "{reads} reads in an hour");
    stage.stop().await;
    site
}

pub(super) fn result_of(got: &Got, poll: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": got.message["id"], "result": contents(&poll.to_string())})
}

#[tokio::test]
async fn an_answer_with_an_error_of_http_is_a_failed_read_that_says_what_to_do() {
    let says = "HTTP 503: the server could not answer";
    check(|got, _| got.is_read().then(|| status(503)), patient(), 3, &[says]).await;
    check(|_, _| Some(status(503)), patient(), 3, &[says]).await;
    let says = ["HTTP 401: the credential was refused, or there was none; see `auth` of the connector"];
    check(|got, _| got.is_read().then(|| status(401)), patient(), 3, &says).await;
    let says = ["redirects are not followed; give the url it leads to"];
    check(|_, _| Some(with(status(302), "location", "https://other.example/mcp")), patient(), 3, &says).await;
    check(|_, _| Some(with(status(307), "location", "/elsewhere")), patient(), 3, &says).await;
}

#[tokio::test]
async fn twenty_failures_in_a_row_are_no_reason_to_give_up() {
    check(|_, _| Some(status(502)), patient(), 20, &["HTTP 502"]).await;
}

#[tokio::test]
async fn a_page_of_html_is_said_not_to_be_mcp() {
    fn page(_: &Got, _: &Outbox) -> Option<Response> {
        Some(([("content-type", "text/html")], "<html>Welcome</html>").into_response())
    }
    let says = ["the server answered something that is not MCP (text/html); check the connector's url"];
    check(page, patient(), 3, &says).await;
    check(|got, outbox| if got.is_read() { page(got, outbox) } else { None }, patient(), 3, &says).await;
}

#[tokio::test]
async fn a_session_that_died_once_is_begun_anew_within_the_read() {
    let (site, mut stage) = stage(Era::Sessions, patient()).await;
    stage.begins().await;
    site.misbehave(|got, _| (got.is_read() && got.session() == Some("s-0")).then(|| status(404)));
    site.happen("one");
    stage.recovers(0, "one", "c-1").await;
    assert_eq!(site.outbox.calls("initialize"), 2);
    stage.stop().await;
}

#[tokio::test]
async fn a_session_that_is_dead_whenever_it_is_used_is_a_failed_read() {
    let dead: Bad = |got, _| got.is_read().then(|| status(404));
    check_in(Era::Sessions, dead, patient(), 5, &["HTTP 404"]).await;
    // A server that does not even say it rightly, and forgets its own new session.
    let dead: Bad = |got, _| (got.session().is_some()).then(|| status(404));
    check_in(Era::Sessions, dead, patient(), 5, &["HTTP 404"]).await;
}

#[tokio::test]
async fn a_server_from_before_discovery_may_refuse_it_in_any_way() {
    let check = async |bad: Bad, what: &str| {
        let (site, mut stage) = stage(Era::Sessions, patient()).await;
        site.misbehave(bad);
        let first = stage.turn().await;
        assert!(first.bootstrap, "{what}: {first:?}");
        site.happen("one");
        stage.recovers(0, "one", "c-1").await;
        assert_eq!(site.outbox.calls("server/discover"), 1);
        stage.stop().await;
    };
    check(|got, _| is_discovery(got).then(|| status(400)), "400").await;
    check(|got, _| is_discovery(got).then(|| status(404)), "404").await;
    check(|got, _| is_discovery(got).then(|| status(405)), "405").await;
    check(|got, _| is_discovery(got).then(|| status(406)), "406").await;
    check(|got, _| is_discovery(got).then(|| status(415)), "415").await;
    check(|got, _| is_discovery(got).then(|| status(422)), "422").await;
    check(
        |got, _| is_discovery(got).then(|| (StatusCode::BAD_REQUEST, error(got, -32600, "no session")).into_response()),
        "400 with an error",
    )
    .await;
    check(|got, _| is_discovery(got).then(|| error(got, -32603, "Internal error")), "-32603").await;
    check(|got, _| is_discovery(got).then(|| error(got, 0, "what?")), "0").await;
}

#[tokio::test]
async fn a_server_that_fails_at_discovery_is_read_without_it_the_next_time() {
    let check = async |bad: Bad, says: &str| {
        let (site, mut stage) = stage(Era::Sessions, patient()).await;
        site.misbehave(bad);
        stage.turn().await.failed(&[says]);
        let turn = stage.turn().await.worked();
        assert!(turn.bootstrap, "the next attempt goes without discovery: {turn:?}");
        stage.stop().await;
    };
    check(|got, _| is_discovery(got).then(|| status(500)), "HTTP 500: the server could not answer").await;
    check(|got, _| is_discovery(got).then(|| status(501)), "HTTP 501: the server could not answer").await;
    check(|got, _| is_discovery(got).then(|| status(202)), "broke the connection: it ended during the handshake").await;
    check(|got, _| is_discovery(got).then(|| events(&[])), "broke the connection: it ended during the handshake").await;
    check(|got, _| is_discovery(got).then(|| result(got, json!({}))), "the handshake with something that is not MCP")
        .await;
    check(|got, _| is_discovery(got).then(|| "".into_response()), "something that is not MCP (text/plain").await;
}

fn is_discovery(got: &Got) -> bool {
    got.call() == "server/discover"
}

#[tokio::test]
async fn no_session_outlives_the_server_that_keeps_it() {
    let site = Site::start(Era::Sessions).await;
    let setting = Setting::over_http(&site, patient());
    let mut stage = Stage::start(&setting);
    stage.begins().await;
    let folder = stage.stop().await;
    let before = site.asked();
    // The new run must not use the session of the old.
    site.misbehave(|got, _| (got.session() == Some("s-0")).then(|| status(404)));
    site.happen("one");
    let mut stage = Stage::start_in(folder, &setting);
    let turn = stage.turn().await.worked();
    assert_eq!((&turn.accepted[..], turn.bootstrap), (&["one".to_owned()][..], false));
    let requests = site.outbox.requests();
    assert!(requests[before..].iter().all(|got| got.session() != Some("s-0")), "{:?}", &requests[before..]);
    stage.stop().await;
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it() {
    let check = async |bad: Bad, says: &str, seconds: std::ops::RangeInclusive<u64>| {
        let (site, mut stage) = stage(Era::Stateless, patient()).await;
        stage.begins().await;
        site.misbehave(bad);
        site.happen("one");
        for failures in 1..=2 {
            let turn = stage.turn().await.failed(&[says]);
            assert_eq!(turn.failures, failures);
            assert!(seconds.contains(&turn.wait.as_secs()), "{turn:?}");
        }
        assert_eq!(site.outbox.calls("resources/read"), 3, "it is left alone meanwhile");
        site.behave();
        stage.recovers(2, "one", "c-1").await;
        stage.stop().await;
    };
    let says = "HTTP 429: the server is asked too often";
    check(|got, _| got.is_read().then(|| with(status(429), "retry-after", "900")), says, 900..=900).await;
    // The clock begins at 18:42:10 and the first read is within the first minutes.
    check(
        |got, _| got.is_read().then(|| with(status(429), "retry-after", "Tue, 01 Sep 2026 19:42:10 GMT")),
        says,
        60..=3_600,
    )
    .await;
    check(|got, _| got.is_read().then(|| with(status(503), "retry-after", "1000000")), "HTTP 503", 86_400..=86_400)
        .await;
    check(|got, _| got.is_read().then(|| with(status(503), "retry-after", "soon")), "HTTP 503", 60..=300).await;
}

/// A gzip file that holds `text` as it is.
fn gzipped(text: &str) -> Vec<u8> {
    let crc = text.bytes().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    let length = u16::try_from(text.len()).unwrap();
    let mut file = vec![0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(text.bytes());
    file.extend((!crc).to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

#[tokio::test]
async fn a_compressed_answer_that_nobody_asked_for_is_a_failed_read() {
    let bad: Bad = |got, outbox| {
        assert!(!got.headers.contains_key("accept-encoding"));
        let body = gzipped(&result_of(got, &outbox.poll(got)).to_string());
        got.is_read()
            .then(|| ([("content-type", "application/json"), ("content-encoding", "gzip")], body).into_response())
    };
    check(bad, patient(), 3, &["the server answered JSON that is none: expected value at line 1 column 1"]).await;
}

#[tokio::test]
async fn an_answer_that_drips_for_ever_is_cut_off() {
    fn dripping(content_type: &'static str, drop: &'static str) -> Response {
        let drops = stream::unfold(interval(APART), move |mut interval| async move {
            interval.tick().await;
            Some((Ok(drop.to_owned()), interval))
        });
        pieces(content_type, drops)
    }
    let says = ["the server did not answer within 1.5 s"];
    check_in(Era::Sessions, |got, _| got.is_read().then(|| dripping("application/json", " ")), hasty(), 1, &says).await;
    check_in(
        Era::Stateless,
        |got, _| got.is_read().then(|| dripping("text/event-stream", ": still here\n\n")),
        hasty(),
        1,
        &says,
    )
    .await;
}

#[tokio::test]
async fn a_server_that_hangs_in_the_middle_is_cut_off() {
    let says = ["the server did not answer within 1.5 s"];
    check_in(
        Era::Sessions,
        |got, _| got.is_read().then(|| endless("application/json", "{\"jsonrpc\":")),
        hasty(),
        1,
        &says,
    )
    .await;
    check_in(Era::Stateless, |got, _| got.is_read().then(|| endless("text/event-stream", "")), hasty(), 1, &says).await;
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_is_cut_off_and_read_once_it_does() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let times = Times { connect: Duration::from_secs(2), ..patient() };
    let setting = Setting { commands: "{}".to_owned(), server: format!("url: \"{url}\""), poll: "{}", times };
    let mut stage = Stage::start(&setting);
    stage.turn().await.failed(&["the server did not answer within 2 s"]);
    let site = Site::on(listener, Era::Stateless);
    stage.begins().await;
    site.happen("one");
    stage.recovers(0, "one", "c-1").await;
    stage.stop().await;
}

#[tokio::test]
async fn a_connection_that_breaks_in_the_middle_is_a_failed_read() {
    /// Begins, and breaks once that is on its way.
    fn breaking(content_type: &'static str) -> Response {
        let parts = [Ok("{\"jsonrpc\":".to_owned()), Err(std::io::ErrorKind::Other.into())];
        let apart = stream::unfold((interval(APART), parts.into_iter()), |(mut interval, mut parts)| async move {
            interval.tick().await;
            Some((parts.next()?, (interval, parts)))
        });
        pieces(content_type, apart)
    }
    check(|got, _| got.is_read().then(|| breaking("application/json")), patient(), 5, &["broke the connection"]).await;
    check(
        |got, _| got.is_read().then(|| breaking("text/event-stream")),
        hasty(),
        1,
        &["broke the connection: it ended before the answer came"],
    )
    .await;
}

#[tokio::test]
async fn an_answer_that_is_json_and_not_mcp_is_a_failed_read() {
    let says = ["the server answered something that is not MCP; check the connector's url"];
    check(|got, _| got.is_read().then(|| json_of(&json!({"events": [], "cursor": "c-0"}))), patient(), 3, &says).await;
}
