//! A live stream: its begin, what is told, and its end.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::feed::Feed;
use super::refusal::Refusal;
use super::says;
use super::who::Queue;
use crate::inbox::Queues;
use crate::serve::Served;
use crate::serve::auth::Caller;

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

impl fmt::Debug for Live {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Live").field("feed", &self.feed).field("stage", &self.stage).finish_non_exhaustive()
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
        let store = Arc::clone(&served.store) as Arc<dyn Queues>;
        let follow = store.follow_queue(&queue.workspace, &queue.consumer).await?;
        let place = served.lives.begin(&queue).map_err(Refusal::internal)?;
        let over = over(Arc::clone(served), caller.clone(), queue, place.replaced.clone());
        let feed = Feed::new((store, served.clock.clone()), place, follow, (id, progress_token));
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
                says::acknowledged(self.feed.id()).ok()
            }
            Stage::Goes => tokio::select! {
                biased;
                _ = self.over.next() => {
                    self.stage = Stage::Over;
                    says::ended(self.feed.id()).ok()
                }
                piece = self.feed.next() => piece,
            },
            Stage::Over => None,
        }
    }
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
