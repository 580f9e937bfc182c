//! `maxAgeMs`: a very small one must leave everything out, a very large one nothing.

use std::time::Duration;

use jiff::SignedDuration;

use super::page::{Page, shortened};
use super::probe::{Missed, Probe};
use super::remedies;
use super::rules as is;
use super::walk::Walk;
use crate::fetch::address::{self, Bounds};
use crate::fetch::outbox::ReadError;

/// An age that every number can hold.
const DAY: Duration = Duration::from_secs(86_400);

/// An age that nothing known has.
const MOMENT: Duration = Duration::from_millis(1);

/// Until everything known is surely older than a moment, however coarse the server's clock.
const GROW_OLD: Duration = Duration::from_millis(50);

/// The first read after a cursor: whether it is answered. Where it fails and a smaller age helps, that is told, and
/// `bounds` keeps it.
pub(super) async fn first_after(probe: &mut Probe<'_>, cursor: &str, bounds: &mut Bounds) -> bool {
    let uri = address::after(probe.resource, cursor, *bounds);
    let missed = match probe.read(&uri).await {
        Err(missed @ Missed::Failed(_)) => missed,
        Ok(_) | Err(_) => return true,
    };
    let smaller = Bounds { age_max: DAY, ..*bounds };
    let smaller_uri = address::after(probe.resource, cursor, smaller);
    // Whoever waits for nothing once does so again.
    let is_worth_trying = bounds.age_max > DAY && !matches!(missed, Missed::Failed(ReadError::Timeout { .. }));
    if is_worth_trying && probe.read(&smaller_uri).await.is_ok() {
        if let Missed::Failed(error) = &missed {
            let said = format!("{}: {}", probe.shown(&uri), remedies::said(error));
            probe.ledger.fail(&is::MAX_AGE_LARGE, format!("{said}; with one day it is answered"));
        }
        *bounds = smaller;
        return true;
    }
    probe.tell(probe.blamed(cursor, &is::READ_ANSWERED), &uri, &missed);
    false
}

/// Whether a smaller age brings events that the larger one leaves out; then `bounds` keeps the smaller one, and `page`,
/// read after `start`, becomes its.
pub(super) async fn compare(probe: &mut Probe<'_>, start: &str, page: &mut Page, bounds: &mut Bounds) {
    if bounds.age_max <= Duration::from_millis(u64::from(u32::MAX)) || probe.ledger.has_failed(&is::MAX_AGE_LARGE) {
        return;
    }
    let smaller = Bounds { age_max: DAY, ..*bounds };
    let Some(newer) = probe.after(start, smaller).await else { return };
    let age_ms = bounds.age_max.as_millis();
    if newer.events.is_empty() || !page.events.is_empty() {
        probe.ledger.pass(&is::MAX_AGE_LARGE, format!("maxAgeMs={age_ms} is answered"));
        return;
    }
    // They may have come between the two reads.
    let Some(larger) = probe.after(start, *bounds).await else { return };
    if larger.events.is_empty() {
        let count = newer.events.len();
        probe.ledger.fail(
            &is::MAX_AGE_LARGE,
            format!("maxAgeMs={age_ms} brought no events, maxAgeMs={} {count}", DAY.as_millis()),
        );
        (*page, *bounds) = (newer, smaller);
    } else {
        *page = larger;
    }
}

/// Reads everything known with an age that none of it has.
pub(super) async fn small(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    probe.sleep(GROW_OLD).await;
    // By what it says it may be younger than now.
    let limit = probe.now() - SignedDuration::from_millis(1);
    let is_old = |told: &&super::page::Told| told.moment.is_some_and(|moment| moment < limit);
    let old: Vec<_> = walk.events.iter().filter(is_old).cloned().collect();
    if old.is_empty() {
        return;
    }
    let Some(page) = probe.after(&walk.start, Bounds { age_max: MOMENT, ..bounds }).await else { return };
    match probe.brings(&page, &old) {
        Some(told) => {
            let (id, moment) = (shortened(&told.id), told.moment.map(|moment| moment.to_string()).unwrap_or_default());
            probe.ledger.fail(&is::MAX_AGE, format!("{} brought {id} of {moment}", page.uri));
        }
        None => {
            probe.ledger.pass(&is::MAX_AGE, format!("maxAgeMs=1 left {} events out", old.len()));
            if page.truncated {
                probe.ledger.pass(&is::TRUNCATED_TOLD, format!("true, for {} events left out", old.len()));
            } else {
                let seen = format!("{} left {} events out, and says nothing", page.uri, old.len());
                probe.ledger.fail(&is::TRUNCATED_TOLD, seen);
            }
        }
    }
}
