//! Consumers: what joins the queue of each.

use super::super::Consumers;
use super::super::code::Code;
use super::super::raw::{RawConsumer, RawWhen};
use super::super::read::{Map, Named, Placed};
use super::super::source::Report;
use super::route::matcher;
use crate::inbox::CONSUMERS_MAX;
use crate::notification::Name;
use crate::route::Matcher;

/// The consumers as they are written, no more than there may be.
pub(super) fn raw(raw: Option<Placed<Map<Name, RawConsumer>>>, report: &mut Report) -> Vec<Named<Name, RawConsumer>> {
    let Some(Placed { at, value: Map(mut entries) }) = raw else { return Vec::new() };
    if entries.len() > CONSUMERS_MAX {
        let count = entries.len();
        report.mistake(
            &at,
            Code::OutOfBounds.says(format!("{count} consumers: a workspace has at most {CONSUMERS_MAX}")),
        );
        entries.truncate(CONSUMERS_MAX);
    }
    entries
}

/// What each of them matches.
pub(super) fn whens(raw: &[Named<Name, RawConsumer>]) -> impl Iterator<Item = &Placed<RawWhen>> {
    raw.iter().filter_map(|entry| entry.value.as_ref()?.when.as_ref())
}

/// The consumers, ready to match. None when one cannot be used, which was reported.
pub(super) fn check(raw: Vec<Named<Name, RawConsumer>>, report: &mut Report) -> Option<Consumers> {
    let at = raw.first().map(|entry| entry.at.clone());
    let consumers = raw.into_iter().map(|entry| {
        let when = entry.value?.value.when.map_or_else(Matcher::default, |when| matcher(&when));
        Some((entry.name, when))
    });
    match Consumers::new(consumers.collect::<Option<_>>()?) {
        Ok(consumers) => Some(consumers),
        Err(error) => {
            let text = format!(
                "the patterns of all consumers together cannot be matched at once ({error}): write fewer, or with fewer `*`"
            );
            report.mistake(&at?, Code::PatternSetTooLarge.says(text));
            None
        }
    }
}
