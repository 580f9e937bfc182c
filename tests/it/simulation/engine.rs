//! The engine with everything that is real about it, and the hand that moves its clock.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use switchbell::clock::{Clock, later};
use switchbell::config::{self, Config, Limits};
use switchbell::inbox::delivery::State;
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::{Actor, Deed, DeliveryView, Ended, Inbox, Intake, Mark, Page, Which};
use switchbell::notification::{Event, Name};
use switchbell::route::entry;
use switchbell::send::effect::Effects;
use switchbell::send::keys::Keys;
use switchbell::send::queue::Queues;
use switchbell::send::{Current, Dispatcher, IN_FLIGHT_MAX, Live, Means, Stop, book};
use switchbell::telemetry::Nobody;
use switchbell::wasm::{Catalog, Sandbox, Settings};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::ledger::Ledger;
use super::sink::Sink;
use crate::support::prepared;

pub const WORKSPACE: &str = "acme";

/// Two targets of one route may share a plugin, so each has a route of its own here. `{at}` is the sink, `{page}` what a
/// reload changes.
const ROUTES: &[(&str, &str, &str)] = &[
    ("plain", "**", "with: { script: 'send {at}/plain|judge' }"),
    ("moody", "domain.*", "with: { script: 'send {at}/moody|judge' }, retry: { first: 2s, most: 20m, give_up: 5h }"),
    (
        "strict",
        "domain.*",
        "with: { script: 'send {at}/strict|judge' }, order: strict, retry: { first: 5s, most: 1h, give_up: 30d }",
    ),
    ("lanes", "**", "with: { script: '@bot,#ops send {at}/lanes|judge' }"),
    ("same-lane", "mail.*", "with: { script: '@bot send {at}/same-lane|judge' }"),
    ("pieces", "domain.*", "with: { script: 'send {at}/pieces-1|send {at}/pieces-2|send {at}/pieces-3|judge' }"),
    ("waits", "domain.*", "with: { script: 'wait 900 1 ; send {at}/waits|judge' }"),
    ("escalates", "**", "with: { script: 'send {at}/escalates|judge' }, after: 15m, unless: acknowledged"),
    (
        "anyone",
        "**",
        "with: { script: 'send {at}/anyone|judge' }, after: { wait: 1h, except: urgent }, unless: { acknowledged: anyone }, at_most: { count: 3, per: 1h }",
    ),
    (
        "night",
        "**",
        "with: { script: 'send {at}/night|judge' }, hold: { from: '22:00', to: '07:00', zone: Europe/Berlin, except: urgent }",
    ),
    (
        "small-hours",
        "**",
        "with: { script: 'send {at}/small-hours|judge' }, hold: { from: '01:00', to: '04:00', zone: Europe/Berlin }, collect: { by: source, wait: 10m, most: 10 }",
    ),
    (
        "digest",
        "**",
        "with: { script: 'send {at}/digest|judge' }, collect: { by: subject, wait: 5m, most: 5, except: urgent }",
    ),
    ("limited", "**", "with: { script: 'send {at}/limited|judge' }, at_most: { count: 4, per: 1h }"),
    (
        "paced-digest",
        "**",
        "with: { script: 'send {at}/paced-digest|judge' }, collect: { by: name, wait: 3m, most: 4 }, at_most: { count: 2, per: 30m, except: none }",
    ),
    (
        "page",
        "**",
        "id: page, with: { script: 'send {at}/{page}|judge' }, after: 5m, unless: acknowledged, hold: { from: '23:00', to: '06:00', zone: Europe/Berlin, except: urgent }, collect: { by: subject, wait: {wait}, most: 6 }, at_most: { count: 6, per: 2h }, retry: { first: 3s, most: 10m, give_up: 6h }",
    ),
    ("short-lived", "mail.*", "with: { script: 'send {at}/short-lived|judge' }, after: 12h"),
];

pub struct Engine {
    folder: TempDir,
    pub clock: Clock,
    pub sink: Sink,
    pub inbox: Arc<SqliteInbox>,
    catalog: Catalog,
    pub config: Arc<Config>,
    pub reloads: u32,
    last_seq: u64,
    running: Option<Running>,
}

struct Running {
    queues: Arc<Queues>,
    stop: Stop,
    task: JoinHandle<()>,
}

impl Engine {
    pub async fn open(start: Timestamp) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = folder();
        let clock = Clock::manual(start);
        let sink = Sink::open(&clock).await;
        std::fs::create_dir_all(folder.path().join("plugins")).unwrap();
        let plugin = prepared("dist/guests/scripted.wasm", "guests");
        std::fs::copy(plugin, folder.path().join("plugins/scripted.wasm")).unwrap();
        let sandbox = Sandbox::new(Settings::new(Limits::default())).unwrap();
        let (catalog, problems) = Catalog::open(&sandbox, &folder.path().join("plugins")).await;
        assert_eq!(problems, []);
        let inbox = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), start).unwrap());
        let config = load(folder.path(), &sink, 0);
        let mut engine = Self { folder, clock, sink, inbox, catalog, config, reloads: 0, last_seq: 0, running: None };
        engine.start().await;
        engine
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn start(&mut self) {
        let queues = Queues::new(self.clock.clone(), IN_FLIGHT_MAX);
        let keys = Keys::new(&self.inbox.key());
        let (book, mistakes) = book(&self.config, &self.catalog, &keys).await;
        assert_eq!(mistakes, []);
        let (config, catalog) = (Arc::clone(&self.config), self.catalog.clone());
        let means = Arc::new(Means {
            live: Live::new(Current { config, catalog, book: Arc::new(book) }),
            effects: Effects::new(&self.config, &self.clock).unwrap(),
            clock: self.clock.clone(),
            queues: Arc::clone(&queues),
            keys,
            inbox: Arc::clone(&self.inbox) as Arc<dyn Inbox>,
        });
        let stop = Stop::default();
        let dispatcher = Dispatcher::start(means, Arc::new(Nobody)).await.unwrap();
        let task = tokio::spawn(dispatcher.run(stop.clone()));
        self.running = Some(Running { queues, stop, task });
        self.settle().await;
    }

    /// Returns once nothing but time moves anything on: the dispatcher sleeps, and so does each attempt under way (it
    /// waits for its lane's pace). Everything runs on this one thread except the sandbox and the store, and whoever
    /// waits for those does not sleep.
    async fn settle(&self) {
        let running = self.running.as_ref().unwrap();
        loop {
            // Whoever can go on does so before this does.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            assert!(!running.task.is_finished());
            let under_way = running.queues.in_flight();
            let sleepers = self.clock.sleepers();
            if sleepers.len() == under_way + 1 && sleepers.iter().all(|until| *until > self.clock.now()) {
                return;
            }
        }
    }

    /// Lets time pass until then, from one thing that it moves to the next.
    pub async fn until(&self, moment: Timestamp) {
        loop {
            self.settle().await;
            let next = self.clock.sleepers().into_iter().next().unwrap_or(moment);
            if next > moment || self.now() >= moment {
                break;
            }
            self.clock.set(next);
        }
        if self.now() < moment {
            self.clock.set(moment);
            self.settle().await;
        }
    }

    /// The clock is set, and who sleeps notices.
    pub async fn jump(&self, seconds: i64) {
        self.clock.set(self.now() + jiff::SignedDuration::from_secs(seconds));
        self.settle().await;
    }

    async fn write(&mut self, events: Vec<Event>, ledger: &mut Ledger) {
        let workspace = self.config.workspaces.get(&name(WORKSPACE)).unwrap();
        let source = name("registrar");
        let levels: Vec<_> = events.iter().map(|event| event.level).collect();
        let entries: Vec<_> =
            events.into_iter().zip(levels).map(|(event, level)| entry(event, level, (workspace, &source)).0).collect();
        let owed: Vec<_> = entries.iter().map(|entry| entry.owed.clone()).collect();
        let intake = Intake {
            is_first: false,
            workspace: workspace.name.clone(),
            source: source.clone(),
            received_at: self.now(),
            entries,
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        let accepted = self.inbox.accept(intake).await.unwrap();
        for (seq, owed) in accepted.seqs.into_iter().zip(owed) {
            let seq = seq.unwrap();
            self.last_seq = seq;
            ledger.owes(seq, owed);
        }
    }

    pub async fn accept(&mut self, events: Vec<Event>, ledger: &mut Ledger) {
        self.write(events, ledger).await;
        self.settle().await;
    }

    pub async fn mark(&self, back: u64, deed: Deed, is_agent: bool) {
        let seq = self.last_seq.saturating_sub(back).max(1);
        let by = Actor { name: "somebody".to_owned(), is_agent };
        let mark = Mark { at: self.now(), by };
        self.inbox.mark(&name(WORKSPACE), vec![seq], deed, mark).await.unwrap();
        self.settle().await;
    }

    /// A person has what is dead or blocked made again.
    pub async fn retry(&self, ledger: &mut Ledger) {
        let which = Which { states: vec![State::Dead, State::Blocked], ..Which::default() };
        let handled = self.inbox.retry(&name(WORKSPACE), which, self.now()).await.unwrap();
        assert!(handled.refused.is_empty() && handled.missing.is_empty() && !handled.has_more, "{handled:?}");
        ledger.by_hand.extend(handled.done.into_iter().map(|(id, _)| id.to_string()));
        self.settle().await;
    }

    /// Kills the engine in the middle of its work, and starts it again.
    pub async fn crash(&mut self, events: Vec<Event>, ledger: &mut Ledger) {
        self.sink.answer(false);
        self.write(events, ledger).await;
        self.sink.works_on(3).await;
        let running = self.running.take().unwrap();
        running.task.abort();
        let _ = running.task.await;
        self.sink.works_on(0).await;
        self.sink.answer(true);
        while Arc::strong_count(&self.inbox) > 1 {
            tokio::task::yield_now().await;
        }
        let path = self.folder.path().join("store.db");
        // Closed first: a store belongs to one process at a time.
        self.inbox = Arc::new(SqliteInbox::open_to_read(&path).unwrap());
        self.inbox = Arc::new(SqliteInbox::open(&path, self.now()).unwrap());
        self.start().await;
    }

    /// Stops it as an operator does, and starts it again.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.start().await;
    }

    async fn stop(&mut self) {
        let Running { stop, task, .. } = self.running.take().unwrap();
        stop.soon.cancel();
        let passing = async {
            loop {
                tokio::task::yield_now().await;
                self.clock.advance(Duration::from_millis(20));
            }
        };
        tokio::select! {
            ended = task => ended.unwrap(),
            () = passing => {}
        }
    }

    /// Starts it again with other settings for the target with an id, and once more without `short-lived`.
    pub async fn reload(&mut self) {
        self.reloads += 1;
        self.config = load(self.folder.path(), &self.sink, self.reloads);
        self.restart().await;
    }

    pub async fn close(mut self) {
        self.stop().await;
    }

    /// Every delivery.
    pub async fn deliveries(&self) -> Vec<DeliveryView> {
        let mut all: BTreeMap<String, DeliveryView> = BTreeMap::new();
        for (route, _, _) in ROUTES {
            let mut before = None;
            loop {
                let which = Which { route: Some(name(route)), ..Which::default() };
                let page = Page { workspace: name(WORKSPACE), before, limit: 1_000 };
                let found = self.inbox.deliveries(page, which).await.unwrap();
                let last = found.iter().map(|view| view.seqs[0]).min();
                let known = all.len();
                all.extend(found.into_iter().map(|view| (view.id.to_string(), view)));
                if all.len() == known {
                    break;
                }
                before = last.map(|seq| seq + 1);
            }
        }
        all.into_values().collect()
    }
}

/// In memory where the machine has a place for that: weeks of commits are thousands of waits for a disk.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The configuration after so many reloads.
fn load(folder: &Path, sink: &Sink, reloads: u32) -> Arc<Config> {
    let operator = format!(
        "store: sqlite:store.db\nworkspaces: workspaces/\ncommands: {{ none: {{ run: [\"true\"], workspaces: [{WORKSPACE}] }} }}\n\
         plugins: {{ directory: plugins/, grants: {{ scripted: {{ http: [\"http://{}\"] }} }} }}\n",
        sink.address
    );
    let mut workspace =
        "members: { admin@example.com: admin }\nconnectors: { registrar: { command: none, ceiling: urgent, \
                         notifications: { resource: \"acme://n\" } } }\nroutes:\n"
            .to_owned();
    let (page, wait) = if reloads == 0 { ("page", "10m") } else { ("page-b", "25m") };
    for (name, pattern, target) in ROUTES {
        if *name == "short-lived" && reloads > 0 {
            continue;
        }
        let at = format!("http://{}", sink.address);
        let target = target.replace("{at}", &at).replace("{page}", page).replace("{wait}", wait);
        workspace.push_str(&format!(
            "  - {{ name: {name}, owner: admin@example.com, when: {{ name: \"{pattern}\", source: registrar }}, deliver: [ {{ plugin: scripted, {target} }} ] }}\n"
        ));
    }
    std::fs::create_dir_all(folder.join("workspaces")).unwrap();
    std::fs::write(folder.join("switchbell.yaml"), operator).unwrap();
    std::fs::write(folder.join("workspaces/acme.yaml"), workspace).unwrap();
    let loaded = config::load(&folder.join("switchbell.yaml"), &|_| None);
    Arc::new(loaded.unwrap_or_else(|problems| panic!("{problems}")).config)
}

/// A moment, so much later.
pub fn after(moment: Timestamp, seconds: u64) -> Timestamp {
    later(moment, Duration::from_secs(seconds))
}
