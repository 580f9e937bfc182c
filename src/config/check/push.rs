//! `push` and `levels` of `notifications`: a push queue in place of an outbox.

use std::collections::BTreeMap;

use super::super::Push;
use super::super::code::Code;
use super::super::node::At;
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::values::EventName;
use super::outbox::Declared;
use crate::notification::Level;

/// Most types of events that have a level of their own.
const LEVELS_MAX: usize = 200;

/// `levels` as it is written.
type Levels = Placed<Map<EventName, Level>>;

/// Where an outbox is declared beside it, if it is.
pub(super) struct Given<'a> {
    pub resource: Option<&'a At>,
    pub manifest: Option<&'a At>,
}

/// The queue, where `push` or `levels` was written; none when neither was.
pub(super) fn check(
    (push, levels): (Option<Placed<bool>>, Option<Levels>),
    given: Given<'_>,
    report: &mut Report,
) -> Option<Declared> {
    let outbox = given.resource.map(|at| ("resource", at)).or(given.manifest.map(|at| ("manifest", at)));
    let Some(push) = push else {
        let levels = levels?;
        let message = "`levels` is for a push queue: an event of an outbox says its level itself; remove it, or write \
                       `push: true` in place of the outbox";
        report.mistake(&levels.at, Code::ConflictingKeys.says(message));
        return outbox.is_none().then(Declared::default);
    };
    if !push.value {
        let message = "`push` is `true` or not there: remove it, and declare the outbox by `resource` or `manifest`";
        report.mistake(&push.at, Code::BadValue.says(message));
        return Some(Declared::default());
    }
    if let Some((key, at)) = outbox {
        let message = format!("both `push` and `{key}`: a connector has a push queue or an outbox; keep one of them");
        report.mistake(at, Code::ConflictingKeys.says(message));
    }
    let levels = levels.map_or_else(BTreeMap::new, |levels| levels_of(levels, report));
    Some(Declared { push: Some(Push { levels }), ..Declared::default() })
}

fn levels_of(levels: Levels, report: &mut Report) -> BTreeMap<String, Level> {
    let Placed { at, value: Map(entries) } = levels;
    if entries.len() > LEVELS_MAX {
        let count = entries.len();
        report.mistake(&at, Code::OutOfBounds.says(format!("{count} levels: a push queue has at most {LEVELS_MAX}")));
    }
    let entries = entries.into_iter().take(LEVELS_MAX);
    entries.filter_map(|entry| Some((entry.name.0, entry.value?.value))).collect()
}
