//! The plugins of a directory: every `<name>.wasm` in it.

pub mod depot;
pub mod folder;
pub mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt};

use crate::config::{Plugins, TrustedKey};
use crate::notification::Name;

use depot::Depot;

use super::engine::Sandbox;
use super::fault::LoadError;
use super::limits::{LOADED_AT_ONCE_MAX, PLUGIN_BYTES_MAX, PLUGINS_MAX};
use super::load::file_digest;
use super::plugin::Plugin;

/// The loaded plugins, by name. Immutable: what is loaded later makes another catalog.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    plugins: BTreeMap<Name, Plugin>,
    /// Earlier versions that attempts which began on them still need, by name and digest.
    earlier: BTreeMap<(Name, String), Plugin>,
    /// Those of them that were found at fault.
    quarantined: BTreeSet<(Name, String)>,
}

/// A file or directory that gave no plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginProblem {
    /// Which.
    pub path: PathBuf,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for PluginProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.message)
    }
}

impl Catalog {
    /// Loads every `<name>.wasm` of `directory`, in the order of their names. What cannot be loaded is reported and
    /// costs the others nothing.
    pub async fn open(sandbox: &Sandbox, directory: &Path) -> (Self, Vec<PluginProblem>) {
        let mut catalog = Self::default();
        let listed = blocking({
            let directory = directory.to_owned();
            move || list(&directory)
        });
        let paths = match listed.await {
            Ok(paths) => paths,
            Err(error) => {
                let message = format!("the directory of plugins cannot be read: {error}; make it, or name another");
                return (catalog, vec![PluginProblem { path: directory.to_owned(), message }]);
            }
        };
        let mut problems = Vec::new();
        let loading = stream::iter(paths.into_iter().enumerate()).map(async |(index, path)| {
            let loaded = load(sandbox, &path, index).await;
            (path, loaded)
        });
        let mut loaded = loading.buffered(LOADED_AT_ONCE_MAX);
        while let Some((path, loaded)) = loaded.next().await {
            match loaded {
                Ok((name, plugin)) => {
                    catalog.plugins.insert(name, plugin);
                }
                Err(message) => problems.push(PluginProblem { path, message }),
            }
        }
        (catalog, problems)
    }

    /// Loads the plugins that a server begins with over this directory and the depot below `root`: of a file that was set
    /// aside, because its version was at fault, is held, or was rolled back, the version that runs instead.
    /// What the signatures and pins of `plugins` do not let in is a problem, as it is there.
    pub async fn running(sandbox: &Sandbox, plugins: &Plugins, root: PathBuf) -> (Self, Vec<PluginProblem>) {
        let directory = plugins.directory.as_path();
        let (mut catalog, mut problems) = Self::open(sandbox, directory).await;
        let mut not_let_in = Vec::new();
        for (name, plugin) in &catalog.plugins {
            let path = directory.join(format!("{name}.wasm"));
            let looked = blocking({
                let (path, keys) = (path.clone(), plugins.trust.clone());
                move || Ok(trusted(&path, &keys))
            });
            let pin = plugins.pins.get(name).map(String::as_str);
            let mistake = looked.await.unwrap_or_else(|error| Err(error.to_string())).err();
            let mistake = mistake.or_else(|| trust::pin_mistake(name, plugin.digest(), pin));
            not_let_in.extend(mistake.map(|message| (name.clone(), PluginProblem { path, message })));
        }
        for (name, problem) in not_let_in {
            catalog.plugins.remove(&name);
            problems.push(problem);
        }
        let read = blocking(move || Ok(Depot::read(&root))).await;
        let Ok(Some((depot, history))) = read else { return (catalog, problems) };
        for (name, kept) in history.plugins {
            let path = directory.join(format!("{name}.wasm"));
            let in_folder = match catalog.get(&name) {
                Some(plugin) => Some(plugin.digest().to_owned()),
                None => read_file(&path).ok().and_then(|bytes| file_digest(&bytes)),
            };
            let Some(active) = kept.active.filter(|active| Some(active) != in_folder.as_ref()) else { continue };
            if kept.folder != in_folder {
                continue;
            }
            let bytes = blocking({
                let depot = depot.clone();
                move || depot.bytes(&active)
            });
            let Ok((bytes, _)) = bytes.await else { continue };
            if let Ok(plugin) = sandbox.load(bytes).await {
                catalog.plugins.insert(name, plugin);
                problems.retain(|problem| problem.path != path);
            }
        }
        (catalog, problems)
    }

    /// The plugin with this name.
    pub fn get(&self, name: &Name) -> Option<Plugin> {
        self.plugins.get(name).cloned()
    }

    /// The version of a plugin that has this digest: the one that runs, or an earlier one that is still needed.
    pub fn version(&self, name: &Name, digest: &str) -> Option<Plugin> {
        let running = self.plugins.get(name).filter(|plugin| plugin.digest() == digest);
        running.or_else(|| self.earlier.get(&(name.clone(), digest.to_owned()))).cloned()
    }

    /// The same with this plugin in the place of its namesake, which stays as an earlier version.
    #[must_use]
    pub fn with(&self, plugin: Plugin) -> Self {
        let name = plugin.manifest().name.clone();
        let mut catalog = self.without(&name);
        let version = (name.clone(), plugin.digest().to_owned());
        catalog.earlier.remove(&version);
        catalog.quarantined.remove(&version);
        catalog.plugins.insert(name, plugin);
        catalog
    }

    /// The same without this plugin, of which the version that ran stays as an earlier one.
    #[must_use]
    pub fn without(&self, name: &Name) -> Self {
        let mut catalog = self.clone();
        if let Some(plugin) = catalog.plugins.remove(name) {
            catalog.earlier.insert((name.clone(), plugin.digest().to_owned()), plugin);
        }
        catalog
    }

    /// The same with these earlier versions and no others.
    #[must_use]
    pub fn keeping(&self, earlier: impl IntoIterator<Item = Plugin>) -> Self {
        let earlier =
            earlier.into_iter().map(|plugin| ((plugin.manifest().name.clone(), plugin.digest().to_owned()), plugin));
        let earlier: BTreeMap<_, _> = earlier.collect();
        let quarantined = self.quarantined.iter().filter(|version| earlier.contains_key(*version)).cloned();
        Self { plugins: self.plugins.clone(), quarantined: quarantined.collect(), earlier }
    }

    /// The same with an earlier version in quarantine: what waited goes on without it, and only attempts whose effects no
    /// other version could go on with still do on it. [`Catalog::with`] ends that.
    #[must_use]
    pub fn quarantining(&self, name: &Name, digest: &str) -> Self {
        let mut catalog = self.clone();
        let version = (name.clone(), digest.to_owned());
        if catalog.earlier.contains_key(&version) {
            catalog.quarantined.insert(version);
        }
        catalog
    }

    /// Whether an earlier version is in quarantine.
    pub fn is_quarantined(&self, name: &Name, digest: &str) -> bool {
        !self.quarantined.is_empty() && self.quarantined.contains(&(name.clone(), digest.to_owned()))
    }

    /// The earlier versions that it keeps.
    pub fn earlier(&self) -> impl Iterator<Item = &Plugin> {
        self.earlier.values()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.plugins.keys()
    }
}

/// Whether the file at `path` is signed as the keys ask for.
fn trusted(path: &Path, keys: &[TrustedKey]) -> Result<(), String> {
    let bytes = read_file(path).map_err(|error| error.to_string())?;
    let mut signature = path.as_os_str().to_owned();
    signature.push(".minisig");
    let signature = std::fs::read_to_string(signature).ok();
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    trust::verify(&bytes, signature.as_deref(), keys).map(drop).map_err(|untrusted| untrusted.told(&file))
}

/// Runs what waits for the disk off the async threads.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|lost| Err(io::Error::other(lost)))
}

/// The `.wasm` entries of a directory, in order; hidden ones are somebody's unfinished copies.
fn list(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.extension().is_some_and(|extension| extension == "wasm") && !hidden {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

async fn load(sandbox: &Sandbox, path: &Path, index: usize) -> Result<(Name, Plugin), String> {
    if index >= PLUGINS_MAX {
        return Err(format!("not loaded: the directory holds more than {PLUGINS_MAX} plugins; remove some"));
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let file: Name = stem.parse().map_err(|error| format!("the file is named for no plugin: {error}, then .wasm"))?;
    let bytes = blocking({
        let path = path.to_owned();
        move || read_file(&path)
    });
    let bytes = bytes.await.map_err(|error| format!("cannot be read: {error}"))?;
    let plugin = sandbox.load(bytes).await.map_err(|error| error.to_string())?;
    let described = plugin.manifest().name.clone();
    if described == file { Ok((file, plugin)) } else { Err(LoadError::Name { file, described }.to_string()) }
}

/// Reads a plugin's file: at most one byte more than a plugin may have, so that a larger file is told from one that fits.
///
/// # Errors
/// When it cannot be read, or is no file.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(PLUGIN_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
