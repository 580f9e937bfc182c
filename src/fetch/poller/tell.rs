//! What is told of a read, once it is durable.

use std::sync::Arc;
use std::time::Duration;

use super::{Failure, Poller, Taken};
use crate::telemetry::{Happening, rounded};

/// Dropped events that are logged one by one for one answer; the rest are only counted there. A broken server must not
/// fill the log.
const DROPS_LOGGED_MAX: usize = 20;

impl Poller {
    pub(super) fn tell_failure(&self, failure: &Failure, next_in: Duration) {
        let (workspace, source, failures) = (&self.workspace, &self.source, self.failures);
        tracing::warn!(%workspace, %source, failures, next_in = rounded(next_in), reason = %failure, "the outbox could not be read");
        self.observer.happened(&Happening::ReadFailed {
            workspace: workspace.clone(),
            source: source.clone(),
            reason: failure.to_string(),
            failures,
            next_in,
        });
    }

    pub(super) fn tell(&self, taken: Taken, next_in: Duration) {
        let Taken { first: bootstrap, events, truncated, batch, accepted, .. } = taken;
        let (workspace, source) = (&self.workspace, &self.source);
        let new = accepted.seqs.iter().flatten().count();
        if bootstrap || events > 0 {
            tracing::info!(%workspace, %source, events, new, bootstrap, next_in = rounded(next_in), "read the outbox");
        } else {
            tracing::debug!(%workspace, %source, next_in = rounded(next_in), "read the outbox: nothing new");
        }
        let tell = |what: Happening| self.observer.happened(&what);
        let names = || (workspace.clone(), source.clone());

        let (workspace, source) = names();
        tell(Happening::Read { workspace, source, events, bootstrap, next_in });
        if truncated {
            let (workspace, source) = names();
            tracing::warn!(%workspace, %source, "the outbox skipped events");
            tell(Happening::Gap { workspace, source });
        }
        self.log_drops(&batch.dropped);
        for reason in batch.dropped {
            let (workspace, source) = names();
            tell(Happening::Dropped { workspace, source, reason });
        }
        let entries = batch.intake.entries.into_iter().zip(batch.decisions).zip(accepted.seqs);
        for ((entry, decisions), seq) in entries {
            let Some(seq) = seq else { continue };
            let (workspace, source) = names();
            let (event, effective_level) = (Arc::new(entry.event), entry.effective_level);
            tell(Happening::Accepted { workspace, seq, source, event, effective_level, decisions });
        }
    }

    fn log_drops(&self, dropped: &[String]) {
        let (workspace, source) = (&self.workspace, &self.source);
        for reason in dropped.iter().take(DROPS_LOGGED_MAX) {
            tracing::warn!(%workspace, %source, "{reason}");
        }
        if dropped.len() > DROPS_LOGGED_MAX {
            tracing::warn!(%workspace, %source, events = dropped.len(), "more events were dropped than are logged");
        }
    }
}
