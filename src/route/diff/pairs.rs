//! Which targets of two configurations of a workspace are the same.

use crate::config::{Route, Target};
use crate::route::rehearsal::TargetIndex;

/// What is written otherwise of a target that both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Its route has another name, or it stands in another route.
    Route,
    /// `plugin`
    Plugin,
    /// `with`
    Settings,
    /// `after`, `unless`, `hold`, `collect`, `at_most`
    Timing,
    /// `retry`, `on_unknown`, `order`
    Repeats,
}

impl Aspect {
    /// What a reader calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Plugin => "plugin",
            Self::Settings => "settings",
            Self::Timing => "timing",
            Self::Repeats => "retry",
        }
    }
}

/// A target of one of two configurations, or of both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Where the old configuration has it.
    pub old: Option<TargetIndex>,
    /// Where the new one has it.
    pub new: Option<TargetIndex>,
    /// What is written otherwise, where both have it.
    pub aspects: Vec<Aspect>,
}

/// Pairs the targets of two configurations: those of the same route by their identity, then those that are left by their
/// identity alone. A route that is renamed is recognised by its targets. In the order of the old file, then of the new.
pub(super) fn pairs(old: &[Route], new: &[Route]) -> Vec<Pair> {
    let renamed = route_pairs(old, new);
    let mut left_new: Vec<TargetIndex> = indices(new).collect();
    let mut take = |fits: &dyn Fn(&TargetIndex) -> bool| {
        let place = left_new.iter().position(fits)?;
        Some(left_new.remove(place))
    };
    let id = |routes: &[Route], at: TargetIndex| target(routes, at).map(|target| target.id.clone());
    let mut found: Vec<(TargetIndex, Option<TargetIndex>)> = Vec::new();
    for at in indices(old) {
        let partner = renamed.iter().find(|(old, _)| *old == at.route).map(|&(_, new)| new);
        let other = take(&|other| Some(other.route) == partner && id(new, *other) == id(old, at));
        found.push((at, other));
    }
    for (at, other) in found.iter_mut().filter(|(_, other)| other.is_none()) {
        *other = take(&|other| id(new, *other) == id(old, *at));
    }
    let both = found.into_iter().map(|(old_at, new_at)| Pair {
        old: Some(old_at),
        new: new_at,
        aspects: new_at.map_or_else(Vec::new, |new_at| aspects((old, old_at), (new, new_at))),
    });
    let mut pairs: Vec<Pair> = both.collect();
    pairs.extend(left_new.into_iter().map(|at| Pair { old: None, new: Some(at), aspects: Vec::new() }));
    pairs
}

/// Every target of some routes.
fn indices(routes: &[Route]) -> impl Iterator<Item = TargetIndex> {
    let of = |(route, of): (usize, &Route)| {
        (0..of.deliver.len()).map(move |target| TargetIndex { route, target }).collect::<Vec<_>>()
    };
    routes.iter().enumerate().flat_map(of)
}

/// A target by its place.
pub(super) fn target(routes: &[Route], at: TargetIndex) -> Option<&Target> {
    routes.get(at.route)?.deliver.get(at.target)
}

/// Routes of one name; then those that share most targets, and most of all those that ask for the same.
fn route_pairs(old: &[Route], new: &[Route]) -> Vec<(usize, usize)> {
    let place = |name: &Route| new.iter().position(|other| other.name == name.name);
    let mut pairs: Vec<(usize, usize)> =
        old.iter().enumerate().filter_map(|(at, route)| Some((at, place(route)?))).collect();
    let mut candidates = Vec::new();
    for (old_at, old) in old.iter().enumerate().filter(|(at, _)| !pairs.iter().any(|(old, _)| old == at)) {
        for (new_at, new) in new.iter().enumerate().filter(|(at, _)| !pairs.iter().any(|(_, new)| new == at)) {
            let shared = old.deliver.iter().filter(|one| new.deliver.iter().any(|other| other.id == one.id)).count();
            if shared > 0 {
                candidates.push((std::cmp::Reverse(shared), old.when != new.when, old_at, new_at));
            }
        }
    }
    candidates.sort_unstable();
    for (_, _, old_at, new_at) in candidates {
        if !pairs.iter().any(|&(old, new)| old == old_at || new == new_at) {
            pairs.push((old_at, new_at));
        }
    }
    pairs
}

/// What is written otherwise of a target that both have.
pub(super) fn aspects((old, old_at): (&[Route], TargetIndex), (new, new_at): (&[Route], TargetIndex)) -> Vec<Aspect> {
    let (Some(one), Some(other)) = (target(old, old_at), target(new, new_at)) else { return Vec::new() };
    let name = |routes: &[Route], at: TargetIndex| routes.get(at.route).map(|route| route.name.clone());
    let repeats = |target: &Target| (target.retry, target.on_unknown, target.is_strict);
    let all = [
        (Aspect::Route, name(old, old_at) != name(new, new_at)),
        (Aspect::Plugin, one.plugin != other.plugin),
        (Aspect::Settings, one.settings != other.settings),
        (Aspect::Timing, one.timing != other.timing),
        (Aspect::Repeats, repeats(one) != repeats(other)),
    ];
    all.into_iter().filter(|(_, differs)| *differs).map(|(aspect, _)| aspect).collect()
}
