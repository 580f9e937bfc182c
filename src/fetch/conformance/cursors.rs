//! Cursors by themselves: those of single events, those that need encoding, and one that was never issued.

use super::bootstrap::MADE_UP_CURSOR;
use super::page::{Page, Told, shortened};
use super::probe::{Missed, Probe};
use super::remedies;
use super::rules as is;
use super::walk::Walk;
use crate::fetch::address::{self, Bounds};
use crate::fetch::outbox::ReadError;

/// Cursors of each kind that are tried.
const TRIED_MAX: usize = 3;

/// Reads after the own cursors of some events: the next one must come.
pub(super) async fn of_events(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    let with_cursor = walk.events.iter().zip(1..).filter_map(|(told, next)| Some((told, told.cursor.clone()?, next)));
    let tried: Vec<(&Told, String, usize)> = with_cursor.take(TRIED_MAX).collect();
    for (told, cursor, next) in tried {
        let id = shortened(&told.id);
        let uri = address::after(probe.resource, &cursor, bounds);
        let page = match probe.read(&uri).await {
            Ok(page) => page,
            Err(missed) => {
                let rule = probe.blamed(&cursor, &is::CURSOR_OF_EVENT);
                probe.tell(rule, &uri, &missed);
                continue;
            }
        };
        let (before, after) = walk.events.split_at_checked(next).unwrap_or((&walk.events, &[]));
        let is_right = match (after.first(), page.events.first()) {
            (Some(wanted), Some(found)) => wanted.key(probe.known) == found.key(probe.known),
            (Some(_), None) => false,
            // Something may have come since.
            (None, _) => probe.brings(&page, before).is_none(),
        };
        if is_right {
            probe.ledger.pass(&is::CURSOR_OF_EVENT, "the next event comes after it");
        } else {
            let found = page.events.first().map_or_else(|| "nothing".to_owned(), |found| shortened(&found.id));
            let seen = format!("{}, the cursor of {id}, brought {found}", page.uri);
            let rule = probe.blamed(&cursor, &is::CURSOR_OF_EVENT);
            probe.ledger.fail(rule, seen);
        }
    }
}

/// Spells cursors as RFC 6570 does, and compares with the spelling that encodes no more than it must.
pub(super) async fn encoding(probe: &mut Probe<'_>, walk: &Walk, bounds: Bounds) {
    let own = walk.events.iter().filter_map(|told| told.cursor.as_ref());
    let all: Vec<&String> = std::iter::once(&walk.start).chain(&walk.cursors).chain(own).collect();
    let mut awkward: Vec<&String> = all.iter().filter(|cursor| strictly(cursor) != ***cursor).copied().collect();
    awkward.dedup();
    if awkward.is_empty() {
        let seen = format!("{} cursors, none with a character that has to be encoded", all.len());
        probe.ledger.pass(&is::CURSOR_ENCODING, seen);
        return;
    }
    for cursor in awkward.into_iter().take(TRIED_MAX) {
        let Some(plain) = probe.after(cursor, bounds).await else { continue };
        let query = format!("{}&maxEvents={}", strictly(cursor), bounds.events_max);
        let uri = format!("{}?cursor={query}&maxAgeMs={}", probe.resource, bounds.age_max.as_millis());
        match probe.read(&uri).await {
            Ok(encoded) if are_alike(probe, &plain, &encoded) => {
                let seen = format!("{} and {} bring the same", shortened(cursor), shortened(&strictly(cursor)));
                probe.ledger.pass(&is::CURSOR_ENCODING, seen);
            }
            Ok(encoded) => {
                let seen = format!("{} and {} bring different events", plain.uri, encoded.uri);
                probe.ledger.fail(&is::CURSOR_ENCODING, seen);
            }
            Err(missed) => probe.tell(&is::CURSOR_ENCODING, &uri, &missed),
        }
    }
}

/// Whether both bring the same, but for what came in between.
fn are_alike(probe: &Probe<'_>, first: &Page, second: &Page) -> bool {
    let is_same = |(old, new): (&Told, &Told)| old.key(probe.known) == new.key(probe.known);
    second.events.len() >= first.events.len() && first.events.iter().zip(&second.events).all(is_same)
}

/// Every character encoded but the unreserved ones (RFC 6570 §3.2.8).
fn strictly(cursor: &str) -> String {
    let mut spelled = String::new();
    for byte in cursor.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            spelled.push(char::from(byte));
        } else {
            spelled.push_str(&format!("%{byte:02X}"));
        }
    }
    spelled
}

/// Reads after a cursor that was never issued.
pub(super) async fn unknown(probe: &mut Probe<'_>, bounds: Bounds) {
    let uri = address::after(probe.resource, MADE_UP_CURSOR, bounds);
    let cannot_tell = "so that a host cannot tell that its own is lost";
    match probe.read(&uri).await {
        Ok(page) if page.truncated => probe.ledger.pass(&is::CURSOR_UNKNOWN, "answered with truncated"),
        Ok(page) => {
            let count = page.events.len();
            let seen = format!("{}: {count} events and no word, {cannot_tell}", page.uri);
            probe.ledger.fail(&is::CURSOR_UNKNOWN, seen);
        }
        Err(Missed::Failed(error @ (ReadError::NotFound(_) | ReadError::Refused { .. }))) => {
            if error.speaks_of_cursor() {
                probe.ledger.pass(&is::CURSOR_UNKNOWN, "refused with an error that speaks of it");
            } else {
                let said = remedies::said(&error);
                let seen = format!("{}: {said}; it does not speak of the cursor, {cannot_tell}", probe.shown(&uri));
                probe.ledger.fail(&is::CURSOR_UNKNOWN, seen);
            }
        }
        Err(missed) => probe.tell(&is::CURSOR_UNKNOWN, &uri, &missed),
    }
}

/// Reads after `start` over a new connection, for which a program is started anew: these events must still be there.
pub(super) async fn durable(probe: &mut Probe<'_>, start: &str, events: &[Told], bounds: Bounds) {
    probe.disconnect().await;
    let uri = address::after(probe.resource, start, bounds);
    let page = match probe.read(&uri).await {
        Ok(page) => page,
        Err(missed) => {
            probe.tell(&is::CURSOR_DURABLE, &uri, &missed);
            return;
        }
    };
    match events.first() {
        Some(lost) if probe.brings(&page, events).is_none() => {
            let seen = format!("{} over a new connection brought {} no more", page.uri, shortened(&lost.id));
            probe.ledger.fail(&is::CURSOR_DURABLE, seen);
        }
        _ => probe.ledger.pass(&is::CURSOR_DURABLE, "it works over a new connection"),
    }
}
