//! Another configuration while everything runs: all that can fail first, then one swap, then whatever follows it.
//!
//! ```text
//!  files ──settled──┐
//!  SIGHUP ──────────┼──▶ read ──▶ connectors, effects ──▶ plugins, book, store ──▶ pollers ──▶ told
//!  `reload` ────────┘    (files)    (prepared)               (the swap)             (follow)
//! ```

mod notice;
mod origin;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch as channel;
use tokio_util::sync::CancellationToken;

use super::polling::{Making, Polling};
use crate::clock::Clock;
use crate::config::{self, Changes, Config, FilesRead, Loaded, PluginFolder, Problems, Reading, Texts, read_files};
use crate::fetch::mcp::Connectors;
use crate::inbox::{Inbox, Intake};
use crate::notification::Name;
use crate::reload::{Asked, Refused, Reply, Status, Taken};
use crate::send::effect::Effects;
use crate::send::upgrade;
use crate::telemetry::metrics::Metrics;
use watch::{LOOK_EVERY, Watch};

pub(super) use origin::Followed;
pub use origin::{Environment, Origin};

/// What follows the configuration.
#[derive(Debug)]
pub(super) struct Followers {
    /// The owner of plugins, who swaps.
    pub(super) plugins: upgrade::Handle,
    pub(super) effects: Effects,
    pub(super) connectors: Arc<Connectors>,
    pub(super) making: Making,
    pub(super) polling: Polling,
    /// Tells those who look at each turn.
    pub(super) latest: channel::Sender<Arc<Config>>,
    pub(super) inbox: Arc<dyn Inbox>,
    pub(super) clock: Clock,
    pub(super) metrics: Arc<Metrics>,
}

/// The owner of the configuration.
pub(super) struct Reloads {
    followers: Followers,
    asked: Asked,
    /// None where there are no files to read.
    environment: Option<Environment>,
    watch: Watch,
    /// What the workspaces run on.
    texts: Texts,
    /// What was wrong with workspaces' files at the start.
    aside: BTreeMap<Name, Problems>,
    /// What workspaces were told of that is not over.
    told: BTreeMap<Name, u64>,
}

/// What was read, ready to be taken.
struct Read {
    config: Arc<Config>,
    taken: Taken,
    texts: Texts,
}

impl Reloads {
    /// Knows, and tells, how the start went.
    pub(super) async fn begun(followers: Followers, asked: Asked, files: Option<Followed>) -> Self {
        let mut reloads = Self::new(followers, asked, files);
        reloads.begin().await;
        reloads
    }

    fn new(followers: Followers, asked: Asked, files: Option<Followed>) -> Self {
        let mut watch = Watch::default();
        let (mut texts, mut aside, mut environment) = (Texts::new(), BTreeMap::new(), None);
        if let Some(followed) = files {
            watch.read(followed.files);
            (texts, aside, environment) = (followed.texts, followed.aside, Some(followed.environment));
        }
        Self { followers, asked, environment, watch, texts, aside, told: BTreeMap::new() }
    }

    /// Reads the files again whenever they change or somebody asks, until told to stop; then waits for the pollers.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let clock = self.followers.clock.clone();
        let mut next_look = std::pin::pin!(clock.sleep(LOOK_EVERY));
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.followers.polling.broken() => return,
                Some(reply) = self.asked.requests.recv() => {
                    if stop.run_until_cancelled(self.serve(reply)).await.is_none() {
                        break;
                    }
                }
                () = &mut next_look, if self.environment.is_some() => {
                    if self.have_files_settled().await && stop.run_until_cancelled(self.reload()).await.is_none() {
                        break;
                    }
                    next_look.set(clock.sleep(LOOK_EVERY));
                }
            }
        }
        self.followers.polling.ended().await;
    }

    async fn begin(&mut self) {
        let aside = std::mem::take(&mut self.aside);
        let now = self.followers.clock.now();
        self.followers.metrics.configured(now, aside.len());
        self.asked.status.send_replace(Status { taken_at: Some(now), aside: aside.clone(), ..Status::default() });
        self.tell_workspaces(&aside, &BTreeMap::new()).await;
    }

    /// Reloads once for everybody who asks by now.
    async fn serve(&mut self, first: Reply) {
        let mut replies = vec![first];
        while let Ok(reply) = self.asked.requests.try_recv() {
            replies.push(reply);
        }
        let came = self.reload().await;
        for reply in replies.into_iter().flatten() {
            // Whoever asked may be gone.
            let _ = reply.send(came.clone());
        }
    }

    async fn have_files_settled(&mut self) -> bool {
        let files = self.watch.files().clone();
        match tokio::task::spawn_blocking(move || files.now()).await {
            Ok(now) => self.watch.has_settled(now),
            Err(error) => {
                tracing::error!(%error, "the files of the configuration cannot be looked at");
                false
            }
        }
    }

    async fn reload(&mut self) -> Result<Taken, Refused> {
        let came = match self.read().await {
            Ok(read) => self.take(read).await,
            Err(refused) => Err(refused),
        };
        let now = self.followers.clock.now();
        match &came {
            Ok(taken) => {
                self.followers.metrics.configured(now, taken.aside.len());
                let (aside, older) = (taken.aside.clone(), taken.older.clone());
                let needs_restart = taken.needs_restart.clone();
                let status = Status { taken_at: Some(now), refused: None, needs_restart, aside, older };
                self.asked.status.send_replace(status);
            }
            Err(refused) => {
                self.followers.metrics.not_configured();
                self.asked.status.send_modify(|status| status.refused = Some((now, refused.clone())));
                tracing::error!(
                    "the configuration is not taken, and what ran goes on: {}",
                    refused.to_string().trim_end()
                );
            }
        }
        came
    }

    /// Reads the files off the async threads: a program that gives a secret may take its time.
    async fn read(&mut self) -> Result<Read, Refused> {
        let Some(environment) = self.environment.clone() else {
            return Err(Refused::Because("this server was not started from files: it cannot reload".to_owned()));
        };
        let (running, texts) = (self.running(), self.texts.clone());
        let listen = running.listen;
        let file = running.file.clone();
        let routes = running.workspaces.values().flat_map(|workspace| &workspace.routes);
        let plugins = routes.flat_map(|route| &route.deliver).map(|target| target.plugin.clone()).collect();
        let read = tokio::task::spawn_blocking(move || {
            // A folder of plugins that is away, or a file of it, takes nothing from what runs.
            let reading = Reading { plugins: PluginFolder::MayBeAbsent, ..Reading::of_all(&*environment) };
            read_files(&file, &reading, Some(config::Running { texts: &texts, listen, plugins: &plugins }))
        });
        let FilesRead { loaded, files } =
            read.await.map_err(|error| Refused::Because(format!("the files cannot be read: {error}")))?;
        self.watch.read(files);
        let Loaded { mut config, warnings, aside, older, texts } = loaded.map_err(Refused::Mistakes)?;
        let needs_restart = config.keep_what_cannot_change(&running);
        let changes = Changes::between(&running, &config);
        let taken = Taken { changes, needs_restart, warnings, aside, older, ..Taken::default() };
        Ok(Read { config: Arc::new(config), taken, texts })
    }

    fn running(&self) -> Arc<Config> {
        Arc::clone(&self.followers.latest.borrow())
    }

    /// The swap, and what follows it.
    async fn take(&mut self, read: Read) -> Result<Taken, Refused> {
        let Read { config, mut taken, texts } = read;
        let Followers { plugins, effects, connectors, making, polling, latest, .. } = &mut self.followers;
        let known = making.prepare(connectors, &config);
        let renewal = effects.prepare(&config).map_err(|error| Refused::Because(error.to_string()))?;
        let (connectors_before, effects_before) = (connectors.go_over(known.clone()), effects.renew(renewal));
        let configured = match plugins.configure(Arc::clone(&config)).await {
            Ok(configured) => configured,
            Err(refused) => {
                connectors.go_over(connectors_before);
                effects.renew(effects_before);
                return Err(Refused::Because(refused.why));
            }
        };
        polling.end_others(&known);
        latest.send_replace(config);
        polling.follow(&known).await;
        let gone = connectors_before
            .into_iter()
            .filter(|(key, server)| known.get(key).is_none_or(|now| !Arc::ptr_eq(now, server)));
        polling.close(gone.map(|(_, server)| server));
        self.texts = texts;
        (taken.cancelled, taken.blocked, taken.unloaded) =
            (configured.cancelled, configured.mistakes, configured.unloaded);
        self.tell(&taken);
        self.tell_workspaces(&taken.aside, &taken.older).await;
        Ok(taken)
    }

    fn tell(&self, taken: &Taken) {
        let changes = taken.changes.changes.len();
        let cancelled: u64 = taken.cancelled.iter().map(|(_, deliveries)| deliveries).sum();
        let (aside, older) = (taken.aside.len(), taken.older.len());
        tracing::info!(changes, cancelled, aside, older, "the configuration is taken");
        for mistake in &taken.blocked {
            tracing::error!("{}", mistake.to_string().trim_end());
        }
        if !taken.needs_restart.is_empty() {
            tracing::warn!("a restart is needed to follow {}: they stay as they were", taken.needs_restart.join(", "));
        }
    }

    /// Tells workspaces of the mistakes in their files, each trouble once, and when they are good again.
    async fn tell_workspaces(&mut self, aside: &BTreeMap<Name, Problems>, older: &BTreeMap<Name, Problems>) {
        let (config, now) = (self.running(), self.followers.clock.now());
        let mut intakes: Vec<Option<Intake>> = Vec::new();
        for (name, problems) in aside.iter().chain(older) {
            let workspace = config.workspaces.get(name);
            let trouble = notice::trouble(problems, workspace.is_some());
            if self.told.insert(name.clone(), trouble) == Some(trouble) {
                continue;
            }
            let goes_on = if workspace.is_some() {
                "it goes on as it was before, with the members it had"
            } else {
                "it is set aside"
            };
            tracing::error!(workspace = %name, "the file of a workspace has mistakes, {goes_on}: {}", problems.to_string().trim_end());
            intakes.push(notice::mistakes(name, problems, workspace, now));
        }
        let is_over = |name: &Name| !aside.contains_key(name) && !older.contains_key(name);
        let over: Vec<Name> = self.told.keys().filter(|name| is_over(name)).cloned().collect();
        for name in over {
            self.told.remove(&name);
            match config.workspaces.contains_key(&name) {
                true => tracing::info!(workspace = %name, "the file of a workspace is good again"),
                false => tracing::warn!(workspace = %name, "the file of a workspace is gone: what it is owed waits"),
            }
            intakes.push(config.workspaces.get(&name).and_then(|workspace| notice::good(workspace, now)));
        }
        for intake in intakes.into_iter().flatten() {
            let workspace = intake.workspace.clone();
            if let Err(error) = self.followers.inbox.accept(intake).await {
                tracing::error!(%workspace, %error, "a notice about the file of a workspace cannot be written");
            }
        }
    }
}
