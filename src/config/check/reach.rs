//! What a route's `source` can reach, and whether its `level` ever comes from there.

use std::collections::BTreeMap;

use super::super::raw::RawRoute;
use super::super::read::Placed;
use super::super::source::Report;
use super::super::suggest;
use super::super::values::TextPattern;
use super::connector::{HOST_SOURCE, Known};
use crate::notification::{Level, Name};
use crate::route::{Facts, Matcher, Router};

/// Checks every route's sources against the connectors.
pub(super) fn check(routes: &[Placed<RawRoute>], connectors: &BTreeMap<Name, Known>, report: &mut Report) {
    let mut sources: Vec<(Name, Option<Level>)> =
        connectors.iter().map(|(name, known)| (name.clone(), known.ceiling)).collect();
    sources.extend(HOST_SOURCE.parse().ok().map(|name| (name, Some(Level::Urgent))));
    let patterns: Vec<&Placed<TextPattern>> = routes.iter().flat_map(patterns).collect();
    let Some(reached) = reached(&patterns, &sources) else { return };
    let mut reached = reached.into_iter();
    for route in routes {
        let own: Vec<_> = patterns_of(route).iter().zip(reached.by_ref()).collect();
        for (pattern, hits) in &own {
            if hits.is_empty() {
                report_unknown(pattern, &sources, report);
            }
        }
        let hits: Vec<usize> = own.iter().flat_map(|(_, hits)| hits.iter().copied()).collect();
        check_level(route, &hits, &sources, report);
    }
}

fn patterns(route: &Placed<RawRoute>) -> impl Iterator<Item = &Placed<TextPattern>> {
    patterns_of(route).iter()
}

fn patterns_of(route: &Placed<RawRoute>) -> &[Placed<TextPattern>] {
    let source = route.when.as_ref().and_then(|when| when.source.as_ref());
    source.map_or(&[], |source| source.0.as_slice())
}

/// The indexes of the sources that each pattern matches, through the code that decides on deliveries.
fn reached(patterns: &[&Placed<TextPattern>], sources: &[(Name, Option<Level>)]) -> Option<Vec<Vec<usize>>> {
    let matcher = |pattern: &&Placed<TextPattern>| Matcher { source: vec![pattern.0.clone()], ..Matcher::default() };
    let router = Router::new(patterns.iter().map(matcher).collect()).ok()?;
    let mut reached = vec![Vec::new(); patterns.len()];
    for (index, (source, _)) in sources.iter().enumerate() {
        let facts = Facts { source, name: "", effective_level: Level::Urgent, subject: None };
        for decision in router.select(&facts).into_iter().filter(|decision| decision.matches()) {
            if let Some(hits) = reached.get_mut(decision.route) {
                hits.push(index);
            }
        }
    }
    Some(reached)
}

fn report_unknown(pattern: &Placed<TextPattern>, sources: &[(Name, Option<Level>)], report: &mut Report) {
    let names = sources.iter().map(|(name, _)| name.as_str());
    let quoted = super::super::scalar::quote(&pattern.0);
    if pattern.is_literal() {
        let hint = suggest::hint(&pattern.0, names, "connectors");
        report.mistake(&pattern.at, format!("unknown connector {quoted}{hint}"));
    } else {
        let names = names.collect::<Vec<_>>().join(", ");
        report.warning(&pattern.at, format!("{quoted} matches no connector (connectors: {names})"));
    }
}

/// Warns of a level that no source of the route can have, by the ceilings.
fn check_level(route: &Placed<RawRoute>, hits: &[usize], sources: &[(Name, Option<Level>)], report: &mut Report) {
    let Some(when) = &route.when else { return };
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
    let message = format!(
        "no source of this route reaches the level {} (ceilings: {}): raise a connector's `ceiling`, or lower the level",
        level.value,
        ceilings.join(", ")
    );
    report.warning(&level.at, message);
}
