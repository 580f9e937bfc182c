//! The first read: with the bare URI, and as hosts that always send their bounds make it.

use super::page::{Told, shortened};
use super::probe::{Missed, Probe};
use super::remedies;
use super::rules as is;
use super::rules::Rule;
use crate::fetch::address::{self, Bounds};
use crate::fetch::outbox::ReadError;

/// A cursor that no outbox issues.
pub(super) const MADE_UP_CURSOR: &str = "switchbell-made-this-up";

/// Makes both first reads; the first cursor, where there is one.
///
/// # Errors
/// When the server cannot be started or reached: why.
pub(super) async fn first(probe: &mut Probe<'_>, bounds: Bounds) -> Result<Option<String>, String> {
    let bare = probe.resource.to_owned();
    let bare_read = probe.read(&bare).await;
    if let Err(Missed::Failed(error)) = &bare_read
        && !probe.is_reached()
    {
        let missed = Missed::Failed(error.clone());
        probe.tell(&is::CONNECTION, &bare, &missed);
        return Err(remedies::said(error));
    }
    let with_bounds = address::first_with_bounds(&bare, bounds);
    let bounded_read = probe.read(&with_bounds).await;
    let remedy = remedy(probe, bounds, &bare_read, &bounded_read).await;

    let first = judge(probe, &is::BOOTSTRAP_BARE, &bare, bare_read, remedy);
    let second = judge(probe, &is::BOOTSTRAP_BOUNDS, &with_bounds, bounded_read, remedy);
    Ok(first.or(second))
}

/// Makes a first read now that these events are there: it must not bring them, nor may what comes after its cursor.
pub(super) async fn again(probe: &mut Probe<'_>, bounds: Bounds, events: &[Told]) {
    let bare = probe.resource.to_owned();
    let rule = if probe.ledger.has_failed(&is::BOOTSTRAP_BARE) { &is::BOOTSTRAP_BOUNDS } else { &is::BOOTSTRAP_BARE };
    let uri = if rule == &is::BOOTSTRAP_BARE { bare } else { address::first_with_bounds(&bare, bounds) };
    if probe.ledger.has_failed(rule) {
        return;
    }
    let read = probe.read(&uri).await;
    let Some(cursor) = judge(probe, rule, &uri, read, None) else { return };
    // What comes back once more says nothing of this cursor where cursors do so anyway.
    if probe.ledger.has_failed(&is::CURSOR_STRICTLY_AFTER) || probe.ledger.has_failed(&is::CURSOR_ENCODING) {
        return;
    }
    let Some(page) = probe.after(&cursor, bounds).await else { return };
    match probe.brings(&page, events) {
        Some(told) => {
            let id = shortened(&told.id);
            let uri = &page.uri;
            probe
                .ledger
                .fail(&is::BOOTSTRAP_FRESH, format!("{id} was there before the first read, yet {uri} brought it"));
        }
        None => probe.ledger.pass(&is::BOOTSTRAP_FRESH, "its cursor stands after every event there was"),
    }
}

/// What a first read shows; its cursor.
fn judge(
    probe: &mut Probe<'_>,
    rule: &'static Rule,
    uri: &str,
    read: Result<super::page::Page, Missed>,
    remedy: Option<&'static str>,
) -> Option<String> {
    let page = match read {
        Ok(page) => page,
        Err(missed) => {
            match (remedy, &missed) {
                (Some(remedy), Missed::Failed(error @ ReadError::NotFound(_))) => {
                    probe.ledger.fail_with(rule, format!("{}: {}", probe.shown(uri), remedies::said(error)), remedy);
                }
                _ => probe.tell(rule, uri, &missed),
            }
            return None;
        }
    };
    let ledger = &mut probe.ledger;
    ledger.pass(rule, format!("{uri} is answered"));
    match page.events.first() {
        None => ledger.pass(&is::BOOTSTRAP_EMPTY, "no events"),
        Some(told) => {
            let (count, id) = (page.events.len(), shortened(&told.id));
            ledger.fail(&is::BOOTSTRAP_EMPTY, format!("{uri} brought {count} events, first {id}"));
        }
    }
    if page.has_more {
        ledger.fail(&is::HAS_MORE_END, format!("{uri} says hasMore, and is to bring no events"));
    }
    if page.truncated {
        ledger.fail(&is::TRUNCATED_FALSE, format!("{uri} says truncated, and no cursor was sent"));
    }
    match &page.cursor {
        Some(cursor) => ledger.pass(&is::BOOTSTRAP_CURSOR, shortened(cursor)),
        None => ledger.fail(&is::BOOTSTRAP_CURSOR, format!("the answer to {uri} has no cursor")),
    }
    page.cursor
}

/// Where no first read was found: whether the outbox is known by any other read.
async fn remedy(
    probe: &mut Probe<'_>,
    bounds: Bounds,
    bare: &Result<super::page::Page, Missed>,
    bounded: &Result<super::page::Page, Missed>,
) -> Option<&'static str> {
    let is_unknown = |read: &Result<_, Missed>| matches!(read, Err(Missed::Failed(ReadError::NotFound(_))));
    if !is_unknown(bare) || !is_unknown(bounded) {
        return None;
    }
    let whole = address::after(probe.resource, MADE_UP_CURSOR, bounds);
    let is_unknown = is_unknown(&probe.read(&whole).await);
    Some(if is_unknown { remedies::NO_SUCH_RESOURCE } else { remedies::WHOLE_TEMPLATE_ONLY })
}
