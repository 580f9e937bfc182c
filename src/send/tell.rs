//! What is told of attempts and deliveries, once it is durable.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Dispatcher, Ended};
use crate::clock::until;
use crate::inbox::delivery::{Next, Outcome};
use crate::inbox::{Claim, Entry, Moved};
use crate::notification::{HOST_SOURCE, Name};
use crate::route::Decision;
use crate::telemetry::{Happening, rounded};

impl Dispatcher {
    pub(super) fn tell(&self, claim: &Claim, began: Timestamp, now: Timestamp, ended: Ended, next: Next) {
        let (workspace, route, seq) = (&claim.queue.workspace, &claim.queue.route, first_seq(claim));
        let (delivery, plugin, attempt) = (&claim.id, &claim.plugin, claim.attempt);
        let took = until(began, now);
        let next_in = next.next_at.map(|next_at| until(now, next_at));
        let took_shown = rounded(took);
        if ended.outcome == Outcome::Delivered {
            tracing::info!(%workspace, seq, %delivery, %route, %plugin, attempt, took = took_shown, "delivered");
        } else if ended.outcome == Outcome::Interrupted {
            let reason = ended.reason.as_deref().unwrap_or_default();
            tracing::info!(%workspace, seq, %delivery, %route, %plugin, attempt, "given back: {reason}");
        } else {
            let (outcome, state) = (ended.outcome, next.state);
            let reason = ended.reason.as_deref().unwrap_or_default();
            let next_in = next_in.map(rounded);
            tracing::warn!(
                %workspace, seq, %delivery, %route, %plugin, attempt, %outcome, %state, next_in, "not delivered: {reason}"
            );
        }
        self.observer.happened(&Happening::Attempted {
            workspace: workspace.clone(),
            seq,
            more: more(claim),
            delivery: delivery.clone(),
            route: route.clone(),
            plugin: plugin.clone(),
            attempt: attempt.get(),
            outcome: ended.outcome,
            reason: ended.reason,
            state: next.state,
            took,
            next_in,
        });
    }

    pub(super) fn tell_notices(&self, claim: &Claim, told: Vec<(Entry, Vec<Decision>)>, seqs: Vec<Option<u64>>) {
        let Ok(source) = HOST_SOURCE.parse::<Name>() else { return };
        for ((entry, decisions), seq) in told.into_iter().zip(seqs) {
            let Some(seq) = seq else { continue };
            let (event, effective_level) = (Arc::new(entry.event), entry.effective_level);
            let (workspace, source) = (claim.queue.workspace.clone(), source.clone());
            let accepted = Happening::Accepted { workspace, seq, source, event, effective_level, decisions };
            self.observer.happened(&accepted);
        }
    }

    pub(super) fn tell_rest(&self, claim: &Claim, goes_on_at: Timestamp, is_wait: bool) {
        let (workspace, route, seq) = (&claim.queue.workspace, &claim.queue.route, first_seq(claim));
        let (delivery, plugin, attempt) = (&claim.id, &claim.plugin, claim.attempt);
        let wait = until(self.means.clock.now(), goes_on_at);
        let next_in = (is_wait || !wait.is_zero()).then_some(wait);
        let shown = next_in.map_or_else(|| "at the next start".to_owned(), |wait| format!("in {}", rounded(wait)));
        tracing::info!(%workspace, seq, %delivery, %route, %plugin, attempt, "the attempt goes on {shown}");
        self.observer.happened(&Happening::Paused {
            workspace: workspace.clone(),
            seq,
            delivery: delivery.clone(),
            route: route.clone(),
            plugin: plugin.clone(),
            attempt: attempt.get(),
            next_in,
        });
    }

    pub(super) fn tell_moved(&self, moved: &Moved) {
        let Moved { id, queue, plugin, seq, state } = moved;
        let (workspace, route) = (&queue.workspace, &queue.route);
        tracing::info!(%workspace, seq, delivery = %id, %route, %plugin, %state, "no attempt was made");
        self.observer.happened(&Happening::Moved {
            workspace: workspace.clone(),
            seq: *seq,
            delivery: id.clone(),
            route: route.clone(),
            plugin: plugin.clone(),
            state: *state,
        });
    }
}

/// The number of the first notification; a claim has one.
fn first_seq(claim: &Claim) -> u64 {
    claim.notifications.first().map_or(0, |first| first.seq)
}

/// How many notifications it stands for besides the first.
fn more(claim: &Claim) -> u64 {
    let listed = u64::try_from(claim.notifications.len().saturating_sub(1)).unwrap_or(u64::MAX);
    listed.saturating_add(claim.omitted.into())
}
