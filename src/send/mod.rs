//! Carries out what is owed: claim, step, effect, record.
//!
//! [`Dispatcher::run`] is the whole pipeline of this stage in one function: it starts what was claimed as it was written,
//! claims what is due and can start now, and makes an attempt of each. `carry_out` is the life of one attempt: it moves
//! the delivery by its end, and records that.

mod attempt;
mod change;
mod dry;
pub mod effect;
pub mod explain;
pub mod keys;
mod live;
mod notice;
pub mod queue;
pub mod record;
mod refusals;
mod report;
mod rules;
mod settings;
mod spare;
mod tell;
pub mod upgrade;
pub mod wants;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use tokio::task::JoinSet;

use crate::clock::until;
use crate::inbox::book::Admission;
use crate::inbox::delivery::{DESTINATION_DELAY_MAX, End, Input, Next, Outcome, State, transition};
use crate::inbox::{Attempt, Claim, Claimed, DeliveryId, Entry, Finished, InboxError, News, Paused, Want};
use crate::notification::Name;
use crate::route::Decision;
use crate::telemetry::Observer;
use attempt::{Seen, Watch, in_milliseconds};
use dry::sampling::{Samples, Taken};
use keys::Keys;
use notice::{Blocked, Notice};
use upgrade::probation::{Probation, Suspect};

pub use attempt::{Came, Ended, Means, Rest, Stop};
pub use dry::{preview, replay, versions};
pub use live::{Current, Live};
pub use refusals::refusals;
pub use report::Report;
pub use rules::{AGENT_COUNT_MAX, AGENT_PER, book, book_without_plugins};
pub use settings::{settings_mistakes, ungranted};

/// Attempts under way at once. Each holds a connection and its notifications, and no sandbox while it waits.
pub const IN_FLIGHT_MAX: usize = 16_384;

/// The wait before a store that refused is asked again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// The longest the dispatcher sleeps without asking what is due: a clock that was set forward is noticed by then.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// How often it is looked, after a stop, whether all that was handed out is back.
const GIVEN_BACK_EVERY: Duration = Duration::from_millis(20);

/// Makes attempts of what is due.
#[derive(Debug)]
pub struct Dispatcher {
    means: Arc<Means>,
    observer: Arc<dyn Observer>,
    blocked: Blocked,
    samples: Samples,
    probation: Arc<Probation>,
}

/// What one of the dispatcher's own tasks came to.
enum Done {
    /// An attempt ended or rests.
    Attempted,
    /// Something was told.
    Told,
    /// What is due was claimed.
    Claimed(Vec<Claim>),
}

impl Dispatcher {
    /// Has the store and the queues take up the targets that there are.
    ///
    /// # Errors
    /// When the store refuses.
    pub async fn start(means: Arc<Means>, observer: Arc<dyn Observer>) -> Result<Arc<Self>, InboxError> {
        let Current { book, .. } = &*means.live.get();
        let (queues, now) = (Arc::clone(&means.queues), means.clock.now());
        let admission: Arc<dyn Admission> = Arc::clone(&queues) as Arc<dyn Admission>;
        queues.take_up(book);
        let adopted = means.inbox.adopt(Arc::clone(book), Some(admission), now).await?;
        queues.restore(&adopted);
        change::tell_cancelled(&means, &adopted.cancelled).await?;
        let (blocked, samples) = (Blocked::default(), Samples::default());
        let probation = Arc::new(Probation::new(means.clock.clone()));
        Ok(Arc::new(Self { means, observer, blocked, samples, probation }))
    }

    /// Watches the attempts that it makes.
    pub fn probation(&self) -> &Arc<Probation> {
        &self.probation
    }

    /// What attempts follow.
    fn current(&self) -> Arc<Current> {
        self.means.live.get()
    }

    /// What placeholders and lanes are computed from.
    fn keys(&self) -> &Keys {
        &self.means.keys
    }

    /// Works until told to stop, then gives back what has not begun and waits for the attempts under way.
    pub async fn run(self: Arc<Self>, stop: Stop) {
        let Means { queues, inbox, clock, .. } = &*self.means;
        let mut tasks = JoinSet::new();
        let (mut claiming, mut look, mut wake_at) = (false, true, None);
        while !stop.soon.is_cancelled() {
            if look && !claiming {
                let picked = queues.pick();
                (look, wake_at) = (false, picked.wake_at);
                if !picked.wants.is_empty() {
                    claiming = true;
                    tasks.spawn(Arc::clone(&self).claim(picked.wants, stop.clone()));
                }
            }
            let sleep = wake_at.map_or(SLEEP_MAX, |at| until(clock.now(), at).min(SLEEP_MAX));
            tokio::select! {
                () = stop.soon.cancelled() => {}
                news = inbox.news() => self.take(news, &mut tasks, &stop),
                () = queues.changed() => look = true,
                () = clock.sleep(sleep), if !claiming => look = true,
                Some(done) = tasks.join_next() => match done {
                    Ok(Done::Attempted | Done::Told) => {}
                    Ok(Done::Claimed(claims)) => {
                        (claiming, look) = (false, true);
                        self.begin(claims, &mut tasks, &stop);
                    }
                    Err(failed) => {
                        tracing::error!(%failed, "a task of the dispatcher failed");
                        (claiming, look) = (false, true);
                    }
                },
            }
        }
        queues.close();
        self.give_back(tasks, &stop).await;
    }

    /// After a stop: an attempt that is begun now ends at once as interrupted, which gives the claim back.
    async fn give_back(self: Arc<Self>, mut tasks: JoinSet<Done>, stop: &Stop) {
        let Means { queues, inbox, clock, .. } = &*self.means;
        while !tasks.is_empty() || queues.in_flight() > 0 {
            tokio::select! {
                news = inbox.news() => self.take(news, &mut tasks, stop),
                // The store says nothing when it takes back what it let in and did not write.
                () = clock.sleep(GIVEN_BACK_EVERY) => {}
                Some(done) = tasks.join_next() => if let Ok(Done::Claimed(claims)) = done {
                    self.begin(claims, &mut tasks, stop);
                },
                () = stop.now.cancelled(), if tasks.is_empty() => return,
            }
        }
    }

    fn take(self: &Arc<Self>, news: News, tasks: &mut JoinSet<Done>, stop: &Stop) {
        for (queue, at) in &news.due {
            self.means.queues.due(queue, *at);
        }
        if !news.cancelled.is_empty() {
            tasks.spawn(Arc::clone(self).tell_stranded(news.cancelled));
        }
        self.begin(news.claims, tasks, stop);
    }

    fn begin(self: &Arc<Self>, claims: Vec<Claim>, tasks: &mut JoinSet<Done>, stop: &Stop) {
        for claim in claims {
            tasks.spawn(Arc::clone(self).carry_out(claim, stop.clone()));
        }
    }

    /// Claims what was picked. A store that refuses is given a pause.
    async fn claim(self: Arc<Self>, wants: Vec<Want>, stop: Stop) -> Done {
        let Means { queues, inbox, clock, .. } = &*self.means;
        match inbox.claim(clock.now(), wants.clone()).await {
            Ok(Claimed { claims, next_due, moved }) => {
                let mut rest = claims.as_slice();
                for want in &wants {
                    let count = rest.iter().take_while(|claim| claim.queue == want.queue).count();
                    let (of_want, others) = rest.split_at(count);
                    let next_due = next_due.iter().find(|(queue, _)| *queue == want.queue).and_then(|(_, at)| *at);
                    queues.claimed(want, of_want, next_due);
                    rest = others;
                }
                moved.iter().for_each(|moved| self.tell_moved(moved));
                Done::Claimed(claims)
            }
            Err(error) => {
                tracing::error!(%error, "what is due cannot be claimed; trying again");
                wants.iter().for_each(|want| queues.failed(want));
                tokio::select! {
                    () = clock.sleep(STORE_PAUSE) => {}
                    () = stop.soon.cancelled() => {}
                }
                Done::Claimed(Vec::new())
            }
        }
    }

    /// The life of one attempt.
    async fn carry_out(self: Arc<Self>, claim: Claim, stop: Stop) -> Done {
        let now = in_milliseconds(self.means.clock.now());
        let began = claim.begun.as_ref().map_or(now, |begun| begun.started_at);
        // Boxed, each alone: an attempt that waits for its destination holds no room for the writes that follow it.
        let watch = Watch { samples: &self.samples, probation: &self.probation };
        let attempt = Box::pin(self.means.watched(&claim, began, &stop, watch));
        let attempted = AssertUnwindSafe(attempt).catch_unwind().await;
        let failed_inside = |_| (Came::Ended(Ended::inside_the_host(&claim)), Seen::default());
        let (came, seen) = attempted.unwrap_or_else(failed_inside);
        let (next, outcome) = match came {
            Came::Ended(ended) => {
                let outcome = ended.outcome;
                (Box::pin(self.end(&claim, began, ended, &stop)).await, Some(outcome))
            }
            Came::Rests(rest) => (Box::pin(self.rest(&claim, rest, &stop)).await, None),
            Came::Left => (Next { state: State::Waiting, next_at: None }, None),
        };
        self.means.queues.ended(&claim, &next, outcome);
        if let Some(taken) = seen.sampled {
            Box::pin(self.record(&claim, *taken, outcome, &stop)).await;
        }
        if let Some(suspect) = seen.suspect {
            Box::pin(self.judge(&claim, *suspect, &stop)).await;
        }
        Done::Attempted
    }

    /// Keeps a recording of an attempt whose end is durable. It is worth no delay: a stop goes before.
    async fn record(&self, claim: &Claim, taken: Taken, outcome: Option<Outcome>, stop: &Stop) {
        let Means { inbox, clock, .. } = &*self.means;
        let recorded = async {
            let Some(recording) = taken.recording(claim, outcome, clock.now()).await else { return };
            match inbox.record(recording).await {
                Ok(()) => tracing::debug!(delivery = %claim.id, "the attempt is recorded"),
                Err(error) => tracing::debug!(delivery = %claim.id, %error, "an attempt was not recorded"),
            }
        };
        tokio::select! {
            biased;
            () = stop.soon.cancelled() => {}
            () = recorded => {}
        }
    }

    /// Judges an attempt whose end is durable. It is worth no delay: a stop goes before.
    async fn judge(&self, claim: &Claim, suspect: Suspect, stop: &Stop) {
        tokio::select! {
            biased;
            () = stop.soon.cancelled() => {}
            () = self.probation.judge(claim, suspect) => {}
        }
    }

    async fn end(&self, claim: &Claim, began: Timestamp, ended: Ended, stop: &Stop) -> Next {
        let now = self.means.clock.now();
        let end = End {
            outcome: ended.outcome,
            destination_delay: ended.destination_delay,
            attempt: claim.attempt.get(),
            since: claim.since,
            jitter: fastrand::f64(),
            policy: self.means.policy(claim, ended.repeat),
        };
        // A claim is in flight, and every outcome moves a delivery that is.
        let next = transition(State::InFlight, Input::Ended(end), now)
            .unwrap_or(Next { state: State::Retrying, next_at: Some(now) });
        let told = self.notices(claim, &ended, next.state, now);
        let delay = ended.destination_delay.map(|delay| delay.min(DESTINATION_DELAY_MAX));
        let version = claim.memory.as_ref().map_or(0, |memory| memory.version);
        let finished = Finished {
            id: claim.id.clone(),
            fence: claim.fence,
            queue: claim.queue.clone(),
            attempt: attempt(claim, began, now, &ended),
            next,
            reached: ended.reached,
            resume: ended.resume.clone(),
            remember: (ended.remember.clone(), version),
            lanes: self.means.queues.records(claim, delay),
            notices: told.iter().map(|(entry, _)| entry.clone()).collect(),
        };
        let recorded = self.until_taken(&claim.id, stop, || self.means.inbox.finish(finished.clone())).await;
        if let Some(seqs) = recorded {
            self.tell(claim, began, now, ended, next);
            self.tell_notices(claim, told, seqs);
        }
        next
    }

    /// What the host tells the workspace of it.
    fn notices(&self, claim: &Claim, ended: &Ended, state: State, now: Timestamp) -> Vec<(Entry, Vec<Decision>)> {
        // Says nothing about the target.
        if ended.outcome == Outcome::Interrupted {
            return Vec::new();
        }
        let notice = Notice::of(claim, state, ended.reason.as_deref(), &self.blocked);
        let Current { config, catalog, book } = &*self.means.live.get();
        let Some(workspace) = config.workspaces.get(&claim.queue.workspace) else { return Vec::new() };
        let notice = notice.and_then(|notice| notice.entry(workspace, book, now));
        let agent = |plugin: &Name| catalog.get(plugin).is_none_or(|plugin| plugin.manifest().agent);
        let report = ended.report.as_ref();
        let report = report.and_then(|report| report.entry(claim, (workspace, book), agent, now));
        notice.into_iter().chain(report).collect()
    }

    async fn rest(&self, claim: &Claim, rest: Rest, stop: &Stop) -> Next {
        let until = rest.until;
        let next = transition(State::InFlight, Input::Paused { until }, self.means.clock.now())
            .unwrap_or(Next { state: State::Waiting, next_at: Some(until) });
        let is_wait = rest.is_wait;
        let lanes = self.means.queues.records(claim, None);
        let paused = Paused { kept: rest.kept, until, is_wait, resume: rest.resume, lanes };
        if self.until_taken(&claim.id, stop, || self.means.inbox.pause(paused.clone())).await.is_some() {
            self.tell_rest(claim, until, is_wait);
        }
        next
    }

    /// Has the store take something, however often it refuses; gives up only when the server stops, and then the next
    /// start takes the delivery up.
    async fn until_taken<T, F>(&self, delivery: &DeliveryId, stop: &Stop, write: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, InboxError>>,
    {
        let mut told = false;
        loop {
            match write().await {
                Ok(taken) => return Some(taken),
                Err(error @ InboxError::NotHeld(_)) => {
                    tracing::error!(%error, "what an attempt came to is not recorded");
                    return None;
                }
                Err(error) if !told => {
                    tracing::error!(%delivery, %error, "what an attempt came to cannot be recorded; trying until it is");
                    told = true;
                }
                Err(_) => {}
            }
            tokio::select! {
                () = self.means.clock.sleep(STORE_PAUSE) => {}
                () = stop.now.cancelled() => return None,
            }
        }
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

#[cfg(test)]
mod tests;
