//! `plugins:` of the operator's file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::super::code::Code;
use super::super::load::Folder;
use super::super::loaded::PluginFolder;
use super::super::node::At;
use super::super::raw::{RawGrant, RawLimits, RawPlugins};
use super::super::read::{NonEmpty, Placed};
use super::super::source::Report;
use super::super::values::{KeyEntry, ToolEntry};
use super::super::{Grant, Limits, Place, Plugins, ToolGrant, TrustedKey, Workspace, suggest};
use super::server::{path_of, within};
use crate::notification::Name;
use crate::wasm::catalog::depot::{self, Depot};

/// Bounds of one instance's memory, in bytes: less starts no plugin, more is no sandbox.
const MEMORY_BYTES: std::ops::RangeInclusive<u64> = (1 << 20)..=(1 << 30);

/// Most keys that plugins may be signed with: each signature is compared with all.
const KEYS_MAX: usize = 50;

/// The folder as written, and the names of the plugins in it.
pub(in crate::config) type There = Option<(String, BTreeSet<Name>)>;

/// `plugins:` as far as it is good, with what other parts of the files are checked against.
pub(in crate::config) struct Checked {
    pub plugins: Plugins,
    pub there: There,
    /// Where each plugin is granted mail.
    pub mail: Vec<(Name, At)>,
    /// The tools that are granted, with their places.
    pub tools: Vec<Placed<ToolGrant>>,
}

/// The plugins of which a server keeps versions beside this store.
pub(in crate::config) fn kept(store: &Path) -> BTreeSet<Name> {
    let kept = Depot::read(&depot::root(store));
    kept.map_or_else(BTreeSet::new, |(_, history)| history.plugins.into_keys().collect())
}

/// Checks the section, and looks which plugins there are.
pub(in crate::config) fn check(
    raw: Option<Placed<RawPlugins>>,
    folder: &Folder,
    (wanted, mentions): (PluginFolder, &mut Vec<Placed<Name>>),
    report: &mut Report,
) -> Checked {
    let top = At { path: Default::default(), place: Place { line: 1, column: 1 } };
    let at =
        raw.as_ref().map_or_else(|| At { path: top.path.key("plugins").key("directory"), ..top }, |raw| raw.at.clone());
    let mut raw = raw.map(|raw| raw.value);
    let directory = match &mut raw {
        Some(raw) => raw.directory.take().map(|text| (text.at, text.value.0)),
        None => Some((at, "plugins/".to_owned())),
    };
    let directory = directory.and_then(|(at, text)| path_of(&at, &text, report).map(|path| (at, text, path)));
    let looked_at = directory.as_ref().filter(|_| wanted != PluginFolder::NotAsked);
    let there = looked_at.and_then(|(at, text, path)| there(at, text, (&folder.shown.join(path), wanted), report));
    let mut checked = Checked {
        plugins: Plugins::at(directory.map(|(_, _, path)| folder.absolute.join(path)).unwrap_or_default()),
        there,
        mail: Vec::new(),
        tools: Vec::new(),
    };
    let Some(RawPlugins { grants, limits, gate, trust, pins, .. }) = raw else { return checked };
    checked.plugins.limits = limits.map_or_else(Limits::default, |raw| checked_limits(raw, report));
    checked.plugins.gate = gate.map(|gate| gate.value).unwrap_or_default();
    checked.plugins.trust = trust.map_or_else(Vec::new, |list| keys(list, report));
    for entry in grants.map_or_else(Vec::new, |map| map.value.0) {
        warn_unless_there("a grant", &entry.name, &entry.at, checked.there.as_ref(), report);
        let grant = match entry.value {
            Some(raw) => checked.grant(&entry.name, raw.value, mentions, report),
            None => Grant::default(),
        };
        checked.plugins.grants.insert(entry.name, grant);
    }
    for entry in pins.map_or_else(Vec::new, |map| map.value.0) {
        warn_unless_there("a digest", &entry.name, &entry.at, checked.there.as_ref(), report);
        checked.plugins.pins.extend(entry.value.map(|pin| (entry.name, pin.value.0)));
    }
    checked
}

impl Checked {
    fn grant(&mut self, plugin: &Name, raw: RawGrant, mentions: &mut Vec<Placed<Name>>, report: &mut Report) -> Grant {
        let workspaces = raw.workspaces.map_or_else(Vec::new, |list| list.value.0);
        let mut grant = Grant {
            http: Vec::new(),
            mail: raw.mail.as_ref().is_some_and(|mail| mail.value),
            tools: Vec::new(),
            workspaces: workspaces.iter().map(|name| name.value.clone()).collect(),
        };
        mentions.extend(workspaces);
        for item in raw.http.map_or_else(Vec::new, |list| list.value) {
            for name in &item.value.workspaces {
                outside(&grant, name, &name.at, report);
            }
            mentions.extend(item.value.workspaces);
            grant.http.push(item.value.grant);
        }
        for Placed { at, value: ToolEntry(tool) } in raw.tools.map_or_else(Vec::new, |list| list.value) {
            outside(&grant, &tool.workspace, &at, report);
            grant.tools.push(tool.clone());
            self.tools.push(Placed { at, value: tool });
        }
        if let Some(mail) = raw.mail.filter(|mail| mail.value) {
            self.mail.push((plugin.clone(), mail.at));
        }
        grant
    }
}

/// The keys, each once.
fn keys(list: Placed<NonEmpty<KeyEntry>>, report: &mut Report) -> Vec<TrustedKey> {
    let Placed { at, value: NonEmpty(entries) } = list;
    if entries.len() > KEYS_MAX {
        report
            .mistake(&at, Code::OutOfBounds.says(format!("{} keys: at most {KEYS_MAX} may stand here", entries.len())));
    }
    let mut keys: Vec<TrustedKey> = Vec::new();
    for Placed { at, value: KeyEntry(key) } in entries {
        if keys.contains(&key) {
            report.mistake(
                &at,
                Code::Duplicate.says(format!("key {} stands here already: remove one of the two", key.id)),
            );
        } else {
            keys.push(key);
        }
    }
    keys
}

/// Reports a workspace that the grant as a whole leaves out.
fn outside(grant: &Grant, workspace: &Name, at: &At, report: &mut Report) {
    if !grant.allows_in(workspace) {
        let message = format!(
            "this is for {workspace}, and the grant is not: its `workspaces` narrow all of it; add {workspace} there, or \
             remove this"
        );
        report.mistake(at, Code::NotGranted.says(message));
    }
}

/// Warns of granted tools whose workspace or connector is not there. It is no mistake: an admin who removes a
/// connector must not keep the server from starting.
pub(in crate::config) fn granted_tools(
    tools: &[Placed<ToolGrant>],
    names: &BTreeSet<&Name>,
    workspaces: &BTreeMap<Name, &Workspace>,
    report: &mut Report,
) {
    for Placed { at, value: ToolGrant { workspace, connector, .. } } in tools {
        if !names.contains(workspace) {
            let hint = suggest::hint(workspace.as_str(), names.iter().map(|name| name.as_str()), "workspaces");
            report.warning(
                at,
                Code::UnknownWorkspace.says(format!("there is no workspace {:?}{hint}", workspace.as_str())),
            );
            continue;
        }
        let Some(known) = workspaces.get(workspace) else { continue };
        if !known.connectors.contains_key(connector) {
            let there = known.connectors.keys().map(Name::as_str);
            let hint = suggest::hint(connector.as_str(), there, &format!("connectors of {workspace}"));
            let message = format!(
                "workspace {workspace} has no connector {:?}, so that this tool cannot be called{hint}",
                connector.as_str()
            );
            report.warning(at, Code::UnknownConnector.says(message));
        }
    }
}

fn warn_unless_there(
    what: &str,
    plugin: &Name,
    at: &At,
    there: Option<&(String, BTreeSet<Name>)>,
    report: &mut Report,
) {
    let Some((folder, there)) = there.filter(|(_, there)| !there.contains(plugin)) else { return };
    let hint = suggest::hint(plugin.as_str(), there.iter().map(Name::as_str), &format!("in {folder}"));
    report.warning(
        at,
        Code::UnknownPlugin.says(format!("{what} for the plugin {:?}, which is not there{hint}", plugin.as_str())),
    );
}

fn there(at: &At, text: &str, (path, wanted): (&Path, PluginFolder), report: &mut Report) -> There {
    report.files.note_folder(path, &[".wasm"]);
    let entries = std::fs::read_dir(path).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    match entries {
        Ok(entries) => {
            let stem = |entry: &std::fs::DirEntry| {
                let name = entry.file_name();
                name.to_str()?.strip_suffix(".wasm")?.parse().ok()
            };
            Some((text.to_owned(), entries.iter().filter_map(stem).collect()))
        }
        Err(error) if wanted == PluginFolder::MayBeAbsent && error.kind() == ErrorKind::NotFound => {
            let message = format!(
                "the folder {} is not there, so that no plugin was asked about its settings: create it before the server \
                 starts, or name another",
                path.display()
            );
            report.warning(at, Code::NoPlugins.says(message));
            None
        }
        Err(error) => {
            let message = format!("cannot read the folder {}: {error}; create it, or name another", path.display());
            report.mistake(at, Code::BadFolder.says(message));
            None
        }
    }
}

fn checked_limits(raw: Placed<RawLimits>, report: &mut Report) -> Limits {
    let RawLimits { memory, step_cpu, steps, attempt_time, given: _ } = raw.value;
    within(step_cpu.as_ref(), Duration::from_millis(1), Duration::from_secs(10), report);
    within(attempt_time.as_ref(), Duration::from_secs(1), Duration::from_secs(30 * 86_400), report);
    if let Some(memory) = &memory
        && !MEMORY_BYTES.contains(&memory.0)
    {
        report.mistake(&memory.at, Code::OutOfBounds.says("this size is out of bounds: write 1MiB to 1GiB"));
    }
    let default = Limits::default();
    Limits {
        memory_bytes_max: memory.and_then(|memory| usize::try_from(memory.0).ok()).unwrap_or(default.memory_bytes_max),
        step_cpu_max: step_cpu.map_or(default.step_cpu_max, |span| span.0),
        steps_max: steps.map_or(default.steps_max, |steps| steps.0),
        attempt_time_max: attempt_time.map_or(default.attempt_time_max, |span| span.0),
    }
}
