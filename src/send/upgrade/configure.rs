//! Another configuration: which plugins it lets run, and the swap to it.
//!
//! It goes the same way as a version of a plugin, so that neither is made from what the other has just replaced.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::prepare::load_kept;
use super::take::Refused;
use super::{Upgrades, blocking};
use crate::config::{Config, Problem};
use crate::inbox::book::QueueKey;
use crate::notification::Name;
use crate::send::Current;
use crate::send::rules::renew;
use crate::wasm::catalog::trust::{self, SIGNATURE_BYTES_MAX};
use crate::wasm::{Catalog, Plugin};

/// What came of another configuration.
#[derive(Clone, Debug, Default)]
pub struct Configured {
    /// Deliveries that were cancelled because their target is gone, by queue.
    pub cancelled: Vec<(QueueKey, u64)>,
    /// What plugins find wrong with settings of their targets, which are blocked.
    pub mistakes: Vec<Problem>,
    /// Plugins whose version it does not let run any more, and why; the version that runs instead, if one does.
    pub unloaded: Vec<Unloaded>,
}

/// A version of a plugin that a configuration does not let run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// The plugin.
    pub name: Name,
    /// Why.
    pub why: String,
    /// The version that runs instead.
    pub instead: Option<String>,
}

impl Upgrades {
    /// Goes over to another configuration: what it would not load at a start does not run any more, and attempts that are
    /// claimed from now on follow it.
    ///
    /// # Errors
    /// Why everything is as it was.
    pub(super) async fn configure(&mut self, config: Arc<Config>) -> Result<Configured, Refused> {
        let (before, history) = (Arc::clone(&self.ground.config), self.history.clone());
        self.ground.config = Arc::clone(&config);
        let (catalog, unloaded) = self.let_run(&before).await;
        match self.go_over(&config, catalog, !unloaded.is_empty()).await {
            Ok((cancelled, mistakes)) => {
                self.tell_unloaded(&unloaded).await;
                self.look_again();
                self.tell_all_missing().await;
                Ok(Configured { cancelled, mistakes, unloaded })
            }
            Err(refused) => {
                self.ground.config = before;
                if !unloaded.is_empty() {
                    self.history = history;
                    self.saved().await;
                }
                Err(refused)
            }
        }
    }

    async fn go_over(
        &mut self,
        config: &Arc<Config>,
        catalog: Catalog,
        is_saved: bool,
    ) -> Result<(Vec<(QueueKey, u64)>, Vec<Problem>), Refused> {
        if is_saved {
            // The history first, as with every change of what runs.
            self.save().await?;
        }
        let mut came = (Vec::new(), Vec::new());
        if let Some(dispatcher) = &self.dispatcher {
            let (before, keys) = (dispatcher.current(), dispatcher.keys());
            let (book, mistakes) = renew(&before, config, &catalog, keys).await;
            let after = Current { config: Arc::clone(config), catalog: catalog.clone(), book: Arc::new(book) };
            let cancelled = dispatcher.configure(after).await;
            let cancelled =
                cancelled.map_err(|error| Refused::now(format!("the store refuses the change: {error}; try again")))?;
            came = (cancelled, mistakes);
        }
        self.catalog = catalog;
        Ok(came)
    }

    /// The plugins that the configuration lets run, and those it does not.
    async fn let_run(&mut self, before: &Config) -> (Catalog, Vec<Unloaded>) {
        let (old, new) = (&before.plugins, &self.ground.config.plugins);
        if (&old.trust, &old.pins) == (&new.trust, &new.pins) {
            return (self.catalog.clone(), Vec::new());
        }
        let (mut catalog, mut unloaded) = (self.catalog.clone(), Vec::new());
        for name in self.catalog.names() {
            let Some(running) = self.catalog.get(name) else { continue };
            let Err(why) = self.may_run(&running).await else { continue };
            let instead = self.instead_of(name).await;
            if let Some(kept) = self.history.plugins.get_mut(name) {
                kept.active = instead.as_ref().map(|plugin| plugin.digest().to_owned());
                kept.watched = None;
            }
            let version = instead.as_ref().map(|plugin| plugin.manifest().version.clone());
            catalog = match instead {
                Some(plugin) => catalog.with(plugin),
                None => catalog.without(name),
            };
            unloaded.push(Unloaded { name: name.clone(), why, instead: version });
        }
        // Nor do attempts go on with what is not trusted.
        let mut earlier = Vec::new();
        for plugin in catalog.earlier() {
            if self.may_run(plugin).await.is_ok() {
                earlier.push(plugin.clone());
            }
        }
        (catalog.keeping(earlier), unloaded)
    }

    /// The good version that ran last, if the configuration lets it run.
    async fn instead_of(&self, name: &Name) -> Option<Plugin> {
        let before = self.history.plugins.get(name).and_then(|kept| kept.previous())?;
        load_kept(&self.ground, &self.depot, name, &before.digest).await.ok()
    }

    /// Whether the keys and pins let a version run.
    ///
    /// # Errors
    /// Why not.
    async fn may_run(&self, plugin: &Plugin) -> Result<(), String> {
        let (name, digest) = (plugin.manifest().name.clone(), plugin.digest().to_owned());
        let plugins = &self.ground.config.plugins;
        if let Some(mistake) = trust::pin_mistake(&name, &digest, plugins.pins.get(&name).map(String::as_str)) {
            return Err(mistake);
        }
        if plugins.trust.is_empty() {
            return Ok(());
        }
        let file = format!("{name}.wasm");
        let beside = plugins.directory.join(format!("{file}.minisig"));
        let kept = blocking({
            let depot = self.depot.clone();
            move || Ok((depot.bytes(&digest)?, signature(&beside)))
        });
        let ((bytes, kept), beside) = kept.await.map_err(|error| format!("a version of {name} is lost: {error}"))?;
        let is_signed = |signature: Option<&str>| trust::verify(&bytes, signature, &plugins.trust).map(drop);
        is_signed(kept.as_deref()).or_else(|_| is_signed(beside.as_deref())).map_err(|untrusted| untrusted.told(&file))
    }

    async fn tell_unloaded(&mut self, unloaded: &[Unloaded]) {
        for Unloaded { name, why, instead } in unloaded {
            self.probation.end(name);
            let path = self.ground.config.plugins.directory.join(format!("{name}.wasm"));
            self.problems.insert(path, why.clone());
            match instead {
                Some(version) => tracing::error!(plugin = %name, %version, "another version runs: {why}"),
                None => {
                    tracing::error!(plugin = %name, "a plugin does not run any more: {why}");
                    self.tell_missing(name, why).await;
                }
            }
        }
    }

    /// Files that were refused are looked at again: this configuration may let them in.
    fn look_again(&mut self) {
        let named = |path: &PathBuf| path.file_stem()?.to_str()?.parse::<Name>().ok();
        let refused: Vec<Name> = self.problems.keys().filter_map(named).collect();
        for name in refused {
            if self.folder.is_watched(&name) {
                self.folder.tell_again(&name);
            }
        }
    }
}

/// The text of a signature, as far as one may be long.
fn signature(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(SIGNATURE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}
