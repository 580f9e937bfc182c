//! One push queue followed: listen, get what is pending, then what comes live, for as long as the server runs
//! (push-notifications seed, "Subscriptions and recovery").
//!
//! Nothing is acknowledged before it is durable: as a notification, or in a notice that says why it was refused. Whatever
//! fails begins the whole sequence again, later each time, and never gives up.

mod drain;
mod take;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::clock::{later, until};
use crate::config::Poll;
use crate::fetch::budget::Budget;
use crate::fetch::ledger::Ledger;
use crate::fetch::outbox::ReadError;
use crate::fetch::pace::{again_after, first_wait};
use crate::fetch::poller::failure::Failure;
use crate::fetch::poller::{Handle, Polled, Shared};
use crate::fetch::queue::{EXTENSION, Live, PushQueue};
use crate::inbox::InboxError;
use crate::notification::Name;

/// A stream on which nothing came for so long, no event and no sign of life, is doubted: the queue is looked at beside it, and
/// only if that fails it is opened anew. A server that sends no signs of life is left in peace.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A stream that lasted so long went well: the next wait is short again.
const CALM: Duration = Duration::from_secs(60);

/// The first wait after a failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The first wait after the server ended the stream itself: whoever listens again at once would throw out the other client
/// that may have taken its place.
const FIRST_WAIT_REPLACED: Duration = Duration::from_secs(15);

const REPLACED: &str = "the server ended the stream in good order: another client listens as this consumer, or the server \
                        shuts down; give each client a token of its own";

/// Follows one push queue.
#[derive(Debug)]
pub struct Receiver {
    ledger: Ledger,
    queue: Box<dyn PushQueue>,
    budget: Arc<Budget>,
    random: fastrand::Rng,
    is_known: bool,
    /// Failures in a row since something useful came.
    failures: u32,
    /// Whether the last of them was that the server ended the stream itself.
    is_replaced: bool,
    /// Whether what opened or was got led to nothing: streams ended soon, or what came could not be acknowledged, and neither a
    /// stream has lasted nor anything was acknowledged since.
    is_unsteady: bool,
    /// The ids of the page that was acknowledged last.
    acknowledged: Vec<String>,
    /// When the stream began.
    began_at: Timestamp,
    /// When something came last.
    heard_at: Timestamp,
    /// When the queue was looked at last.
    looked_at: Timestamp,
    /// Ids of notices about events that cannot be acknowledged, which come again and again.
    told: BTreeSet<String>,
}

/// Why a sequence ended.
#[derive(Debug)]
enum End {
    /// It was told to stop, or there is no such connector any more.
    Stopped,
    Failed(Failure),
}

impl From<InboxError> for End {
    fn from(error: InboxError) -> Self {
        Self::Failed(Failure::Inbox(error))
    }
}

/// Why the receiver wakes.
#[derive(Debug)]
enum Woken {
    Live(Live),
    /// It is time to look at the queue.
    Due,
    /// A person asked.
    Asked(oneshot::Sender<Polled>),
    /// There is another configuration.
    Configured,
}

impl Receiver {
    /// A receiver of the push queue of `source` of `workspace`; none when there is no such connector, or it has no queue.
    /// `budget` is the workspace's.
    pub fn new(
        shared: Shared,
        workspace: &Name,
        source: &Name,
        queue: Box<dyn PushQueue>,
        budget: Arc<Budget>,
    ) -> Option<Self> {
        let ledger = Ledger::new(shared, workspace, source);
        let config = ledger.config();
        ledger.place(&config)?.1.push.as_ref()?;
        let now = ledger.now();
        Some(Self {
            ledger,
            queue,
            budget,
            random: fastrand::Rng::new(),
            is_known: false,
            failures: 0,
            is_replaced: false,
            is_unsteady: false,
            acknowledged: Vec::new(),
            began_at: now,
            heard_at: now,
            looked_at: now,
            told: BTreeSet::new(),
        })
    }

    /// The way to it while it runs.
    pub fn handle(&self) -> Handle {
        self.ledger.desk.handle(&self.ledger.workspace, &self.ledger.source, &self.budget)
    }

    /// Follows the queue until it is told to stop. A request under way is given up then, a write is finished, and the
    /// connection is closed.
    pub async fn run(mut self, stop: CancellationToken) {
        // It ends when told to.
        let _ = self.follow(&stop).await;
        self.queue.close().await;
    }

    /// Gets what is pending once, as a person asks for, and closes the connection.
    pub async fn once(mut self, stop: &CancellationToken) -> Option<Polled> {
        let polled = self.look_for_a_person(stop).await;
        self.queue.close().await;
        polled.ok()
    }

    async fn follow(&mut self, stop: &CancellationToken) -> Result<Infallible, End> {
        let others = self.ledger.shared.pollers.saturating_sub(1);
        let wait = first_wait(others, &self.poll()?, self.random.f64());
        let mut due = later(self.ledger.now(), wait);
        loop {
            self.rest(due, stop).await?;
            let Err(end) = self.session(stop).await;
            let End::Failed(failure) = end else { return Err(end) };
            due = self.failed(&failure).await?;
        }
    }

    /// Waits for the next try. Whoever asks meanwhile has the queue looked at.
    async fn rest(&mut self, due: Timestamp, stop: &CancellationToken) -> Result<(), End> {
        self.ledger.desk.update(|status| status.next_at = Some(due));
        loop {
            let wait = until(self.ledger.now(), due);
            let Ledger { shared, desk, .. } = &mut self.ledger;
            let woken = async {
                tokio::select! {
                    biased;
                    Some(reply) = desk.commands.recv() => Some(reply),
                    () = shared.clock.sleep(wait) => None,
                }
            };
            match unless_stopped(stop, woken).await? {
                None => return self.poll().map(drop),
                Some(reply) => {
                    let polled = self.look_for_a_person(stop).await?;
                    // Whoever asked may have gone.
                    let _ = reply.send(polled);
                }
            }
        }
    }

    /// The whole sequence, once.
    async fn session(&mut self, stop: &CancellationToken) -> Result<Infallible, End> {
        self.know().await?;
        unless_stopped(stop, self.queue.listen()).await?.map_err(refused)?;
        (self.began_at, self.heard_at) = (self.ledger.now(), self.ledger.now());
        self.drain(stop).await?;
        loop {
            match self.woken(stop).await? {
                Woken::Live(Live::Event(params)) => self.take_live(params, stop).await?,
                Woken::Live(Live::Alive) => self.heard_at = self.ledger.now(),
                Woken::Live(Live::Overflow) | Woken::Due => drop(self.drain(stop).await?),
                Woken::Live(Live::Closed) => return Err(self.replaced()),
                Woken::Live(Live::Lost(error)) => return Err(self.lost(error)),
                Woken::Asked(reply) => {
                    let polled = self.look_for_a_person(stop).await?;
                    // Whoever asked may have gone. A failure was told; if the stream is gone too, it says so itself.
                    let _ = reply.send(polled);
                }
                Woken::Configured => drop(self.poll()?),
            }
        }
    }

    async fn woken(&mut self, stop: &CancellationToken) -> Result<Woken, End> {
        let due = later(self.heard_at, SILENCE_MAX).min(later(self.looked_at, self.poll()?.ceiling));
        self.ledger.desk.update(|status| status.next_at = Some(due));
        let wait = until(self.ledger.now(), due);
        let (shared, desk) = (&mut self.ledger.shared, &mut self.ledger.desk);
        let (clock, configured) = (&shared.clock, &mut shared.config);
        let configured = async {
            if configured.changed().await.is_err() {
                std::future::pending().await
            }
        };
        let woken = async {
            tokio::select! {
                biased;
                Some(reply) = desk.commands.recv() => Woken::Asked(reply),
                live = self.queue.next() => Woken::Live(live),
                () = clock.sleep(wait) => Woken::Due,
                () = configured => Woken::Configured,
            }
        };
        unless_stopped(stop, woken).await
    }

    /// Takes up what the inbox keeps, once.
    async fn know(&mut self) -> Result<(), End> {
        if !self.is_known {
            self.ledger.look_up().await?;
            self.failures = self.ledger.reading.failures;
            self.is_known = true;
        }
        Ok(())
    }

    /// The connector's own times, while there is such a connector with a queue.
    fn poll(&self) -> Result<Poll, End> {
        let config = self.ledger.config();
        let connector = self.ledger.place(&config).map(|(_, connector)| connector);
        connector.filter(|connector| connector.push.is_some()).map(|connector| connector.poll).ok_or(End::Stopped)
    }

    /// What came was of use: the next wait is short. That another client takes turns with this one is over only once a
    /// stream has lasted.
    fn is_of_use(&mut self) {
        if !self.is_replaced {
            (self.failures, self.is_unsteady) = (0, false);
        }
    }

    /// A stream that has lasted is of use by itself.
    fn notice_calm(&mut self) {
        if later(self.began_at, CALM) <= self.ledger.now() {
            (self.failures, self.is_unsteady, self.is_replaced) = (0, false, false);
        }
    }

    /// The server ended the stream itself.
    fn replaced(&mut self) -> End {
        (self.is_replaced, self.is_unsteady) = (true, true);
        End::Failed(Failure::Queue(REPLACED))
    }

    /// The stream is gone.
    fn lost(&mut self, error: ReadError) -> End {
        self.notice_calm();
        self.is_unsteady = true;
        refused(error)
    }

    /// Keeps and tells a failure; returns when the next try is due.
    async fn failed(&mut self, failure: &Failure) -> Result<Timestamp, End> {
        let config = self.ledger.config();
        let (workspace, connector) = self.ledger.place(&config).ok_or(End::Stopped)?;
        self.failures = self.failures.saturating_add(1);
        let first = if self.is_replaced { FIRST_WAIT_REPLACED } else { FIRST_WAIT };
        let ceiling = connector.poll.ceiling;
        let failures = if failure.is_signed_out() { u32::MAX } else { self.failures };
        let wait = again_after((first, ceiling), failures, failure.retry_after(), self.random.f64());
        Ok(self.ledger.failed(failure, (self.failures, wait), workspace).await)
    }
}

/// What a future comes to, unless it is told to stop.
async fn unless_stopped<T>(stop: &CancellationToken, future: impl Future<Output = T>) -> Result<T, End> {
    stop.run_until_cancelled(future).await.ok_or(End::Stopped)
}

/// The words of a server that does not do what is asked, with what to do.
fn refused(error: ReadError) -> End {
    let told = |message: &str, what: &str| format!("{what} (the server said: {message})");
    let error = match error {
        ReadError::Refused { code: code @ -32601, message } => {
            let what = format!(
                "the server does not know the extension {EXTENSION}: update it, or declare its outbox by `resource` in place \
                 of `push`"
            );
            ReadError::Refused { code, message: told(&message, &what) }
        }
        ReadError::Refused { code: code @ (-32003 | -32021), message } => {
            let what = format!(
                "the server did not see that Switchbell speaks {EXTENSION}, which every request says in its `_meta`: see that \
                 nothing between them drops it"
            );
            ReadError::Refused { code, message: told(&message, &what) }
        }
        ReadError::Refused { code: code @ -32602, message } => {
            let what = "the server finds the request wrong; it may speak another draft of the extension: update it";
            ReadError::Refused { code, message: told(&message, what) }
        }
        error => error,
    };
    End::Failed(Failure::Read(error))
}
