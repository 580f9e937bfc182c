//! A stream of server-sent events whose data are JSON-RPC messages.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::client::{ANSWER_BYTES_MAX, Missed};
use crate::sse::{Event, Events};

/// Bytes of one stream in all: a server that never stops sending shows nothing new after that.
const STREAM_BYTES_MAX: usize = 64 << 20;

/// An open stream. Dropping it closes the connection.
#[derive(Debug)]
pub(super) struct Stream {
    response: Response,
    events: Events,
    ready: VecDeque<Event>,
    bytes: usize,
    /// The id of the request that opened it.
    pub(super) id: u64,
}

/// What came of waiting for a message.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Heard {
    Message(Value),
    /// Nothing, for as long as was waited.
    Nothing,
    Ended,
    Missed(Missed),
}

impl Stream {
    pub(super) fn new(response: Response, id: u64) -> Self {
        Self { response, events: Events::at_most(ANSWER_BYTES_MAX), ready: VecDeque::new(), bytes: 0, id }
    }

    /// The next message. None when the stream has ended.
    pub(super) async fn message(&mut self) -> Result<Option<Value>, Missed> {
        loop {
            while let Some(event) = self.ready.pop_front() {
                if !event.data.is_empty() {
                    let message = serde_json::from_str(&event.data);
                    return message.map(Some).map_err(|_| Missed::NotAnAnswer("an event that is not JSON".to_owned()));
                }
            }
            if !self.piece().await? {
                return Ok(None);
            }
        }
    }

    /// The next message, if it comes in time.
    pub(super) async fn within(&mut self, time: Duration) -> Heard {
        match tokio::time::timeout(time, self.message()).await {
            Ok(Ok(Some(message))) => Heard::Message(message),
            Ok(Ok(None)) => Heard::Ended,
            Ok(Err(missed)) => Heard::Missed(missed),
            Err(_) => Heard::Nothing,
        }
    }

    /// Whether anything comes in time, be it a comment.
    pub(super) async fn sign_within(&mut self, time: Duration) -> bool {
        !self.ready.is_empty() || matches!(tokio::time::timeout(time, self.piece()).await, Ok(Ok(true)))
    }

    /// Reads a piece of the stream; false at its end.
    async fn piece(&mut self) -> Result<bool, Missed> {
        let piece = self.response.chunk().await.map_err(|_| Missed::BrokeOff)?;
        let Some(piece) = piece else { return Ok(false) };
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > STREAM_BYTES_MAX {
            return Err(Missed::TooLarge);
        }
        self.ready.extend(self.events.push(&piece).map_err(|_| Missed::TooLarge)?);
        Ok(true)
    }
}
