//! What is told of a read, once it is durable.

use std::sync::Arc;
use std::time::Duration;

use super::take::{Notices, Start, Taken};
use super::{Failure, Poller};
use crate::fetch::batch::Dropped;
use crate::inbox::Entry;
use crate::notification::{HOST_SOURCE, Name};
use crate::route::Decision;
use crate::telemetry::{Happening, rounded};

/// Dropped events that are logged one by one for one answer; the rest are only counted there. A broken server must not
/// fill the log.
const DROPS_LOGGED_MAX: usize = 20;

impl Poller {
    pub(super) fn tell_failure(&self, failure: &Failure, next_in: Duration) {
        let (workspace, source, failures) = (&self.workspace, &self.source, self.reading.failures);
        tracing::warn!(%workspace, %source, failures, next_in = rounded(next_in), reason = %failure, "the outbox could not be read");
        self.shared.observer.happened(&Happening::ReadFailed {
            workspace: workspace.clone(),
            source: source.clone(),
            reason: failure.to_string(),
            failures,
            next_in,
        });
    }

    pub(super) fn tell(&self, taken: Taken, next_in: Duration) {
        let Taken { start, events, gap, batch, notices, accepted, .. } = taken;
        let (workspace, source) = (&self.workspace, &self.source);
        let bootstrap = start != Start::After;
        let new = accepted.seqs.iter().flatten().count();
        if bootstrap || events > 0 {
            tracing::info!(%workspace, %source, events, new, bootstrap, next_in = rounded(next_in), "read the outbox");
        } else {
            tracing::debug!(%workspace, %source, next_in = rounded(next_in), "read the outbox: nothing new");
        }
        let tell = |what: Happening| self.shared.observer.happened(&what);
        let names = || (workspace.clone(), source.clone());

        let (workspace, source) = names();
        tell(Happening::Read { workspace, source, events, bootstrap, next_in });
        if gap {
            let (workspace, source) = names();
            tracing::warn!(%workspace, %source, "events were missed");
            tell(Happening::Gap { workspace, source });
        }
        self.log_drops(&batch.dropped);
        for dropped in batch.dropped {
            let (workspace, source) = names();
            tell(Happening::Dropped { workspace, source, reason: dropped.to_string() });
        }
        self.tell_accepted(&self.source, batch.intake.entries, batch.decisions, accepted.seqs);
        self.tell_notices(notices, accepted.notice_seqs);
    }

    pub(super) fn tell_notices(&self, notices: Notices, seqs: Vec<Option<u64>>) {
        if let Ok(host) = HOST_SOURCE.parse() {
            self.tell_accepted(&host, notices.entries, notices.decisions, seqs);
        }
    }

    fn tell_accepted(&self, source: &Name, entries: Vec<Entry>, decisions: Vec<Vec<Decision>>, seqs: Vec<Option<u64>>) {
        for ((entry, decisions), seq) in entries.into_iter().zip(decisions).zip(seqs) {
            let Some(seq) = seq else { continue };
            let (workspace, source) = (self.workspace.clone(), source.clone());
            let (event, effective_level) = (Arc::new(entry.event), entry.effective_level);
            let accepted = Happening::Accepted { workspace, seq, source, event, effective_level, decisions };
            self.shared.observer.happened(&accepted);
        }
    }

    fn log_drops(&self, dropped: &[Dropped]) {
        let (workspace, source) = (&self.workspace, &self.source);
        for dropped in dropped.iter().take(DROPS_LOGGED_MAX) {
            tracing::warn!(%workspace, %source, "{dropped}");
        }
        if dropped.len() > DROPS_LOGGED_MAX {
            tracing::warn!(%workspace, %source, events = dropped.len(), "more events were dropped than are logged");
        }
    }
}
