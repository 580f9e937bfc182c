//! Versions of plugins come and go while attempts are made.
//!
//! [`Upgrades`] owns what is known of versions: the depot, which keeps them, the folder of plugins, which it watches, and
//! the gate. One task runs it; commands ask it by its [`Handle`].
//!
//! ```text
//!  folder ──settled──▶ prepare ──▶ gate ──pass──▶ activate ──▶ probation ──at fault──▶ back to the version before
//!  `plugin load` ────────┘          ├─hold──▶ `plugin approve` ──▶ activate
//!                                   └─refuse: the version that runs goes on
//! ```
//!
//! What can fail comes before anything live is touched: a file that is no plugin, that is not trusted or that the gate
//! refuses changes nothing but what `plugin list` says of it.

mod back;
mod configure;
pub mod gate;
mod handle;
mod open;
mod prepare;
pub mod probation;
pub mod report;
mod take;
mod tell;
mod tend;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use crate::clock::Clock;
use crate::config::Config;
use crate::inbox::Inbox;
use crate::notification::Name;
use crate::wasm::catalog::depot::{Depot, History};
use crate::wasm::catalog::folder::{Folder, LOOK_EVERY};
use crate::wasm::{Catalog, Plugin, PluginProblem, Sandbox, file_digest};
use handle::Request;
use prepare::{Candidate, Prepared};
use probation::Probation;

pub use configure::{Configured, Unloaded};
pub use handle::Handle;
pub use open::OpenError;
pub use take::{Done, Refused, Standing};
pub use view::{PluginView, VersionView};

/// Files that are prepared at once: compiled one at a time, and each held in memory meanwhile.
const PREPARED_MAX: usize = 4;

/// Looks between two times that versions nobody needs any more are forgotten.
const LOOKS_PER_TENDING: u32 = 120;

/// Earlier versions that are held in memory before it is looked whether anybody needs them.
const EARLIER_MAX: usize = 8;

/// Looks between two times that what the host could not do is tried again.
const LOOKS_PER_TRY: u32 = 10;

/// What versions are judged with.
#[derive(Clone, Debug)]
pub struct Ground {
    /// Loads plugins.
    pub sandbox: Sandbox,
    /// The routes, and what is trusted.
    pub config: Arc<Config>,
    /// Holds recordings.
    pub inbox: Arc<dyn Inbox>,
    /// The time.
    pub clock: Clock,
}

/// The owner of all versions of plugins.
#[derive(Debug)]
pub struct Upgrades {
    ground: Ground,
    depot: Depot,
    history: History,
    folder: Folder,
    catalog: Catalog,
    /// What is wrong with files of the folder, by their paths.
    problems: BTreeMap<PathBuf, String>,
    /// How often a person changed which version of a plugin runs: what was begun before that is not taken after it.
    turns: BTreeMap<Name, u64>,
    /// The digests of versions that attempts which are not over began on, when it was looked last.
    in_use: BTreeSet<String>,
    /// Versions at fault of which it was told that there is no way back.
    stuck: BTreeSet<String>,
    /// Plugins of which the host could not do what the folder asks for.
    again: BTreeSet<Name>,
    /// Whose attempts change with the catalog; none in a command that works without a server.
    dispatcher: Option<Arc<Dispatcher>>,
    probation: Arc<Probation>,
    requests: (mpsc::Sender<Request>, mpsc::Receiver<Request>),
}

/// A file that is prepared, and who waits for what comes of it.
struct Arrived {
    candidate: Candidate,
    /// The plugin's turn when it was begun; of a file of the folder.
    turn: u64,
    /// What it was prepared under.
    config: Arc<Config>,
    prepared: Result<Prepared, Refused>,
    reply: Option<oneshot::Sender<Result<Done, Refused>>>,
}

impl Upgrades {
    /// The plugins that run.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// What is wrong with files of the folder.
    pub fn problems(&self) -> Vec<PluginProblem> {
        let problem =
            |(path, message): (&PathBuf, &String)| PluginProblem { path: path.clone(), message: message.clone() };
        self.problems.iter().map(problem).collect()
    }

    /// The same, changing the plugins of this dispatcher from now on.
    #[must_use]
    pub fn steering(mut self, dispatcher: Arc<Dispatcher>) -> Self {
        self.probation = Arc::clone(dispatcher.probation());
        self.dispatcher = Some(dispatcher);
        self
    }

    /// Asks for changes while it runs.
    pub fn handle(&self) -> Handle {
        Handle::new(self.requests.0.clone())
    }

    /// Watches the folder and does what it is asked for, until told to stop.
    pub async fn run(mut self, stop: CancellationToken) {
        let mut preparing = JoinSet::new();
        let mut looks = 0;
        let (clock, probation) = (self.ground.clock.clone(), Arc::clone(&self.probation));
        self.tell_all_missing().await;
        self.begin_probations().await;
        // Whatever else there is to do, the folder has its turn.
        let mut next_look = std::pin::pin!(clock.sleep(LOOK_EVERY));
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = &mut next_look, if preparing.len() < PREPARED_MAX => {
                    self.look(&mut preparing).await;
                    looks = (looks + 1) % LOOKS_PER_TENDING;
                    if u32::is_multiple_of(looks, LOOKS_PER_TRY) {
                        self.try_again().await;
                    }
                    if looks == 0 {
                        self.tend().await;
                    }
                    next_look.set(clock.sleep(LOOK_EVERY));
                }
                Some(request) = self.requests.1.recv() => self.serve(request, &mut preparing).await,
                fault = probation.at_fault() => self.roll_back_at_fault(fault).await,
                Some(arrived) = preparing.join_next() => match arrived {
                    // What was judged by another configuration is judged again.
                    Ok(Arrived { candidate, reply, config, .. }) if !Arc::ptr_eq(&config, &self.ground.config) => {
                        self.begin(candidate, reply, &mut preparing);
                    }
                    Ok(arrived) => self.arrived(arrived).await,
                    Err(failed) => tracing::error!(%failed, "a plugin could not be looked at"),
                },
            }
        }
    }

    /// What a file that was prepared comes to.
    async fn arrived(&mut self, arrived: Arrived) {
        let Arrived { candidate, turn, prepared, reply, config: _ } = arrived;
        let is_by_hand = reply.is_some();
        if let Some(name) = candidate.name.clone().filter(|name| self.turn(name) != turn) {
            tracing::info!(plugin = %name, "a file in the folder is set aside: another version was chosen while it was looked at");
            if self.is_current(&name, &candidate) {
                self.acted_on(&name, file_digest(&candidate.bytes)).await;
            }
            return;
        }
        if let Some(name) = candidate.name.as_ref().filter(|name| !self.is_current(name, &candidate)) {
            tracing::debug!(plugin = %name, "the file in the folder is another by now");
            return;
        }
        let came = match prepared {
            Ok(prepared) => self.take(&candidate, prepared, is_by_hand).await,
            Err(refused) => Err(refused),
        };
        self.note(&candidate, &came, false).await;
        if let Some(reply) = reply {
            // Whoever asked may be gone.
            let _ = reply.send(came);
        }
        if self.catalog.earlier().count() > EARLIER_MAX {
            self.tend().await;
        }
    }

    fn turn(&self, name: &Name) -> u64 {
        self.turns.get(name).copied().unwrap_or_default()
    }

    /// A person chose which version of a plugin runs.
    fn next_turn(&mut self, name: &Name) {
        *self.turns.entry(name.clone()).or_default() += 1;
    }

    /// What was on probation is so again after a start.
    async fn begin_probations(&mut self) {
        let watched: Vec<(Name, String)> = (self.history.plugins.iter())
            .filter_map(|(name, kept)| Some((name.clone(), kept.watched.clone()?)))
            .collect();
        for (name, old) in watched {
            let Some(new) = self.running(&name) else { continue };
            match self.load_kept(&name, &old).await {
                Ok(old) => self.probation.begin(new, old),
                Err(refused) => tracing::warn!(plugin = %name, "a new version cannot be watched: {refused}"),
            }
        }
    }

    /// The version of a plugin that runs.
    fn running(&self, name: &Name) -> Option<Plugin> {
        self.catalog.get(name)
    }
}

/// Runs what waits for the disk off the async threads.
async fn blocking<T: Send + 'static>(job: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> std::io::Result<T> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|lost| Err(std::io::Error::other(lost)))
}
