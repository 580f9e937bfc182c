//! A live stream: what joins a consumer's queue, as it joins.
//!
//! It stands at the number of a notification and reads what lies behind from the queue itself, so that nothing is kept for it
//! meanwhile, and what was acknowledged is not told. A reader that is too slow is cut off by its connection
//! (`serve/connection.rs`), and gets the rest as what is pending.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::event::EventJson;
use super::lives::Place;
use super::refusal::Refusal;
use super::says;
use super::who::Queue;
use crate::inbox::InboxError;
use crate::serve::Served;
use crate::serve::auth::Caller;

/// How often a stream says something even if nothing joins.
const BEAT: Duration = Duration::from_secs(15);

/// Events that are read at once for one stream.
const AT_ONCE: u32 = 16;

/// Bytes of frames that are kept for one stream; one frame may go beyond.
const BYTES_MAX: usize = 128 << 10;

/// A live stream.
pub(super) struct Live {
    /// Ready when it is over. Looked at only when it is woken itself, since it is asked with every event.
    over: FuturesUnordered<BoxFuture<'static, ()>>,
    stage: Stage,
    feed: Feed,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Begins,
    Goes,
    Over,
}

/// Where the events come from.
struct Feed {
    served: Arc<Served>,
    place: Place,
    /// The id of the request, as it was written.
    id: Box<RawValue>,
    /// What the request names for signs of life.
    progress_token: Option<Box<RawValue>>,
    beats: u64,
    beat: BoxFuture<'static, ()>,
    follow: watch::Receiver<u64>,
    /// The number of the notification up to which nothing is left to be told.
    position: u64,
    /// What was read and is to be told, each with its number.
    read: VecDeque<(u64, Bytes)>,
    /// How many acknowledgements there were before it was read.
    acknowledgements: u64,
}

impl fmt::Debug for Live {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Live").field("place", &self.feed.place).field("stage", &self.stage).finish_non_exhaustive()
    }
}

impl Live {
    /// A stream of what joins a queue from now on, in answer to the request with this id. The one before ends.
    pub(super) async fn begin(
        served: &Arc<Served>,
        (caller, queue): (&Caller, Queue),
        id: Box<RawValue>,
        progress_token: Option<Box<RawValue>>,
    ) -> Result<Self, Refusal> {
        let mut follow = served.store.follow_queue(&queue.workspace, &queue.consumer).await?;
        let position = *follow.borrow_and_update();
        let place = served.lives.begin(&queue).map_err(Refusal::internal)?;
        let over = over(Arc::clone(served), caller.clone(), queue, place.replaced.clone());
        let feed = Feed {
            beat: after(served),
            served: Arc::clone(served),
            place,
            id,
            progress_token,
            beats: 0,
            follow,
            position,
            read: VecDeque::new(),
            acknowledgements: 0,
        };
        let over: BoxFuture<'static, ()> = Box::pin(over);
        Ok(Self { over: FuturesUnordered::from_iter([over]), stage: Stage::Begins, feed })
    }

    /// Its messages, as server-sent events.
    pub(super) fn pieces(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(self, async |mut live| {
            let piece = live.next().await?;
            Some((piece, live))
        })
    }

    /// The next message; none at the end. A stream that cannot go on ends without a result, so that its reader begins again.
    async fn next(&mut self) -> Option<Bytes> {
        match self.stage {
            Stage::Begins => {
                self.stage = Stage::Goes;
                says::acknowledged(&self.feed.id).ok()
            }
            Stage::Goes => tokio::select! {
                biased;
                _ = self.over.next() => {
                    self.stage = Stage::Over;
                    says::ended(&self.feed.id).ok()
                }
                piece = self.feed.next() => piece,
            },
            Stage::Over => None,
        }
    }
}

impl Feed {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // What was acknowledged since it was read is not told any more.
            if self.acknowledgements != self.place.acknowledgements() {
                self.read.clear();
            }
            if let Some((seq, frame)) = self.read.pop_front() {
                self.position = seq;
                return Some(frame);
            }
            let last = *self.follow.borrow_and_update();
            if last > self.position {
                match self.read(last).await {
                    Ok(()) => continue,
                    Err(why) => {
                        let Queue { workspace, consumer } = &self.place.queue;
                        tracing::warn!(%workspace, %consumer, why, "a consumer that is told live must begin again");
                        return None;
                    }
                }
            }
            tokio::select! {
                // It fails when the store is gone.
                changed = self.follow.changed() => changed.ok()?,
                () = &mut self.beat => {
                    self.beat = after(&self.served);
                    self.beats += 1;
                    return says::alive(self.progress_token.as_deref(), self.beats).ok();
                }
            }
        }
    }

    /// Reads on; `last` is the number of what joined last.
    async fn read(&mut self, last: u64) -> Result<(), String> {
        let Queue { workspace, consumer } = &self.place.queue;
        self.acknowledgements = self.place.acknowledgements();
        let pending = self.served.store.pending(workspace, consumer, self.position, AT_ONCE).await;
        let pending = pending.map_err(|error: InboxError| error.to_string())?;
        let mut bytes = 0;
        for notification in &pending.items {
            let frame = says::event(&self.id, EventJson::from(notification)).map_err(|error| error.to_string())?;
            bytes += frame.len();
            if bytes > BYTES_MAX && !self.read.is_empty() {
                break;
            }
            self.read.push_back((notification.seq, frame));
        }
        if self.read.is_empty() {
            self.position = last;
        }
        Ok(())
    }
}

fn after(served: &Served) -> BoxFuture<'static, ()> {
    let clock = served.clock.clone();
    Box::pin(async move { clock.sleep(BEAT).await })
}

/// Ready when a consumer is to be told no more by this stream: another took its place, the token is no good any more, the
/// workspace's file has the consumer no more, or the server stops.
async fn over(served: Arc<Served>, caller: Caller, queue: Queue, replaced: CancellationToken) {
    let mut config = served.config.clone();
    tokio::select! {
        () = replaced.cancelled() => {}
        () = served.stop.cancelled() => {}
        () = served.gate.ended(&caller) => {}
        // It fails when the server stops.
        _ = config.wait_for(|config| !queue.is_in(config)) => {}
    }
}
