//! The composition root: builds the stages in order, owns every long task, and stops them in reverse.

mod files;
mod losses;
mod polling;
mod reload;
mod retention;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{self, Config};
use crate::fetch::mcp::Connectors;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Inbox, InboxError, Store, Tokens};
use crate::reload::{Handle, Status};
use crate::send::effect::{Effects, EffectsError};
use crate::send::keys::Keys;
use crate::send::queue::Queues;
use crate::send::upgrade::{self, Ground, OpenError, Upgrades};
use crate::send::{Current, Dispatcher, IN_FLIGHT_MAX, Live, Means, Stop, book};
use crate::serve::auth::Gate;
use crate::serve::control;
use crate::serve::desk::Desk;
use crate::serve::inquiry::{Inquiry, Loading, Sight};
use crate::serve::mcp::Lives;
use crate::serve::stream::Hub;
use crate::serve::{Served, serve};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::{Both, Observer};
use crate::tools::Tools;
use crate::wasm::catalog::{PluginProblem, depot};
use crate::wasm::{Compiler, Sandbox, SandboxError, Settings};
use losses::Losses;
pub use polling::poll_once;
use polling::{Making, Polling};
pub use reload::{Environment, Origin};
use reload::{Followers, Reloads};
use retention::Retaining;

/// How long work under way may go on after a stop; what needs longer is taken up again by the next start.
const GRACE: Duration = Duration::from_millis(1_000);

/// Why Switchbell could not start.
#[derive(Debug)]
pub enum StartError {
    /// The store cannot be used.
    Inbox(InboxError),
    /// The sandbox cannot be set up.
    Sandbox(SandboxError),
    /// Versions of plugins cannot be kept.
    Plugins(OpenError),
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
            Self::Plugins(error) => error.fmt(out),
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
    reload: Handle,
    gate: Gate,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl App {
    /// Starts everything: the store, the sandbox and its plugins, the dispatcher, a poller for each outbox. A configuration
    /// that was read from files is followed from then on.
    ///
    /// # Errors
    /// When the store is in use or unusable. A plugin that does not load is a problem of its own
    /// ([`App::plugin_problems`]) and stops nothing.
    pub async fn start(
        origin: impl Into<Origin>,
        clock: Clock,
        observer: Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        let Origin { config, files } = origin.into();
        files::allow_all();
        let store: Arc<dyn Store> = Arc::new(SqliteInbox::open(&config.store, clock.now()).map_err(StartError::Inbox)?);
        let inbox: Arc<dyn Inbox> = Arc::clone(&store) as Arc<dyn Inbox>;
        let (listener, address) = bind(config.listen).await?;
        let keys = Keys::new(&inbox.key());
        let upgrades = open_plugins(&config, &keys, &inbox, &clock).await?;
        let (catalog, problems) = (upgrades.catalog().clone(), upgrades.problems());
        let (book, mistakes) = book(&config, &catalog, &keys).await;
        mistakes.iter().for_each(|mistake| tracing::error!("{}", mistake.to_string().trim_end()));
        let making = Making::new(&clock);
        let connectors = making.connectors(&config);
        let effects = Effects::new(&config, &clock).map_err(StartError::Effects)?;
        let effects = effects.calling(Arc::clone(&connectors) as Arc<dyn Tools>);
        let current = Current { config: Arc::clone(&config), catalog, book: Arc::new(book) };
        let means = means(current, &effects, (&clock, &inbox), keys);
        let metrics = Arc::new(Metrics::default());
        let observer: Arc<dyn Observer> = Arc::new(Both(Arc::clone(&metrics) as Arc<dyn Observer>, observer));
        let (stop, mut tasks) = (Stop::default(), JoinSet::new());
        let dispatcher =
            Dispatcher::start(Arc::clone(&means), Arc::clone(&observer)).await.map_err(StartError::Inbox)?;
        let upgrades = upgrades.steering(Arc::clone(&dispatcher));
        let plugins = upgrades.handle();
        tasks.spawn(upgrades.run(stop.soon.clone()));
        tasks.spawn(deliver(dispatcher, Arc::clone(&connectors), stop.clone()));
        tasks.spawn(effects.clone().tend(stop.soon.clone()));
        tasks.spawn(tend(Arc::clone(&connectors), stop.soon.clone()));
        let (latest, current) = watch::channel(Arc::clone(&config));
        let mut polling = Polling::new(current.clone(), &inbox, &clock, &observer, &stop.soon);
        polling.follow(&connectors.known()).await;
        let (reload, asked) = Handle::new(Status::default());
        let desk = Desk { inbox: Arc::clone(&inbox), clock: clock.clone(), config: current.clone() };
        let gate = Gate::new(Arc::clone(&store) as Arc<dyn Tokens>, current.clone(), clock.clone(), address);
        tasks.spawn(gate.clone().tend(stop.soon.clone()));
        let hub = Hub::new(Arc::clone(&store), clock.clone());
        tasks.spawn(hub.clone().run(stop.soon.clone()));
        let served = Arc::new(Served {
            gate: gate.clone(),
            hub,
            lives: Lives::default(),
            store,
            clock: clock.clone(),
            config: current,
            metrics: Arc::clone(&metrics),
            seats: polling.seats(),
            desk,
            inquiry: inquiry(&means, plugins.clone()),
            plugins: plugins.clone(),
            reload: reload.clone(),
            stop: stop.soon.clone(),
        });
        serve_commands(&config, &served, &mut tasks);
        tasks.spawn(Retaining::of(&served).run(stop.soon.clone()));
        tasks.spawn(Losses::of(&served).run(stop.soon.clone()));
        let inbox_of = Arc::clone(&inbox);
        let followers =
            Followers { plugins, effects, connectors, making, polling, latest, inbox: inbox_of, clock, metrics };
        tasks.spawn(Reloads::begun(followers, asked, files).await.run(stop.soon.clone()));
        tasks.spawn(serve(listener, served));
        Ok(Self { inbox, address, problems, reload, gate, stop, tasks })
    }

    /// Asks for reloads, and tells how the configuration stands.
    pub fn reload(&self) -> &Handle {
        &self.reload
    }

    /// Makes tokens and links.
    pub fn gate(&self) -> &Gate {
        &self.gate
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
        // Nobody waits for the secrets of a reload any more.
        config::end_programs();
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

async fn bind(listen: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let refused = |error| StartError::Listen(listen, error);
    let listener = TcpListener::bind(listen).await.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    Ok((listener, address))
}

/// Listens for commands on this machine. The work goes on without it.
fn serve_commands(config: &Config, served: &Arc<Served>, tasks: &mut JoinSet<()>) {
    match control::listen(&config.store) {
        Ok(socket) => drop(tasks.spawn(control::serve(socket, Arc::clone(served), served.stop.clone()))),
        Err(error) => tracing::warn!(%error, "commands such as `connector poll` cannot reach this server"),
    }
}

/// What attempts are made with.
fn means(current: Current, effects: &Effects, (clock, inbox): (&Clock, &Arc<dyn Inbox>), keys: Keys) -> Arc<Means> {
    Arc::new(Means {
        live: Live::new(current),
        effects: effects.clone(),
        clock: clock.clone(),
        inbox: Arc::clone(inbox),
        queues: Queues::new(clock.clone(), IN_FLIGHT_MAX),
        keys,
    })
}

/// Answers questions by what the server works with at that moment.
fn inquiry(means: &Arc<Means>, plugins: upgrade::Handle) -> Inquiry {
    Inquiry {
        effects: means.effects.clone(),
        clock: means.clock.clone(),
        queues: Arc::clone(&means.queues),
        keys: means.keys.clone(),
        inbox: Some(Arc::clone(&means.inbox)),
        loading: Loading::Asked(plugins),
        sight: Sight::Live(Arc::clone(means)),
    }
}

/// The plugins of a configuration, as they ran before.
async fn open_plugins(
    config: &Arc<Config>,
    keys: &Keys,
    inbox: &Arc<dyn Inbox>,
    clock: &Clock,
) -> Result<Upgrades, StartError> {
    let settings = Settings {
        key: Some(keys.sandbox()),
        compiled: Some(depot::root(&config.store).join(depot::COMPILED)),
        compiler: Compiler::of_this_program(),
        ..Settings::new(config.plugins.limits)
    };
    let sandbox = Sandbox::new(settings).map_err(StartError::Sandbox)?;
    let ground = Ground { sandbox, config: Arc::clone(config), inbox: Arc::clone(inbox), clock: clock.clone() };
    Upgrades::open(ground).await.map_err(StartError::Plugins)
}

/// Makes attempts until told to stop; then nobody calls a tool any more.
async fn deliver(dispatcher: Arc<Dispatcher>, connectors: Arc<Connectors>, stop: Stop) {
    dispatcher.run(stop).await;
    connectors.close().await;
}

async fn tend(connectors: Arc<Connectors>, stop: CancellationToken) {
    connectors.tend(&stop).await;
}
