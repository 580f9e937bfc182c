//! One connector's loop: wait, read, judge, decide, write, tell.
//!
//! The position moves only with what was written, and nothing is told before it is durable. Whatever fails is tried
//! again, later each time, and never given up.

#[cfg(test)]
mod configured_tests;
pub(super) mod failure;
#[cfg(test)]
mod protocol_tests;
#[cfg(test)]
pub(super) mod stage_for_tests;
pub(super) mod status;
#[cfg(test)]
pub(super) mod store_for_tests;
mod take;
mod tally;
mod tell;
#[cfg(test)]
mod tests;
mod turn;

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, later, until};
use crate::config::{Config, Poll};
use crate::fetch::budget::Budget;
use crate::fetch::ledger::Ledger;
use crate::fetch::outbox::Outbox;
use crate::fetch::pace::first_wait;
use crate::inbox::Inbox;
use crate::notification::Name;
use crate::telemetry::Observer;
use failure::Failure;
pub use status::{Handle, Polled, State, Status};
use tally::Tally;

/// What the pollers of one server share.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The configuration that holds now: each turn follows it.
    pub config: watch::Receiver<Arc<Config>>,
    /// Where events go.
    pub inbox: Arc<dyn Inbox>,
    /// Tells the time.
    pub clock: Clock,
    /// Who is told.
    pub observer: Arc<dyn Observer>,
    /// How many pollers start together.
    pub pollers: usize,
}

/// Polls one outbox.
#[derive(Debug)]
pub struct Poller {
    ledger: Ledger,
    resource: String,
    /// How it is polled, as it was looked at last.
    poll: Poll,
    outbox: Box<dyn Outbox>,
    budget: Arc<Budget>,
    random: fastrand::Rng,
    position: Position,
    /// Reads in a row that brought nothing new.
    empty: u32,
    /// Asked for in one read: fewer than configured while answers are too large.
    events_asked: u32,
    /// Reads in a row that failed because of the position.
    lost: u32,
    /// When reading was started anew, if no read after a cursor has worked since.
    anew_at: Option<Timestamp>,
    /// A hint is heeded from here on.
    hints_from: Timestamp,
    tally: Tally,
}

/// Where the next read starts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    /// The inbox could not say yet.
    Unknown,
    /// The outbox was never read.
    Start,
    /// After this cursor.
    After(String),
}

/// Why a turn begins.
#[derive(Debug)]
enum Cause {
    /// Its time has come.
    Due,
    /// The server said that the outbox changed.
    Hint,
    /// A person asked.
    Asked(oneshot::Sender<Polled>),
}

impl Poller {
    /// A poller of the outbox that `source` of `workspace` declares; none when there is no such connector, or it
    /// declares no outbox. `budget` is the workspace's.
    pub fn new(
        shared: Shared,
        workspace: &Name,
        source: &Name,
        outbox: Box<dyn Outbox>,
        budget: Arc<Budget>,
    ) -> Option<Self> {
        let ledger = Ledger::new(shared, workspace, source);
        let config = ledger.config();
        let (_, connector) = ledger.place(&config)?;
        Some(Self {
            resource: connector.outbox.clone()?,
            events_asked: connector.poll.events_max,
            poll: connector.poll,
            ledger,
            outbox,
            budget,
            random: fastrand::Rng::new(),
            position: Position::Unknown,
            empty: 0,
            lost: 0,
            anew_at: None,
            hints_from: Timestamp::MIN,
            tally: Tally::default(),
        })
    }

    /// The way to it while it runs.
    pub fn handle(&self) -> Handle {
        self.ledger.desk.handle(&self.ledger.workspace, &self.ledger.source, &self.budget)
    }

    /// Reads until it is told to stop. A read under way is given up then, a write is finished, and the connection is
    /// closed.
    pub async fn run(mut self, stop: CancellationToken) {
        self.poll(&stop).await;
        self.outbox.close().await;
    }

    /// Reads once, as a person asks for, and closes the connection.
    pub async fn once(mut self, stop: &CancellationToken) -> Option<Polled> {
        let (reply, polled) = oneshot::channel();
        self.turn(Cause::Asked(reply), stop).await?;
        self.outbox.close().await;
        polled.await.ok()
    }

    /// Ends, with nothing, when told to stop.
    async fn poll(&mut self, stop: &CancellationToken) -> Option<()> {
        let mut due = self.first_due(stop).await?;
        loop {
            self.ledger.desk.update(|status| status.next_at = Some(due));
            due = match stop.run_until_cancelled(self.cause(due)).await? {
                Some(cause) => self.turn(cause, stop).await?,
                None => self.follow(due)?,
            };
        }
    }

    async fn first_due(&mut self, stop: &CancellationToken) -> Option<Timestamp> {
        // A failure shows in the turn that follows.
        let _ = stop.run_until_cancelled(self.find_position()).await?;
        let random = self.random.f64();
        let config = self.config();
        let (_, connector) = self.ledger.place(&config)?;
        Some(later(self.now(), first_wait(self.ledger.shared.pollers.saturating_sub(1), &connector.poll, random)))
    }

    /// The configuration that holds now.
    fn config(&self) -> Arc<Config> {
        self.ledger.config()
    }

    /// When the next turn is due in a configuration that has just changed: a shorter wait counts at once. None when it has
    /// no such connector any more.
    fn follow(&mut self, due: Timestamp) -> Option<Timestamp> {
        let config = self.config();
        let (_, connector) = self.ledger.place(&config)?;
        let before = std::mem::replace(&mut self.poll, connector.poll);
        self.events_asked = self.events_asked.min(connector.poll.events_max);
        // What waits after a failure may do so because its server asked for it.
        let is_sooner = connector.poll.base < before.base && self.ledger.reading.failures == 0;
        Some(if is_sooner { due.min(later(self.now(), connector.poll.base)) } else { due })
    }

    /// Waits for what makes the next turn begin, or for another configuration. A hint does not shorten the wait after a
    /// failure.
    async fn cause(&mut self, due: Timestamp) -> Option<Cause> {
        let wait = until(self.now(), due);
        let hints_count = self.ledger.reading.failures == 0;
        let (clock, quiet) = (&self.ledger.shared.clock, until(self.now(), self.hints_from));
        let hint = async {
            clock.sleep(quiet).await;
            self.outbox.changed().await;
        };
        let configured = &mut self.ledger.shared.config;
        let configured = async {
            if configured.changed().await.is_err() {
                std::future::pending().await
            }
        };
        tokio::select! {
            biased;
            Some(reply) = self.ledger.desk.commands.recv() => Some(Cause::Asked(reply)),
            () = clock.sleep(wait) => Some(Cause::Due),
            () = configured => None,
            () = hint, if hints_count => Some(Cause::Hint),
        }
    }

    async fn find_position(&mut self) -> Result<(), Failure> {
        if self.position == Position::Unknown {
            self.ledger.look_up().await.map_err(Failure::Inbox)?;
            self.position = self.ledger.reading.cursor.clone().map_or(Position::Start, Position::After);
        }
        Ok(())
    }

    fn now(&self) -> Timestamp {
        self.ledger.now()
    }
}
