//! Messages of JSON-RPC as lines on a child's pipes: one line is one message (MCP, transports, stdio). What is none is
//! noted, so that who waits for an answer can be told what came instead.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, NumberOrString, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex as Turn;

use super::seen::{Alarm, Seen};
use super::tap::{Taken, Tap};

/// Some programs begin their output with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Both pipes of a child.
#[derive(Debug)]
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    line: Vec<u8>,
    line_bytes_max: usize,
    /// Whether the rest of a line that is too long is being passed over.
    is_passing_over: bool,
    output: Arc<Turn<Option<Output<W>>>>,
    /// The ids of requests that have no answer yet.
    asked: Arc<Mutex<HashSet<NumberOrString>>>,
    /// The id of a question for discovery.
    discovery: Option<NumberOrString>,
    /// The id of one whose answer the library stopped waiting for.
    given_up: Option<NumberOrString>,
    seen: Seen,
    /// Takes what of a push queue must stay as it came.
    tap: Option<Arc<Tap>>,
}

/// What is still to be written. Whoever comes next goes on where the one before was given up.
#[derive(Debug)]
struct Output<W> {
    pipe: W,
    pending: Vec<u8>,
}

/// What a line is.
#[derive(Debug)]
enum Line {
    Message(Box<ServerJsonRpcMessage>),
    /// A message that is not for us, or an empty line.
    Nothing,
    /// Not a message, nor meant as one.
    Stray,
    /// An answer that cannot be read: why.
    Broken(String),
}

impl<R: AsyncRead + Unpin, W> Lines<R, W> {
    pub(super) fn new(input: R, output: W, line_bytes_max: usize, seen: Seen) -> Self {
        Self {
            input: BufReader::new(input),
            line: Vec::new(),
            line_bytes_max,
            is_passing_over: false,
            output: Arc::new(Turn::new(Some(Output { pipe: output, pending: Vec::new() }))),
            asked: Arc::default(),
            discovery: None,
            given_up: None,
            seen,
            tap: None,
        }
    }

    /// The same, with what is a push queue's taken out by this.
    pub(super) fn tapped(self, tap: Option<Arc<Tap>>) -> Self {
        Self { tap, ..self }
    }

    /// Reads on until a line is whole; none at the end of the stream or when it floods. Dropping the future loses
    /// nothing.
    async fn whole_line(&mut self) -> Option<()> {
        loop {
            let available = self.input.fill_buf().await.ok().filter(|available| !available.is_empty())?;
            let end = available.iter().position(|&byte| byte == b'\n');
            let piece = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            if !self.is_passing_over {
                self.line.extend_from_slice(piece);
            }
            let count = end.map_or(piece.len(), |end| end + 1);
            self.input.consume(count);
            if self.line.len() > self.line_bytes_max {
                self.is_passing_over = true;
                self.line = Vec::new();
                self.seen.sound(Alarm::TooLong);
            }
            let unfinished = if end.is_some() { 0 } else { self.line.len() };
            if self.seen.output_bytes(count, unfinished) {
                return None;
            }
            if end.is_some() && !std::mem::take(&mut self.is_passing_over) {
                return Some(());
            }
        }
    }

    /// What the line is; notes what is no message. None when that is a flood.
    fn judge(&self, line: &[u8]) -> Option<Line> {
        let judged = match self.tap.as_ref().map_or(Taken::Nothing, |tap| tap.takes(line)) {
            Taken::Nothing => read(line),
            Taken::Whole => Line::Nothing,
            Taken::Answer(answer) => Line::Message(answer),
        };
        match &judged {
            Line::Message(message) => self.answered(message),
            Line::Nothing => {}
            Line::Stray => {
                if self.seen.stray(line) {
                    return None;
                }
            }
            Line::Broken(why) => self.seen.sound(Alarm::Broken(why.clone())),
        }
        Some(judged)
    }

    /// Whether it answers what the library stopped waiting for: it would take that for a wrong answer to what it asked
    /// since. So it goes with a server from before discovery that takes long to start.
    fn is_late(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        id.is_some() && id == self.given_up.as_ref()
    }

    /// Notes an answer to what nobody asked.
    fn answered(&self, message: &ServerJsonRpcMessage) {
        let id = match message {
            JsonRpcMessage::Response(answer) => &answer.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return self.seen.instead("answered with an error without an id".to_owned()),
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return,
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.remove(id) && !as_number(id).is_some_and(|id| asked.remove(&id)) {
            self.seen.instead(format!(
                "answered a request that nobody made (id {}); an answer carries the id of its request",
                shown(id)
            ));
        }
    }
}

/// A number that came as a text: the library takes it for the number.
pub(super) fn as_number(id: &NumberOrString) -> Option<NumberOrString> {
    match id {
        NumberOrString::String(text) => text.parse().ok().map(NumberOrString::Number),
        NumberOrString::Number(_) => None,
    }
}

/// An id as JSON, if it is short.
fn shown(id: &NumberOrString) -> String {
    match id {
        NumberOrString::Number(number) => number.to_string(),
        NumberOrString::String(text) if text.len() <= 40 => format!("{text:?}"),
        NumberOrString::String(_) => "a long text".to_owned(),
    }
}

fn read(line: &[u8]) -> Line {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Line::Nothing;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Line::Message(Box::new(message)),
        Err(error) if error.is_data() => read_shape(line),
        Err(_) if !looks_like_an_answer(line) => Line::Stray,
        Err(error) => Line::Broken(match std::str::from_utf8(line) {
            Ok(_) => format!("answered with a line that is not JSON: {error}"),
            Err(error) => format!("answered with bytes that are not UTF-8, from byte {} on", error.valid_up_to() + 1),
        }),
    }
}

/// JSON, but no message that is known.
fn read_shape(line: &[u8]) -> Line {
    let value: Value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(_) => return Line::Stray,
    };
    let has = |key| value.get(key).is_some();
    if !has("jsonrpc") {
        return if has("id") && (has("result") || has("error")) {
            Line::Broken("answered without \"jsonrpc\": \"2.0\"".to_owned())
        } else {
            Line::Stray
        };
    }
    if has("method") {
        // A kind of message that came into the protocol later.
        return Line::Nothing;
    }
    Line::Broken(
        "answered with JSON that has none of the shapes of an answer: a result or an error, and an id".to_owned(),
    )
}

fn looks_like_an_answer(line: &[u8]) -> bool {
    let has = |key: &str| line.windows(key.len()).any(|window| window == key.as_bytes());
    line.starts_with(b"{") && has("\"jsonrpc\"") && !has("\"method\"") && (has("\"result\"") || has("\"error\""))
}

impl<W: AsyncWrite + Unpin> Output<W> {
    async fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let count = self.pipe.write(&self.pending).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.pending.drain(..count);
        }
        self.pipe.flush().await
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        if let JsonRpcMessage::Request(request) = &message {
            match &request.request {
                ClientRequest::DiscoverRequest(_) => self.discovery = Some(request.id.clone()),
                ClientRequest::InitializeRequest(_) => self.given_up = self.discovery.take(),
                _ => {}
            }
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(request.id.clone());
            if let Some(tap) = &self.tap {
                tap.asks(request);
            }
        }
        let bytes = serde_json::to_vec(&message);
        async move {
            let mut output = output.lock().await;
            let output = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
            output.pending.extend(bytes?);
            output.pending.push(b'\n');
            output.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.whole_line().await?;
            let line = std::mem::take(&mut self.line);
            if let Line::Message(message) = self.judge(&line)?
                && !self.is_late(&message)
            {
                return Some(*message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // The child sees the end of its input.
        self.output.lock().await.take();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
        let (count, seen) =
            received(&[b"xx", ANSWER.as_bytes(), b"yy\n", ANSWER.as_bytes(), b"\n"], ANSWER.len()).await;
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
}
