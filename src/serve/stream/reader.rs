//! One reader: it stands at a number, and is sent what follows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{Stream, stream};
use tokio::sync::watch;

use super::frames::{self, Batch};
use super::hub::Hub;
use super::places::Place;
use super::ring::Taken;
use super::topic::Topic;
use crate::inbox::InboxError;
use crate::notification::Name;

/// How often a reader hears something even if nothing happens: proxies close connections that are silent for half a minute.
pub(super) const BEAT: Duration = Duration::from_secs(15);

/// Changes that one reader is read from the store at a time.
const REPLAYED_AT_ONCE: u32 = 64;

/// Bytes of frames that are read for one reader at a time; one frame may go beyond.
const REPLAYED_BYTES_MAX: usize = 128 * 1024;

/// After which time a browser comes back, in milliseconds; drawn for each, so that not all come at once.
const RETRY_MS: std::ops::Range<u64> = 1_000..5_000;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With what comes from now on.
    Now,
    /// Behind this number.
    After(u64),
    /// Anew: it names no number that can be read.
    Anew,
}

/// A reader.
pub(super) struct Live {
    hub: Hub,
    topic: Arc<Topic>,
    level: watch::Receiver<Option<u64>>,
    start: Start,
    position: u64,
    /// The number it has heard of.
    told: u64,
    shows_work: bool,
    /// What was read for it from the store.
    replayed: VecDeque<Batch>,
    beat: BoxFuture<'static, ()>,
    is_greeted: bool,
    /// Its place, kept as long as it reads.
    _place: Place,
}

impl fmt::Debug for Live {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Live").field("workspace", &self.topic.workspace).field("position", &self.position).finish()
    }
}

impl Live {
    /// A reader of a workspace; it hears of deliveries only where `shows_work`.
    pub(super) fn new(hub: &Hub, place: Place, workspace: &Name, start: Start, shows_work: bool) -> Self {
        let (topic, level) = hub.join(workspace);
        let position = if let Start::After(number) = start { number } else { 0 };
        Self {
            beat: hub.after(BEAT),
            hub: hub.clone(),
            topic,
            level,
            start,
            position,
            told: position,
            shows_work,
            replayed: VecDeque::new(),
            is_greeted: false,
            _place: place,
        }
    }

    /// What it is sent, piece by piece.
    pub(super) fn pieces(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(self, async |mut live| {
            let piece = live.next().await?;
            Some((piece, live))
        })
    }

    /// The next piece; none when it cannot go on, and must come back.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.is_greeted {
            self.is_greeted = true;
            return Some(format!("retry: {}\n\n", fastrand::u64(RETRY_MS)).into());
        }
        loop {
            // Before the frames are looked at: what comes meanwhile wakes it.
            let Some(last) = *self.level.borrow_and_update() else {
                match self.wait().await {
                    Some(beat) => return Some(beat),
                    None => continue,
                }
            };
            match std::mem::replace(&mut self.start, Start::After(self.position)) {
                Start::After(_) => {}
                Start::Now => return Some(self.place("ready", last)),
                Start::Anew => return Some(self.place("reset", last)),
            }
            let taken = match self.replayed.front() {
                Some(batch) => {
                    let (bytes, position) = batch.after(self.position, self.shows_work);
                    if position >= batch.last() {
                        self.replayed.pop_front();
                    }
                    Taken::Frames(bytes, position)
                }
                None => self.topic.after(self.position, self.shows_work),
            };
            let piece = match taken {
                Taken::Frames(bytes, position) => {
                    self.position = position;
                    if !bytes.is_empty() {
                        self.told = position;
                    }
                    Some(bytes)
                }
                Taken::Level => self.wait().await,
                Taken::Behind | Taken::Ahead => match self.replay().await {
                    Ok(piece) => piece,
                    Err(error) => {
                        tracing::warn!(workspace = %self.topic.workspace, %error, "a live reader must come back");
                        return None;
                    }
                },
            };
            if let Some(piece) = piece.filter(|piece| !piece.is_empty()) {
                return Some(piece);
            }
        }
    }

    /// Reads from the store what it missed; what to send at once.
    async fn replay(&mut self) -> Result<Option<Bytes>, InboxError> {
        // The semaphore is never closed.
        let turn = self.hub.replays().acquire().await;
        let part =
            frames::read(self.hub.inbox(), &self.topic.workspace, self.position, REPLAYED_AT_ONCE, REPLAYED_BYTES_MAX)
                .await?;
        drop(turn);
        if part.is_cut || part.last < self.position {
            return Ok(Some(self.place("reset", part.last)));
        }
        self.replayed.extend(part.batches);
        // Level with the store, and the task that renders is not yet: it tells when it is.
        if self.replayed.is_empty() { Ok(self.wait().await) } else { Ok(None) }
    }

    /// Waits for the next change; or until it is time for a sign of life, which it returns.
    async fn wait(&mut self) -> Option<Bytes> {
        tokio::select! {
            // The sender lives in the topic, so it is there as long as this.
            _ = self.level.changed() => None,
            () = &mut self.beat => {
                self.beat = self.hub.after(BEAT);
                Some(self.sign())
            }
        }
    }

    /// A sign of life: a comment, or the number where nothing was told of the last changes.
    fn sign(&mut self) -> Bytes {
        if self.told == self.position {
            return Bytes::from_static(b":\n\n");
        }
        self.told = self.position;
        format!("id: {}\n\n", self.position).into()
    }

    fn place(&mut self, name: &str, number: u64) -> Bytes {
        (self.position, self.told) = (number, number);
        frames::place(name, number)
    }
}
