//! What is told of plugins.

use std::collections::BTreeSet;
use std::path::Path;

use jiff::Timestamp;

use super::Upgrades;
use super::probation;
use crate::notification::Name;
use crate::wasm::catalog::depot::{self, Kept};

/// A plugin, and every version of it that is known.
#[derive(Clone, Debug)]
pub struct PluginView {
    /// Its name.
    pub name: Name,
    /// The version that runs.
    pub active: Option<VersionView>,
    /// The other versions that are kept, the newest first.
    pub others: Vec<VersionView>,
    /// What is wrong with its file in the folder.
    pub problem: Option<String>,
    /// How the version that runs does, while it is watched.
    pub probation: Option<probation::Standing>,
    /// The digests of versions that attempts which are not over began on, when it was looked last.
    pub in_use: Vec<String>,
}

/// A version.
#[derive(Clone, Debug)]
pub struct VersionView {
    /// What it says it is.
    pub version: String,
    /// The SHA-256 of its file, in hex.
    pub digest: String,
    /// When it was seen first.
    pub first_at: Timestamp,
    /// When it became active last, or ceased to be.
    pub last_active_at: Option<Timestamp>,
    /// Whether it may run.
    pub standing: depot::Standing,
}

impl From<&depot::Version> for VersionView {
    fn from(of: &depot::Version) -> Self {
        let depot::Version { version, digest, first_at, last_active_at, standing, .. } = of.clone();
        Self { version, digest, first_at, last_active_at, standing }
    }
}

impl Upgrades {
    /// Every plugin that there is, by name: those with a version, and those whose file is of no use.
    pub fn view(&self) -> Vec<PluginView> {
        let mut names: BTreeSet<Name> = self.history.plugins.keys().cloned().collect();
        let stem = |path: &Path| path.file_name()?.to_str()?.strip_suffix(".wasm")?.parse().ok();
        names.extend(self.problems.keys().filter_map(|path| stem(path)));
        names.into_iter().map(|name| self.view_of(name)).collect()
    }

    fn view_of(&self, name: Name) -> PluginView {
        let none = Kept::default();
        let kept = self.history.plugins.get(&name).unwrap_or(&none);
        let is_active = |version: &&depot::Version| kept.active.as_ref() == Some(&version.digest);
        let path = self.ground.config.plugins.directory.join(format!("{name}.wasm"));
        PluginView {
            active: kept.active().map(VersionView::from),
            others: kept.versions.iter().rev().filter(|version| !is_active(version)).map(VersionView::from).collect(),
            problem: self.problems.get(&path).cloned(),
            probation: self.probation.of(&name).filter(|watched| kept.active.as_ref() == Some(&watched.digest)),
            in_use: self.in_use.iter().cloned().collect(),
            name,
        }
    }
}
