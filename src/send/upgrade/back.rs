//! Going back to a version that is kept, and letting in one that is held.

use super::Upgrades;
use super::prepare::examine;
use super::probation::Fault;
use super::take::{Done, Refused, Standing, Watch};
use crate::notification::Name;
use crate::wasm::catalog::depot::{self, Kept, Version};

impl Upgrades {
    /// Goes back to an earlier version: the one that is named, else the one that ran before.
    ///
    /// # Errors
    /// Why the version that runs goes on.
    pub async fn roll_back(&mut self, name: &Name, version: Option<&str>) -> Result<Done, Refused> {
        let kept = self.kept(name)?;
        let target = match version {
            Some(version) => kept.find(version).map_err(|error| Refused::new(format!("{name}: {error}")))?,
            None => kept.previous().ok_or_else(|| nothing_before(name, kept))?,
        };
        match &target.standing {
            depot::Standing::Good => {}
            depot::Standing::Held { .. } => {
                return Err(Refused::new(format!(
                    "{name} {} is held: `switchbell plugin approve {name}` lets it in",
                    target.label()
                )));
            }
            depot::Standing::Quarantined { why, .. } => {
                return Err(Refused::new(format!(
                    "{name} {} was at fault ({why}); `switchbell plugin load FILE` loads it all the same",
                    target.label()
                )));
            }
        }
        let target = target.clone();
        self.go_to(name, &target, Watch::Ends).await
    }

    /// Lets in a version that is held: the one that is named, else the one that there is.
    ///
    /// # Errors
    /// Why the version that runs goes on.
    pub async fn approve(&mut self, name: &Name, version: Option<&str>) -> Result<Done, Refused> {
        let kept = self.kept(name)?;
        let held: Vec<&Version> =
            kept.versions.iter().filter(|known| matches!(known.standing, depot::Standing::Held { .. })).collect();
        let target = match (version, held.as_slice()) {
            (Some(version), _) => {
                let found = kept.find(version).map_err(|error| Refused::new(format!("{name}: {error}")))?;
                if !held.contains(&found) {
                    return Err(Refused::new(format!("{name} {} is not held", found.label())));
                }
                found
            }
            (None, []) => return Err(Refused::new(format!("no version of {name} is held"))),
            (None, [only]) => only,
            (None, several) => {
                let labels = several.iter().map(|known| known.label()).collect::<Vec<_>>().join(", ");
                return Err(Refused::new(format!("several versions of {name} are held: name one of {labels}")));
            }
        };
        let target = target.clone();
        self.stand(name, &target.digest, depot::Standing::Good);
        let came = self.let_in(name, &target).await;
        if came.is_err() {
            self.stand(name, &target.digest, target.standing);
        }
        came
    }

    /// Has a version that was held run, with its file in the folder, and says what it does otherwise.
    async fn let_in(&mut self, name: &Name, target: &Version) -> Result<Done, Refused> {
        let old = self.running(name);
        let plugin = self.load_kept(name, &target.digest).await?;
        let report = examine(&self.ground, &plugin, old.as_ref()).await.ok();
        self.install_kept(&plugin).await?;
        let done = self.go_to(name, target, Watch::Begins(old)).await?;
        Ok(Done { report, ..done })
    }

    /// Has a version that is kept run.
    async fn go_to(&mut self, name: &Name, target: &Version, watch: Watch) -> Result<Done, Refused> {
        let plugin = self.load_kept(name, &target.digest).await?;
        let (version, digest) = (target.version.clone(), target.digest.clone());
        let done = |standing| Done { name: name.clone(), version, digest, standing, report: None, notes: Vec::new() };
        if self.running(name).is_some_and(|running| running.digest() == plugin.digest()) {
            return Ok(done(Standing::Already));
        }
        let before = self.activate(&plugin, watch).await?;
        Ok(done(Standing::Active { before }))
    }

    /// Goes back by itself: the version that runs is at fault, and does not come again by itself.
    pub(super) async fn roll_back_at_fault(&mut self, fault: Fault) {
        let Fault { name, digest, why, .. } = &fault;
        if self.running(name).is_none_or(|running| running.digest() != digest) {
            // It went already, and its attempts that were under way failed, too.
            self.retry(&fault).await;
            return;
        }
        let now = self.ground.clock.now();
        let standing = self.history.plugins.get(name).and_then(|kept| kept.get(digest)).cloned();
        self.stand(name, digest, depot::Standing::Quarantined { why: why.clone(), at: now });
        let label = standing.as_ref().map(Version::label).unwrap_or_default();
        match self.roll_back(name, None).await {
            Ok(done) => {
                self.catalog = self.catalog.quarantining(name, digest);
                if let Some(dispatcher) = &self.dispatcher {
                    dispatcher.hold(self.catalog.clone());
                }
                let back = &done.version;
                tracing::error!(plugin = %name, version = label, back, "a version of a plugin is at fault, the one before runs again: {why}");
                self.tell_rolled_back(&fault, &label, &done).await;
            }
            Err(refused) => {
                if let Some(before) = standing {
                    self.stand(name, digest, before.standing);
                }
                if !self.stuck.insert(digest.clone()) {
                    return;
                }
                tracing::error!(plugin = %name, version = label, "a version of a plugin is at fault ({why}), and there is no way back: {refused}");
            }
        }
    }

    fn kept(&self, name: &Name) -> Result<&Kept, Refused> {
        self.history.plugins.get(name).filter(|kept| !kept.versions.is_empty()).ok_or_else(|| {
            let known = self.history.plugins.keys().map(Name::as_str);
            let hint = crate::config::hint(name.as_str(), known, "there are");
            Refused::new(format!("no version of a plugin {name} is kept{hint}"))
        })
    }

    /// A version stands so from now on.
    fn stand(&mut self, name: &Name, digest: &str, standing: depot::Standing) {
        let versions = self.history.plugins.get_mut(name).map(|kept| kept.versions.as_mut_slice()).unwrap_or_default();
        if let Some(version) = versions.iter_mut().find(|version| version.digest == digest) {
            version.standing = standing;
        }
    }
}

fn nothing_before(name: &Name, kept: &Kept) -> Refused {
    let labels = kept.versions.iter().map(Version::label).collect::<Vec<_>>().join(", ");
    Refused::new(format!(
        "no other good version of {name} ran before (there are: {labels}); name one, or load its file"
    ))
}
