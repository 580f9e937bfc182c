//! What becomes of an answer, and of a failure: judged, decided, written; then told.

use std::time::Duration;

use jiff::Timestamp;

use super::{Failure, Poller, Position, State};
use crate::config::{Connector, Workspace};
use crate::fetch::answer;
use crate::fetch::batch::{self, Batch, Origin};
use crate::fetch::ledger::Notices;
use crate::fetch::notice::Notice;
use crate::fetch::pace::{self, wait_after};
use crate::inbox::{Accepted, Ended, Intake, Told};

const STARTED_ANEW: &str = "The outbox did not know the position any more, or could not answer from it, so reading was \
                            started anew from now. What happened since the last read may be missing.";

/// Where an answer starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// It is the first: it only finds the place to start from.
    First,
    /// It is a first one again, the position being lost.
    Anew,
    /// It goes on from a first one that had more: all of it is from before anyone asked.
    Backlog,
    /// It comes after a cursor.
    After,
}

impl Start {
    /// Whether it finds the place to start from.
    fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Anew)
    }
}

/// What one read brought, once it is written.
pub(super) struct Taken {
    pub(super) start: Start,
    /// Events in the answer.
    pub(super) events: usize,
    /// Whether it brought anything new: it is worth reading on.
    pub(super) fresh: bool,
    /// Whether the outbox has more.
    pub(super) more: bool,
    /// Whether events were missed.
    pub(super) gap: bool,
    pub(super) next_poll: Option<Duration>,
    pub(super) batch: Batch,
    pub(super) notices: Notices,
    pub(super) accepted: Accepted,
}

impl Taken {
    pub(super) fn reads_on(&self) -> bool {
        self.more && self.fresh
    }
}

impl Poller {
    /// Judges, decides and writes; then the position moves.
    pub(super) async fn take(
        &mut self,
        text: &str,
        start: Start,
        (workspace, connector): (&Workspace, &Connector),
    ) -> Result<Taken, Failure> {
        let mut answer = answer::parse(text).map_err(Failure::Answer)?;
        let origin = Origin { workspace, connector, first: start != Start::After, received_at: self.now() };
        let mut batch = batch::batch(&answer, origin);
        if answer.events_left > 0 && (origin.first || !batch.is_positioned) {
            // Nothing says how to go on behind the first part, so it is all or nothing.
            answer = answer::parse_whole(text).map_err(Failure::Answer)?;
            batch = batch::batch(&answer, origin);
        }
        let events = answer.events.len() + answer.events_left;
        if answer.events_left > 0 && (start.is_first() || !batch.is_positioned) {
            return Err(Failure::TooMany { events });
        }
        if batch.intake.cursor.is_none() && start.is_first() {
            return Err(Failure::NoPosition);
        }
        // Whoever always promises more and brings nothing would never come to an end.
        let is_backlog = start != Start::After && answer.has_more && !answer.events.is_empty();
        let truncated = answer.truncated && start == Start::After;
        for dropped in &mut batch.dropped {
            dropped.reason = self.outbox.without_secrets(&dropped.reason);
            dropped.event_id = dropped.event_id.take().map(|id| self.outbox.without_secrets(&id));
        }
        let mut tally = self.tally.clone();
        tally.count_dropped(&batch.dropped);
        if truncated {
            tally.count_gap();
        }
        if origin.first {
            tally.count_backlog(batch.intake.entries.len());
        }
        let mut news = self.news_of_answer(start);
        news.extend(tally.due(origin.received_at));
        let notices = self.ledger.notices(&news, workspace);
        batch.intake.notices.clone_from(&notices.entries);
        batch.intake.ended = Ended::Answered { revision: self.outbox.revision(), is_backlog };

        let accepted = self.ledger.shared.inbox.accept(batch.intake.clone()).await.map_err(Failure::Inbox)?;
        self.tally = tally;
        let moved = self.move_to(batch.intake.cursor.clone());
        self.answered(start, moved, &batch.intake);
        Ok(Taken {
            start,
            events,
            fresh: moved || accepted.seqs.iter().any(Option::is_some),
            more: answer.has_more || answer.events_left > 0,
            gap: truncated || start == Start::Anew,
            next_poll: answer.next_poll,
            batch,
            notices,
            accepted,
        })
    }

    fn news_of_answer(&self, start: Start) -> Vec<Notice> {
        let mut news = Vec::new();
        if self.ledger.reading.told != Told::Nothing {
            news.push(Notice::Recovered { failures: self.ledger.reading.failures });
        }
        if start == Start::Anew {
            news.push(Notice::Gap { gaps: 1, why: STARTED_ANEW });
        }
        news
    }

    /// Whether that changed the position.
    fn move_to(&mut self, cursor: Option<String>) -> bool {
        let Some(cursor) = cursor else { return false };
        let position = Position::After(cursor);
        let moved = position != self.position;
        self.position = position;
        moved
    }

    /// Keeps in mind what the inbox now keeps.
    fn answered(&mut self, start: Start, moved: bool, intake: &Intake) {
        if self.ledger.reading.failures > 0 {
            let (workspace, source) = (&self.ledger.workspace, &self.ledger.source);
            tracing::info!(%workspace, %source, "the outbox can be read again");
        }
        self.lost = 0;
        self.anew_at = (start == Start::Anew).then_some(intake.received_at);
        let reading = &mut self.ledger.reading;
        reading.told = Told::Nothing;
        reading.read_at = Some(intake.received_at);
        reading.failures = 0;
        if moved {
            reading.cursor.clone_from(&intake.cursor);
            reading.moved_at = Some(intake.received_at);
        }
        if let Ended::Answered { revision, is_backlog } = &intake.ended {
            reading.revision = revision.clone().or(reading.revision.take());
            reading.is_backlog = *is_backlog;
        }
        self.ledger.show(State::Ok);
    }

    /// Keeps and tells a failure. Returns how long to wait from the moment of the failure on, and until when that is.
    pub(super) async fn failed(
        &mut self,
        failure: &Failure,
        (workspace, connector): (&Workspace, &Connector),
    ) -> (Duration, Timestamp) {
        let failures = self.ledger.reading.failures.saturating_add(1);
        let ended = pace::Ended::Failed { reads: failures, retry_after: failure.retry_after() };
        let wait = wait_after(ended, &connector.poll, self.random.f64());
        (wait, self.ledger.failed(failure, (failures, wait), workspace).await)
    }
}
