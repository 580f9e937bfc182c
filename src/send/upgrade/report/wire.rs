//! A report as JSON, in camelCase:
//!
//! ```json
//! {"plugin": "slack", "new": {"version": "1.3.0", "digest": "…"}, "old": {…}, "standing": "forward",
//!  "settings": {"targets": 4, "unchecked": 0, "mistakes": [{"said": "…", "oldTakes": true}]},
//!  "missing": {"http": [], "mail": false, "tools": []}, "readsDataFirst": false,
//!  "counts": {"same": 17, "content": 1, …}, "differences": [{"delivery": "…", "class": "content", "lines": ["- …"], …}]}
//! ```

use serde::Serialize;

use super::{Difference, Mistake, Report, VersionOf};
use crate::send::replay::Class;
use crate::send::wants::Reach;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Wire<'a> {
    plugin: &'a str,
    new: VersionWire<'a>,
    old: Option<VersionWire<'a>>,
    standing: &'static str,
    settings: SettingsWire<'a>,
    missing: &'a Reach,
    reads_data_first: bool,
    counts: Counts,
    differences: Vec<DifferenceWire<'a>>,
}

#[derive(Serialize)]
struct VersionWire<'a> {
    version: &'a str,
    digest: &'a str,
}

impl<'a> From<&'a VersionOf> for VersionWire<'a> {
    fn from(of: &'a VersionOf) -> Self {
        Self { version: &of.version, digest: &of.digest }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsWire<'a> {
    targets: usize,
    unchecked: usize,
    mistakes: Vec<MistakeWire<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MistakeWire<'a> {
    said: &'a str,
    old_takes: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    same: usize,
    content: usize,
    target: usize,
    steps: usize,
    outcome: usize,
    failed: usize,
    at_limits: usize,
    not_in_time: usize,
    unreadable: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DifferenceWire<'a> {
    delivery: &'a str,
    workspace: &'a str,
    route: &'a str,
    class: &'static str,
    step: usize,
    reason: Option<&'a str>,
    old_failed: bool,
    lines: &'a [String],
}

impl<'a> From<&'a Report> for Wire<'a> {
    fn from(report: &'a Report) -> Self {
        let Report { settings, replays, .. } = report;
        let mistake = |mistake: &'a Mistake| MistakeWire { said: &mistake.said, old_takes: mistake.old_takes };
        let mistakes = settings.mistakes.iter().map(mistake).collect();
        Self {
            plugin: report.plugin.as_str(),
            new: (&report.new).into(),
            old: report.old.as_ref().map(VersionWire::from),
            standing: report.standing.as_str(),
            settings: SettingsWire { targets: settings.targets, unchecked: settings.unchecked, mistakes },
            missing: &report.missing,
            reads_data_first: report.reads_data_first,
            counts: Counts {
                same: replays.same,
                content: replays.count(Class::Content),
                target: replays.count(Class::Target),
                steps: replays.count(Class::Steps),
                outcome: replays.count(Class::Outcome),
                failed: replays.count(Class::Failed),
                at_limits: replays.at_limits,
                not_in_time: replays.not_in_time,
                unreadable: replays.unreadable,
            },
            differences: replays.different.iter().map(DifferenceWire::from).collect(),
        }
    }
}

impl<'a> From<&'a Difference> for DifferenceWire<'a> {
    fn from(found: &'a Difference) -> Self {
        Self {
            delivery: &found.delivery,
            workspace: &found.workspace,
            route: &found.route,
            class: found.class.as_str(),
            step: found.step,
            reason: found.reason.as_deref(),
            old_failed: found.old_failed,
            lines: &found.lines,
        }
    }
}
