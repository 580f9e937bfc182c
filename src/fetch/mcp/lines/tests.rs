//! What lines come to.

use rmcp::model::{ClientRequest, PingRequest};
use tokio::io::{AsyncReadExt, duplex};

use super::*;

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

fn ping(id: i64) -> ClientJsonRpcMessage {
    ClientJsonRpcMessage::request(ClientRequest::PingRequest(PingRequest::default()), NumberOrString::Number(id))
}

/// A stream that hands out these pieces one by one.
fn pieces(pieces: &[&[u8]]) -> Box<dyn AsyncRead + Send + Unpin> {
    let empty: Box<dyn AsyncRead + Send + Unpin> = Box::new(tokio::io::empty());
    pieces.iter().rev().fold(empty, |rest, piece| Box::new(io::Cursor::new(piece.to_vec()).chain(rest)))
}

/// How many messages come, and what was seen on the way.
async fn received(input: &[&[u8]], line_bytes_max: usize) -> (usize, Seen) {
    let seen = Seen::new();
    let mut lines = Lines::new(pieces(input), tokio::io::sink(), line_bytes_max, seen.clone());
    lines.send(ping(1)).await.unwrap();
    let mut count = 0;
    while lines.receive().await.is_some() {
        count += 1;
    }
    (count, seen)
}

async fn alarm(seen: &Seen) -> Option<Alarm> {
    tokio::select! {
        biased;
        alarm = seen.alarm() => Some(alarm),
        () = std::future::ready(()) => None,
    }
}

#[tokio::test]
async fn messages_come_whole_however_they_are_cut() {
    let later = r#"{"jsonrpc":"2.0","method":"notifications/later","params":{}}"#;
    let text = format!("\u{feff}{ANSWER}\r\n\n  \n{later}\n");
    for at in 0..text.len() {
        let (head, tail) = text.as_bytes().split_at(at);
        let (count, seen) = received(&[head, tail], 100).await;
        assert!((1..=2).contains(&count), "{count} at {at}");
        assert_eq!((seen.first_stray(), seen.came_instead(), alarm(&seen).await), (None, None, None), "{at}");
    }
}

#[tokio::test]
async fn lines_of_log_are_passed_over_and_the_first_is_kept() {
    for log in ["Listening on 1", "[INFO] starting", r#"{"level":"info","msg":"ready"}"#, "{broken", "caf\u{e9}"] {
        let (count, seen) = received(&[log.as_bytes(), b"\nmore\n", ANSWER.as_bytes(), b"\n"], 100).await;
        assert_eq!((count, alarm(&seen).await), (1, None), "{log}");
        assert_eq!(seen.first_stray().unwrap().bytes, log.as_bytes());
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_told_as_what_it_is() {
    let check = async |line: &[u8], expected: &str| {
        let (count, seen) = received(&[line, b"\n"], 200).await;
        assert_eq!(count, 0);
        let Some(Alarm::Broken(why)) = alarm(&seen).await else { panic!("{expected}") };
        assert!(why.contains(expected), "{why}");
    };
    check(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}", "not UTF-8, from byte 40 on").await;
    check(br#"{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"}}"#, "not JSON: ").await;
    check(br#"{"jsonrpc":"2.0","id":1,"result":{"a":NaN}}"#, "not JSON: expected value at line 1 column 39").await;
    check(br#"{"jsonrpc":"2.0","id":{},"result":{}}"#, "none of the shapes of an answer").await;
    check(br#"{"jsonrpc":"2.0","id":1}"#, "none of the shapes of an answer").await;
    check(br#"{"id":1,"result":{}}"#, "without \"jsonrpc\"").await;
}

#[tokio::test]
async fn an_answer_to_another_request_is_noted() {
    let check = async |line: &str, expected: Option<&str>| {
        let (_, seen) = received(&[line.as_bytes(), b"\n"], 200).await;
        let noted = seen.came_instead();
        let matches = noted.as_deref().zip(expected).map(|(noted, expected)| noted.contains(expected));
        assert_eq!(matches, expected.map(|_| true), "{noted:?}");
    };
    check(ANSWER, None).await;
    check(r#"{"jsonrpc":"2.0","id":"1","result":{}}"#, None).await;
    check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Some("nobody made (id 7)")).await;
    check(r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"no"}}"#, Some("(id \"a\")")).await;
    check(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#, Some("without an id")).await;
    check(&format!("{ANSWER}\n{ANSWER}"), Some("nobody made (id 1)")).await;
    check(r#"{"jsonrpc":"2.0","id":1,"re"#, None).await;
}

#[tokio::test]
async fn an_answer_to_a_discovery_that_was_given_up_is_passed_over() {
    let answers = [ANSWER, "\n", &ANSWER.replace(":1,", ":2,"), "\n"].concat();
    let mut lines = Lines::new(io::Cursor::new(answers), tokio::io::sink(), 200, Seen::new());
    let client = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}"#;
    for (id, method, params) in [(1, "server/discover", "{}"), (2, "initialize", client)] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        lines.send(serde_json::from_str(&request).unwrap()).await.unwrap();
    }
    let Some(JsonRpcMessage::Response(answer)) = lines.receive().await else { panic!("no answer") };
    assert_eq!(answer.id, NumberOrString::Number(2));
}

#[tokio::test]
async fn a_line_without_an_end_and_a_line_that_is_too_long_are_noticed() {
    let (_, seen) = received(&[b"{\"jsonrpc\""], 100).await;
    assert!(seen.came_instead().unwrap().contains("did not end it (10 bytes)"));
    let (count, seen) = received(&[ANSWER.as_bytes(), b"\n"], ANSWER.len()).await;
    assert_eq!((count, alarm(&seen).await), (1, None));
    let (count, seen) = received(&[b"xx", ANSWER.as_bytes(), b"yy\n", ANSWER.as_bytes(), b"\n"], ANSWER.len()).await;
    assert_eq!((count, alarm(&seen).await), (1, Some(Alarm::TooLong)), "and the next line is read");
}

#[tokio::test]
async fn what_was_being_written_is_finished_by_who_writes_next() {
    let (ours, mut theirs) = duplex(10);
    let mut lines = Lines::new(tokio::io::empty(), ours, 100, Seen::new());
    let mut first = Box::pin(lines.send(ping(1)));
    assert!(futures_util::poll!(&mut first).is_pending());
    drop(first);
    let second = lines.send(ping(2));
    drop(lines);
    let mut written = String::new();
    let (sent, read) = tokio::join!(second, theirs.read_to_string(&mut written));
    sent.unwrap();
    read.unwrap();
    let ids: Vec<Value> =
        written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(ids, [1, 2]);
}
