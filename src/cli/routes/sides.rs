//! The two configurations that are compared, workspace by workspace. They are read as files: no secret has to have a value
//! here, and no plugin has to be there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::super::inbox::open_places;
use super::super::output::{fail, tell};
use super::super::{COULD_NOT_RUN, workspace};
use crate::config::{self, FileKind, Loaded, PluginFolder, Problems, Reading, Secrets, Workspace, process_environment};
use crate::notification::Name;

/// The workspaces of both sides.
pub(super) struct Sides {
    /// Those that both have, old and new.
    pub(super) both: BTreeMap<Name, (Workspace, Workspace)>,
    /// Those that only the old side has.
    pub(super) gone: Vec<Name>,
    /// Those that only the new side has.
    pub(super) new: Vec<Name>,
    /// The store that was configured.
    pub(super) store: PathBuf,
}

const READING: Reading<'static> =
    Reading { environment: &process_environment, secrets: Secrets::NotRead, plugins: PluginFolder::NotAsked };

/// Loads two operator's files, or two files of one workspace beside the operator's file `file`.
pub(super) fn load(file: &Path, [old, new]: [&Path; 2], named: Option<&Name>) -> Result<Sides, ExitCode> {
    let kinds = [config::file_kind(old).map_err(told)?, config::file_kind(new).map_err(told)?];
    let places = open_places(file)?;
    let sides = match kinds {
        [FileKind::Server, FileKind::Server] => {
            let (old, new) = (server(old)?, server(new)?);
            if let Some(named) = named {
                let there = old.keys().filter(|name| new.contains_key(*name)).cloned().collect();
                workspace(&there, Some(named))?;
            }
            let is_asked = |name: &Name| named.is_none_or(|named| named == name);
            let keep = |side: BTreeMap<Name, Workspace>| side.into_iter().filter(|(name, _)| is_asked(name)).collect();
            (keep(old), keep(new))
        }
        [FileKind::Workspace, FileKind::Workspace] => {
            let stem = |path: &Path| path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
            let by_file = [stem(new), stem(old)].into_iter().flatten().find(|name| places.workspaces.contains(name));
            let name = workspace(&places.workspaces, named.or(by_file.as_ref()))?;
            let side = |path: &Path| beside(file, &name, path).map(|one| BTreeMap::from([(name.clone(), one)]));
            (side(old)?, side(new)?)
        }
        _ => {
            return Err(fail(format_args!(
                "{} and {} are of different kinds: name two switchbell.yaml, or two files of a workspace",
                old.display(),
                new.display()
            )));
        }
    };
    Ok(pair(sides, places.store))
}

fn pair((old, mut new): (BTreeMap<Name, Workspace>, BTreeMap<Name, Workspace>), store: PathBuf) -> Sides {
    let (mut both, mut gone) = (BTreeMap::new(), Vec::new());
    for (name, old) in old {
        match new.remove(&name) {
            Some(new) => drop(both.insert(name, (old, new))),
            None => gone.push(name),
        }
    }
    Sides { both, gone, new: new.into_keys().collect(), store }
}

fn server(file: &Path) -> Result<BTreeMap<Name, Workspace>, ExitCode> {
    let (config, _) = config::load_with(file, &READING).and_then(Loaded::whole).map_err(told)?;
    Ok(config.workspaces)
}

fn beside(operator: &Path, name: &Name, file: &Path) -> Result<Workspace, ExitCode> {
    config::workspace_beside(operator, (name, file), &READING).map(|(workspace, _)| workspace).map_err(told)
}

fn told(problems: Problems) -> ExitCode {
    tell(problems);
    ExitCode::from(COULD_NOT_RUN)
}
