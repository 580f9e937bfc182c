//! What the tests of the loop stand on: a scripted outbox, the real store, and a clock that is moved by hand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::store_for_tests::Store;
use super::*;
use crate::config::{Access, Connector, Plugins, Poll, Route, Target, Transport, Workspace};
use crate::fetch::outbox::ReadError;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Page, Which};
use crate::notification::Level;
use crate::route::{Matcher, Router};
use crate::telemetry::Happening;

pub(super) const BASE: Duration = Duration::from_secs(60);

/// What the outbox does with one read.
pub(super) type Step = Result<String, ReadError>;

/// Answers from a script, remembers what it was asked, and never answers once the script has ended.
#[derive(Debug, Default)]
pub(super) struct Script {
    steps: Mutex<VecDeque<Step>>,
    asked: Mutex<Vec<String>>,
    closed: AtomicBool,
    /// Says that the outbox changed.
    pub(super) hint: tokio::sync::Notify,
}

impl Script {
    pub(super) fn of(steps: Vec<Step>) -> Self {
        Self { steps: Mutex::new(steps.into()), ..Self::default() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
pub(super) struct Scripted(pub(super) Arc<Script>);

impl Outbox for Scripted {
    fn read<'a>(&'a mut self, uri: &'a str) -> BoxFuture<'a, Step> {
        self.0.asked.lock().unwrap().push(uri.to_owned());
        let step = self.0.steps.lock().unwrap().pop_front();
        async move {
            match step {
                Some(step) => step,
                None => futures_util::future::pending().await,
            }
        }
        .boxed()
    }

    fn changed(&mut self) -> BoxFuture<'_, ()> {
        self.0.hint.notified().boxed()
    }

    fn without_secrets(&self, said: &str) -> String {
        said.replace("s3cret", "***")
    }

    fn revision(&self) -> Option<String> {
        Some("2026-07-28".to_owned())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.closed.store(true, Ordering::SeqCst);
        async {}.boxed()
    }
}

#[derive(Debug)]
pub(in crate::fetch) struct Told(pub(in crate::fetch) mpsc::UnboundedSender<Happening>);

impl Observer for Told {
    fn happened(&self, what: &Happening) {
        let _ = self.0.send(what.clone());
    }
}

pub(in crate::fetch) fn config() -> Config {
    let matcher = Matcher { level: Some(Level::Attention), ..Matcher::default() };
    let target = Target::plain("target".to_owned(), "slack".parse().unwrap(), serde_json::json!({}));
    let route = Route {
        name: "loud".parse().unwrap(),
        owner: "admin@example.com".to_owned(),
        when: matcher.clone(),
        deliver: vec![target],
    };
    let connector = Connector {
        is_of_catalog: false,
        name: "registrar".parse().unwrap(),
        transport: Transport::Stdio { run: vec!["true".to_owned()], env: BTreeMap::new(), directory: "/".into() },
        outbox: Some("acme://notifications".to_owned()),
        push: None,
        not_polled: None,
        ceiling: Level::Attention,
        poll: Poll::default(),
    };
    let workspace = Workspace {
        consumers: Default::default(),
        kept: Default::default(),
        name: "acme".parse().unwrap(),
        file: "acme.yaml".into(),
        members: BTreeMap::new(),
        connectors: BTreeMap::from([(connector.name.clone(), connector)]),
        routes: vec![route],
        router: Router::new(vec![matcher]).unwrap(),
    };
    Config {
        file: "switchbell.yaml".into(),
        listen: ([127, 0, 0, 1], 0).into(),
        access: Access::default(),
        store: "switchbell.db".into(),
        plugins: Plugins::at("plugins".into()),
        mail: None,
        secrets: BTreeMap::new(),
        workspaces: BTreeMap::from([(workspace.name.clone(), workspace)]),
        aside: BTreeSet::new(),
        retention: Default::default(),
        reads_per_minute_max: 60,
    }
}

/// A poller under test. It asserts at the end that the poller stopped and closed its outbox.
pub(super) struct Stage {
    pub(super) script: Arc<Script>,
    pub(super) store: Arc<Store>,
    pub(super) clock: Clock,
    pub(super) told: mpsc::UnboundedReceiver<Happening>,
    pub(super) stop: CancellationToken,
    pub(super) task: tokio::task::JoinHandle<()>,
    pub(super) folder: tempfile::TempDir,
    pub(super) handle: Handle,
    pub(super) configured: watch::Sender<Arc<Config>>,
}

impl Stage {
    pub(super) fn start(steps: Vec<Step>) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), steps)
    }

    pub(super) fn start_in(folder: tempfile::TempDir, steps: Vec<Step>) -> Self {
        Self::begin(folder, config().reads_per_minute_max, steps)
    }

    pub(super) fn start_with_budget(per_minute: u32, steps: Vec<Step>) -> Self {
        Self::begin(tempfile::tempdir().unwrap(), per_minute, steps)
    }

    fn begin(folder: tempfile::TempDir, per_minute: u32, steps: Vec<Step>) -> Self {
        let sqlite = SqliteInbox::open(&folder.path().join("switchbell.db"), Timestamp::UNIX_EPOCH).unwrap();
        let store = Arc::new(Store { sqlite, is_full: AtomicBool::new(false) });
        let script = Arc::new(Script::of(steps));
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (sender, told) = mpsc::unbounded_channel();
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        let outbox = Box::new(Scripted(script.clone()));
        let observer = Arc::new(Told(sender));
        let (configured, config) = watch::channel(Arc::new(config()));
        let budget = Arc::new(Budget::new(per_minute, clock.clone()));
        let shared = Shared { config, inbox: store.clone(), clock: clock.clone(), observer, pollers: 1 };
        let poller = Poller::new(shared, &workspace, &source, outbox, budget).unwrap();
        let handle = poller.handle();
        let stop = CancellationToken::new();
        let task = tokio::spawn(poller.run(stop.clone()));
        Self { script, store, clock, told, stop, task, folder, handle, configured }
    }

    pub(super) async fn next(&mut self) -> Happening {
        let next = tokio::time::timeout(Duration::from_secs(10), self.told.recv());
        next.await.expect("nothing happened").expect("the poller ended")
    }

    /// The next read that worked: its wait.
    pub(super) async fn read(&mut self) -> Duration {
        match self.next().await {
            Happening::Read { next_in, .. } => next_in,
            other => panic!("{other:?}"),
        }
    }

    /// The next read that failed: why, and its wait.
    pub(super) async fn failure(&mut self) -> (String, Duration) {
        match self.next().await {
            Happening::ReadFailed { reason, next_in, .. } => (reason, next_in),
            other => panic!("{other:?}"),
        }
    }

    /// The next event accepted: its number, its id, and whether a route matched.
    pub(super) async fn accepted(&mut self) -> (u64, String, Option<bool>) {
        match self.next().await {
            Happening::Accepted { seq, event, decisions, .. } => {
                (seq, event.event_id.clone(), decisions.first().map(|decision| decision.matches()))
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn asked(&self) -> Vec<String> {
        let uris = self.script.asked.lock().unwrap().clone();
        uris.into_iter()
            .map(|uri| uri.replace("acme://notifications", "").replace("&maxAgeMs=7776000000", ""))
            .collect()
    }

    pub(super) async fn position(&self) -> Option<String> {
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        self.store.reading(&workspace, &source).await.unwrap().cursor
    }

    /// The next notice of the host's own: its name and its text.
    pub(super) async fn notice(&mut self) -> (String, String) {
        match self.next().await {
            Happening::Accepted { source, event, decisions, .. } if source.as_str() == "switchbell" => {
                assert_eq!(decisions.len(), 1, "routes are decided for notices too");
                (event.name.clone(), event.body.clone().unwrap_or_default())
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn owed(&self) -> usize {
        let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
        self.store.deliveries(page, Which::default()).await.unwrap().len()
    }

    pub(super) async fn stop(self) -> tempfile::TempDir {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), self.task).await.expect("it does not stop").unwrap();
        assert!(self.script.is_closed(), "the outbox was left open");
        self.folder
    }
}

pub(super) fn event(id: &str, level: &str) -> String {
    format!(
        r#"{{"eventId":"{id}","name":"domain.active","timestamp":"2026-09-01T18:42:10Z","data":{{}},"_meta":{{"ai.nimblebrain/notification":{{"level":"{level}"}}}}}}"#
    )
}

pub(super) fn answer(events: &[String], rest: &str) -> Step {
    Ok(format!("{{\"events\":[{}]{rest}}}", events.join(",")))
}

pub(super) fn at(cursor: &str) -> Step {
    answer(&[], &format!(",\"cursor\":\"{cursor}\""))
}

pub(super) fn around(wait: Duration, seconds: f64) {
    let wait = wait.as_secs_f64();
    assert!((seconds * 0.8..=seconds * 1.2).contains(&wait), "{wait} s is not around {seconds} s");
}
