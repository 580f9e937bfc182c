//! What was heard of a server over HTTP that the library keeps to itself. It ends a connection over some failures, and
//! only says that it ended; and an event that is no message it passes over without a word.

use std::sync::{Mutex, PoisonError};

use rmcp::model::{JsonRpcMessage, ServerJsonRpcMessage};
use tokio::sync::Notify;

use crate::fetch::outbox::ReadError;

#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Why the last request failed, since the exchange began.
    trouble: Mutex<Option<ReadError>>,
    /// The last event of an answer by event stream, since the exchange began.
    event: Mutex<Option<String>>,
    /// A session began, in which nothing is subscribed to yet.
    sessions: Notify,
}

impl Heard {
    /// A read, or a handshake, begins or ends: what was heard before counts no more.
    pub(super) fn begin(&self) {
        *lock(&self.trouble) = None;
        *lock(&self.event) = None;
    }

    pub(super) fn trouble(&self, error: ReadError) {
        *lock(&self.trouble) = Some(error);
    }

    pub(super) fn event(&self, data: &str) {
        *lock(&self.event) = Some(data.to_owned());
    }

    pub(super) fn session_began(&self) {
        self.sessions.notify_one();
    }

    /// Returns once a session began since the last time.
    pub(super) async fn session(&self) {
        self.sessions.notified().await;
    }

    /// Says more about an error.
    pub(super) fn explain(&self, error: ReadError) -> ReadError {
        let trouble = || lock(&self.trouble).take();
        match error {
            ReadError::Disconnected(_) => trouble().or_else(|| self.came_instead()).unwrap_or(error),
            ReadError::Timeout { .. } => self.came_instead().unwrap_or(error),
            error => error,
        }
    }

    fn came_instead(&self) -> Option<ReadError> {
        let event = lock(&self.event).take()?;
        let what = match serde_json::from_str::<ServerJsonRpcMessage>(&event) {
            Ok(JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
                "an answer with the id of another request".to_owned()
            }
            Ok(_) => return None,
            Err(error) if error.is_data() => "an event that is JSON but no message of MCP".to_owned(),
            Err(error) => format!("an event that is not JSON ({error})"),
        };
        Some(ReadError::NotMcp(format!("the server sent {what}, and no answer")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
