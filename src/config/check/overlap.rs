//! Routes that surely do not do what was meant: those that can match nothing, and those that deliver the same twice.

use std::collections::BTreeMap;

use super::super::code::Code;
use super::super::node::At;
use super::super::raw::RawRoute;
use super::super::read::Placed;
use super::super::source::Report;
use super::super::{Route, Target};
use super::route::identity;
use crate::notification::Level;
use crate::route::{Matcher, name_covers};

/// Most work that patterns are compared with for one workspace, in pairs of characters: a hundred times what real routes
/// need. What is beyond that is not looked at.
const WORK_MAX: usize = 20_000_000;

/// Every name.
const EVERYTHING: &str = "**";

/// Warns of such routes. `raw` are the same routes as they are written.
pub(super) fn check(raw: &[Placed<RawRoute>], routes: &[Route], report: &mut Report) {
    let mut work = Work { left: WORK_MAX };
    let pairs: Vec<(&Placed<RawRoute>, &Route)> = raw.iter().zip(routes).collect();
    for (raw, route) in &pairs {
        if let Some(not) = raw.when.as_ref().and_then(|when| when.not.as_ref())
            && work.takes_all_out(&route.when)
        {
            let what = if route.when.name.is_empty() { "every name" } else { "every name that `name` lets in" };
            let text = format!("`not` takes out {what}, so that this route matches nothing: narrow `not`");
            report.warning(&not.at, Code::MatchesNothing.says(text));
        }
    }
    for (at, text) in repeated(&pairs, &mut work) {
        report.warning(at, Code::RepeatedRoute.says(text));
    }
}

/// One target of one route.
struct Place<'a> {
    route: usize,
    number: usize,
    at: &'a At,
    target: &'a Target,
}

/// The targets that get the same from another route too, each with what to say of it.
fn repeated<'a>(pairs: &[(&'a Placed<RawRoute>, &'a Route)], work: &mut Work) -> Vec<(&'a At, String)> {
    let mut by_destination: BTreeMap<String, Vec<Place<'a>>> = BTreeMap::new();
    for (route, (raw, checked)) in pairs.iter().enumerate() {
        let written = raw.deliver.iter().flat_map(|list| list.iter());
        for (number, (raw, target)) in written.zip(&checked.deliver).enumerate() {
            let place = Place { route, number, at: &raw.at, target };
            by_destination.entry(identity(&target.plugin, &target.settings)).or_default().push(place);
        }
    }
    let mut found = Vec::new();
    for places in by_destination.values().filter(|places| places.len() > 1) {
        for one in places {
            let other = places.iter().find_map(|other| said(one, other, pairs, work));
            found.extend(other.map(|text| (one.at, text)));
        }
    }
    found
}

/// What is said of `one` because of `other`; nothing where they are no repetition, or it is said of the other.
fn said(one: &Place<'_>, other: &Place<'_>, pairs: &[(&Placed<RawRoute>, &Route)], work: &mut Work) -> Option<String> {
    let (route, wider) = (pairs.get(one.route)?.1, pairs.get(other.route)?.1);
    if one.route == other.route || !is_sent_alike(one.target, other.target) || !work.is_wider(&wider.when, &route.when)
    {
        return None;
    }
    let is_same = work.is_wider(&route.when, &wider.when);
    // Of two that say the same, the second is the one too many.
    if is_same && one.route < other.route {
        return None;
    }
    let what = if is_same { "matches the same" } else { "matches all that this route matches" };
    let remedy = if is_same { "remove one of the two" } else { "remove this one, or take it out there with `not`" };
    let (name, number) = (&wider.name, other.number);
    Some(format!(
        "route {name} {what} and delivers the same to the same target (deliver[{number}]), so that it arrives twice: {remedy}"
    ))
}

/// Whether two targets hear of things at the same moment: a reminder, or a digest, of what was told at once is no repetition.
fn is_sent_alike(one: &Target, other: &Target) -> bool {
    let stages = |target: &Target| {
        let timing = &target.timing;
        (timing.after.clone(), timing.unless, timing.hold.clone(), timing.collect.clone())
    };
    stages(one) == stages(other)
}

/// Comparisons, as long as there is work left to do.
struct Work {
    left: usize,
}

impl Work {
    /// Whether every name that the one pattern matches is surely matched by the other.
    fn covers(&mut self, outer: &str, inner: &str) -> bool {
        if outer == inner || outer == EVERYTHING {
            return true;
        }
        let cost = (outer.len() + 1) * (inner.len() + 1);
        let is_affordable = self.left >= cost;
        self.left = self.left.saturating_sub(cost);
        is_affordable && name_covers(outer, inner)
    }

    fn covers_any(&mut self, outers: &[String], inner: &str) -> bool {
        outers.iter().any(|outer| self.covers(outer, inner))
    }

    /// Whether `not` surely excludes every name that `name` lets in.
    fn takes_all_out(&mut self, matcher: &Matcher) -> bool {
        if matcher.name.is_empty() {
            return self.covers_any(&matcher.not, EVERYTHING);
        }
        matcher.name.iter().all(|name| self.covers_any(&matcher.not, name))
    }

    /// Whether the first surely matches whatever the second matches.
    fn is_wider(&mut self, wider: &Matcher, narrower: &Matcher) -> bool {
        let contains = |all: &[String], some: &[String]| {
            all.is_empty() || (!some.is_empty() && some.iter().all(|text| all.contains(text)))
        };
        let level = |matcher: &Matcher| matcher.level.unwrap_or(Level::Info);
        level(wider) <= level(narrower)
            && contains(&wider.source, &narrower.source)
            && contains(&wider.subject, &narrower.subject)
            && wider.not.iter().all(|not| self.covers_any(&narrower.not, not))
            && (wider.name.is_empty()
                || self.covers_any(&wider.name, EVERYTHING)
                || (!narrower.name.is_empty() && narrower.name.iter().all(|name| self.covers_any(&wider.name, name))))
    }
}
