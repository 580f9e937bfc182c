//! What workspaces are told of versions of plugins.

use super::Upgrades;
use super::probation::{self, Fault};
use super::take::Done;
use crate::config::Workspace;
use crate::inbox::Intake;
use crate::notification::Name;
use crate::send::notice;

impl Upgrades {
    /// Tells every workspace that uses a plugin that it went back by itself, and has what the faulty version failed made
    /// again.
    pub(super) async fn tell_rolled_back(&self, fault: &Fault, from: &str, done: &Done) {
        let now = self.ground.clock.now();
        let to = format!("{} ({})", done.version, done.digest.get(..12).unwrap_or(&done.digest));
        self.tell(&fault.name, |workspace| {
            notice::plugin_rolled_back(workspace, &fault.name, (from, &to), &fault.why, now)
        })
        .await;
        self.retry(fault).await;
    }

    /// Has what a version at fault failed made again by the one that runs.
    pub(super) async fn retry(&self, fault: &Fault) {
        let plugin = &fault.name;
        match probation::retry(&*self.ground.inbox, fault, self.ground.clock.now()).await {
            Ok(0) => {}
            Ok(deliveries) => tracing::info!(%plugin, deliveries, "made again: a version at fault had failed them"),
            Err(error) => {
                tracing::error!(
                    %plugin, %error,
                    "what a version at fault failed cannot be made again now; `switchbell deliveries retry --plugin {plugin} \
                     --state dead` does it"
                );
            }
        }
    }

    /// Tells every workspace that uses a plugin that it does not run.
    pub(super) async fn tell_missing(&self, name: &Name, why: &str) {
        let now = self.ground.clock.now();
        self.tell(name, |workspace| notice::plugin_not_loaded(workspace, name, why, now)).await;
    }

    /// Says so for each plugin that targets use and that does not run.
    pub(super) async fn tell_all_missing(&self) {
        let workspaces = self.ground.config.workspaces.values();
        let targets = workspaces.flat_map(|workspace| &workspace.routes).flat_map(|route| &route.deliver);
        let mut missing: Vec<&Name> = targets.map(|target| &target.plugin).collect();
        missing.sort_unstable();
        missing.dedup();
        missing.retain(|name| self.running(name).is_none());
        for name in missing {
            let path = self.ground.config.plugins.directory.join(format!("{name}.wasm"));
            let why = match self.problems.get(&path) {
                Some(problem) => format!("{}: {problem}", path.display()),
                None => format!("there is no {}", path.display()),
            };
            self.tell_missing(name, &why).await;
        }
    }

    async fn tell(&self, plugin: &Name, notice: impl Fn(&Workspace) -> Option<Intake>) {
        let uses = |workspace: &&Workspace| {
            workspace.routes.iter().flat_map(|route| &route.deliver).any(|target| target.plugin == *plugin)
        };
        let intakes: Vec<Intake> = self.ground.config.workspaces.values().filter(uses).filter_map(notice).collect();
        for intake in intakes {
            let workspace = intake.workspace.clone();
            if let Err(error) = self.ground.inbox.accept(intake).await {
                tracing::error!(%workspace, %plugin, %error, "a notice about a plugin cannot be written");
            }
        }
    }
}
