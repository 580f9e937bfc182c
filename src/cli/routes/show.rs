//! How differences are shown.

mod json;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::super::table::aligned;
use super::diff::{Compared, Span};
use super::sides::Sides;
use crate::config::{Target, Workspace};
use crate::inbox::Known;
use crate::route::diff::{Aspect, Fate, Pair, Sent, Simulation};
use crate::route::fold::Way;
use crate::route::rehearsal::TargetIndex;

pub(super) use json::DiffJson;

/// What is said of a simulation, wherever one is shown.
const SUPPOSED: &str = "as if nothing had been waiting at the beginning and every attempt succeeded at once";

/// Everything, for people.
pub(super) fn text(all: &[Compared<'_>], sides: &Sides, span: Span) -> String {
    let mut out = String::new();
    for (names, side) in [(&sides.gone, "old"), (&sides.new, "new")] {
        for name in names {
            let _infallible = writeln!(out, "workspace {name}: only the {side} configuration has it\n");
        }
    }
    if all.is_empty() {
        out.push_str("no workspace is in both configurations\n");
    }
    out + &all.iter().map(|compared| of_workspace(compared, span)).collect::<Vec<_>>().join("\n")
}

fn of_workspace(compared: &Compared<'_>, span: Span) -> String {
    let totals = compared.diff.totals();
    let mut out = String::new();
    let Span { since, until } = span;
    let name = compared.name;
    let _infallible = writeln!(
        out,
        "workspace {name}: {} from {since:.0} to {until:.0}; {} would be delivered otherwise",
        notifications(totals.notifications),
        if totals.different == 0 { "none".to_owned() } else { totals.different.to_string() }
    );
    if totals.first > 0 {
        let _infallible =
            writeln!(out, "  left out: {} of the first answer of a source, which owe nothing", totals.first);
    }
    for (source, missing) in &totals.unknown {
        for (count, side) in [(missing.old, "old"), (missing.new, "new")].into_iter().filter(|(count, _)| *count > 0) {
            let of = notifications(count);
            let _infallible = writeln!(out, "  {source} is no connector of the {side} one: {of} would not come");
        }
    }
    for (source, (count, old, new)) in &totals.levels {
        let of = notifications(*count);
        let _infallible = writeln!(out, "  ceiling of {source}: {of} of another level, such as {old} -> {new}");
    }
    let known: BTreeMap<u64, &Known> = compared.shown.iter().map(|known| (known.seq, known)).collect();
    for (place, pair) in compared.diff.pairs().iter().enumerate() {
        for fate in Fate::DIFFERENT {
            let Some(count) = compared.diff.count(place, fate) else { continue };
            let how = how(fate, pair);
            let of = notifications(count.notifications);
            let _infallible = writeln!(out, "\n  {how}: {}: {of}", title(compared, pair));
            let shown = count.newest.iter().rev().filter_map(|seq| known.get(seq));
            let rows: Vec<Vec<String>> = shown.map(|known| row(known)).collect();
            out.extend(aligned(&rows).lines().map(|line| format!("    {line}\n")));
        }
    }
    out.push_str(&unmatched(compared));
    out.push_str(&compared.simulation.as_ref().map_or_else(String::new, |simulation| sent(compared, simulation)));
    out
}

/// What is written otherwise and that nothing of this time shows.
fn unmatched(compared: &Compared<'_>) -> String {
    let mut out = String::new();
    for (place, pair) in compared.diff.pairs().iter().enumerate() {
        let is_written_otherwise = pair.old.is_none() || pair.new.is_none() || !pair.aspects.is_empty();
        let is_seen = Fate::DIFFERENT.into_iter().any(|fate| compared.diff.count(place, fate).is_some());
        if is_seen || !is_written_otherwise {
            continue;
        }
        let what = match (pair.old, pair.new) {
            (None, _) => "new".to_owned(),
            (_, None) => "gone".to_owned(),
            _ if pair.aspects == [Aspect::Route] => "renamed".to_owned(),
            _ => how(Fate::Changed, pair),
        };
        let same = compared.diff.count(place, Fate::Kept).map_or(0, |count| count.notifications);
        let why = if same > 0 { format!("{}, all as before", notifications(same)) } else { "nothing came".to_owned() };
        let _infallible = write!(out, "\n  {what}: {}: {why}", title(compared, pair));
    }
    if out.is_empty() { out } else { out + "\n" }
}

fn sent(compared: &Compared<'_>, simulation: &Simulation) -> String {
    let mut out = format!("\n  sent, {SUPPOSED}:\n");
    let of = |sent: Option<(Sent, usize)>| sent.unwrap_or_default();
    let mut rows = Vec::new();
    for pair in compared.diff.pairs() {
        let (old, old_waits) = of(pair.old.map(|at| simulation.of_old(at)));
        let (new, new_waits) = of(pair.new.map(|at| simulation.of_new(at)));
        if simulation.is_same(pair) {
            continue;
        }
        let ways = [Way::Alone, Way::Escalation, Way::Digest, Way::Hold, Way::Surplus, Way::Suppressed];
        let count = |sent: &Sent, way: Way| sent.ways.get(&way).copied().unwrap_or_default();
        let mut by_way: Vec<String> = ways
            .into_iter()
            .map(|way| (way, count(&old, way), count(&new, way)))
            .filter(|(_, old, new)| old + new > 0)
            .map(|(way, old, new)| format!("{} {old} -> {new}", way.as_str()))
            .collect();
        if old_waits + new_waits > 0 {
            by_way.push(format!("still waiting {old_waits} -> {new_waits}"));
        }
        let total = format!("{} -> {}", old.deliveries(), new.deliveries());
        rows.push(vec![title(compared, pair), total, by_way.join(", ")]);
    }
    if rows.is_empty() {
        return out + "    the same to every target\n";
    }
    let titled = [vec!["TARGET", "DELIVERIES", "BY"].into_iter().map(str::to_owned).collect()];
    let rows: Vec<Vec<String>> = titled.into_iter().chain(rows).collect();
    out.extend(aligned(&rows).lines().map(|line| format!("    {line}\n")));
    out
}

fn how(fate: Fate, pair: &Pair) -> String {
    let aspects: Vec<&str> = pair.aspects.iter().map(|aspect| aspect.as_str()).collect();
    match fate {
        Fate::Changed if aspects.is_empty() => "changed (by another route)".to_owned(),
        Fate::Changed => format!("changed ({})", aspects.join(", ")),
        Fate::Level => "changed (level)".to_owned(),
        other => other.as_str().to_owned(),
    }
}

/// Route, target and plugin, with both names of a route that was renamed.
fn title(compared: &Compared<'_>, pair: &Pair) -> String {
    let (old, new) = compared.sides;
    let at_old = pair.old.and_then(|at| find(old, at));
    let at_new = pair.new.and_then(|at| find(new, at));
    let route = match (&at_old, &at_new) {
        (Some((old, _)), Some((new, _))) if pair.aspects.contains(&Aspect::Route) => format!("{old} -> {new}"),
        (_, Some((route, _))) | (Some((route, _)), None) => (*route).to_owned(),
        (None, None) => String::new(),
    };
    match at_new.or(at_old) {
        Some((_, target)) => format!("{route}: {} ({})", target.id, target.plugin),
        None => route,
    }
}

fn find(workspace: &Workspace, at: TargetIndex) -> Option<(&str, &Target)> {
    let route = workspace.routes.get(at.route)?;
    Some((route.name.as_str(), route.deliver.get(at.target)?))
}

fn row(known: &Known) -> Vec<String> {
    let subject = known.subject.clone().unwrap_or_default();
    let level = known.effective_level.to_string();
    vec![format!("#{}", known.seq), known.received_at.to_string(), level, known.name.clone(), subject]
}

fn notifications(count: u64) -> String {
    format!("{count} notification{}", if count == 1 { "" } else { "s" })
}
