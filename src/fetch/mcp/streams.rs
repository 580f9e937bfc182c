//! The event streams of a server: those of answers, and the one on which a server from before 2026-07-28 says things by
//! itself. Servers, and what stands before them, end streams as they like; each end is followed by a request for
//! another, and without measure that is a storm.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use rmcp::transport::common::client_side_sse::{BoxedSseResponse, SseRetryPolicy};

use super::MESSAGE_BYTES_MAX;
use super::again::{Again, Waits};
use super::heard::Heard;
use crate::fetch::outbox::ReadError;

/// Somebody waits for an answer: its stream is taken up again after at most this.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(4);

/// Ids kept of events in streams of answers, to know later which stream is asked for. The last one is what is asked
/// for, in each of the few answers that are under way.
const IDS_MAX: usize = 32;

/// Whose stream it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// That of an answer.
    Answer,
    /// The server's own.
    Common,
}

#[derive(Debug)]
pub(super) struct Streams {
    common: Mutex<Again>,
    answer: Mutex<Again>,
    ids: Mutex<VecDeque<String>>,
    heard: Arc<Heard>,
}

impl Streams {
    pub(super) fn new(waits: Waits, heard: Arc<Heard>) -> Self {
        let of_answers = Waits { most: waits.most.min(ANSWER_WAIT_MAX), ..waits };
        Self {
            common: Mutex::new(Again::new(waits)),
            answer: Mutex::new(Again::new(of_answers)),
            ids: Mutex::default(),
            heard,
        }
    }

    /// Whose stream it is that goes on after this event.
    pub(super) fn kind(&self, last_event_id: Option<&str>) -> Kind {
        let ids = lock(&self.ids);
        let is_known = |id: &str| ids.iter().any(|known| known == id);
        if last_event_id.is_some_and(is_known) { Kind::Answer } else { Kind::Common }
    }

    /// Returns when a stream may be asked for.
    pub(super) async fn turn(&self, kind: Kind) {
        let wait = lock(self.again(kind)).wait(Instant::now(), fastrand::f64());
        tokio::time::sleep(wait).await;
        lock(self.again(kind)).begins(Instant::now());
    }

    pub(super) fn not_before(&self, kind: Kind, wait: Duration) {
        lock(self.again(kind)).not_before(wait);
    }

    /// The stream, watched.
    pub(super) fn watched(self: &Arc<Self>, stream: BoxedSseResponse, kind: Kind) -> BoxedSseResponse {
        let this = Arc::clone(self);
        stream
            .inspect(move |event| match event {
                Ok(event) => this.saw(kind, event.id.as_deref(), event.data.as_deref().unwrap_or_default()),
                // The error's type is the library's own secret; its text is not.
                Err(error) if error.to_string().contains("exceeded the maximum size") => {
                    this.heard.trouble(ReadError::TooLarge { bytes_max: MESSAGE_BYTES_MAX });
                }
                Err(_) => {}
            })
            .boxed()
    }

    fn saw(&self, kind: Kind, id: Option<&str>, data: &str) {
        if !data.trim().is_empty() {
            lock(self.again(kind)).is_of_use();
        }
        if kind == Kind::Common {
            return;
        }
        if !data.trim().is_empty() {
            self.heard.event(data);
        }
        if let Some(id) = id {
            let mut ids = lock(&self.ids);
            if ids.len() >= IDS_MAX {
                ids.pop_front();
            }
            ids.push_back(id.to_owned());
        }
    }

    fn again(&self, kind: Kind) -> &Mutex<Again> {
        match kind {
            Kind::Answer => &self.answer,
            Kind::Common => &self.common,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The library asks for a stream again at once and for ever: [`Streams::turn`] says when, since the library forgets its
/// own waits with each stream that opens, whatever becomes of it.
#[derive(Debug)]
pub(super) struct AtOnce;

impl SseRetryPolicy for AtOnce {
    fn retry(&self, _times: usize) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}
