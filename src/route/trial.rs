//! Runs a test of routes: what is sent, and how that differs from what is to be sent. Pure: [`select`] decides, and the
//! plan is folded from a state without anything.
//!
//! [`select`]: super::Router::select

use std::time::Duration;

use jiff::Timestamp;

use super::fold::{Gone, Matched, Way};
use super::rehearsal::{Rehearsal, TargetIndex};
use super::{Condition, Facts};
use crate::clock::later;
use crate::config::{Expected, Target, Trial, TrialEvent, TrialMark, Workspace};

/// How long is waited after the last event, where the test does not say: longer than anything may wait.
const WAITED_FOR: Duration = Duration::from_secs(60 * 86_400);

/// What an event takes of a digest: a usual one.
const EVENT_BYTES: u64 = 1_000;

/// A delivery that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// To whom.
    pub to: TargetIndex,
    /// What became of it.
    pub gone: Gone,
}

/// What came of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Every delivery that was made, in the order of time; of those looked at.
    pub made: Vec<Made>,
    /// Every delivery that became needless.
    pub suppressed: Vec<Made>,
    /// The expectations that no delivery meets, by their places, and why.
    pub unmet: Vec<(usize, Unmet)>,
    /// The deliveries that nothing expects, by their places among those made.
    pub unexpected: Vec<usize>,
}

impl Ran {
    /// Whether all was as it is to be.
    pub fn is_good(&self) -> bool {
        self.unmet.is_empty() && self.unexpected.is_empty()
    }
}

/// Why an expectation is not met, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// This delivery, which nothing else expects, comes nearest.
    Otherwise(usize),
    /// This one would do, and another expectation has it already.
    Taken(usize),
    /// This event does not match the route: the first condition that does not hold.
    NoMatch(u64, Condition),
    /// It was acknowledged before.
    Suppressed(Timestamp),
    /// It waited still when nobody looked any more.
    Waits,
    /// Nothing is known of why.
    Nothing,
}

/// Something that happens in a test.
#[derive(Clone, Copy)]
enum Happens<'a> {
    Event(u64, &'a TrialEvent),
    Mark(&'a TrialMark),
}

/// Runs a test.
pub fn run(trial: &Trial, workspace: &Workspace) -> Ran {
    let mut rehearsal = Rehearsal::new(&workspace.routes);
    let mut end = trial.start;
    for (at, happens) in happenings(trial) {
        if trial.until.is_some_and(|until| at > until) {
            break;
        }
        end = end.max(at);
        match happens {
            Happens::Event(seq, event) => {
                let decisions = workspace.router.select(&facts(event));
                let (source, subject) = (event.source.as_str(), event.subject.as_deref());
                let (name, level) = (event.name.as_str(), event.level);
                let what = Matched { seq, source, name, subject, level, bytes: EVENT_BYTES };
                rehearsal.matched(at, &what, &decisions);
            }
            Happens::Mark(mark) => rehearsal.acknowledged(at, mark.event, mark.by),
        }
    }
    rehearsal.pass(trial.until.unwrap_or_else(|| later(end, WAITED_FOR)));
    let mut ran = Ran::default();
    rehearsal.gone(|to, gone| {
        if trial.routes.as_ref().is_none_or(|routes| routes.contains(&to.route)) {
            let list = if gone.way == Way::Suppressed { &mut ran.suppressed } else { &mut ran.made };
            list.push(Made { to, gone });
        }
    });
    ran.made.sort_by_key(|made| (made.gone.at, made.to));
    let takers = assign(trial, workspace, &ran.made);
    ran.unexpected = (0..ran.made.len()).filter(|made| !takers.contains(&Some(*made))).collect();
    for (place, expected) in trial.expected.iter().enumerate() {
        if takers.get(place).copied().flatten().is_none() {
            ran.unmet.push((place, why(expected, (trial, workspace), &ran, &rehearsal)));
        }
    }
    ran
}

/// In the order of time; events before acknowledgements of the same moment.
fn happenings(trial: &Trial) -> Vec<(Timestamp, Happens<'_>)> {
    let events = (1..).zip(&trial.events).map(|(seq, event)| (event.at, Happens::Event(seq, event)));
    let marks = trial.marks.iter().map(|mark| (mark.at, Happens::Mark(mark)));
    let mut all: Vec<_> = events.chain(marks).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

fn facts(event: &TrialEvent) -> Facts<'_> {
    Facts { source: &event.source, name: &event.name, effective_level: event.level, subject: event.subject.as_deref() }
}

/// For each expectation the delivery that meets it, each delivery once: as many as can be (augmenting paths).
fn assign(trial: &Trial, workspace: &Workspace, made: &[Made]) -> Vec<Option<usize>> {
    let fits = |expected: &Expected| -> Vec<usize> {
        (0..made.len()).filter(|&place| made.get(place).is_some_and(|one| meets(expected, one, workspace))).collect()
    };
    let candidates: Vec<Vec<usize>> = trial.expected.iter().map(fits).collect();
    let mut owner: Vec<Option<usize>> = vec![None; made.len()];
    for expected in 0..candidates.len() {
        let mut seen = vec![false; made.len()];
        take(expected, &candidates, &mut owner, &mut seen);
    }
    let of = |expected| owner.iter().position(|owner| *owner == Some(expected));
    (0..candidates.len()).map(of).collect()
}

/// Finds a delivery for an expectation, and another for whoever has it. As deep as there are expectations.
fn take(expected: usize, candidates: &[Vec<usize>], owner: &mut [Option<usize>], seen: &mut [bool]) -> bool {
    for &place in candidates.get(expected).into_iter().flatten() {
        let Some(is_seen) = seen.get_mut(place).filter(|seen| !**seen) else { continue };
        *is_seen = true;
        let before = owner.get(place).copied().flatten();
        if before.is_none_or(|other| take(other, candidates, owner, seen)) {
            if let Some(owner) = owner.get_mut(place) {
                *owner = Some(expected);
            }
            return true;
        }
    }
    false
}

fn meets(expected: &Expected, made: &Made, workspace: &Workspace) -> bool {
    is_to(expected, made.to, workspace)
        && expected.at.is_none_or(|at| at == made.gone.at)
        && expected.events.as_ref().is_none_or(|events| *events == made.gone.seqs)
        && expected.omitted.is_none_or(|omitted| omitted == made.gone.omitted)
}

/// Whether a target is the one that is meant.
fn is_to(expected: &Expected, to: TargetIndex, workspace: &Workspace) -> bool {
    let Some(target) = target(workspace, to) else { return false };
    expected.route == to.route
        && expected.target.as_ref().is_none_or(|id| *id == target.id)
        && expected.plugin.as_ref().is_none_or(|plugin| *plugin == target.plugin)
}

/// A target by its place.
pub fn target(workspace: &Workspace, at: TargetIndex) -> Option<&Target> {
    workspace.routes.get(at.route)?.deliver.get(at.target)
}

fn why(expected: &Expected, (trial, workspace): (&Trial, &Workspace), ran: &Ran, left: &Rehearsal) -> Unmet {
    for &seq in expected.events.iter().flatten() {
        let event = usize::try_from(seq).ok().and_then(|seq| trial.events.get(seq.checked_sub(1)?));
        let Some(event) = event else { continue };
        let conditions = workspace.router.explain(expected.route, &facts(event));
        if let Some(unmet) = conditions.into_iter().find(|condition| !condition.holds) {
            return Unmet::NoMatch(seq, unmet);
        }
    }
    let shared = |made: &Made| match &expected.events {
        Some(events) => made.gone.seqs.iter().filter(|seq| events.contains(seq)).count(),
        None => 0,
    };
    let nearest = |places: &mut dyn Iterator<Item = usize>| {
        let to = places.filter_map(|place| Some((place, ran.made.get(place)?)));
        let to = to.filter(|(_, made)| is_to(expected, made.to, workspace));
        to.max_by_key(|(place, made)| (shared(made), std::cmp::Reverse(*place))).map(|(place, _)| place)
    };
    if let Some(place) = nearest(&mut ran.unexpected.iter().copied()) {
        return Unmet::Otherwise(place);
    }
    let is_its = |made: &&Made| is_to(expected, made.to, workspace) && (expected.events.is_none() || shared(made) > 0);
    if let Some(suppressed) = ran.suppressed.iter().find(is_its) {
        return Unmet::Suppressed(suppressed.gone.at);
    }
    let taken =
        (0..ran.made.len()).filter(|&place| ran.made.get(place).is_some_and(|one| meets(expected, one, workspace)));
    if let Some(place) = nearest(&mut taken.into_iter()) {
        return Unmet::Taken(place);
    }
    let targets = workspace.routes.get(expected.route).map_or(0, |route| route.deliver.len());
    let mut places = (0..targets).map(|target| TargetIndex { route: expected.route, target });
    if places.any(|at| is_to(expected, at, workspace) && left.waiting(at) > 0) { Unmet::Waits } else { Unmet::Nothing }
}

#[cfg(test)]
mod tests;
