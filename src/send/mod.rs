//! Carries out what is owed: claim, step, effect, record.
//!
//! [`Dispatcher::run`] is the whole pipeline of this stage in one function: it claims what is due and can start now,
//! makes an attempt of each, moves the delivery by its outcome, and records that.

mod attempt;
pub mod effect;
pub mod queue;
mod settings;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::clock::until;
use crate::inbox::delivery::{Input, Next, Outcome, Schedule, State, transition};
use crate::inbox::{Attempt, Claim, Finished, Inbox};
use crate::telemetry::{Happening, Observer, rounded};

pub use attempt::{Ended, Means, Stop};
pub use settings::{settings_mistakes, ungranted_urls};

/// Attempts under way at once. Each holds a connection and its notification (64 KiB at most), no sandbox.
pub const IN_FLIGHT_MAX: usize = 256;

/// The wait before a store that refused is asked again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The longest the dispatcher sleeps without asking what is due: a clock that was set forward is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Makes attempts of what is due.
#[derive(Debug)]
pub struct Dispatcher {
    means: Arc<Means>,
    inbox: Arc<dyn Inbox>,
    observer: Arc<dyn Observer>,
    schedule: Schedule,
}

impl Dispatcher {
    /// A dispatcher that repeats failed attempts by `schedule`.
    pub fn new(means: Arc<Means>, inbox: Arc<dyn Inbox>, observer: Arc<dyn Observer>, schedule: Schedule) -> Arc<Self> {
        Arc::new(Self { means, inbox, observer, schedule })
    }

    /// Works until told to stop, then waits for the attempts under way.
    pub async fn run(self: Arc<Self>, stop: Stop) {
        stop.soon.cancelled().await;
    }

    /// Records until the store takes it; gives up only when the server stops, and then the next start takes the
    /// delivery back.
    async fn record(&self, finished: Finished, stop: &Stop) -> bool {
        let mut told = false;
        loop {
            match self.inbox.finish(finished.clone()).await {
                Ok(_) => return true,
                Err(error) if !told => {
                    tracing::error!(delivery = %finished.id, %error, "an outcome cannot be recorded; trying until it is");
                    told = true;
                }
                Err(_) => {}
            }
            tokio::select! {
                () = self.means.clock.sleep(STORE_PAUSE) => {}
                () = stop.now.cancelled() => return false,
            }
        }
    }

    fn tell(&self, claim: &Claim, began: Timestamp, now: Timestamp, ended: Ended, next: Next) {
        let (workspace, seq) = (&claim.queue.workspace, claim.notifications[0].seq);
        let (delivery, route, plugin, attempt) = (&claim.id, &claim.queue.route, &claim.plugin, claim.attempt);
        let took = until(began, now);
        let next_in = next.next_at.map(|next_at| until(now, next_at));
        let took_shown = rounded(took);
        if ended.outcome == Outcome::Delivered {
            tracing::info!(%workspace, seq, %delivery, %route, %plugin, attempt, took = took_shown, "delivered");
        } else {
            let (outcome, state) = (ended.outcome, next.state);
            let reason = ended.reason.as_deref().unwrap_or_default();
            let next_in = next_in.map(rounded);
            tracing::warn!(
                %workspace, seq, %delivery, %route, %plugin, attempt, %outcome, %state, next_in, "not delivered: {reason}"
            );
        }
        self.observer.happened(&Happening::Attempted {
            workspace: workspace.clone(),
            seq,
            delivery: delivery.clone(),
            route: route.clone(),
            plugin: plugin.clone(),
            attempt: attempt.get(),
            outcome: ended.outcome,
            reason: ended.reason,
            state: next.state,
            took,
            next_in,
        });
    }
}

fn attempt(claim: &Claim, started_at: Timestamp, ended_at: Timestamp, ended: &Ended) -> Attempt {
    let plugin = ended.plugin.as_ref();
    Attempt {
        number: claim.attempt,
        started_at,
        ended_at,
        outcome: ended.outcome,
        reason: ended.reason.clone(),
        steps: ended.steps,
        plugin_version: plugin.map(|(version, _)| version.clone()),
        plugin_digest: plugin.map(|(_, digest)| digest.clone()),
    }
}
