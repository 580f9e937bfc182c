//! Whether a server keeps the rules of the notifications seed, for people who write one.
//!
//! [`check`] reads an outbox in a fixed order and judges what it read, rule by rule ([`RULES`]): the first read, what
//! comes after its cursor, then, once there are events, the same events again, in small pages, after single cursors, and
//! with other bounds. Nothing is judged that was not seen. At most [`READS_MAX`] reads are made, in [`TIME_MAX`] and
//! what it was told to wait.

mod bootstrap;
mod bounds;
mod cursors;
mod page;
mod probe;
pub mod push;
mod remedies;
mod report;
mod rules;
#[cfg(test)]
mod tests;
mod walk;

use std::time::Duration;

use futures_util::future::BoxFuture;

pub use report::{Finding, Report, Verdict};
pub use rules::{Obligation, RULES, Rule};

use super::address::{self, Bounds};
use super::outbox::{Outbox, ReadError};
use crate::clock::Clock;
use crate::config;
use page::Told;
use probe::{Missed, Probe};
use rules as is;
use walk::Walk;

/// Reads of one check: it needs about forty, and fifty more to wait.
pub const READS_MAX: u32 = 200;

/// Time of one check, without what it was told to wait; the read under way is not cut off.
pub const TIME_MAX: Duration = Duration::from_secs(300);

/// Events asked for in a large page.
const PAGE_EVENTS: u32 = 100;

/// What to check.
pub struct Asked<'a> {
    /// The URI of the outbox.
    pub resource: &'a str,
    /// A position to start from besides now, so that older events are seen.
    pub cursor: Option<&'a str>,
    /// The bound of age that reads ask for.
    pub age_max: Duration,
    /// How long to wait for events.
    pub wait: Duration,
    /// Makes events happen, once the first position is known. Its error says why it could not.
    pub trigger: Option<BoxFuture<'a, Result<(), String>>>,
    /// A read that takes longer is told.
    pub latency_max: Duration,
    /// Whether the server is a program that speaks on its standard output.
    pub is_program: bool,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Asked").field("resource", &self.resource).finish_non_exhaustive()
    }
}

/// Checks an outbox. The connection is closed afterwards.
pub async fn check(outbox: &mut dyn Outbox, asked: Asked<'_>, clock: &Clock) -> Report {
    let (resource, time_max) = (asked.resource, TIME_MAX.saturating_add(asked.wait));
    let mut probe = Probe::new(outbox, clock, resource, time_max, asked.latency_max);
    let is_program = asked.is_program;
    let could_not_run = steps(&mut probe, asked).await.err();
    let report = probe.report(could_not_run, is_program);
    outbox.close().await;
    report
}

/// The reads, in order. An error says why they could not be made to the end.
async fn steps<'a>(probe: &mut Probe<'a>, asked: Asked<'a>) -> Result<(), String> {
    if let Some(mistake) = config::outbox_uri_mistake(asked.resource) {
        probe.ledger.fail(&is::DECLARATION, mistake);
        return Ok(());
    }
    probe.ledger.pass(&is::DECLARATION, asked.resource);
    let mut bounds = Bounds { events_max: PAGE_EVENTS, age_max: asked.age_max };
    let first = bootstrap::first(probe, bounds).await?;
    let goes_on = match &first {
        Some(first) => bounds::first_after(probe, first, &mut bounds).await,
        None => asked.cursor.is_some(),
    };
    if !goes_on {
        return Ok(());
    }
    if let Some(trigger) = asked.trigger {
        trigger.await?;
    }
    if let Some(cursor) = asked.cursor {
        is_known(probe, cursor, bounds).await?;
        probe.foreign = Some(cursor);
    }
    if let Some(start) = asked.cursor.map(str::to_owned).or(first) {
        let seen = events(probe, &start, asked.wait, &mut bounds).await;
        cursors::unknown(probe, bounds).await;
        // What was read once and is gone is told already.
        if !probe.ledger.has_failed(&is::EVENTS_KEPT) {
            cursors::durable(probe, &start, &seen, bounds).await;
        }
    }
    Ok(())
}

/// A cursor from outside may be none of this outbox, which is no fault of its.
async fn is_known(probe: &mut Probe<'_>, cursor: &str, bounds: Bounds) -> Result<(), String> {
    match probe.read(&address::after(probe.resource, cursor, bounds)).await {
        Err(Missed::Failed(error @ (ReadError::NotFound(_) | ReadError::Refused { .. }))) => {
            Err(format!("--cursor is refused: {}", remedies::said(&error)))
        }
        _ => Ok(()),
    }
}

/// What the events after `start` show; these events.
async fn events(probe: &mut Probe<'_>, start: &str, wait: Duration, bounds: &mut Bounds) -> Vec<Told> {
    let Some(mut page) = walk::look(probe, start, *bounds, wait).await else { return Vec::new() };
    bounds::compare(probe, start, &mut page, bounds).await;
    let bounds = *bounds;
    let walk = walk::large(probe, start, page, bounds).await;
    probe.events = walk.events.len();
    if !walk.events.is_empty() {
        walk::again(probe, &walk, bounds).await;
        // What is read once and gone can show nothing more.
        if probe.ledger.has_failed(&is::EVENTS_KEPT) {
            return walk.events;
        }
        if !probe.ledger.has_failed(&is::CURSOR_STRICTLY_AFTER) {
            in_other_ways(probe, &walk, bounds).await;
        }
        bootstrap::again(probe, bounds, &walk.events).await;
    }
    cursors::encoding(probe, &walk, bounds).await;
    walk.events
}

/// The same events in small pages, after single ones, and once they are too old.
async fn in_other_ways(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    for events_max in [1, 2] {
        walk::small(probe, walk, Bounds { events_max, ..bounds }).await;
    }
    if !probe.ledger.has_failed(&is::EVENTS_OLDEST_FIRST) {
        cursors::of_events(probe, walk, bounds).await;
    }
    bounds::small(probe, walk, bounds).await;
}
