//! What the `source` of a route or a consumer can reach, and whether its `level` ever comes from there.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::raw::RawWhen;
use super::super::read::Placed;
use super::super::source::Report;
use super::super::suggest;
use super::super::values::TextPattern;
use super::connector::Known;
use crate::notification::{HOST_SOURCE, Level, Name};
use crate::route::{Decision, Facts, Matcher, Router};

/// Checks the sources of what routes and consumers match against the connectors.
pub(super) fn check<'a>(
    whens: impl Iterator<Item = &'a Placed<RawWhen>>,
    connectors: &BTreeMap<Name, Known>,
    report: &mut Report,
) {
    let mut sources: Vec<(Name, Option<Level>)> =
        connectors.iter().map(|(name, known)| (name.clone(), known.ceiling)).collect();
    sources.extend(HOST_SOURCE.parse().ok().map(|name| (name, Some(Level::Urgent))));
    for when in whens {
        let mut hits = Vec::new();
        for pattern in when.source.iter().flat_map(|source| &source.0) {
            let reached = reached(pattern, &sources);
            if reached.is_empty() {
                report_unknown(pattern, &sources, report);
            }
            hits.extend(reached);
        }
        check_level(when, &hits, &sources, report);
    }
}

/// The indexes of the sources that a pattern matches, by the code that decides on deliveries.
fn reached(pattern: &TextPattern, sources: &[(Name, Option<Level>)]) -> Vec<usize> {
    let matcher = Matcher { source: vec![pattern.0.clone()], ..Matcher::default() };
    let Ok(router) = Router::new(vec![matcher]) else { return Vec::new() };
    let is_hit = |source: &Name| {
        let facts = Facts { source, name: "", effective_level: Level::Urgent, subject: None };
        router.select(&facts).iter().all(Decision::matches)
    };
    let hits = sources.iter().enumerate().filter(|(_, (source, _))| is_hit(source));
    hits.map(|(index, _)| index).collect()
}

fn report_unknown(pattern: &Placed<TextPattern>, sources: &[(Name, Option<Level>)], report: &mut Report) {
    let names = sources.iter().map(|(name, _)| name.as_str());
    let quoted = super::super::scalar::quote(&pattern.0);
    if pattern.is_literal() {
        // What will not be kept needs no search for what was meant.
        let names = names.filter(|_| !report.is_full());
        let hint = suggest::hint(&pattern.0, names, "connectors");
        report.mistake(&pattern.at, Code::UnknownConnector.says(format!("unknown connector {quoted}{hint}")));
    } else {
        let names = names.collect::<Vec<_>>().join(", ");
        report.warning(
            &pattern.at,
            Code::NoSuchSource.says(format!("{quoted} matches no connector (connectors: {names})")),
        );
    }
}

/// Warns of a level that no source that is matched can have, by the ceilings. What names no source is meant for connectors,
/// though Switchbell's own notices reach every level.
fn check_level(when: &RawWhen, hits: &[usize], sources: &[(Name, Option<Level>)], report: &mut Report) {
    let Some(level) = &when.level else { return };
    let is_limited = when.source.is_some();
    let can_match = |(index, (name, _)): &(usize, &(Name, Option<Level>))| {
        if is_limited { hits.contains(index) } else { name.as_str() != HOST_SOURCE }
    };
    let candidates: Vec<_> = sources.iter().enumerate().filter(can_match).map(|(_, source)| source).collect();
    let reaches = |ceiling: &Option<Level>| ceiling.is_none_or(|ceiling| ceiling >= level.value);
    if candidates.is_empty() || candidates.iter().any(|(_, ceiling)| reaches(ceiling)) {
        return;
    }
    let ceilings: Vec<String> = candidates
        .iter()
        .take(10)
        .filter_map(|(name, ceiling)| ceiling.map(|ceiling| format!("{name}: {ceiling}")))
        .collect();
    let (which, besides) = if is_limited {
        ("source that is matched here", "")
    } else {
        ("connector", ", or write `source: switchbell` if only Switchbell's own notices are meant")
    };
    let message = format!(
        "no {which} reaches the level {} (ceilings: {}): raise a connector's `ceiling`, or lower the level{besides}",
        level.value,
        ceilings.join(", ")
    );
    report.warning(&level.at, Code::LevelAboveCeilings.says(message));
}
