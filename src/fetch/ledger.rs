//! What is kept and told of one connector that events are fetched from, whichever way they come: how it does, its failures,
//! and the host's own notices about it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::batch::{self, Dropped};
use super::notice::Notice;
use super::pace::BREAKER_FAILURES;
use super::poller::failure::Failure;
use super::poller::status::Desk;
use super::poller::{Shared, State};
use crate::clock::later;
use crate::config::{Config, Connector, Workspace};
use crate::inbox::{Accepted, Ended, Entry, InboxError, Intake, Reading, Told};
use crate::notification::{HOST_SOURCE, Name};
use crate::route::Decision;
use crate::telemetry::{Happening, rounded};

/// Dropped events that are logged one by one for one answer; the rest are only counted there. A broken server must not
/// fill the log.
const DROPS_LOGGED_MAX: usize = 20;

/// One connector, as it is kept and told.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) shared: Shared,
    pub(super) workspace: Name,
    pub(super) source: Name,
    pub(super) desk: Desk,
    /// What the inbox keeps about it.
    pub(super) reading: Reading,
}

/// The host's own notices, as they are written and told.
#[derive(Debug, Default)]
pub(super) struct Notices {
    pub(super) entries: Vec<Entry>,
    pub(super) decisions: Vec<Vec<Decision>>,
}

impl Ledger {
    pub(super) fn new(shared: Shared, workspace: &Name, source: &Name) -> Self {
        let (workspace, source) = (workspace.clone(), source.clone());
        Self { shared, workspace, source, desk: Desk::new(), reading: Reading::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// The configuration that holds now.
    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.shared.config.borrow())
    }

    /// Where the connector stands in this configuration; none when it has no such connector.
    pub(super) fn place<'a>(&self, config: &'a Config) -> Option<(&'a Workspace, &'a Connector)> {
        let workspace = config.workspaces.get(&self.workspace)?;
        Some((workspace, workspace.connectors.get(&self.source)?))
    }

    /// Takes up what the inbox keeps about it.
    pub(super) async fn look_up(&mut self) -> Result<(), InboxError> {
        self.reading = self.shared.inbox.reading(&self.workspace, &self.source).await?;
        let reading = self.reading.clone();
        self.desk.update(|status| status.reading = reading);
        Ok(())
    }

    pub(super) fn show(&self, state: State) {
        let reading = self.reading.clone();
        self.desk.update(|status| (status.state, status.reading) = (state, reading));
    }

    pub(super) fn notices(&self, news: &[Notice], workspace: &Workspace) -> Notices {
        let (entries, decisions) = batch::notices(news, (workspace, &self.source), self.now());
        Notices { entries, decisions }
    }

    /// Keeps and tells a failure, the so many-th in a row. Returns when the next try is due.
    pub(super) async fn failed(
        &mut self,
        failure: &Failure,
        (failures, wait): (u32, Duration),
        workspace: &Workspace,
    ) -> Timestamp {
        let now = self.now();
        self.reading.failures = failures;
        self.reading.failure = Some((now, failure.to_string()));
        self.show(match failures {
            _ if failure.is_signed_out() => State::Reauthorize,
            BREAKER_FAILURES.. => State::Open,
            _ => State::Failing,
        });
        let (told, news) = self.news_of_failure(failure, failures);
        let notices = self.notices(&news, workspace);
        let kept = self.keep_failure(failure, now, told, &notices).await;
        self.tell_failure(failure, wait);
        if let Some(accepted) = kept {
            self.reading.told = told;
            self.tell_notices(notices, accepted.notice_seqs);
        }
        later(now, wait)
    }

    /// Writes the failure and what the admin hears of it.
    async fn keep_failure(
        &mut self,
        failure: &Failure,
        now: Timestamp,
        told: Told,
        notices: &Notices,
    ) -> Option<Accepted> {
        if matches!(failure, Failure::Inbox(_)) {
            // An inbox that cannot be written cannot keep this either.
            return None;
        }
        let intake = Intake {
            is_first: false,
            workspace: self.workspace.clone(),
            source: self.source.clone(),
            received_at: now,
            entries: Vec::new(),
            notices: notices.entries.clone(),
            cursor: None,
            ended: Ended::Failed { reason: failure.to_string(), failures: self.reading.failures, told },
        };
        let kept = self.shared.inbox.accept(intake).await;
        if let Err(error) = &kept {
            let (workspace, source) = (&self.workspace, &self.source);
            tracing::warn!(%workspace, %source, reason = %error, "the failure could not be kept in the inbox");
        }
        kept.ok()
    }

    /// What the admin hears of a failure, and has heard then.
    fn news_of_failure(&self, failure: &Failure, failures: u32) -> (Told, Vec<Notice>) {
        let reason = failure.to_string();
        if failure.is_signed_out() {
            let news = Notice::Reauthorize { reason };
            return (Told::Reauthorize, if self.reading.told == Told::Reauthorize { Vec::new() } else { vec![news] });
        }
        let is_news = self.reading.told == Told::Nothing && (failures >= BREAKER_FAILURES || failure.needs_a_person());
        if is_news {
            (Told::Failing, vec![Notice::Failing { failures, reason }])
        } else {
            (self.reading.told, Vec::new())
        }
    }

    fn tell_failure(&self, failure: &Failure, next_in: Duration) {
        let (workspace, source, failures) = (&self.workspace, &self.source, self.reading.failures);
        tracing::warn!(%workspace, %source, failures, next_in = rounded(next_in), reason = %failure, "no events could be fetched");
        self.shared.observer.happened(&Happening::ReadFailed {
            workspace: workspace.clone(),
            source: source.clone(),
            reason: failure.to_string(),
            failures,
            next_in,
        });
    }

    pub(super) fn tell_notices(&self, notices: Notices, seqs: Vec<Option<u64>>) {
        if let Ok(host) = HOST_SOURCE.parse() {
            self.tell_accepted(&host, notices.entries, notices.decisions, seqs);
        }
    }

    pub(super) fn tell_accepted(
        &self,
        source: &Name,
        entries: Vec<Entry>,
        decisions: Vec<Vec<Decision>>,
        seqs: Vec<Option<u64>>,
    ) {
        for ((entry, decisions), seq) in entries.into_iter().zip(decisions).zip(seqs) {
            let Some(seq) = seq else { continue };
            let (workspace, source) = (self.workspace.clone(), source.clone());
            let (event, effective_level) = (Arc::new(entry.event), entry.effective_level);
            let accepted = Happening::Accepted { workspace, seq, source, event, effective_level, decisions };
            self.shared.observer.happened(&accepted);
        }
    }

    pub(super) fn tell_dropped(&self, dropped: Vec<Dropped>) {
        let (workspace, source) = (&self.workspace, &self.source);
        for dropped in dropped.iter().take(DROPS_LOGGED_MAX) {
            tracing::warn!(%workspace, %source, "{dropped}");
        }
        if dropped.len() > DROPS_LOGGED_MAX {
            tracing::warn!(%workspace, %source, events = dropped.len(), "more events were dropped than are logged");
        }
        for dropped in dropped {
            let (workspace, source) = (workspace.clone(), source.clone());
            self.shared.observer.happened(&Happening::Dropped { workspace, source, reason: dropped.to_string() });
        }
    }
}
