//! Where a live stream has its events from.
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
use serde_json::value::RawValue;
use tokio::sync::watch;

use super::event::EventJson;
use super::lives::Place;
use super::says;
use super::who::Queue;
use crate::clock::Clock;
use crate::inbox::{InboxError, Queues};

/// How often a stream says something even if nothing joins.
const BEAT: Duration = Duration::from_secs(15);

/// Events that are read at once for one stream.
const AT_ONCE: u32 = 16;

/// Bytes of frames that are kept for one stream; one frame may go beyond.
const BYTES_MAX: usize = 128 << 10;

/// What joins a queue, as it joins, in frames.
pub(super) struct Feed {
    store: Arc<dyn Queues>,
    clock: Clock,
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

impl fmt::Debug for Feed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Feed").field("place", &self.place).field("position", &self.position).finish_non_exhaustive()
    }
}

impl Feed {
    /// What joins behind the number that is followed by now, in answer to the request with this id and token of progress.
    pub(super) fn new(
        (store, clock): (Arc<dyn Queues>, Clock),
        place: Place,
        mut follow: watch::Receiver<u64>,
        (id, progress_token): (Box<RawValue>, Option<Box<RawValue>>),
    ) -> Self {
        let position = *follow.borrow_and_update();
        Self {
            position,
            beat: after(&clock),
            store,
            clock,
            place,
            id,
            progress_token,
            beats: 0,
            follow,
            read: VecDeque::new(),
            acknowledgements: 0,
        }
    }

    /// The id of the request, as it was written.
    pub(super) fn id(&self) -> &RawValue {
        &self.id
    }

    /// The next frame: an event, or a sign of life. None when it cannot go on.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
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
                    self.beat = after(&self.clock);
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
        let pending = self.store.pending(workspace, consumer, self.position, AT_ONCE).await;
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

fn after(clock: &Clock) -> BoxFuture<'static, ()> {
    let clock = clock.clone();
    Box::pin(async move { clock.sleep(BEAT).await })
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use jiff::Timestamp;
    use serde_json::Value;

    use super::*;
    use crate::inbox::sqlite::SqliteInbox;
    use crate::inbox::{Ended, Entry, Inbox as _, Intake};
    use crate::notification::{Event, Level, Name};
    use crate::serve::mcp::push::lives::Lives;

    struct Stage {
        _folder: tempfile::TempDir,
        store: Arc<SqliteInbox>,
        clock: Clock,
        lives: Lives,
        queue: Queue,
    }

    impl Stage {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = Clock::manual(Timestamp::UNIX_EPOCH);
            let store = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), clock.now()).unwrap());
            let queue = Queue { workspace: "acme".parse().unwrap(), consumer: "triage".parse().unwrap() };
            Self { _folder: folder, store, clock, lives: Lives::default(), queue }
        }

        async fn feed(&self) -> Feed {
            let follow = self.store.follow_queue(&self.queue.workspace, &self.queue.consumer).await.unwrap();
            let place = self.lives.begin(&self.queue).unwrap();
            let id = RawValue::from_string("1".to_owned()).unwrap();
            Feed::new((Arc::clone(&self.store) as Arc<dyn Queues>, self.clock.clone()), place, follow, (id, None))
        }

        async fn join(&self, ids: &[u32], data: &str) {
            let source: Name = "crm".parse().unwrap();
            let entry = |id: &u32| Entry {
                event: Event {
                    event_id: id.to_string(),
                    name: "a".to_owned(),
                    timestamp: self.clock.now(),
                    level: Level::Info,
                    subject: None,
                    title: "a".to_owned(),
                    body: None,
                    link: None,
                    data: data.to_owned(),
                    content: None,
                },
                effective_level: Level::Info,
                owed: Vec::new(),
                consumers: vec![self.queue.consumer.clone()],
            };
            let intake = Intake {
                workspace: self.queue.workspace.clone(),
                source,
                received_at: self.clock.now(),
                is_first: false,
                entries: ids.iter().map(entry).collect(),
                notices: Vec::new(),
                cursor: None,
                ended: Ended::Answered { revision: None, is_backlog: false },
            };
            self.store.accept(intake).await.unwrap();
        }

        async fn acknowledge(&self, ids: &[u32]) {
            let Queue { workspace, consumer } = &self.queue;
            let ids = ids.iter().map(|id| format!("acme:crm:{id}")).collect();
            self.store.consume(workspace, consumer, ids, self.clock.now()).await.unwrap();
            self.lives.acknowledged(&self.queue);
        }
    }

    /// The id of the event that a feed tells next.
    async fn told(feed: &mut Feed) -> u32 {
        let frame = feed.next().await.unwrap();
        let text = std::str::from_utf8(&frame).unwrap().strip_prefix("event: message\ndata: ").unwrap();
        let message: Value = serde_json::from_str(text).unwrap();
        let id = message["params"]["event"]["eventId"].as_str().unwrap();
        id.strip_prefix("acme:crm:").unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn what_was_read_already_and_is_acknowledged_then_is_not_told() {
        let stage = Stage::new();
        let mut feed = stage.feed().await;
        stage.join(&[1, 2, 3, 4, 5], "{}").await;
        assert_eq!((told(&mut feed).await, feed.read.len()), (1, 4));
        stage.acknowledge(&[1, 3, 5]).await;
        assert_eq!(told(&mut feed).await, 2);
        assert_eq!(told(&mut feed).await, 4);
        stage.join(&[6], "{}").await;
        assert_eq!(told(&mut feed).await, 6);
        stage.join(&[7], "{}").await;
        stage.acknowledge(&[2, 4, 6, 7]).await;
        stage.join(&[8], "{}").await;
        assert_eq!(told(&mut feed).await, 8);
        assert!(feed.next().now_or_never().is_none(), "nothing is left");
    }

    #[tokio::test]
    async fn a_stream_holds_few_events_however_many_wait() {
        let stage = Stage::new();
        let mut feed = stage.feed().await;
        let ids: Vec<u32> = (0..40).collect();
        stage.join(&ids, "{}").await;
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(60_000));
        stage.join(&[40, 41, 42, 43, 44, 45], &large).await;
        for expected in 0..46 {
            assert_eq!(told(&mut feed).await, expected);
            let bytes: usize = feed.read.iter().map(|(_, frame)| frame.len()).sum();
            assert!(feed.read.len() < AT_ONCE as usize && bytes <= BYTES_MAX, "{} {bytes}", feed.read.len());
        }
    }
}
