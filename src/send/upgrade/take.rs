//! From an examined version to the one that runs.

use std::fmt;
use std::path::{Path, PathBuf};

use super::gate::Verdict;
use super::prepare::{Candidate, Prepared, examine};
use super::report::Report;
use super::{Upgrades, blocking};
use crate::notification::Name;
use crate::wasm::catalog::depot::{self, Kept, Version};
use crate::wasm::{Plugin, file_digest};

/// What came of a version.
#[derive(Clone, Debug)]
pub struct Done {
    /// The plugin.
    pub name: Name,
    /// The version.
    pub version: String,
    /// The SHA-256 of its file, in hex.
    pub digest: String,
    /// Where it stands.
    pub standing: Standing,
    /// What the gate says of it.
    pub report: Option<Report>,
    /// What a person should know besides.
    pub notes: Vec<String>,
}

/// Where a version stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It runs from now on.
    Active {
        /// What ran before.
        before: Option<String>,
    },
    /// It runs already.
    Already,
    /// It waits for somebody to approve it.
    Held {
        /// Why.
        why: String,
    },
}

/// Whether a version that begins to run is on probation.
#[derive(Clone, Debug)]
pub(super) enum Watch {
    /// It is compared with this one.
    Begins(Option<Plugin>),
    /// Whoever goes back has seen the other version fail: nothing is to be judged against that.
    Ends,
}

/// Why nothing was changed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What is wrong, and what to do.
    pub why: String,
    /// What the gate says, where it came so far.
    pub report: Option<Box<Report>>,
    /// Whether the host is at fault, not the version: the same may go well later.
    pub may_pass: bool,
}

impl Refused {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), report: None, may_pass: false }
    }

    /// The host cannot do it now.
    pub(super) fn now(why: impl Into<String>) -> Self {
        Self { may_pass: true, ..Self::new(why) }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)
    }
}

impl std::error::Error for Refused {}

impl Upgrades {
    /// Takes a prepared version, if the gate lets it in.
    pub(super) async fn take(
        &mut self,
        candidate: &Candidate,
        prepared: Prepared,
        is_by_hand: bool,
    ) -> Result<Done, Refused> {
        let Prepared { plugin, mut old, mut report } = prepared;
        let name = plugin.manifest().name.clone();
        let running = self.running(&name);
        if is_by_hand {
            self.next_turn(&name);
        }
        if running.as_ref().is_some_and(|running| running.digest() == plugin.digest()) {
            if is_by_hand && !self.is_installed(&plugin) {
                self.install(candidate, &plugin).await?;
                self.save().await?;
            }
            return Ok(done(&plugin, Standing::Already, None));
        }
        if let Some(why) = self.quarantined(&name, plugin.digest()).filter(|_| !is_by_hand) {
            return Err(Refused::new(format!(
                "this version was at fault and is not loaded by itself any more ({why}); `switchbell plugin load` loads it \
                 all the same"
            )));
        }
        // Another version came in between.
        if running.is_some() && running.as_ref().map(Plugin::digest) != old.as_ref().map(Plugin::digest) {
            report = examine(&self.ground, &plugin, running.as_ref()).await?;
            old = running;
        }
        let verdict = match report.verdict(self.ground.config.plugins.gate) {
            // It is a way back.
            Verdict::Hold(_) if self.has_run_well(&name, plugin.digest()) => Verdict::Pass,
            verdict => verdict,
        };
        match verdict {
            Verdict::Refuse(why) => Err(Refused { report: Some(Box::new(report)), ..Refused::new(why) }),
            Verdict::Hold(why) => self.hold(candidate, &plugin, why, report).await,
            Verdict::Pass => {
                let known = self.history.clone();
                self.keep(candidate, &plugin, depot::Standing::Good).await?;
                let activated = match is_by_hand {
                    true => self.install(candidate, &plugin).await,
                    false => Ok(()),
                };
                let activated = match activated {
                    Ok(()) => self.activate(&plugin, Watch::Begins(old)).await,
                    Err(refused) => Err(refused),
                };
                if activated.is_err() {
                    // It stands as it stood, and what was written into the folder is news there.
                    self.history = known;
                }
                let before = activated?;
                if let Some(differences) = report.differences_told().filter(|_| !is_by_hand) {
                    tracing::warn!(plugin = %name, "the new version does something else than the one before: {differences}");
                }
                Ok(done(&plugin, Standing::Active { before }, Some(report)))
            }
        }
    }

    async fn hold(
        &mut self,
        candidate: &Candidate,
        plugin: &Plugin,
        why: String,
        report: Report,
    ) -> Result<Done, Refused> {
        self.keep(candidate, plugin, depot::Standing::Held { why: why.clone() }).await?;
        self.save().await?;
        Ok(done(plugin, Standing::Held { why }, Some(report)))
    }

    /// Whether a version ran and nothing is wrong with it.
    fn has_run_well(&self, name: &Name, digest: &str) -> bool {
        let known = self.history.plugins.get(name).and_then(|kept| kept.get(digest));
        known.is_some_and(|known| known.standing == depot::Standing::Good && known.last_active_at.is_some())
    }

    /// Whether the folder holds the file of a version, as far as is known.
    fn is_installed(&self, plugin: &Plugin) -> bool {
        let name = &plugin.manifest().name;
        let kept = self.history.plugins.get(name).and_then(|kept| kept.folder.as_deref());
        kept == Some(plugin.digest()) && self.folder.is_watched(name)
    }

    fn quarantined(&self, name: &Name, digest: &str) -> Option<String> {
        match &self.history.plugins.get(name)?.get(digest)?.standing {
            depot::Standing::Quarantined { why, .. } => Some(why.clone()),
            _ => None,
        }
    }

    /// Keeps a version on disk, and knows of it.
    async fn keep(&mut self, candidate: &Candidate, plugin: &Plugin, standing: depot::Standing) -> Result<(), Refused> {
        let kept = blocking({
            let (depot, digest) = (self.depot.clone(), plugin.digest().to_owned());
            let (bytes, signature) = (candidate.bytes.clone(), candidate.signature.clone());
            move || depot.keep(&digest, &bytes, signature.as_deref())
        });
        let root = self.depot.root().display();
        kept.await.map_err(|error| {
            Refused::now(format!("it cannot be kept in {root}: {error}; make room, then load it again"))
        })?;
        let now = self.ground.clock.now();
        let kept = self.history.plugins.entry(plugin.manifest().name.clone()).or_default();
        know(kept, plugin, standing, now);
        Ok(())
    }

    /// Writes the file of a version that is kept into the folder, unless it is there.
    pub(super) async fn install_kept(&mut self, plugin: &Plugin) -> Result<(), Refused> {
        if self.is_installed(plugin) {
            return Ok(());
        }
        let kept = blocking({
            let (depot, digest) = (self.depot.clone(), plugin.digest().to_owned());
            move || depot.bytes(&digest)
        });
        let (bytes, signature) = kept.await.map_err(|error| Refused::new(format!("its file is lost: {error}")))?;
        let path = PathBuf::from(format!("{}.wasm", plugin.manifest().name));
        self.install(&Candidate { name: None, path, bytes, signature }, plugin).await
    }

    /// Writes the file of a version that somebody loads into the folder, so that the folder shows what runs.
    async fn install(&mut self, candidate: &Candidate, plugin: &Plugin) -> Result<(), Refused> {
        let name = &plugin.manifest().name;
        let path = self.ground.config.plugins.directory.join(format!("{name}.wasm"));
        let written = blocking({
            let (path, bytes, signature) = (path.clone(), candidate.bytes.clone(), candidate.signature.clone());
            move || install(&path, &bytes, signature.as_deref())
        });
        written.await.map_err(|error| {
            let path = path.display();
            Refused::new(format!("{path}: cannot be written: {error}; put the file there yourself, it is watched"))
        })?;
        if let Some(kept) = self.history.plugins.get_mut(name) {
            kept.folder = Some(plugin.digest().to_owned());
        }
        self.problems.remove(&path);
        Ok(())
    }

    /// Has a version that is kept run from now on. Returns what ran before.
    pub(super) async fn activate(&mut self, plugin: &Plugin, watch: Watch) -> Result<Option<String>, Refused> {
        let (name, digest) = (plugin.manifest().name.clone(), plugin.digest().to_owned());
        let before = self.history.clone();
        let old = match watch {
            Watch::Begins(old) => old.filter(|old| old.digest() != digest),
            Watch::Ends => None,
        };
        let now = self.ground.clock.now();
        let kept = self.history.plugins.entry(name.clone()).or_default();
        let was_active = kept.active.replace(digest.clone());
        let label = was_active.as_deref().and_then(|active| kept.get(active)).map(Version::label);
        kept.watched = old.as_ref().map(|old| old.digest().to_owned());
        for version in &mut kept.versions {
            if version.digest == digest || Some(&version.digest) == was_active.as_ref() {
                version.last_active_at = Some(now);
            }
        }
        let catalog = self.catalog.with(plugin.clone());
        if let Err(refused) = self.saved_and_changed(catalog, &name).await {
            self.history = before;
            return Err(refused);
        }
        match old {
            Some(old) => self.probation.begin(plugin.clone(), old),
            None => self.probation.end(&name),
        }
        let version = &plugin.manifest().version;
        match &label {
            Some(before) => {
                tracing::info!(plugin = %name, %version, %digest, %before, "another version of a plugin runs")
            }
            None => tracing::info!(plugin = %name, %version, %digest, "a plugin is loaded"),
        }
        Ok(label)
    }

    /// The history first, so that a start after a crash begins with what ran.
    pub(super) async fn saved_and_changed(
        &mut self,
        catalog: crate::wasm::Catalog,
        name: &Name,
    ) -> Result<(), Refused> {
        self.save().await?;
        if let Some(dispatcher) = &self.dispatcher {
            let changed = dispatcher.change(catalog.clone(), name).await;
            let mistakes = changed.map_err(|error| Refused::now(format!("the store refuses the change: {error}")))?;
            for mistake in mistakes {
                tracing::error!("{}", mistake.to_string().trim_end());
            }
        }
        self.catalog = catalog;
        Ok(())
    }

    pub(super) async fn save(&self) -> Result<(), Refused> {
        let saved = blocking({
            let (depot, history) = (self.depot.clone(), self.history.clone());
            move || depot.save(&history)
        });
        let root = self.depot.root().display();
        saved
            .await
            .map_err(|error| Refused::now(format!("the history of plugins in {root} cannot be written: {error}")))
    }

    /// Notes that a file of the folder was acted on, and what is wrong with it.
    pub(super) async fn note(&mut self, candidate: &Candidate, came: &Result<Done, Refused>, is_start: bool) {
        let Some(name) = &candidate.name else { return };
        let (path, digest) = (candidate.path.clone(), file_digest(&candidate.bytes));
        match came {
            Ok(Done { standing: Standing::Held { why }, .. }) => {
                tracing::warn!(plugin = %name, file = %path.display(), "held until `switchbell plugin approve`: {why}");
                self.problems.remove(&path);
            }
            Ok(_) => drop(self.problems.remove(&path)),
            Err(refused) if refused.may_pass => {
                // The file is taken up again; what is wrong is told once.
                self.again.insert(name.clone());
                let why = format!("{refused}; a file in the folder of plugins is taken up again by itself");
                if self.problems.get(&path) != Some(&why) {
                    tracing::error!("{}: {why}", path.display());
                    self.problems.insert(path, why);
                }
                return;
            }
            Err(refused) => {
                if !self.is_told(name, digest.as_deref().unwrap_or_default()) && !is_start {
                    // It may still be on its way.
                    return;
                }
                tracing::error!("{}: {refused}", path.display());
                self.problems.insert(path, refused.why.clone());
            }
        }
        let kept = self.history.plugins.entry(name.clone()).or_default();
        if kept.folder != digest {
            kept.folder = digest;
            if let Err(refused) = self.save().await {
                tracing::error!("{refused}");
            }
        }
    }
}

fn done(plugin: &Plugin, standing: Standing, report: Option<Report>) -> Done {
    let manifest = plugin.manifest();
    let (name, version) = (manifest.name.clone(), manifest.version.clone());
    Done { name, version, digest: plugin.digest().to_owned(), standing, report, notes: Vec::new() }
}

/// Knows of a version, or that it stands otherwise now.
pub(super) fn know(kept: &mut Kept, plugin: &Plugin, standing: depot::Standing, now: jiff::Timestamp) {
    if let Some(known) = kept.versions.iter_mut().find(|known| known.digest == plugin.digest()) {
        known.standing = standing;
        return;
    }
    kept.versions.push(Version {
        digest: plugin.digest().to_owned(),
        version: plugin.manifest().version.clone(),
        bytes: plugin.size() as u64,
        first_at: now,
        last_active_at: None,
        standing,
    });
}

/// Writes a plugin's file into the folder whole, the signature first: whoever watches never sees one without the other.
fn install(path: &Path, bytes: &[u8], signature: Option<&str>) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let whole = |name: String, bytes: &[u8]| {
        let unfinished = folder.join(format!(".{name}.new"));
        let written = std::fs::write(&unfinished, bytes)
            .and_then(|()| std::fs::File::open(&unfinished)?.sync_all())
            .and_then(|()| std::fs::rename(&unfinished, folder.join(name)));
        // Where there is no room, it takes none.
        written.inspect_err(|_| drop(std::fs::remove_file(&unfinished)))
    };
    match signature {
        Some(signature) => whole(format!("{file}.minisig"), signature.as_bytes())?,
        None => match std::fs::remove_file(folder.join(format!("{file}.minisig"))) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        },
    }
    whole(file.into_owned(), bytes)
}
