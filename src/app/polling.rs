//! What is polled: a poller for each outbox that a connector declares.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::config::{Config, Connector, Workspace};
use crate::fetch::budget::Budget;
use crate::fetch::mcp::oauth::Credentials;
use crate::fetch::mcp::{Clients, Common, Connectors, Times};
use crate::fetch::poller::{Polled, Poller, Shared};
use crate::inbox::Inbox;
use crate::inbox::sqlite::SqliteInbox;
use crate::notification::Name;
use crate::send::book_without_plugins;
use crate::serve::control::{Seat, not_polled};
use crate::telemetry::{Nobody, Observer};

/// What all pollers of this process are made from.
pub(super) struct Polling {
    shared: Shared,
    connectors: Arc<Connectors>,
}

/// The connectors of all workspaces: what polls them and what calls their tools share these.
pub(super) fn connectors(config: &Config, clock: &Clock) -> Arc<Connectors> {
    let common = Common {
        secrets: &config.secrets,
        times: Times::default(),
        clock: clock.clone(),
        clients: Clients::new(),
        credentials: &Credentials::folder_of(&config.store),
    };
    Arc::new(Connectors::new(config, &common))
}

impl Polling {
    pub(super) fn new(
        config: &Arc<Config>,
        inbox: &Arc<dyn Inbox>,
        clock: &Clock,
        observer: &Arc<dyn Observer>,
        connectors: Arc<Connectors>,
    ) -> Self {
        let shared = Shared {
            config: Arc::clone(config),
            inbox: Arc::clone(inbox),
            clock: clock.clone(),
            observer: Arc::clone(observer),
            pollers: config.workspaces.values().map(|workspace| workspace.outboxes().count()).sum(),
        };
        Self { shared, connectors }
    }

    /// What is polled, and a seat for every connector.
    pub(super) async fn pollers(self) -> (Vec<Poller>, Vec<Seat>) {
        let (mut pollers, mut seats) = (Vec::new(), Vec::new());
        for workspace in self.shared.config.workspaces.values() {
            let budget = self.budget();
            let revisions = self.revisions(&workspace.name).await;
            for connector in workspace.connectors.values() {
                let poller = self.poller(workspace, connector, &revisions, &budget);
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

    fn budget(&self) -> Arc<Budget> {
        Arc::new(Budget::new(self.shared.config.reads_per_minute_max, self.shared.clock.clone()))
    }

    /// The revisions that the connectors of a workspace spoke before the start. A store that cannot say costs a detour
    /// only.
    async fn revisions(&self, workspace: &Name) -> BTreeMap<Name, String> {
        let readings = self.shared.inbox.readings(workspace).await.unwrap_or_default();
        readings.into_iter().filter_map(|(name, reading)| Some((name, reading.revision?))).collect()
    }

    /// The poller of a connector; or why there is none, if it should have one.
    fn poller(
        &self,
        workspace: &Workspace,
        connector: &Connector,
        revisions: &BTreeMap<Name, String>,
        budget: &Arc<Budget>,
    ) -> Result<Poller, Option<String>> {
        if connector.outbox.is_none() {
            return Err(connector.not_polled.clone());
        }
        let (name, source) = (&workspace.name, &connector.name);
        let outbox = self.connectors.outbox(name, source).map_err(|error| {
            tracing::error!(workspace = %name, %source, "the outbox cannot be polled: {error}");
            Some(error.to_string())
        })?;
        let outbox = Box::new(outbox.remembering(revisions.get(source).cloned()));
        Poller::new(self.shared.clone(), name, source, outbox, Arc::clone(budget)).ok_or(None)
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
    let book = Arc::new(book_without_plugins(config));
    inbox.adopt(book, None, clock.now()).await.map_err(|error| error.to_string())?;
    let (inbox, nobody): (Arc<dyn Inbox>, Arc<dyn Observer>) = (Arc::new(inbox), Arc::new(Nobody));
    let polling = Polling::new(config, &inbox, &clock, &nobody, connectors(config, &clock));
    let revisions = polling.revisions(&workspace.name).await;
    let poller = polling.poller(workspace, connector, &revisions, &polling.budget());
    let poller = poller.map_err(|reason| not_polled(&connector.name, reason.as_deref()))?;
    Ok(poller.once(stop).await)
}
