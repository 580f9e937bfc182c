//! From a file to a plugin that the gate has examined. Nothing that runs is touched.

use std::path::PathBuf;

use super::gate::{self, Candidate as Examined};
use super::report::Report;
use super::take::Refused;
use super::{Ground, Upgrades};
use crate::notification::Name;
use crate::wasm::catalog::depot::{Depot, History, Kept};
use crate::wasm::catalog::trust;
use crate::wasm::{Catalog, LoadError, Plugin, StepFault, file_digest};

/// A file that may become a version.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// The plugin that it must be; none where its own word is taken.
    pub(super) name: Option<Name>,
    /// Where it came from, for a person.
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    /// The text of its signature.
    pub(super) signature: Option<String>,
}

/// A candidate that loads, and what the gate says of it.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) plugin: Plugin,
    /// The version that it was compared with.
    pub(super) old: Option<Plugin>,
    pub(super) report: Report,
}

/// Checks, loads and examines a candidate against the version of its plugin that runs, or, where none does, the good one
/// that ran last.
pub(super) async fn prepare(
    ground: &Ground,
    candidate: &Candidate,
    catalog: &Catalog,
    (depot, history): (&Depot, &History),
) -> Result<Prepared, Refused> {
    let plugin = load(ground, candidate).await?;
    let name = &plugin.manifest().name;
    let before = history.plugins.get(name).and_then(Kept::previous);
    let old = match (catalog.get(name), before) {
        (None, Some(before)) if before.digest != plugin.digest() => {
            load_kept(ground, depot, name, &before.digest).await.ok()
        }
        (running, _) => running,
    };
    let report = examine(ground, &plugin, old.as_ref()).await?;
    Ok(Prepared { plugin, old, report })
}

/// Checks and loads a candidate.
pub(super) async fn load(ground: &Ground, candidate: &Candidate) -> Result<Plugin, Refused> {
    let plugins = &ground.config.plugins;
    let file = candidate.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let signature = candidate.signature.as_deref();
    trust::verify(&candidate.bytes, signature, &plugins.trust)
        .map_err(|untrusted| Refused::new(untrusted.told(&file)))?;
    let digest = file_digest(&candidate.bytes).unwrap_or_default();
    let pinned = |name: &Name| {
        let pin = plugins.pins.get(name).map(String::as_str);
        trust::pin_mistake(name, &digest, pin).map_or(Ok(()), |mistake| Err(Refused::new(mistake)))
    };
    if let Some(name) = &candidate.name {
        pinned(name)?;
    }
    let loaded = ground.sandbox.load(candidate.bytes.clone()).await;
    let plugin = loaded.map_err(|error| {
        let may_pass = matches!(&error, LoadError::Host(_) | LoadError::Describe(StepFault::Host { .. }));
        Refused { may_pass, ..Refused::new(error.to_string()) }
    })?;
    let described = plugin.manifest().name.clone();
    match &candidate.name {
        Some(file) if *file != described => {
            return Err(Refused::new(LoadError::Name { file: file.clone(), described }.to_string()));
        }
        Some(_) => {}
        None => pinned(&described)?,
    }
    Ok(plugin)
}

/// What the gate says of a version against another.
pub(super) async fn examine(ground: &Ground, plugin: &Plugin, old: Option<&Plugin>) -> Result<Report, Refused> {
    let name = &plugin.manifest().name;
    let recordings = ground.inbox.recordings(name).await;
    let recordings = recordings
        .map_err(|error| Refused::now(format!("the recorded attempts cannot be read: {error}; try again")))?;
    let config = &*ground.config;
    Ok(gate::examine(Examined { new: plugin, old, recordings: &recordings, config }).await)
}

impl Upgrades {
    /// A version that is at hand or kept.
    pub(super) async fn load_kept(&self, name: &Name, digest: &str) -> Result<Plugin, Refused> {
        if let Some(plugin) = self.catalog.version(name, digest) {
            return Ok(plugin);
        }
        load_kept(&self.ground, &self.depot, name, digest).await
    }
}

/// A version that is kept, loaded again.
pub(super) async fn load_kept(ground: &Ground, depot: &Depot, name: &Name, digest: &str) -> Result<Plugin, Refused> {
    let kept = super::blocking({
        let (depot, digest) = (depot.clone(), digest.to_owned());
        move || depot.bytes(&digest)
    });
    let (bytes, signature) =
        kept.await.map_err(|error| Refused::new(format!("a version of {name} is lost: {error}")))?;
    let path = PathBuf::from(format!("{name}.wasm"));
    load(ground, &Candidate { name: Some(name.clone()), path, bytes, signature }).await
}
