//! One connector's loop: wait, read, judge, decide, write, tell.
//!
//! The position moves only with what was written, and nothing is told before it is durable. Whatever fails is tried
//! again, later each time, and never given up.

mod failure;
#[cfg(test)]
mod stage_for_tests;
mod tell;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, later, until};
use crate::config::{Config, Connector, Workspace};
use crate::fetch::address::{self, Bounds};
use crate::fetch::answer;
use crate::fetch::batch::{Batch, Origin, batch};
use crate::fetch::outbox::{Outbox, ReadError};
use crate::fetch::pace::{Ended, first_wait, wait_after};
use crate::inbox::{Accepted, Inbox};
use crate::notification::Name;
use crate::telemetry::Observer;
use failure::Failure;

/// An answer that is too large is asked for again with so many times fewer events.
const FEWER: u32 = 4;

/// Polls one outbox.
#[derive(Debug)]
pub struct Poller {
    config: Arc<Config>,
    workspace: Name,
    source: Name,
    resource: String,
    inbox: Arc<dyn Inbox>,
    outbox: Box<dyn Outbox>,
    clock: Clock,
    observer: Arc<dyn Observer>,
    random: fastrand::Rng,
    position: Position,
    /// Reads in a row that brought nothing new.
    empty: u32,
    /// Reads in a row that failed.
    failures: u32,
    /// Asked for in one read: fewer than configured while answers are too large.
    events_asked: u32,
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

/// What one read brought, once it is written.
struct Taken {
    /// Whether it was the first.
    first: bool,
    /// Events in the answer.
    events: usize,
    /// Whether it brought anything new: it is worth reading on.
    fresh: bool,
    /// Whether the outbox has more.
    more: bool,
    truncated: bool,
    next_poll: Option<Duration>,
    batch: Batch,
    accepted: Accepted,
}

impl Poller {
    /// A poller of the outbox that `source` of `workspace` declares; none when there is no such connector, or it
    /// declares no outbox.
    pub fn new(
        config: Arc<Config>,
        workspace: &Name,
        source: &Name,
        inbox: Arc<dyn Inbox>,
        outbox: Box<dyn Outbox>,
        clock: Clock,
        observer: Arc<dyn Observer>,
    ) -> Option<Self> {
        let (_, connector) = place(&config, workspace, source)?;
        Some(Self {
            resource: connector.outbox.clone()?,
            events_asked: connector.poll.events_max,
            workspace: workspace.clone(),
            source: source.clone(),
            config,
            inbox,
            outbox,
            clock,
            observer,
            random: fastrand::Rng::new(),
            position: Position::Unknown,
            empty: 0,
            failures: 0,
        })
    }

    /// Reads until it is told to stop. A read under way is given up then, a write is finished, and the connection is
    /// closed.
    pub async fn run(mut self, stop: CancellationToken) {
        self.poll(&stop).await;
        self.outbox.close().await;
    }

    /// Ends, with nothing, when told to stop.
    async fn poll(&mut self, stop: &CancellationToken) -> Option<()> {
        let mut due = self.first_due(stop).await?;
        loop {
            let wait = until(self.clock.now(), due);
            stop.run_until_cancelled(self.clock.sleep(wait)).await?;
            due = self.turn(stop).await?;
        }
    }

    async fn first_due(&mut self, stop: &CancellationToken) -> Option<Timestamp> {
        // A failure shows in the turn that follows at once.
        let _ = stop.run_until_cancelled(self.find_position()).await?;
        let was_read = matches!(self.position, Position::After(_));
        let random = self.random.f64();
        let (_, connector) = place(&self.config, &self.workspace, &self.source)?;
        Some(later(self.clock.now(), first_wait(was_read, &connector.poll, random)))
    }

    async fn find_position(&mut self) -> Result<(), Failure> {
        if self.position == Position::Unknown {
            let stored = self.inbox.reading(&self.workspace, &self.source).await.map_err(Failure::Inbox)?;
            self.position = stored.cursor.map_or(Position::Start, Position::After);
        }
        Ok(())
    }

    /// One read, and the ones that follow it at once. Returns when the next turn is due.
    async fn turn(&mut self, stop: &CancellationToken) -> Option<Timestamp> {
        let config = self.config.clone();
        let (workspace, connector) = place(&config, &self.workspace, &self.source)?;
        let mut reads = 0;
        loop {
            reads += 1;
            let may_read_on = reads < connector.poll.chained_reads_max;
            match self.read(workspace, connector, stop).await? {
                Ok(taken) => {
                    self.recovered();
                    let read_on = taken.more && taken.fresh && may_read_on;
                    let wait = if read_on { Duration::ZERO } else { self.wait_after_success(&taken, connector) };
                    let due = later(self.clock.now(), wait);
                    self.tell(taken, wait);
                    if !read_on {
                        return Some(due);
                    }
                }
                Err(Failure::Read(ReadError::TooLarge { .. })) if may_read_on && self.can_ask_for_fewer() => {
                    self.events_asked = (self.events_asked / FEWER).max(1);
                }
                Err(failure) => return Some(self.failed(&failure, connector)),
            }
        }
    }

    /// One read, from the request to the commit; none when told to stop.
    async fn read(
        &mut self,
        workspace: &Workspace,
        connector: &Connector,
        stop: &CancellationToken,
    ) -> Option<Result<Taken, Failure>> {
        match stop.run_until_cancelled(self.ask(connector)).await? {
            Ok(text) => Some(self.take(&text, workspace, connector).await),
            Err(failure) => Some(Err(failure)),
        }
    }

    /// The text of the answer.
    async fn ask(&mut self, connector: &Connector) -> Result<String, Failure> {
        self.find_position().await?;
        let bounds = Bounds { events_max: self.events_asked, age_max: connector.poll.age_max };
        let answer = if let Position::After(cursor) = &self.position {
            self.outbox.read(&address::after(&self.resource, cursor, bounds)).await
        } else {
            match self.outbox.read(&self.resource).await {
                Err(ReadError::NotFound(_) | ReadError::TooLarge { .. }) => {
                    self.outbox.read(&address::first_with_bounds(&self.resource, bounds)).await
                }
                answer => answer,
            }
        };
        answer.map_err(Failure::Read)
    }

    /// Judges, decides and writes; then the position moves.
    async fn take(&mut self, text: &str, workspace: &Workspace, connector: &Connector) -> Result<Taken, Failure> {
        let answer = answer::parse(text).map_err(Failure::Answer)?;
        let first = self.position == Position::Start;
        let received_at = self.clock.now();
        let batch = batch(&answer, Origin { workspace, connector, first, received_at });
        let events = answer.events.len() + answer.events_left;
        match &batch.intake.cursor {
            None if answer.events_left > 0 => return Err(Failure::TooMany { events }),
            None if first => return Err(Failure::NoPosition),
            _ => {}
        }
        let accepted = self.inbox.accept(batch.intake.clone()).await.map_err(Failure::Inbox)?;
        let moved = self.move_to(batch.intake.cursor.clone());
        Ok(Taken {
            first,
            events,
            fresh: moved || accepted.seqs.iter().any(Option::is_some),
            more: answer.has_more || answer.events_left > 0,
            truncated: answer.truncated && !first,
            next_poll: answer.next_poll,
            batch,
            accepted,
        })
    }

    /// Whether that changed the position.
    fn move_to(&mut self, cursor: Option<String>) -> bool {
        let Some(cursor) = cursor else { return false };
        let position = Position::After(cursor);
        let moved = position != self.position;
        self.position = position;
        moved
    }

    /// The first read has no maximum to lower.
    fn can_ask_for_fewer(&self) -> bool {
        self.events_asked > 1 && matches!(self.position, Position::After(_))
    }

    fn wait_after_success(&mut self, taken: &Taken, connector: &Connector) -> Duration {
        if !taken.more {
            self.events_asked = connector.poll.events_max;
        }
        // A position that moves without an event is no news: some outboxes have the time for a cursor.
        let fruitful = taken.first || (taken.fresh && taken.events > 0);
        self.empty = if fruitful { 0 } else { self.empty.saturating_add(1) };
        let ended = match (fruitful, taken.more) {
            (true, true) => Ended::More,
            (true, false) => Ended::Fruitful { next_poll: taken.next_poll },
            (false, more) => Ended::Empty { reads: self.empty, next_poll: taken.next_poll.filter(|_| !more) },
        };
        wait_after(ended, &connector.poll, self.random.f64())
    }

    fn recovered(&mut self) {
        if std::mem::take(&mut self.failures) > 0 {
            let (workspace, source) = (&self.workspace, &self.source);
            tracing::info!(%workspace, %source, "the outbox can be read again");
        }
    }

    fn failed(&mut self, failure: &Failure, connector: &Connector) -> Timestamp {
        self.failures = self.failures.saturating_add(1);
        let ended = Ended::Failed { reads: self.failures, retry_after: failure.retry_after() };
        let wait = wait_after(ended, &connector.poll, self.random.f64());
        let due = later(self.clock.now(), wait);
        self.tell_failure(failure, wait);
        due
    }
}

/// The workspace and the connector of these names.
fn place<'a>(config: &'a Config, workspace: &Name, source: &Name) -> Option<(&'a Workspace, &'a Connector)> {
    let workspace = config.workspaces.get(workspace)?;
    Some((workspace, workspace.connectors.get(source)?))
}
