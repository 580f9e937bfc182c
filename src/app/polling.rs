//! What is polled: a poller for each outbox that a connector declares. They come and go with the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Connector, Workspace};
use crate::fetch::budget::Budget;
use crate::fetch::mcp::oauth::Credentials;
use crate::fetch::mcp::{Clients, Common, Connectors, Known, Server, Times};
use crate::fetch::outbox::ReadError;
use crate::fetch::poller::{Handle, Polled, Poller, Shared};
use crate::fetch::push::receiver::Receiver;
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::send::book_without_plugins;
use crate::serve::Seats;
use crate::serve::seat::{Seat, not_polled};
use crate::telemetry::{Nobody, Observer};

/// A connector, with its workspace.
type Key = (Name, Name);

/// All pollers of this process.
#[derive(Debug)]
pub(super) struct Polling {
    shared: Shared,
    budgets: BTreeMap<Name, Arc<Budget>>,
    running: BTreeMap<Key, Running>,
    tasks: JoinSet<Key>,
    /// Closes what is left behind.
    closing: JoinSet<()>,
    seats: watch::Sender<Seats>,
    stop: CancellationToken,
}

/// A connector as it is polled, or not.
#[derive(Debug)]
struct Running {
    /// What it reads from.
    server: Arc<Server>,
    /// The way to its poller, if it has one; or why it has none though it declares an outbox.
    polled: Result<Handle, Option<String>>,
    /// Ends the poller.
    stop: CancellationToken,
    /// Cancelled once it has ended, and with it its connection.
    ended: CancellationToken,
}

impl Running {
    fn ended_by_itself(&self) -> bool {
        self.ended.is_cancelled() && !self.stop.is_cancelled()
    }
}

/// Makes connectors, all from the same.
#[derive(Clone, Debug)]
pub(super) struct Making {
    pub(super) clock: Clock,
    pub(super) clients: Clients,
}

impl Making {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), clients: Clients::new() }
    }

    /// The connectors of all workspaces: what polls them and what calls their tools share these.
    pub(super) fn connectors(&self, config: &Config) -> Arc<Connectors> {
        self.with(config, |common| Arc::new(Connectors::new(config, common)))
    }

    /// Those of another configuration.
    pub(super) fn prepare(&self, connectors: &Connectors, config: &Config) -> Known {
        self.with(config, |common| connectors.prepare(config, common))
    }

    fn with<T>(&self, config: &Config, make: impl FnOnce(&Common<'_>) -> T) -> T {
        make(&Common {
            secrets: &config.secrets,
            times: Times::default(),
            clock: self.clock.clone(),
            clients: self.clients.clone(),
            credentials: &Credentials::folder_of(&config.store),
        })
    }
}

impl Polling {
    /// Nothing is polled yet. Each poller ends when told to stop.
    pub(super) fn new(
        config: watch::Receiver<Arc<Config>>,
        inbox: &Arc<dyn Inbox>,
        clock: &Clock,
        observer: &Arc<dyn Observer>,
        stop: &CancellationToken,
    ) -> Self {
        let shared = Shared {
            config,
            inbox: Arc::clone(inbox),
            clock: clock.clone(),
            observer: Arc::clone(observer),
            pollers: 0,
        };
        let (seats, tasks, closing) = (watch::Sender::default(), JoinSet::new(), JoinSet::new());
        let (budgets, running) = (BTreeMap::new(), BTreeMap::new());
        Self { shared, budgets, running, tasks, closing, seats, stop: stop.child_token() }
    }

    /// A seat for every connector.
    pub(super) fn seats(&self) -> watch::Receiver<Seats> {
        self.seats.subscribe()
    }

    /// Ends what this configuration has no more or reaches otherwise. What goes on follows it by itself.
    pub(super) fn end_others(&self, known: &Known) {
        for (key, running) in &self.running {
            if known.get(key).is_none_or(|server| !Arc::ptr_eq(server, &running.server)) {
                running.stop.cancel();
            }
        }
    }

    /// Polls what the configuration that holds now has and that is not polled yet. One that takes the place of another
    /// begins once that has ended.
    pub(super) async fn follow(&mut self, known: &Known) {
        let config = Arc::clone(&self.shared.config.borrow());
        let before = std::mem::take(&mut self.running);
        let is_same = |key: &Key, server: &Arc<Server>| {
            before.get(key).is_some_and(|running| Arc::ptr_eq(server, &running.server))
        };
        self.shared.pollers = known.iter().filter(|(key, server)| !is_same(key, server)).count();
        let mut before = before;
        let mut seats = Vec::new();
        for workspace in config.workspaces.values() {
            let budget = self.budget(&workspace.name, config.reads_per_minute_max);
            let mut revisions = None;
            for connector in workspace.connectors.values() {
                let key = (workspace.name.clone(), connector.name.clone());
                let Some(server) = known.get(&key) else { continue };
                let running = match before.remove(&key) {
                    Some(running) if Arc::ptr_eq(server, &running.server) => running,
                    replaced => {
                        if revisions.is_none() {
                            revisions = Some(self.revisions(&workspace.name).await);
                        }
                        let revision = revisions.as_ref().and_then(|of| of.get(&connector.name)).cloned();
                        let ended = replaced.map(|replaced| replaced.ended);
                        self.begin(workspace, connector, (server, revision), &budget, ended)
                    }
                };
                let polled = match &running.polled {
                    Ok(handle) => Ok(handle.clone()),
                    Err(why) => Err(connector.not_polled.clone().or_else(|| why.clone())),
                };
                seats.push(Seat { workspace: workspace.name.clone(), connector: connector.clone(), polled });
                self.running.insert(key, running);
            }
        }
        self.budgets.retain(|name, _| config.workspaces.contains_key(name));
        self.seats.send_replace(Arc::new(seats));
    }

    /// Waits until a poller has failed inside, or ended though nobody told it to.
    pub(super) async fn broken(&mut self) {
        while let Some(ended) = self.tasks.join_next().await {
            match ended {
                Ok(key) if self.running.get(&key).is_some_and(Running::ended_by_itself) => {
                    tracing::error!(workspace = %key.0, source = %key.1, "a poller ended by itself");
                    return;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "a poller failed");
                    return;
                }
            }
        }
        std::future::pending().await
    }

    /// Closes connections that calls have made to what is not there any more, once the calls are over.
    pub(super) fn close(&mut self, gone: impl Iterator<Item = Arc<Server>>) {
        while self.closing.try_join_next().is_some() {}
        for server in gone {
            self.closing.spawn(async move { server.close().await });
        }
    }

    /// Waits until all have ended.
    pub(super) async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
        while self.closing.join_next().await.is_some() {}
    }

    /// The budget of a workspace, which it keeps, with its limit as it is now.
    fn budget(&mut self, workspace: &Name, per_minute: u32) -> Arc<Budget> {
        let clock = &self.shared.clock;
        let new = || Arc::new(Budget::new(per_minute, clock.clone()));
        let budget = self.budgets.entry(workspace.clone()).or_insert_with(new);
        if budget.per_minute() != per_minute {
            budget.allow(per_minute);
        }
        Arc::clone(budget)
    }

    fn begin(
        &mut self,
        workspace: &Workspace,
        connector: &Connector,
        (server, revision): (&Arc<Server>, Option<String>),
        budget: &Arc<Budget>,
        replaced: Option<CancellationToken>,
    ) -> Running {
        let (stop, ended) = (self.stop.child_token(), CancellationToken::new());
        let key = (workspace.name.clone(), connector.name.clone());
        let made = fetcher(&self.shared, workspace, connector, (server, revision), budget);
        let polled = match made {
            Ok(fetcher) => {
                let handle = fetcher.handle();
                let (stop, ended) = (stop.clone(), ended.clone().drop_guard());
                self.tasks.spawn(async move {
                    let _ended = ended;
                    // It reads on from what the one before has written.
                    if let Some(replaced) = replaced {
                        replaced.cancelled().await;
                    }
                    fetcher.run(stop).await;
                    key
                });
                Ok(handle)
            }
            Err(why) => {
                // Whoever comes next waits for whoever came before.
                match replaced {
                    Some(replaced) => {
                        return Running { server: Arc::clone(server), polled: Err(why), stop, ended: replaced };
                    }
                    None => ended.cancel(),
                }
                Err(why)
            }
        };
        Running { server: Arc::clone(server), polled, stop, ended }
    }

    /// The revisions that the connectors of a workspace spoke before. A store that cannot say costs a detour only.
    async fn revisions(&self, workspace: &Name) -> BTreeMap<Name, String> {
        let readings = self.shared.inbox.readings(workspace).await.unwrap_or_default();
        readings.into_iter().filter_map(|(name, reading)| Some((name, reading.revision?))).collect()
    }
}

/// What fetches the events of a connector.
enum Fetcher {
    Poller(Box<Poller>),
    Receiver(Box<Receiver>),
}

impl Fetcher {
    fn handle(&self) -> Handle {
        match self {
            Self::Poller(poller) => poller.handle(),
            Self::Receiver(receiver) => receiver.handle(),
        }
    }

    async fn run(self, stop: CancellationToken) {
        match self {
            Self::Poller(poller) => poller.run(stop).await,
            Self::Receiver(receiver) => receiver.run(stop).await,
        }
    }

    async fn once(self, stop: &CancellationToken) -> Option<Polled> {
        match self {
            Self::Poller(poller) => poller.once(stop).await,
            Self::Receiver(receiver) => receiver.once(stop).await,
        }
    }
}

/// What fetches the events of a connector; or why nothing does, if something should.
fn fetcher(
    shared: &Shared,
    workspace: &Workspace,
    connector: &Connector,
    (server, revision): (&Arc<Server>, Option<String>),
    budget: &Arc<Budget>,
) -> Result<Fetcher, Option<String>> {
    if !connector.is_fetched_from() {
        return Err(connector.not_polled.clone());
    }
    let (name, source) = (&workspace.name, &connector.name);
    let (shared, budget) = (shared.clone(), Arc::clone(budget));
    let unusable = |error: ReadError| {
        tracing::error!(workspace = %name, %source, "nothing can be fetched: {error}");
        Some(error.to_string())
    };
    let fetcher = if connector.push.is_some() {
        let queue = Box::new(server.queue().map_err(unusable)?.remembering(revision));
        Receiver::new(shared, name, source, queue, budget).map(|receiver| Fetcher::Receiver(Box::new(receiver)))
    } else {
        let outbox = Box::new(server.outbox().map_err(unusable)?.remembering(revision));
        Poller::new(shared, name, source, outbox, budget).map(|poller| Fetcher::Poller(Box::new(poller)))
    };
    fetcher.ok_or(None)
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
    let book = Arc::new(book_without_plugins(config));
    inbox.adopt(book, None, clock.now()).await.map_err(|error| error.to_string())?;
    let (inbox, nobody): (Arc<dyn Inbox>, Arc<dyn Observer>) = (Arc::new(inbox), Arc::new(Nobody));
    let mut polling = Polling::new(watch::channel(Arc::clone(config)).1, &inbox, &clock, &nobody, stop);
    let known = Making::new(&clock).connectors(config).known();
    let not_polled = |reason: Option<String>| not_polled(&connector.name, reason.as_deref());
    let server = known.get(&(workspace.name.clone(), connector.name.clone())).ok_or_else(|| not_polled(None))?;
    let revision = polling.revisions(&workspace.name).await.remove(&connector.name);
    let budget = polling.budget(&workspace.name, config.reads_per_minute_max);
    let fetcher = fetcher(&polling.shared, workspace, connector, (server, revision), &budget);
    Ok(fetcher.map_err(not_polled)?.once(stop).await)
}
