//! The scheduler: which queue may start how many attempts now.
//!
//! A queue is what a target of a route is owed. It starts attempts when something of it is due, all its lanes have room
//! and pace, and it has not its share of the process. Nothing here is durable: the store says what is due, and keeps what
//! lanes have seen ([`LaneRecord`]).
//!
//! Nobody scans. A queue that is due stands in its workspace's ring, one that a lane keeps waits at that lane until it is
//! told to try, one that has its share waits until others end, and the rest is moved by time; so what a pick costs depends
//! on what can start, not on what is there.
//!
//! - `window`: a lane's pace; `lane`: its limits, pauses and breaker;
//! - `target`: a queue; `share`: what it may have of the process;
//! - `state`: where each queue stands; `pick`: who goes next; `slots` and `effects`: attempts under way;
//! - `take_up`: configuration and what the store knew; `look`: what people see of lanes.

mod effects;
mod lane;
mod look;
mod pick;
mod share;
mod slots;
mod state;
mod take_up;
mod target;
mod window;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::clock::{Clock, until};
use crate::inbox::book::{Admission, Book, QueueKey};
use crate::inbox::delivery::{Next, Outcome};
use crate::inbox::{Adopted, Claim, DeliveryId, LaneRecord, Want};
use effects::Wait;
use state::State;

pub use look::LaneView;
pub use pick::{PICK_MOST, PICK_QUEUE_MOST};
pub use target::SUBJECTS_MAX;

/// The longest an effect sleeps without asking again: a clock that was set forward is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// What to claim now.
#[derive(Clone, Debug, Default)]
pub struct Picked {
    /// From whom, and how much. Each holds its slots until [`Queues::claimed`] or [`Queues::failed`].
    pub wants: Vec<Want>,
    /// When time alone lets more start; now if one pick was not enough.
    pub wake_at: Option<Timestamp>,
}

/// Who may start now. Shared by the dispatcher and, as [`Admission`], by the store.
pub struct Queues {
    clock: Clock,
    state: Mutex<State>,
    changed: Notify,
}

impl fmt::Debug for Queues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Queues").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl Queues {
    /// `attempts_max`: attempts under way at once in the whole process. A queue alone gets a quarter of them and 128 at
    /// most, a workspace
    /// half.
    pub fn new(clock: Clock, attempts_max: usize) -> Arc<Self> {
        let attempts_max = u32::try_from(attempts_max).unwrap_or(u32::MAX);
        Arc::new(Self { clock, state: Mutex::new(State::new(attempts_max)), changed: Notify::new() })
    }

    /// Takes up the targets of a book, at the start and after each reload: before the store adopts it, so that no news of
    /// a target comes before its lanes are known. What is in flight, due, paused and paced stays, by
    /// [`QueueKey`] and [`LaneKey`](crate::inbox::book::LaneKey).
    pub fn take_up(&self, book: &Book) {
        self.with(|state, now| state.take_up(book, now));
    }

    /// What the store knew: due queues, heads of strict queues, lane records.
    pub fn restore(&self, adopted: &Adopted) {
        self.with(|state, now| state.restore(adopted, now));
    }

    /// Something of this queue is due then, at the earliest.
    pub fn due(&self, queue: &QueueKey, at: Timestamp) {
        self.with(|state, now| state.due(queue, at, now));
    }

    /// A person took this delivery away from its queue: a strict queue that waited for it goes on.
    pub fn left(&self, queue: &QueueKey, delivery: &DeliveryId) {
        self.with(|state, now| state.left(queue, delivery.number, now));
    }

    /// What to claim now, at most [`PICK_MOST`] attempts in all and [`PICK_QUEUE_MOST`] of one queue, going round the
    /// workspaces and their queues. Each want holds its slots until [`Queues::claimed`] or [`Queues::failed`] says what
    /// came of it.
    pub fn pick(&self) -> Picked {
        self.with(State::pick)
    }

    /// What a claim brought: unused slots are given back, and `next_due` replaces what was known of the queue, except what
    /// came since the pick.
    pub fn claimed(&self, want: &Want, claims: &[Claim], next_due: Option<Timestamp>) {
        self.with(|state, now| state.claimed(want, claims, next_due, now));
    }

    /// A claim call failed: its slots are given back, and the queue stays due.
    pub fn failed(&self, want: &Want) {
        self.with(|state, now| state.failed(want, now));
    }

    /// Until when the destination of this attempt asked to be left alone, if it did after the attempt was claimed. Its
    /// next effect would wait so long.
    pub fn paused_until(&self, claim: &Claim) -> Option<Timestamp> {
        self.with(|state, now| state.paused_until(claim, now))
    }

    /// Waits until no lane of the attempt is paused by its destination and their pace lets one more effect out, counts it,
    /// and returns; at once where nothing keeps it. The first effect of an attempt uses what the pick or the admission
    /// reserved. Further ones come before new claims.
    pub async fn effect(&self, claim: &Claim) {
        let _waiting = Waiting { queues: self, claim };
        while let Some(Wait { until: at, bell }) = self.with(|state, now| state.effect(claim, now)) {
            let wait = at.map_or(SLEEP_MAX, |at| until(self.clock.now(), at));
            tokio::select! {
                () = bell.notified() => {}
                // A millisecond more than nothing: a timer may fire a little early.
                () = self.clock.sleep(wait.clamp(Duration::from_millis(1), SLEEP_MAX)) => {}
            }
        }
    }

    /// What of an attempt's lanes must be kept, asked before the store records its end. The destination's `delay` pauses
    /// all of them, for at most [`DESTINATION_DELAY_MAX`](crate::inbox::delivery::DESTINATION_DELAY_MAX). Only lanes with a
    /// pace or a pause have something to keep.
    pub fn records(&self, claim: &Claim, delay: Option<Duration>) -> Vec<LaneRecord> {
        self.with(|state, now| state.records(claim, delay, now))
    }

    /// An attempt ended or rests, and that is recorded: its slots are given back, as is the room for an effect it never
    /// made. `next` says when the same delivery is due again; a strict queue waits for it. `outcome` is none for an attempt
    /// that only rests. After five `retry` ends in a row a lane lets one attempt at a time through, with waits between
    /// them that double from 1 s to 60 s, until one is delivered, rejected or needs a person; a delivery that is alone in
    /// its lane never waits longer than `next` says.
    pub fn ended(&self, claim: &Claim, next: &Next, outcome: Option<Outcome>) {
        self.with(|state, now| state.ended(claim, next, outcome, now));
    }

    /// Ready when [`Queues::pick`] may find more than before. One task waits.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Admits nothing any more and picks nothing.
    pub fn close(&self) {
        self.with(|state, _| state.closed = true);
    }

    /// Attempts under way, those that are admitted and not yet begun included.
    pub fn in_flight(&self) -> usize {
        self.with(|state, _| state.in_flight())
    }

    fn with<T>(&self, work: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that time does not seem to go back.
        let now = self.clock.now();
        let result = work(&mut state, now);
        let has_news = std::mem::take(&mut state.has_news) && !state.closed;
        drop(state);
        if has_news {
            self.changed.notify_one();
        }
        result
    }
}

impl Admission for Queues {
    fn admit(&self, queue: &QueueKey, subject: Option<&str>) -> bool {
        self.with(|state, now| state.admit(queue, subject, now))
    }

    fn give_back(&self, queue: &QueueKey, subject: Option<&str>) {
        self.with(|state, now| state.give_back(queue, subject, now));
    }
}

/// Leaves the line when the one who waits for an effect stops waiting.
struct Waiting<'a> {
    queues: &'a Queues,
    claim: &'a Claim,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.queues.with(|state, _| state.stop_waiting(&self.claim.id));
    }
}

#[cfg(test)]
mod tests;
