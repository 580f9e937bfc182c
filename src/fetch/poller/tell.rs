//! What is told of a read, once it is durable.

use std::time::Duration;

use super::Poller;
use super::take::{Start, Taken};
use crate::telemetry::{Happening, rounded};

impl Poller {
    pub(super) fn tell(&self, taken: Taken, next_in: Duration) {
        let Taken { start, events, gap, batch, notices, accepted, .. } = taken;
        let (workspace, source) = (&self.ledger.workspace, &self.ledger.source);
        let bootstrap = start != Start::After;
        let new = accepted.seqs.iter().flatten().count();
        if bootstrap || events > 0 {
            tracing::info!(%workspace, %source, events, new, bootstrap, next_in = rounded(next_in), "read the outbox");
        } else {
            tracing::debug!(%workspace, %source, next_in = rounded(next_in), "read the outbox: nothing new");
        }
        let tell = |what: Happening| self.ledger.shared.observer.happened(&what);
        let names = || (workspace.clone(), source.clone());

        let (workspace, source) = names();
        tell(Happening::Read { workspace, source, events, bootstrap, next_in });
        if gap {
            let (workspace, source) = names();
            tracing::warn!(%workspace, %source, "events were missed");
            tell(Happening::Gap { workspace, source });
        }
        self.ledger.tell_dropped(batch.dropped);
        let source = &self.ledger.source;
        self.ledger.tell_accepted(source, batch.intake.entries, batch.decisions, accepted.seqs);
        self.ledger.tell_notices(notices, accepted.notice_seqs);
    }
}
