//! The same for programs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::diff::{Compared, Span};
use super::super::sides::Sides;
use super::find;
use crate::config::Workspace;
use crate::inbox::Known;
use crate::notification::Name;
use crate::route::diff::{Aspect, Fate, Pair, Sent, Simulation};
use crate::route::rehearsal::TargetIndex;

/// Everything that was found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct DiffJson<'a> {
    since: String,
    until: String,
    only_old: Vec<&'a str>,
    only_new: Vec<&'a str>,
    workspaces: Vec<WorkspaceJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkspaceJson<'a> {
    workspace_id: &'a str,
    notifications: u64,
    different: u64,
    first: u64,
    levels: Vec<LevelJson<'a>>,
    missing_sources: Vec<MissingJson<'a>>,
    targets: Vec<TargetJson<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LevelJson<'a> {
    source: &'a str,
    notifications: u64,
    old_example: &'static str,
    new_example: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MissingJson<'a> {
    source: &'a str,
    old: u64,
    new: u64,
}

/// A target of one side, or of both.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TargetJson<'a> {
    old: Option<PlaceJson<'a>>,
    new: Option<PlaceJson<'a>>,
    differs_in: Vec<&'static str>,
    counts: BTreeMap<&'static str, u64>,
    examples: BTreeMap<&'static str, Vec<ExampleJson<'a>>>,
    simulated: Option<SimulatedJson>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlaceJson<'a> {
    route: &'a str,
    target: &'a str,
    plugin: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExampleJson<'a> {
    seq: u64,
    received_at: String,
    source: &'a str,
    name: &'a str,
    subject: Option<&'a str>,
    level: &'static str,
    effective_level: &'static str,
}

/// What would have been sent from an empty state.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SimulatedJson {
    is_same: bool,
    old: SentJson,
    new: SentJson,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentJson {
    deliveries: u64,
    by: BTreeMap<&'static str, u64>,
    still_waiting: usize,
}

impl<'a> DiffJson<'a> {
    /// Of all workspaces.
    pub(in super::super) fn of(all: &'a [Compared<'a>], sides: &'a Sides, span: Span) -> Self {
        Self {
            since: span.since.to_string(),
            until: span.until.to_string(),
            only_old: sides.gone.iter().map(Name::as_str).collect(),
            only_new: sides.new.iter().map(Name::as_str).collect(),
            workspaces: all.iter().map(WorkspaceJson::of).collect(),
        }
    }
}

impl<'a> WorkspaceJson<'a> {
    fn of(compared: &'a Compared<'a>) -> Self {
        let totals = compared.diff.totals();
        let known: BTreeMap<u64, &Known> = compared.shown.iter().map(|known| (known.seq, known)).collect();
        let level = |(source, (notifications, old, new)): (&'a Name, &(u64, _, _))| LevelJson {
            source: source.as_str(),
            notifications: *notifications,
            old_example: crate::notification::Level::as_str(*old),
            new_example: crate::notification::Level::as_str(*new),
        };
        let missing = totals.unknown.iter();
        let missing = missing.map(|(source, of)| MissingJson { source: source.as_str(), old: of.old, new: of.new });
        let pairs = compared.diff.pairs().iter().enumerate();
        Self {
            workspace_id: compared.name.as_str(),
            notifications: totals.notifications,
            different: totals.different,
            first: totals.first,
            levels: totals.levels.iter().map(level).collect(),
            missing_sources: missing.collect(),
            targets: pairs.map(|(place, pair)| TargetJson::of(compared, &known, (place, pair))).collect(),
        }
    }
}

impl<'a> TargetJson<'a> {
    fn of(compared: &'a Compared<'a>, known: &BTreeMap<u64, &'a Known>, (place, pair): (usize, &Pair)) -> Self {
        let (mut counts, mut examples) = (BTreeMap::new(), BTreeMap::new());
        for fate in Fate::DIFFERENT.into_iter().chain([Fate::Kept]) {
            let Some(count) = compared.diff.count(place, fate) else { continue };
            counts.insert(fate.as_str(), count.notifications);
            let shown: Vec<_> = count.newest.iter().rev().filter_map(|seq| known.get(seq)).collect();
            if !shown.is_empty() {
                examples.insert(fate.as_str(), shown.into_iter().map(|known| ExampleJson::of(known)).collect());
            }
        }
        let (old, new) = compared.sides;
        Self {
            old: pair.old.and_then(|at| PlaceJson::of(old, at)),
            new: pair.new.and_then(|at| PlaceJson::of(new, at)),
            differs_in: pair.aspects.iter().copied().map(Aspect::as_str).collect(),
            counts,
            examples,
            simulated: compared.simulation.as_ref().map(|simulation| SimulatedJson::of(simulation, pair)),
        }
    }
}

impl<'a> PlaceJson<'a> {
    fn of(workspace: &'a Workspace, at: TargetIndex) -> Option<Self> {
        let (route, target) = find(workspace, at)?;
        Some(Self { route, target: &target.id, plugin: target.plugin.as_str() })
    }
}

impl<'a> ExampleJson<'a> {
    fn of(known: &'a Known) -> Self {
        Self {
            seq: known.seq,
            received_at: known.received_at.to_string(),
            source: known.source.as_str(),
            name: &known.name,
            subject: known.subject.as_deref(),
            level: known.level.as_str(),
            effective_level: known.effective_level.as_str(),
        }
    }
}

impl SimulatedJson {
    fn of(simulation: &Simulation, pair: &Pair) -> Self {
        let of = |sent: Option<(Sent, usize)>| {
            let (sent, still_waiting) = sent.unwrap_or_default();
            let by = sent.ways.iter().map(|(way, count)| (way.as_str(), *count)).collect();
            SentJson { deliveries: sent.deliveries(), by, still_waiting }
        };
        Self {
            is_same: simulation.is_same(pair),
            old: of(pair.old.map(|at| simulation.of_old(at))),
            new: of(pair.new.map(|at| simulation.of_new(at))),
        }
    }
}
