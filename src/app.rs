//! The composition root: builds the stages in order, owns every long task, and stops them in reverse.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Connector, Workspace};
use crate::fetch::budget::Budget;
use crate::fetch::mcp::oauth::Credentials;
use crate::fetch::mcp::{Clients, Common, McpOutbox, Times};
use crate::fetch::poller::{Polled, Poller, Shared};
use crate::inbox::delivery::Schedule;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Inbox, InboxError};
use crate::notification::Name;
use crate::send::effect::{Effects, EffectsError};
use crate::send::{Dispatcher, Means, Stop, settings_mistakes};
use crate::serve::control::{self, Seat, not_polled};
use crate::serve::{Sources, serve};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{Both, Nobody, Observer};
use crate::wasm::catalog::PluginProblem;
use crate::wasm::{Catalog, Sandbox, SandboxError, Settings};

/// How long work under way may go on after a stop; what needs longer is taken up again by the next start.
const GRACE: Duration = Duration::from_millis(1_000);

/// Why Switchbell could not start.
#[derive(Debug)]
pub enum StartError {
    /// The store cannot be used.
    Inbox(InboxError),
    /// The sandbox cannot be set up.
    Sandbox(SandboxError),
    /// Effects cannot be performed.
    Effects(EffectsError),
    /// The address of `listen:` cannot be had.
    Listen(SocketAddr, std::io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inbox(error) => error.fmt(out),
            Self::Sandbox(error) => error.fmt(out),
            Self::Effects(error) => error.fmt(out),
            Self::Listen(address, error) => {
                write!(out, "cannot listen on {address}: {error}; name another address under `listen:`")
            }
        }
    }
}

impl std::error::Error for StartError {}

/// A running Switchbell.
#[derive(Debug)]
pub struct App {
    inbox: Arc<dyn Inbox>,
    address: SocketAddr,
    problems: Vec<PluginProblem>,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl App {
    /// Starts everything: the store, the sandbox and its plugins, the dispatcher, a poller for each outbox.
    ///
    /// # Errors
    /// When the store is in use or unusable. A plugin that does not load is a problem of its own
    /// ([`App::plugin_problems`]) and stops nothing.
    pub async fn start(config: Arc<Config>, clock: Clock, observer: Arc<dyn Observer>) -> Result<Self, StartError> {
        let inbox: Arc<dyn Inbox> = Arc::new(SqliteInbox::open(&config.store, clock.now()).map_err(StartError::Inbox)?);
        let refused = |error| StartError::Listen(config.listen, error);
        let listener = TcpListener::bind(config.listen).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let sandbox = Sandbox::new(Settings::new(config.plugins.limits)).map_err(StartError::Sandbox)?;
        let (catalog, problems) = Catalog::open(&sandbox, &config.plugins.directory).await;
        for problem in &problems {
            tracing::error!("{problem}");
        }
        for mistake in settings_mistakes(&config, &catalog).await {
            tracing::error!("{}", mistake.to_string().trim_end());
        }
        let effects = Effects::new().map_err(StartError::Effects)?;
        let means = Arc::new(Means { config: Arc::clone(&config), catalog, effects, clock: clock.clone() });
        let metrics = Arc::new(Metrics::default());
        let observer: Arc<dyn Observer> = Arc::new(Both(Arc::clone(&metrics) as Arc<dyn Observer>, observer));
        let stop = Stop::default();
        let mut tasks = JoinSet::new();
        let dispatcher = Dispatcher::new(means, Arc::clone(&inbox), Arc::clone(&observer), Schedule::default());
        tasks.spawn(dispatcher.run(stop.clone()));
        let (pollers, seats) = pollers(&config, &shared(&config, &inbox, &clock, &observer)).await;
        for poller in pollers {
            tasks.spawn(poller.run(stop.soon.clone()));
        }
        match control::listen(&config.store) {
            Ok(socket) => drop(tasks.spawn(control::serve(socket, Arc::new(seats), stop.soon.clone()))),
            // The work goes on without it.
            Err(error) => tracing::warn!(%error, "commands such as `connector poll` cannot reach this server"),
        }
        tasks.spawn(serve(listener, Sources { inbox: Arc::clone(&inbox), metrics }, stop.soon.clone()));
        Ok(Self { inbox, address, problems, stop, tasks })
    }

    /// The store, to be read.
    pub fn inbox(&self) -> &Arc<dyn Inbox> {
        &self.inbox
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Plugins that did not load, and why.
    pub fn plugin_problems(&self) -> &[PluginProblem] {
        &self.problems
    }

    /// Ready when a long task ends before it was told to: the server would go on without what that task did.
    pub async fn broken(&mut self) {
        match self.tasks.join_next().await {
            Some(Err(error)) => tracing::error!(%error, "a task of the server failed"),
            Some(Ok(())) | None => tracing::error!("a task of the server ended"),
        }
    }

    /// Stops in two steps: takes no more work, then, after a second, stops working. What is still not done a second
    /// later is dropped: everything that matters is durable, and the next start takes it up.
    pub async fn stop(mut self) {
        self.stop.soon.cancel();
        if !self.done_within(GRACE).await {
            self.stop.now.cancel();
            if !self.done_within(GRACE).await {
                tracing::warn!(tasks = self.tasks.len(), "some work did not end in time; the next start takes it up");
            }
        }
    }

    async fn done_within(&mut self, time: Duration) -> bool {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        tokio::time::timeout(time, all).await.is_ok()
    }
}

/// What is polled, and a seat for every connector.
async fn pollers(config: &Arc<Config>, shared: &Shared) -> (Vec<Poller>, Vec<Seat>) {
    let mut pollers = Vec::new();
    let clients = Clients::new();
    let mut seats = Vec::new();
    for workspace in config.workspaces.values() {
        let budget = Arc::new(Budget::new(config.reads_per_minute_max, shared.clock.clone()));
        let revisions = revisions(shared, &workspace.name).await;
        for connector in workspace.connectors.values() {
            let revision = revisions.get(&connector.name).cloned();
            let poller = poller(shared, &clients, (workspace, connector), revision, &budget);
            let polled = match &poller {
                Ok(poller) => Ok(poller.handle()),
                Err(reason) => Err(reason.clone()),
            };
            pollers.extend(poller);
            seats.push(Seat { workspace: workspace.name.clone(), connector: connector.clone(), polled });
        }
    }
    (pollers, seats)
}

/// The revisions that the connectors of a workspace spoke before the start. A store that cannot say costs a detour only.
async fn revisions(shared: &Shared, workspace: &Name) -> BTreeMap<Name, String> {
    let readings = shared.inbox.readings(workspace).await.unwrap_or_default();
    readings.into_iter().filter_map(|(name, reading)| Some((name, reading.revision?))).collect()
}

/// The poller of a connector; or why there is none, if it should have one.
fn poller(
    shared: &Shared,
    clients: &Clients,
    (workspace, connector): (&Workspace, &Connector),
    revision: Option<String>,
    budget: &Arc<Budget>,
) -> Result<Poller, Option<String>> {
    if connector.outbox.is_none() {
        return Err(connector.not_polled.clone());
    }
    let (name, source) = (&workspace.name, &connector.name);
    let (secrets, clock) = (&shared.config.secrets, shared.clock.clone());
    let credentials = &Credentials::folder_of(&shared.config.store);
    let common = Common { secrets, times: Times::default(), clock, clients: clients.clone(), credentials };
    match McpOutbox::new(name, connector, &common) {
        Ok(outbox) => {
            let outbox = Box::new(outbox.remembering(revision));
            Poller::new(shared.clone(), name, source, outbox, Arc::clone(budget)).ok_or(None)
        }
        Err(error) => {
            tracing::error!(workspace = %name, %source, "the outbox cannot be polled: {error}");
            Err(Some(error.to_string()))
        }
    }
}

fn shared(config: &Arc<Config>, inbox: &Arc<dyn Inbox>, clock: &Clock, observer: &Arc<dyn Observer>) -> Shared {
    Shared {
        config: Arc::clone(config),
        inbox: Arc::clone(inbox),
        clock: clock.clone(),
        observer: Arc::clone(observer),
        pollers: config.workspaces.values().map(|workspace| workspace.outboxes().count()).sum(),
    }
}

/// Reads one outbox once, without a server: what it brings is written, and delivered when a server runs.
///
/// # Errors
/// When the store is in use or unusable, or the connector is not polled; none when told to stop.
pub async fn poll_once(
    config: &Arc<Config>,
    workspace: &Workspace,
    connector: &Connector,
    stop: &CancellationToken,
) -> Result<Option<Polled>, String> {
    let clock = Clock::system();
    let inbox = SqliteInbox::open(&config.store, clock.now()).map_err(|error| error.to_string())?;
    let (inbox, nobody): (Arc<dyn Inbox>, Arc<dyn Observer>) = (Arc::new(inbox), Arc::new(Nobody));
    let budget = Arc::new(Budget::new(config.reads_per_minute_max, clock.clone()));
    let shared = shared(config, &inbox, &clock, &nobody);
    let revision = revisions(&shared, &workspace.name).await.remove(&connector.name);
    let poller = poller(&shared, &Clients::new(), (workspace, connector), revision, &budget)
        .map_err(|reason| not_polled(&connector.name, reason.as_deref()))?;
    Ok(poller.once(stop).await)
}
