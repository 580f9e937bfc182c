//! `plugins:` of the operator's file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::super::load::Folder;
use super::super::node::At;
use super::super::raw::{RawGrant, RawLimits, RawPlugins};
use super::super::read::{Map, Placed};
use super::super::source::Report;
use super::super::{Grant, Limits, Place, Plugins, suggest};
use super::server::{path_of, within};
use crate::notification::Name;

/// Bounds of one instance's memory, in bytes: less starts no plugin, more is no sandbox.
const MEMORY_BYTES: std::ops::RangeInclusive<u64> = (1 << 20)..=(1 << 30);

/// The folder as written, and the names of the plugins in it.
pub(in crate::config) type There = Option<(String, BTreeSet<Name>)>;

/// Checks the section, and looks which plugins there are.
pub(in crate::config) fn check(
    raw: Option<Placed<RawPlugins>>,
    folder: &Folder,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> (Plugins, There) {
    let top = At { path: Default::default(), place: Place { line: 1, column: 1 } };
    let at =
        raw.as_ref().map_or_else(|| At { path: top.path.key("plugins").key("directory"), ..top }, |raw| raw.at.clone());
    let (directory, grants, limits) = match raw.map(|raw| raw.value) {
        Some(raw) => (raw.directory.map(|text| (text.at, text.value.0)), raw.grants, raw.limits),
        None => (Some((at, "plugins/".to_owned())), None, None),
    };
    let directory = directory.and_then(|(at, text)| path_of(&at, &text, report).map(|path| (at, text, path)));
    let there = directory.as_ref().and_then(|(at, text, path)| there(at, text, &folder.shown.join(path), report));
    let plugins = Plugins {
        directory: directory.map(|(_, _, path)| folder.absolute.join(path)).unwrap_or_default(),
        grants: checked_grants(grants, there.as_ref(), mentions, report),
        limits: limits.map_or_else(Limits::default, |raw| checked_limits(raw, report)),
    };
    (plugins, there)
}

fn there(at: &At, text: &str, path: &Path, report: &mut Report) -> There {
    let entries = std::fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    match entries {
        Ok(entries) => {
            let stem = |entry: &std::fs::DirEntry| {
                let name = entry.file_name();
                name.to_str()?.strip_suffix(".wasm")?.parse().ok()
            };
            Some((text.to_owned(), entries.iter().filter_map(stem).collect()))
        }
        Err(error) => {
            let message = format!("cannot read the folder {}: {error}; create it, or name another", path.display());
            report.mistake(at, message);
            None
        }
    }
}

fn checked_grants(
    raw: Option<Placed<Map<Name, RawGrant>>>,
    there: Option<&(String, BTreeSet<Name>)>,
    mentions: &mut Vec<Placed<Name>>,
    report: &mut Report,
) -> BTreeMap<Name, Grant> {
    let mut grants = BTreeMap::new();
    for entry in raw.map_or_else(Vec::new, |map| map.value.0) {
        if let Some((folder, there)) = there
            && !there.contains(&entry.name)
        {
            let hint = suggest::hint(entry.name.as_str(), there.iter().map(Name::as_str), &format!("in {folder}"));
            report.warning(
                &entry.at,
                format!("a grant for the plugin {:?}, which is not there{hint}", entry.name.as_str()),
            );
        }
        let http = entry.value.and_then(|raw| raw.value.http).map_or_else(Vec::new, |list| list.value);
        let mut grant = Grant::default();
        for item in http {
            mentions.extend(item.value.workspaces);
            grant.http.push(item.value.grant);
        }
        grants.insert(entry.name, grant);
    }
    grants
}

fn checked_limits(raw: Placed<RawLimits>, report: &mut Report) -> Limits {
    let RawLimits { memory, step_cpu, steps, attempt_time, given: _ } = raw.value;
    within(step_cpu.as_ref(), Duration::from_millis(1), Duration::from_secs(10), report);
    within(attempt_time.as_ref(), Duration::from_secs(1), Duration::from_secs(30 * 86_400), report);
    if let Some(memory) = &memory
        && !MEMORY_BYTES.contains(&memory.0)
    {
        report.mistake(&memory.at, "this size is out of bounds: write 1MiB to 1GiB");
    }
    let default = Limits::default();
    Limits {
        memory_bytes_max: memory.and_then(|memory| usize::try_from(memory.0).ok()).unwrap_or(default.memory_bytes_max),
        step_cpu_max: step_cpu.map_or(default.step_cpu_max, |span| span.0),
        steps_max: steps.map_or(default.steps_max, |steps| steps.0),
        attempt_time_max: attempt_time.map_or(default.attempt_time_max, |span| span.0),
    }
}
