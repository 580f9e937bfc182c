//! A poller of one outbox on a real store, without the rest of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use switchbell::clock::Clock;
use switchbell::config::{Access, Config, Connector, Plugins, Poll, Secret, SecretPlace, Transport, Workspace};
use switchbell::fetch::budget::Budget;
use switchbell::fetch::mcp::{Clients, Common, McpOutbox, Times};
use switchbell::fetch::poller::{Handle, Poller, Shared};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::notification::Level;
use switchbell::route::Router;
use switchbell::telemetry::{Happening, Observer};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::{PATIENCE, TOKEN};

/// The configuration of one connector, `registrar` of `acme`. The secret `token` is [`TOKEN`].
fn config(transport: Transport, poll: Poll) -> Config {
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport,
        outbox: Some("acme://notifications".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Urgent,
        poll,
    };
    let workspace = Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: "acme".parse().unwrap(),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::from([(connector.name.clone(), connector)]),
        routes: Vec::new(),
        router: Router::new(Vec::new()).unwrap(),
    };
    let place = SecretPlace::Connector;
    let token = Secret::new(TOKEN.to_owned(), place);
    Config {
        file: "switchbell.yaml".into(),
        listen: ([127, 0, 0, 1], 0).into(),
        access: Access::default(),
        store: "switchbell.db".into(),
        plugins: Plugins::at("plugins".into()),
        mail: None,
        secrets: BTreeMap::from([("token".parse().unwrap(), token)]),
        workspaces: BTreeMap::from([(workspace.name.clone(), workspace)]),
        aside: BTreeSet::new(),
        retention: Default::default(),
        reads_per_minute_max: 100_000,
    }
}

#[derive(Debug)]
struct Told(mpsc::UnboundedSender<Happening>);

impl Observer for Told {
    fn happened(&self, what: &Happening) {
        let _ = self.0.send(what.clone());
    }
}

/// A poller that runs on a store in a folder.
pub struct Polling {
    told: mpsc::UnboundedReceiver<Happening>,
    handle: Handle,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Polling {
    pub fn start(folder: &Path, transport: Transport, poll: Poll) -> Self {
        let config = Arc::new(config(transport, poll));
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        let connector = &config.workspaces[&workspace].connectors[&source];
        let (secrets, clock) = (&config.secrets, Clock::system());
        let (times, credentials) = (Times::default(), Path::new("credentials"));
        let common = Common { secrets, times, clock, clients: Clients::new(), credentials };
        let outbox = McpOutbox::new(&workspace, connector, &common).unwrap();
        let inbox = Arc::new(SqliteInbox::open(&folder.join("switchbell.db"), Timestamp::UNIX_EPOCH).unwrap());
        let (sender, told) = mpsc::unbounded_channel();
        let observer = Arc::new(Told(sender));
        let budget = Arc::new(Budget::new(config.reads_per_minute_max, Clock::system()));
        let shared = Shared { config: watch::channel(config).1, inbox, clock: Clock::system(), observer, pollers: 1 };
        let poller = Poller::new(shared, &workspace, &source, Box::new(outbox), budget).unwrap();
        let (handle, stop) = (poller.handle(), CancellationToken::new());
        Self { told, handle, task: tokio::spawn(poller.run(stop.clone())), stop }
    }

    /// The way to the poller.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The next thing that happens and is more than a read that brought nothing or told of events that follow.
    pub async fn next(&mut self) -> Happening {
        loop {
            match self.next_of_all().await {
                Happening::Read { bootstrap: false, .. } => {}
                other => return other,
            }
        }
    }

    /// The next thing that happens.
    pub async fn next_of_all(&mut self) -> Happening {
        let next = tokio::time::timeout(PATIENCE, self.told.recv()).await.expect("nothing happened");
        next.expect("the poller ended")
    }

    pub async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("it does not stop").unwrap();
    }
}
