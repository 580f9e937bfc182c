//! What explain said before is what is owed, and when it goes: generated workspaces and events through the real store,
//! dispatcher, queues and sandbox, by a clock that is moved by hand.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use jiff::Timestamp;
use serde_json::value::RawValue;
use switchbell::clock::{Clock, later};
use switchbell::config::{self, Config, Limits};
use switchbell::fetch::event::{Judged, judge};
use switchbell::inbox::sqlite::SqliteInbox;
use switchbell::inbox::{Actor, Deed, DeliveryView, Ended, Inbox, Intake, Mark, Page, Which};
use switchbell::notification::Name;
use switchbell::route::entry;
use switchbell::send::effect::Effects;
use switchbell::send::keys::Keys;
use switchbell::send::queue::Queues;
use switchbell::send::{Current, Dispatcher, IN_FLIGHT_MAX, Live, Means, Stop, book};
use switchbell::serve::inquiry::{ExplainAskedJson, ExplainedJson, Inquiry, Loading, OfJson, Sight};
use switchbell::telemetry::Nobody;
use switchbell::wasm::{Catalog, Sandbox, Settings};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::support::prepared;

/// Workspaces that are generated, and events that come to each.
const WORKSPACES: u64 = 8;
const EVENTS: u64 = 20;
/// Before both changes of the clock, in Berlin and in New York.
const BEGINNINGS: [&str; 3] = ["2026-03-07T12:00:00Z", "2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z"];

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The stages of a target, drawn.
fn timing(random: &mut Rng) -> String {
    let mut text = String::new();
    let except = |random: &mut Rng| if random.bool() { "urgent" } else { "none" };
    if random.bool() {
        let _ = write!(text, ", after: {{ wait: {}m, except: {} }}", random.u32(1..90), except(random));
        if random.bool() {
            text.push_str(", unless: { acknowledged: anyone }");
        }
    }
    if random.bool() {
        let (from, length) = (random.u32(..1440), random.u32(1..1440));
        let clock = |minute: u32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
        let zone = random.choice(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/New_York"]).unwrap();
        let (from, to, except) = (clock(from), clock(from + length), except(random));
        let _ = write!(text, ", hold: {{ from: \"{from}\", to: \"{to}\", zone: {zone}, except: {except} }}");
    }
    if random.bool() {
        let by = random.choice(["subject", "name", "none"]).unwrap();
        let (wait, most, except) = (random.u32(1..60), random.u32(2..6), except(random));
        let _ = write!(text, ", collect: {{ by: {by}, wait: {wait}m, most: {most}, except: {except} }}");
    }
    if random.bool() {
        let (count, per, except) = (random.u32(1..4), random.u32(1..300), except(random));
        let _ = write!(text, ", at_most: {{ count: {count}, per: {per}m, except: {except} }}");
    }
    text
}

/// The conditions of a route, drawn.
fn when(random: &mut Rng) -> String {
    let mut parts = Vec::new();
    if random.bool() {
        parts.push(format!("name: \"{}\"", random.choice(["**", "domain.*", "domain.**", "mail.*"]).unwrap()));
    }
    if random.u8(..4) == 0 {
        parts.push(format!("not: \"{}\"", random.choice(["domain.failed", "mail.**"]).unwrap()));
    }
    if random.u8(..3) == 0 {
        parts.push(format!("level: {}", random.choice(["attention", "urgent"]).unwrap()));
    }
    if random.u8(..4) == 0 {
        parts.push("subject: \"site-?.example\"".to_owned());
    }
    format!("{{ {} }}", parts.join(", "))
}

fn workspace(random: &mut Rng, sink: &str) -> String {
    let mut text =
        "members: { admin@example.com: admin }\nconnectors: { registrar: { command: none, ceiling: attention, \
                    notifications: { resource: \"acme://n\" } }, desk: { command: none, ceiling: urgent, \
                    notifications: { resource: \"acme://m\" } } }\nroutes:\n"
            .to_owned();
    for route in 0..random.usize(2..6) {
        let when = when(random);
        let _ = write!(text, "  - name: r{route}\n    owner: admin@example.com\n    when: {when}\n    deliver:\n");
        for target in 0..random.usize(1..3) {
            let (id, timing) = (format!("r{route}-t{target}"), timing(random));
            let script = format!("send {sink}/{id}|judge");
            let _ = writeln!(text, "      - {{ id: {id}, plugin: scripted, with: {{ script: '{script}' }}{timing} }}");
        }
    }
    text
}

fn load(folder: &Path, workspace: &str, sink: &str) -> Arc<Config> {
    let operator = format!(
        "store: sqlite:store.db\nworkspaces: workspaces/\ncommands: {{ none: {{ run: [\"true\"], workspaces: [acme] }} }}\n\
         plugins: {{ directory: plugins/, grants: {{ scripted: {{ http: [\"{sink}\"] }} }} }}\n"
    );
    for made in ["workspaces", "plugins"] {
        std::fs::create_dir_all(folder.join(made)).unwrap();
    }
    // Whether there is a plugin is asked of the folder.
    std::fs::write(folder.join("plugins/scripted.wasm"), "").unwrap();
    std::fs::write(folder.join("switchbell.yaml"), operator).unwrap();
    std::fs::write(folder.join("workspaces/acme.yaml"), workspace).unwrap();
    let loaded = config::load(&folder.join("switchbell.yaml"), &|_| None);
    Arc::new(loaded.unwrap_or_else(|problems| panic!("{problems}\n{workspace}")).config)
}

struct Engine {
    /// Held as long as the store is used.
    _folder: TempDir,
    clock: Clock,
    inbox: Arc<SqliteInbox>,
    config: Arc<Config>,
    inquiry: Inquiry,
    queues: Arc<Queues>,
    stop: Stop,
    task: JoinHandle<()>,
    yaml: String,
}

impl Engine {
    async fn open(random: &mut Rng, catalog: &Catalog, sink: &str) -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let start: Timestamp = random.choice(BEGINNINGS).unwrap().parse().unwrap();
        let clock = Clock::manual(start);
        let yaml = workspace(random, sink);
        let config = load(folder.path(), &yaml, sink);
        let inbox = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), start).unwrap());
        let queues = Queues::new(clock.clone(), IN_FLIGHT_MAX);
        let keys = Keys::new(&inbox.key());
        let (book, mistakes) = book(&config, catalog, &keys).await;
        assert_eq!(mistakes, []);
        let means = Arc::new(Means {
            live: Live::new(Current { config: Arc::clone(&config), catalog: catalog.clone(), book: Arc::new(book) }),
            effects: Effects::new(&config, &clock).unwrap(),
            clock: clock.clone(),
            queues: Arc::clone(&queues),
            keys: keys.clone(),
            inbox: Arc::clone(&inbox) as Arc<dyn Inbox>,
        });
        let stop = Stop::default();
        let inquiry = Inquiry {
            effects: means.effects.clone(),
            clock: clock.clone(),
            queues: Arc::clone(&queues),
            keys,
            inbox: Some(Arc::clone(&inbox) as Arc<dyn Inbox>),
            loading: Loading::Known(std::collections::BTreeMap::new()),
            sight: Sight::Live(Arc::clone(&means)),
        };
        let dispatcher = Dispatcher::start(means, Arc::new(Nobody)).await.unwrap();
        let task = tokio::spawn(dispatcher.run(stop.clone()));
        let engine = Self { _folder: folder, clock, inbox, config, inquiry, queues, stop, task, yaml };
        engine.settle().await;
        engine
    }

    /// Returns once nothing but time moves anything on.
    async fn settle(&self) {
        loop {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            assert!(!self.task.is_finished());
            let sleepers = self.clock.sleepers();
            let all_sleep = sleepers.len() == self.queues.in_flight() + 1;
            if all_sleep && sleepers.iter().all(|until| *until > self.clock.now()) {
                return;
            }
        }
    }

    async fn until(&self, moment: Timestamp) {
        loop {
            self.settle().await;
            let next = self.clock.sleepers().into_iter().next().unwrap_or(moment);
            if next > moment || self.clock.now() >= moment {
                break;
            }
            self.clock.set(next);
        }
        if self.clock.now() < moment {
            self.clock.set(moment);
            self.settle().await;
        }
    }

    async fn explain(&self, of: OfJson) -> ExplainedJson {
        let asked = ExplainAskedJson { of, ..ExplainAskedJson::default() };
        self.inquiry.explain("acme", &asked).await.unwrap()
    }

    /// Has an event come, as a poller would.
    async fn accept(&self, event: &RawValue, source: &str) -> u64 {
        self.take(event, source, false).await
    }

    async fn take(&self, event: &RawValue, source: &str, is_first: bool) -> u64 {
        let workspace = &self.config.workspaces[&name("acme")];
        let Judged { event, .. } = judge(event).unwrap();
        let source = name(source);
        let level = event.level.capped(workspace.connectors[&source].ceiling);
        let (mut entry, _) = entry(event, level, (workspace, &source));
        if is_first {
            entry.owed.clear();
        }
        let intake = Intake {
            workspace: workspace.name.clone(),
            source: source.clone(),
            received_at: self.clock.now(),
            is_first,
            entries: vec![entry],
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        let seq = self.inbox.accept(intake).await.unwrap().seqs[0].unwrap();
        self.settle().await;
        seq
    }

    async fn acknowledge(&self, seq: u64) {
        let by = Actor { name: "somebody".to_owned(), is_agent: false };
        let mark = Mark { at: self.clock.now(), by };
        self.inbox.mark(&name("acme"), vec![seq], Deed::Acknowledge, mark).await.unwrap();
        self.settle().await;
    }

    async fn deliveries(&self, seq: u64) -> Vec<DeliveryView> {
        let page = Page { workspace: name("acme"), before: None, limit: 1_000 };
        self.inbox.deliveries(page, Which { seq: Some(seq), ..Which::default() }).await.unwrap()
    }

    async fn close(self) {
        self.stop.soon.cancel();
        let passing = async {
            loop {
                tokio::task::yield_now().await;
                self.clock.advance(Duration::from_millis(20));
            }
        };
        tokio::select! {
            ended = self.task => ended.unwrap(),
            () = passing => {}
        }
    }
}

fn event(random: &mut Rng, number: u64) -> Box<RawValue> {
    let names = ["domain.active", "domain.failed", "domain.a.b", "mail.bounced"];
    let subject = random.bool().then(|| format!("site-{}.example", random.usize(..3)));
    let event = serde_json::json!({
        "eventId": format!("e{number}"),
        "name": random.choice(names).unwrap(),
        "timestamp": "2026-01-02T03:04:05Z",
        "data": {},
        "_meta": { "ai.nimblebrain/notification": {
            "level": random.choice(["info", "attention", "urgent"]).unwrap(),
            "subject": subject,
        } },
    });
    RawValue::from_string(event.to_string()).unwrap()
}

/// A destination that takes everything.
async fn sink() -> String {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = axum::Router::new().fallback(async || "ok");
    tokio::spawn(async move { axum::serve(listener, service).await });
    format!("http://{address}")
}

async fn catalog() -> Catalog {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(prepared("dist/guests/scripted.wasm", "guests"), folder.path().join("scripted.wasm")).unwrap();
    let sandbox = Sandbox::new(Settings::new(Limits::default())).unwrap();
    let (catalog, problems) = Catalog::open(&sandbox, folder.path()).await;
    assert_eq!(problems, []);
    catalog
}

/// What explain says of each target of the routes that match: its route, its id, and when it goes.
fn foreseen(explained: &ExplainedJson) -> Vec<(String, String, Timestamp)> {
    let matching = explained.routes.iter().filter(|route| route.matches);
    let target = |route: &str, target: &switchbell::serve::inquiry::TargetJson| {
        let at = target.forecast.goes_at.as_ref().unwrap().parse().unwrap();
        (route.to_owned(), target.id.clone(), at)
    };
    matching.flat_map(|route| route.targets.iter().map(move |one| target(&route.name, one))).collect()
}

#[tokio::test]
async fn what_explain_says_is_what_is_owed_and_when_it_goes() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (catalog, sink) = (catalog().await, sink().await);
    let (mut owed_in_all, mut waited) = (0, 0);
    for seed in 0..WORKSPACES {
        let mut random = Rng::with_seed(seed);
        let engine = Engine::open(&mut random, &catalog, &sink).await;
        for number in 0..EVENTS {
            let gap = if random.u8(..5) == 0 { random.u32(..900) } else { random.u32(..15) };
            engine.until(later(engine.clock.now(), Duration::from_secs(60) * gap)).await;
            let (source, raw) = (random.choice(["registrar", "desk"]).unwrap(), event(&mut random, number));
            let of = OfJson { event: Some(raw.clone()), source: Some(source.to_owned()), seq: None };
            let said = foreseen(&engine.explain(of).await);
            let came = engine.clock.now();
            let seq = engine.accept(&raw, source).await;
            // Most come and go undisturbed; some are followed by others before they go.
            if random.u8(..3) == 0 {
                if random.bool() {
                    engine.acknowledge(seq).await;
                }
                continue;
            }
            let mut expected: Vec<(&str, &str)> = said.iter().map(|(route, id, _)| (&**route, &**id)).collect();
            let last = said.iter().map(|(_, _, at)| *at).max().unwrap_or(came);
            let of_stored = engine.explain(OfJson { seq: Some(seq), ..OfJson::default() }).await;
            let open = of_stored.routes.iter().flat_map(|route| &route.targets);
            let open =
                open.filter(|target| target.forecast.is_of_delivery).map(|target| target.forecast.goes_at.clone());
            assert!(open.flatten().all(|at| said.iter().any(|(_, _, said)| said.to_string() == at)), "{of_stored:#?}");
            engine.until(last).await;
            let owed = engine.deliveries(seq).await;
            let mut found: Vec<(&str, &str)> = owed.iter().map(|one| (one.route.as_str(), &*one.target)).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{raw} of {source}\n{}", engine.yaml);
            for (route, id, at) in &said {
                let one = owed.iter().find(|one| one.route.as_str() == route && one.target == *id).unwrap();
                let began = one.attempts.first().map(|attempt| attempt.started_at);
                assert_eq!(began, Some(*at), "{route} -> {id} of {raw} that came at {came}\n{}", engine.yaml);
                owed_in_all += 1;
                waited += usize::from(*at != came);
            }
        }
        engine.close().await;
    }
    assert!(owed_in_all > 100 && waited > 50, "only {owed_in_all} were owed, and {waited} waited");
}

#[tokio::test]
async fn what_came_with_a_first_answer_owes_nothing_and_says_that_that_is_why() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut random = Rng::with_seed(3);
    let engine = Engine::open(&mut random, &catalog().await, "http://127.0.0.1:9").await;
    let raw = event(&mut random, 1);
    let seq = engine.take(&raw, "desk", true).await;
    let explained = engine.explain(OfJson { seq: Some(seq), ..OfJson::default() }).await;
    let why = explained.owes_nothing.unwrap();
    assert!(why.contains("it came with the first answer of desk's outbox"), "{why}");
    assert!(explained.routes.iter().all(|route| route.matched_then.is_none()), "{:?}", explained.routes);
    engine.close().await;
}
