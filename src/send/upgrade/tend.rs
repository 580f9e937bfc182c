//! What the folder shows, and what is forgotten when nobody needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use tokio::task::JoinSet;

use super::prepare::Candidate;
use super::take::Refused;
use super::{Arrived, Upgrades, blocking};
use crate::notification::Name;
use crate::wasm::catalog::folder::{Patience, Seen};
use crate::wasm::{Plugin, file_digest};

impl Upgrades {
    /// Looks at the folder and begins with what is new in it.
    pub(super) async fn look(&mut self, preparing: &mut JoinSet<Arrived>) {
        for seen in self.look_once().await {
            match seen {
                Seen::Settled { name, path, bytes, digest, signature } => {
                    let is_known = self.history.plugins.get(&name).is_some_and(|kept| {
                        let runs = kept.active.as_ref() == Some(&digest);
                        let is_set_aside = kept.folder.as_ref() == Some(&digest) && kept.get(&digest).is_some();
                        runs || (is_set_aside && !self.problems.contains_key(&path))
                    });
                    if is_known {
                        self.problems.remove(&path);
                        self.acted_on(&name, Some(digest)).await;
                    } else {
                        self.begin(Candidate { name: Some(name), path, bytes, signature }, None, preparing);
                    }
                }
                Seen::Gone { name } => self.remove(&name).await,
                other => self.note_seen(other),
            }
        }
    }

    /// What is said about the folder and its files.
    pub(super) fn note_seen(&mut self, seen: Seen) {
        let directory = &self.ground.config.plugins.directory;
        match seen {
            Seen::Problem { path, message } => {
                tracing::error!("{}: {message}", path.display());
                self.problems.insert(path, message);
            }
            Seen::Unreadable { message } => {
                tracing::error!("{}: {message}", directory.display());
                self.problems.insert(directory.clone(), message);
            }
            Seen::Readable => {
                tracing::info!("{}: the folder of plugins can be read again", directory.display());
                self.problems.remove(directory);
            }
            Seen::Settled { .. } | Seen::Gone { .. } => {}
        }
    }

    /// Takes up again what the host could not do with files of the folder.
    pub(super) async fn try_again(&mut self) {
        for name in std::mem::take(&mut self.again) {
            if self.folder.is_watched(&name) {
                self.folder.tell_again(&name);
            } else {
                self.remove(&name).await;
            }
        }
    }

    /// Whether a file that was prepared is still what the folder holds: what came into its place is prepared by itself,
    /// and may have been ready sooner.
    pub(super) fn is_current(&self, name: &Name, candidate: &Candidate) -> bool {
        file_digest(&candidate.bytes).is_some_and(|digest| self.folder.is_current(name, &digest))
    }

    /// Whether a file of the folder that was refused is told of now.
    pub(super) fn is_told(&mut self, name: &Name, digest: &str) -> bool {
        self.folder.refused(name, digest, Instant::now()) == Patience::Report
    }

    /// The file of a plugin is gone: it does not run any more, and its deliveries wait.
    async fn remove(&mut self, name: &Name) {
        let path = self.ground.config.plugins.directory.join(format!("{name}.wasm"));
        self.problems.remove(&path);
        let before = self.history.clone();
        let now = self.ground.clock.now();
        let Some(kept) = self.history.plugins.get_mut(name) else { return };
        (kept.folder, kept.watched) = (None, None);
        let Some(active) = kept.active.take() else { return self.saved().await };
        if let Some(version) = kept.versions.iter_mut().find(|version| version.digest == active) {
            version.last_active_at = Some(now);
        }
        match self.saved_and_changed(self.catalog.without(name), name).await {
            Ok(()) => {
                self.probation.end(name);
                self.tell_missing(name, "its file was removed from the folder of plugins").await;
                tracing::warn!(plugin = %name, "a plugin was removed: its file is gone; deliveries through it wait for one");
            }
            Err(refused) => {
                self.history = before;
                self.again.insert(name.clone());
                tracing::error!(plugin = %name, "a plugin whose file is gone cannot be removed: {refused}");
            }
        }
    }

    pub(super) async fn acted_on(&mut self, name: &Name, digest: Option<String>) {
        let kept = self.history.plugins.entry(name.clone()).or_default();
        if kept.folder != digest {
            kept.folder = digest;
            self.saved().await;
        }
    }

    /// Saves the history; what is wrong is told, and the next change tries again.
    pub(super) async fn saved(&self) {
        if let Err(refused) = self.save().await {
            tracing::error!("{refused}");
        }
    }

    /// Has the versions that begun attempts need at hand, and forgets what nobody needs.
    pub(super) async fn tend(&mut self) {
        let in_use = match self.ground.inbox.plugins_in_use().await {
            Ok(in_use) => in_use,
            Err(error) => {
                tracing::warn!(%error, "which versions of plugins are in use is not known now; all are kept");
                return;
            }
        };
        let mut by_name: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
        for (name, digest) in in_use {
            by_name.entry(name).or_default().insert(digest);
        }
        self.in_use = by_name.values().flatten().cloned().collect();
        self.hold_earlier(&by_name).await;
        let mut keep = BTreeSet::new();
        let none = BTreeSet::new();
        for (name, kept) in &mut self.history.plugins {
            if self.dispatcher.is_some() && self.probation.of(name).is_none() {
                kept.watched = None;
            }
            let mut in_use = by_name.get(name).unwrap_or(&none).clone();
            let held = self.catalog.earlier().filter(|plugin| plugin.manifest().name == *name);
            in_use.extend(held.map(|plugin| plugin.digest().to_owned()));
            let of_plugin = kept.to_keep(&in_use);
            kept.forget_others(&of_plugin);
            keep.extend(of_plugin);
        }
        self.history.plugins.retain(|_, kept| kept.folder.is_some() || !kept.versions.is_empty());
        self.saved().await;
        let pruned = blocking({
            let (depot, sandbox) = (self.depot.clone(), self.ground.sandbox.clone());
            move || depot.prune(&keep).and(sandbox.prune_compiled(&keep))
        });
        if let Err(error) = pruned.await {
            tracing::warn!(%error, "versions of plugins that nobody needs cannot be removed");
        }
    }

    /// Earlier versions stay in the catalog while attempts need them: those that the store knows of, and those of which an
    /// attempt is under way in this process.
    async fn hold_earlier(&mut self, in_use: &BTreeMap<Name, BTreeSet<String>>) {
        let is_in_use = |plugin: &Plugin| {
            in_use.get(&plugin.manifest().name).is_some_and(|digests| digests.contains(plugin.digest()))
        };
        let before: Vec<Plugin> = self.catalog.earlier().cloned().collect();
        // The list here and the catalog hold one each; snapshots that attempts work with hold more.
        let catalogs = 2 + usize::from(self.dispatcher.is_some());
        let mut earlier: Vec<Plugin> =
            before.iter().filter(|plugin| is_in_use(plugin) || plugin.holders() > catalogs).cloned().collect();
        let mut is_changed = earlier.len() != before.len();
        let pairs = in_use.iter().flat_map(|(name, digests)| digests.iter().map(move |digest| (name, digest)));
        let lacking: Vec<_> = pairs.filter(|(name, digest)| self.catalog.version(name, digest).is_none()).collect();
        for (name, digest) in lacking {
            match self.load_kept(name, digest).await {
                Ok(plugin) => {
                    is_changed = true;
                    earlier.push(plugin);
                }
                Err(Refused { why, .. }) => {
                    tracing::debug!(plugin = %name, %digest, "attempts began on a version that is not kept: {why}");
                }
            }
        }
        if is_changed {
            self.catalog = self.catalog.keeping(earlier);
            if let Some(dispatcher) = &self.dispatcher {
                dispatcher.hold(self.catalog.clone());
            }
        }
    }
}
