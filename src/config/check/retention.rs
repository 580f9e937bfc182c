//! How long things are kept.

use std::time::Duration;

use super::super::code::Code;
use super::super::load::Folder;
use super::super::raw::{RawKept, RawRetention};
use super::super::read::Placed;
use super::super::source::Report;
use super::super::values::show;
use super::super::{Kept, Retention};
use super::server::{path_of, within};

/// Shortest time that anything is kept.
const AGE_MIN: Duration = Duration::from_secs(3_600);
/// Longest: ten years.
const AGE_MAX: Duration = Duration::from_secs(3_650 * 86_400);

/// Checks the operator's keys. Outboxes may replay events for `replayed`.
pub(super) fn server(
    raw: Option<Placed<RawRetention>>,
    replayed: Duration,
    folder: &Folder,
    report: &mut Report,
) -> Retention {
    let default = Retention::default();
    let Some(raw) = raw else { return default };
    let RawRetention { age, count, dedupe, export, given: _ } = raw.value;
    within(age.as_ref(), AGE_MIN, AGE_MAX, report);
    within(dedupe.as_ref(), AGE_MIN, AGE_MAX, report);
    let kept = Kept {
        age: age.as_ref().map_or(default.kept.age, |age| age.0),
        count: count.map_or(default.kept.count, |count| count.0),
    };
    let known = dedupe.as_ref().map_or(default.dedupe, |dedupe| dedupe.0);
    if known < kept.age {
        let at = dedupe.as_ref().or(age.as_ref()).map_or(&raw.at, |span| &span.at);
        let text = format!(
            "the ids of events would be forgotten after {} while notifications are kept for {}: write a `dedupe` that is no \
             shorter than the `age`",
            show(known),
            show(kept.age)
        );
        report.mistake(at, Code::OutOfOrder.says(text));
    } else if let Some(dedupe) = dedupe.as_ref().filter(|_| known < replayed) {
        let text = format!(
            "outboxes may replay events of the last {} (`poll.max_age`), which would come as new ones once their ids are \
             forgotten after {}: write a `dedupe` that is no shorter",
            show(replayed),
            show(known)
        );
        report.mistake(&dedupe.at, Code::OutOfOrder.says(text));
    }
    let export = export.and_then(|path| Some(folder.absolute.join(path_of(&path.at, &path.value.0, report)?)));
    Retention { kept, dedupe: known, export }
}

/// Checks a workspace's own keys, which only shorten what the operator says.
pub(super) fn workspace(raw: Option<Placed<RawKept>>, most: Kept, report: &mut Report) -> Kept {
    let Some(RawKept { age, count, given: _ }) = raw.map(|raw| raw.value) else { return most };
    within(age.as_ref(), AGE_MIN, AGE_MAX, report);
    if let Some(age) = age.as_ref().filter(|age| age.0 > most.age) {
        let text = format!(
            "a workspace can only keep notifications for a shorter time than the operator allows, which is {}: write {} or \
             less, or remove it",
            show(most.age),
            show(most.age)
        );
        report.mistake(&age.at, Code::OutOfBounds.says(text));
    }
    if let Some(count) = count.as_ref().filter(|count| count.0 > most.count) {
        let text = format!(
            "a workspace can only keep fewer notifications than the operator allows, which is {}: write {} or less, or \
             remove it",
            most.count, most.count
        );
        report.mistake(&count.at, Code::OutOfBounds.says(text));
    }
    Kept {
        age: age.map_or(most.age, |age| age.0.min(most.age)),
        count: count.map_or(most.count, |count| count.0.min(most.count)),
    }
}
