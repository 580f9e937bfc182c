//! Messages of JSON-RPC as lines on a child's pipes: one line is one message (MCP, transports, stdio). What is none is
//! noted, so that who waits for an answer can be told what came instead.

#[cfg(test)]
mod tests;

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
