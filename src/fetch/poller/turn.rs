//! One turn of a poller: a read, and the ones that follow it at once.

use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::take::{Start, Taken};
use super::{Cause, Failure, Polled, Poller, Position};
use crate::clock::later;
use crate::config::Connector;
use crate::fetch::address::{self, Bounds};
use crate::fetch::outbox::ReadError;
use crate::fetch::pace::{Ended, wait_after};
use crate::telemetry::Happening;

/// An answer that is too large is asked for again with so many times fewer events.
const FEWER: u32 = 4;

/// Reading is started anew at most so often while no read after a cursor works: an outbox that knows no cursor at all
/// would lose everything by it again and again.
const ANEW_APART: Duration = Duration::from_secs(3_600);

/// Reads in a row that must fail because of the position before it is given up and reading starts anew.
const LOST_READS: u32 = 3;

impl Poller {
    /// One read, and the ones that follow it at once. Returns when the next turn is due; nothing when told to stop.
    pub(super) async fn turn(&mut self, cause: Cause, stop: &CancellationToken) -> Option<Timestamp> {
        let mut polled = Polled::default();
        let (is_hint, reply) = match cause {
            Cause::Due => (false, None),
            Cause::Hint => (true, None),
            Cause::Asked(reply) => (false, Some(reply)),
        };
        let mut waits_for_budget = reply.is_none();
        let due = loop {
            polled.reads += 1;
            let config = self.config();
            let here = self.ledger.place(&config)?;
            let may_read_on = polled.reads < here.1.poll.chained_reads_max;
            let read = self.read(here.1, waits_for_budget, stop).await?;
            waits_for_budget = true;
            match read {
                Ok(taken) => {
                    polled.count(&taken);
                    let reads_on = taken.reads_on() && may_read_on;
                    let wait = if reads_on { Duration::ZERO } else { self.wait_after_answer(&taken, is_hint, here.1) };
                    let due = later(self.now(), wait);
                    polled.next_in = wait;
                    self.tell(taken, wait);
                    if !reads_on {
                        break due;
                    }
                }
                Err(failure) => {
                    let fewer = self.asks_for_fewer(&failure);
                    if fewer && may_read_on {
                        continue;
                    }
                    let (wait, due) = self.failed(&failure, here).await;
                    (polled.failure, polled.next_in) = (Some(failure.to_string()), wait);
                    break due;
                }
            }
        };
        if let Some(reply) = reply {
            // Whoever asked may have gone.
            let _ = reply.send(polled);
        }
        Some(due)
    }

    /// One read, from the request to the commit; nothing when told to stop. What came is decided by the configuration that
    /// holds when it came.
    async fn read(
        &mut self,
        connector: &Connector,
        waits_for_budget: bool,
        stop: &CancellationToken,
    ) -> Option<Result<Taken, Failure>> {
        let asked = stop.run_until_cancelled(self.ask(connector, waits_for_budget)).await?;
        let failure = match asked {
            Ok((text, start)) => return self.take_here(&text, start).await,
            Err(failure) => failure,
        };
        if !self.is_lost(&failure) {
            return Some(Err(failure));
        }
        // What the outbox says from now on is worth more than a position that it does not know.
        match stop.run_until_cancelled(self.ask_first(connector, true)).await? {
            Ok(text) => Some(self.take_here(&text, Start::Anew).await?.or(Err(failure))),
            Err(_) => Some(Err(failure)),
        }
    }

    /// Nothing when there is no such connector any more.
    async fn take_here(&mut self, text: &str, start: Start) -> Option<Result<Taken, Failure>> {
        let config = self.config();
        let here = self.ledger.place(&config)?;
        Some(self.take(text, start, here).await)
    }

    /// The text of the answer.
    async fn ask(&mut self, connector: &Connector, waits_for_budget: bool) -> Result<(String, Start), Failure> {
        self.find_position().await?;
        if let Position::After(cursor) = &self.position {
            let uri = address::after(&self.resource, cursor, self.bounds(connector));
            let answer = self.ask_for(&uri, waits_for_budget).await;
            let start = if self.ledger.reading.is_backlog { Start::Backlog } else { Start::After };
            return Ok((answer.map_err(Failure::Read)?, start));
        }
        Ok((self.ask_first(connector, waits_for_budget).await.map_err(Failure::Read)?, Start::First))
    }

    /// Some servers know the bare URI, some only the template.
    async fn ask_first(&mut self, connector: &Connector, waits_for_budget: bool) -> Result<String, ReadError> {
        let resource = self.resource.clone();
        match self.ask_for(&resource, waits_for_budget).await {
            Err(ReadError::NotFound(_) | ReadError::TooLarge { .. }) => {
                let uri = address::first_with_bounds(&self.resource, self.bounds(connector));
                self.ask_for(&uri, waits_for_budget).await
            }
            answer => answer,
        }
    }

    /// One request, inside the budget.
    async fn ask_for(&mut self, uri: &str, waits_for_budget: bool) -> Result<String, ReadError> {
        if !waits_for_budget {
            self.budget.take_at_once();
        } else if self.budget.left() > 0 {
            self.budget.take().await;
        } else {
            let (workspace, source) = (self.ledger.workspace.clone(), self.ledger.source.clone());
            tracing::debug!(%workspace, %source, "the read is put off: the workspace has used up its budget");
            self.ledger.shared.observer.happened(&Happening::Deferred { workspace, source });
            self.ledger.desk.update(|status| status.is_deferred = true);
            self.budget.take().await;
            self.ledger.desk.update(|status| status.is_deferred = false);
        }
        self.outbox.read(uri).await
    }

    fn bounds(&self, connector: &Connector) -> Bounds {
        Bounds { events_max: self.events_asked, age_max: connector.poll.age_max }
    }

    /// Lowers the number of events asked for after an answer that was too large, if it can be lowered: the first read
    /// has none.
    fn asks_for_fewer(&mut self, failure: &Failure) -> bool {
        let is_too_large = matches!(failure, Failure::Read(ReadError::TooLarge { .. }));
        let fewer = is_too_large && self.events_asked > 1 && matches!(self.position, Position::After(_));
        if fewer {
            self.events_asked = (self.events_asked / FEWER).max(1);
        }
        fewer
    }

    /// Counts a failure because of the position. One that comes after a fresh start probably says that the outbox cannot be
    /// read after any cursor, so that another fresh start at once would help nobody.
    fn is_lost(&mut self, failure: &Failure) -> bool {
        if !matches!(self.position, Position::After(_)) || !failure.is_about_the_position(self.events_asked) {
            return false;
        }
        self.lost = self.lost.saturating_add(1);
        let may_start_anew = self.anew_at.is_none_or(|anew_at| later(anew_at, ANEW_APART) <= self.now());
        self.lost >= LOST_READS && may_start_anew
    }

    fn wait_after_answer(&mut self, taken: &Taken, is_hint: bool, connector: &Connector) -> Duration {
        if !taken.more {
            self.events_asked = connector.poll.events_max;
        }
        // A position that moves without an event is no news: some outboxes have the time for a cursor. A hint is news
        // even when somebody else has read what it was about.
        let fruitful = taken.start != Start::After || (taken.fresh && taken.events > 0) || is_hint;
        if is_hint && !(taken.fresh && taken.events > 0) {
            // Some servers say that something changed whenever they are read.
            self.hints_from = later(self.now(), connector.poll.floor);
        }
        self.empty = if fruitful { 0 } else { self.empty.saturating_add(1) };
        let ended = match (fruitful, taken.more && taken.fresh) {
            (true, true) => Ended::More,
            (true, false) => Ended::Fruitful { next_poll: taken.next_poll.filter(|_| !taken.more) },
            (false, _) => Ended::Empty { reads: self.empty, next_poll: taken.next_poll.filter(|_| !taken.more) },
        };
        wait_after(ended, &connector.poll, self.random.f64())
    }
}

impl Polled {
    fn count(&mut self, taken: &Taken) {
        self.first = taken.start == Start::First;
        self.events += taken.events;
        self.new += taken.accepted.seqs.iter().flatten().count();
        self.dropped += taken.batch.dropped.len();
    }
}
