//! Walks through the events: in large pages to know them, then in small ones to see whether they come the same way.

use std::time::Duration;

use super::page::{Known, Page, Told, shortened};
use super::probe::Probe;
use super::rules as is;
use crate::clock::{later, until};
use crate::fetch::address::Bounds;

/// Pages of the large walk: a thousand events show as much as more would.
const PAGES_MAX: usize = 10;

/// Pages of each small walk.
const SMALL_PAGES_MAX: usize = 6;

/// Between two looks for events that are waited for.
const WAIT_STEP_MIN: Duration = Duration::from_millis(250);

/// Looks for events that are waited for.
const LOOKS_MAX: u32 = 50;

/// The events after a cursor, as large pages brought them.
#[derive(Debug)]
pub(super) struct Walk {
    pub start: String,
    pub events: Vec<Told>,
    /// The cursors of its pages.
    pub cursors: Vec<String>,
}

/// Reads after `start` until events come or `wait` is over.
pub(super) async fn look(probe: &mut Probe<'_>, start: &str, bounds: Bounds, wait: Duration) -> Option<Page> {
    let give_up = later(probe.now(), wait);
    let step = (wait / LOOKS_MAX).max(WAIT_STEP_MIN);
    loop {
        let page = probe.after(start, bounds).await?;
        let left = until(probe.now(), give_up);
        if !page.events.is_empty() || left.is_zero() {
            return Some(page);
        }
        probe.sleep(step.min(left)).await;
    }
}

/// Follows `hasMore` from `page`, which was read after `start`, to the end, and reads once more there.
pub(super) async fn large(probe: &mut Probe<'_>, start: &str, page: Page, bounds: Bounds) -> Walk {
    let mut walk = Walk { start: start.to_owned(), events: Vec::new(), cursors: Vec::new() };
    let (mut before, mut page) = (start.to_owned(), page);
    if probe.ledger.has_failed(&is::EVENT_ID_UNIQUE) {
        probe.known = Known::ByContent;
    }
    for _ in 0..PAGES_MAX {
        let Page { events, cursor, has_more, uri, .. } = page;
        walk.events.extend(events.iter().cloned());
        let cursor = cursor.or_else(|| events.last().and_then(|told| told.cursor.clone()));
        let Some(cursor) = cursor else { break };
        if !events.is_empty() && cursor == before {
            let count = events.len();
            probe
                .ledger
                .fail(&is::CURSOR_POSITION, format!("{uri} brought {count} events, and its cursor is the one sent"));
            break;
        }
        walk.cursors.push(cursor.clone());
        let Some(next) = probe.after(&cursor, bounds).await else { break };
        judge_next(probe, &walk.events, &cursor, has_more, &next);
        if next.events.is_empty() || repeats(probe, &walk.events, &next) {
            break;
        }
        (before, page) = (cursor, next);
    }
    judge_order(probe, &walk.events);
    walk
}

fn repeats(probe: &Probe<'_>, events: &[Told], next: &Page) -> bool {
    probe.brings(next, events).is_some()
}

/// What the page after `cursor` shows, which comes after these events.
fn judge_next(probe: &mut Probe<'_>, events: &[Told], cursor: &str, said_more: bool, next: &Page) {
    if let Some(told) = probe.brings(next, events) {
        let rule = probe.blamed(cursor, &is::CURSOR_STRICTLY_AFTER);
        probe.ledger.fail(rule, format!("{} brought {} again", next.uri, shortened(&told.id)));
    } else if !events.is_empty() {
        probe.ledger.pass(&is::CURSOR_STRICTLY_AFTER, "no event came back after its cursor");
    }
    judge_end(probe, said_more, next);
}

/// Whether `next` shows that the page before it said `hasMore` rightly.
fn judge_end(probe: &mut Probe<'_>, said_more: bool, next: &Page) {
    match (next.events.is_empty(), next.has_more, said_more) {
        (true, true, _) => {
            let seen = format!("{} brought no events and says hasMore, so that a host never rests", next.uri);
            probe.ledger.fail(&is::HAS_MORE_END, seen);
        }
        (true, false, true) => {
            let seen = format!("{} brought none, though the answer before said hasMore: a read in vain", next.uri);
            probe.ledger.warn(&is::HAS_MORE_END, seen);
        }
        (true, false, false) => probe.ledger.pass(&is::HAS_MORE_END, "false at the end"),
        // There was more, or something has come since.
        (false, _, _) => {}
    }
}

/// Timestamps say when facts happened, and a fact may be found late: a step back is no breach. An outbox whose every
/// step goes back is newest first.
fn judge_order(probe: &mut Probe<'_>, events: &[Told]) {
    let moments: Vec<_> = events.iter().filter_map(|told| told.moment.map(|moment| (moment, told))).collect();
    let steps = moments.iter().zip(moments.iter().skip(1));
    let back: Vec<_> = steps.filter(|(before, after)| after.0 < before.0).collect();
    let count = moments.len().saturating_sub(1);
    match back.first() {
        None if count > 0 => {
            probe.ledger.pass(&is::EVENTS_OLDEST_FIRST, format!("timestamps of {} events never go back", count + 1));
        }
        None => {}
        Some((before, after)) => {
            let seen = format!(
                "{} of {} comes before {} of {}",
                shortened(&before.1.id),
                before.0,
                shortened(&after.1.id),
                after.0
            );
            if back.len() == count && count > 1 {
                probe.ledger.fail(&is::EVENTS_OLDEST_FIRST, format!("{seen}; every step goes back in time"));
            } else {
                probe.ledger.warn(&is::EVENTS_OLDEST_FIRST, format!("{seen}; well, if it was only found later"));
            }
        }
    }
}

/// Reads the first large page again: it must bring the same.
pub(super) async fn again(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    let most = usize::try_from(bounds.events_max).unwrap_or(usize::MAX);
    let before: Vec<&Told> = walk.events.iter().take(most).collect();
    if before.is_empty() {
        return;
    }
    let Some(page) = probe.after(&walk.start, bounds).await else { return };
    if page.events.len() < before.len() {
        let (found, count) = (page.events.len(), before.len());
        probe.ledger.fail(&is::EVENTS_KEPT, format!("{} brought {found} events, and {count} before", page.uri));
        return;
    }
    probe.ledger.pass(&is::EVENTS_KEPT, "a second read brought them again");
    let mut minted = 0;
    for (old, new) in before.iter().zip(&page.events) {
        if old.id == new.id {
            if old.content != new.content {
                let seen = format!("{} came with another name, timestamp or data", shortened(&old.id));
                probe.ledger.fail(&is::EVENT_UNCHANGED, seen);
            }
        } else if old.content == new.content {
            minted += 1;
            let seen = format!("{} came again as {}", shortened(&old.id), shortened(&new.id));
            probe.ledger.fail(&is::EVENT_ID_STABLE, seen);
        }
    }
    if minted > 0 {
        probe.known = Known::ByContent;
    }
    probe.ledger.pass(&is::EVENT_ID_STABLE, "the same ids on a second read");
    probe.ledger.pass(&is::EVENT_UNCHANGED, "the same names, timestamps and data");
}

/// Reads the same events a few at a time.
pub(super) async fn small(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    let size = usize::try_from(bounds.events_max).unwrap_or(usize::MAX);
    let mut cursor = walk.start.clone();
    let mut done = 0;
    for _ in 0..SMALL_PAGES_MAX {
        let seen = walk.events.get(..done).unwrap_or_default();
        let left = walk.events.get(done..).unwrap_or_default();
        let Some(page) = probe.after(&cursor, bounds).await else { return };
        if page.events.len() > size {
            return;
        }
        if left.len() > size {
            probe.ledger.pass(&is::MAX_EVENTS, format!("maxEvents={size} brought {}", page.events.len()));
        }
        if !is_next(probe, &cursor, &page, seen, left) {
            return;
        }
        judge_more(probe, &page, left);
        done += page.events.len();
        let has_come_back = page.cursor.as_ref() == Some(&cursor);
        let Some(next) = page.cursor.filter(|_| !has_come_back) else { return };
        if done >= walk.events.len() {
            if page.has_more
                && let Some(end) = probe.after(&next, bounds).await
            {
                judge_end(probe, true, &end);
            }
            return;
        }
        cursor = next;
    }
}

/// Whether `page`, read after `cursor`, brings what is `left` after what was `seen`.
fn is_next(probe: &mut Probe<'_>, cursor: &str, page: &Page, seen: &[Told], left: &[Told]) -> bool {
    let uri = &page.uri;
    if let Some(told) = probe.brings(page, seen) {
        let rule = probe.blamed(cursor, &is::CURSOR_STRICTLY_AFTER);
        probe.ledger.fail(rule, format!("{uri} brought {} again", shortened(&told.id)));
        return false;
    }
    let Some(wanted) = left.first() else { return true };
    let rule = probe.blamed(cursor, &is::CURSOR_POSITION);
    let wanted_id = shortened(&wanted.id);
    match page.events.first() {
        None => {
            probe.ledger.fail(rule, format!("{uri} brought nothing, and {wanted_id} comes next"));
            false
        }
        // Where pages are turned round, small ones cannot be compared with a large one.
        Some(found) if found.key(probe.known) != wanted.key(probe.known) => {
            if !probe.ledger.has_failed(&is::EVENTS_OLDEST_FIRST) {
                let found = shortened(&found.id);
                probe.ledger.fail(rule, format!("{uri} brought {found}, and {wanted_id} comes next"));
            }
            false
        }
        Some(_) => {
            if !seen.is_empty() {
                probe.ledger.pass(&is::CURSOR_POSITION, "small pages bring the same events in the same order");
            }
            true
        }
    }
}

/// Whether `page` says that there is more where it was cut; `left` were there before it.
fn judge_more(probe: &mut Probe<'_>, page: &Page, left: &[Told]) {
    let rest = left.len().saturating_sub(page.events.len());
    if rest > 0 && page.has_more {
        probe.ledger.pass(&is::HAS_MORE_CUT, "true while there was more");
    } else if rest > 0 {
        probe.ledger.fail(&is::HAS_MORE_CUT, format!("{} says no, and {rest} more were there", page.uri));
    }
}
