//! What goes, what is written before, and what stops it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::config;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Ended, Entry, Intake, Owed};
use crate::notification::{Event, Level};

const DAY: Duration = Duration::from_secs(86_400);

fn start() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

struct Stage {
    folder: TempDir,
    store: Arc<dyn Store>,
    clock: Clock,
    metrics: Arc<Metrics>,
    latest: watch::Sender<Arc<Config>>,
    stop: CancellationToken,
}

impl Stage {
    fn new(operator: &str, acme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), start()).unwrap());
        let latest = watch::Sender::new(read(folder.path(), operator, acme));
        let (clock, metrics) = (Clock::manual(start()), Arc::default());
        Self { folder, store, clock, metrics, latest, stop: CancellationToken::new() }
    }

    fn configure(&self, operator: &str, acme: &str) {
        self.latest.send_replace(read(self.folder.path(), operator, acme));
    }

    fn retaining(&self) -> Retaining {
        let metrics = Arc::clone(&self.metrics);
        Retaining::new(Arc::clone(&self.store), self.latest.subscribe(), self.clock.clone(), metrics)
    }

    async fn accept(&self, workspace: &str, count: usize, owed: bool) {
        let now = self.clock.now();
        let owed =
            if owed { vec![Owed { route: name("r"), target: "t".to_owned(), plugin: name("slack") }] } else { vec![] };
        let entry = |number: usize| Entry {
            event: Event {
                event_id: format!("{now}-{number}"),
                name: "domain.active".to_owned(),
                timestamp: now,
                level: Level::Info,
                subject: None,
                title: "a title".to_owned(),
                body: None,
                link: None,
                data: "{\"a\":\n1.50}".to_owned(),
                content: None,
            },
            effective_level: Level::Info,
            owed: owed.clone(),
            consumers: Vec::new(),
        };
        let intake = Intake {
            workspace: name(workspace),
            source: name("registrar"),
            received_at: now,
            is_first: false,
            entries: (0..count).map(entry).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.store.accept(intake).await.unwrap();
    }

    async fn seqs(&self, workspace: &str) -> Vec<u64> {
        let page = Page { workspace: name(workspace), before: None, limit: 1_000 };
        self.store.notifications(page).await.unwrap().iter().rev().map(|one| one.seq).collect()
    }

    fn exported(&self, file: &str) -> String {
        fs::read_to_string(self.folder.path().join("archive").join(file)).unwrap()
    }

    fn counts(&self, line: &str) -> bool {
        self.metrics.text().unwrap().lines().any(|one| one == line)
    }
}

fn read(folder: &Path, operator: &str, acme: &str) -> Arc<Config> {
    for path in ["workspaces", "plugins"] {
        fs::create_dir_all(folder.join(path)).unwrap();
    }
    fs::write(folder.join("switchbell.yaml"), operator).unwrap();
    fs::write(folder.join("workspaces/acme.yaml"), acme).unwrap();
    let loaded = config::load(&folder.join("switchbell.yaml"), &|_| None).unwrap();
    assert!(loaded.aside.is_empty(), "{:?}", loaded.aside);
    Arc::new(loaded.config)
}

const MEMBERS: &str = "members: { admin@example.com: admin }\n";

#[tokio::test]
async fn what_is_old_or_too_many_goes_by_each_workspaces_word() {
    let acme = format!("{MEMBERS}retention: {{ age: 2d, count: 150 }}");
    let stage = Stage::new("retention: { age: 30d, count: 400 }", &acme);
    stage.accept("acme", 120, false).await;
    stage.accept("gone", 420, false).await;
    stage.clock.advance(3 * DAY);
    stage.accept("acme", 170, false).await;
    stage.retaining().round(&stage.stop).await.unwrap();
    assert_eq!(stage.seqs("acme").await, (141..=290).collect::<Vec<_>>(), "the newest 150");
    assert_eq!(stage.seqs("gone").await.len(), 400, "of one without a file the operator's word holds");
    assert!(stage.counts("switchbell_expired_notifications_total{workspace=\"acme\"} 140"));
    stage.clock.advance(30 * DAY);
    stage.retaining().round(&stage.stop).await.unwrap();
    assert!(stage.seqs("acme").await.is_empty() && stage.seqs("gone").await.is_empty());
}

#[tokio::test]
async fn what_goes_is_written_down_with_its_deliveries() {
    let stage = Stage::new("retention: { age: 1d, export: archive/ }", MEMBERS);
    stage.accept("acme", 60, true).await;
    let ended = Which::default();
    stage.store.cancel(&name("acme"), ended, "no".to_owned()).await.unwrap();
    stage.clock.advance(2 * DAY);
    stage.retaining().round(&stage.stop).await.unwrap();
    assert!(stage.seqs("acme").await.is_empty());
    let text = stage.exported("acme-2026-06-03.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().map(|line| line["seq"].as_u64().unwrap()).eq(1..=60));
    let first = &lines[0];
    assert_eq!((&first["title"], &first["workspaceId"]), (&Value::from("a title"), &Value::from("acme")));
    assert_eq!(first["deliveries"][0]["state"], "cancelled");
    assert!(text.lines().next().unwrap().contains("{\"a\": 1.50}"), "the payload as it came");
    let file = stage.folder.path().join("archive/acme-2026-06-03.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(stage.counts("switchbell_expired_deliveries_total{workspace=\"acme\"} 60"));
}

#[tokio::test]
async fn nothing_goes_while_it_cannot_be_written_down() {
    let stage = Stage::new("retention: { age: 1d, export: archive }", MEMBERS);
    stage.accept("acme", 3, false).await;
    stage.clock.advance(2 * DAY);
    fs::write(stage.folder.path().join("archive"), "this is no folder").unwrap();
    let mut retaining = stage.retaining();
    let trouble = retaining.round(&stage.stop).await.unwrap_err();
    assert!(trouble.to_string().contains("retention.export"), "{trouble}");
    retaining.say(Some(trouble));
    assert!(stage.counts("switchbell_retention_successful 0"));
    assert_eq!(stage.seqs("acme").await, [1, 2, 3]);
    fs::remove_file(stage.folder.path().join("archive")).unwrap();
    let done = retaining.round(&stage.stop).await;
    retaining.say(done.err());
    assert!(stage.counts("switchbell_retention_successful 1"));
    assert!(stage.seqs("acme").await.is_empty());
    assert_eq!(stage.exported("acme-2026-06-03.jsonl").lines().count(), 3);
}

#[tokio::test]
async fn a_line_that_was_cut_off_is_followed_by_whole_ones() {
    let folder = tempfile::tempdir().unwrap();
    let acme = name("acme");
    let append = |text: &str| export::append(folder.path(), &acme, start(), text.to_owned());
    append("{\"seq\":1}\n").await.unwrap();
    let path = folder.path().join("acme-2026-06-01.jsonl");
    fs::write(&path, "{\"seq\":1}\n{\"se").unwrap();
    append("{\"seq\":2}\n").await.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"seq\":1}\n{\"se\n{\"seq\":2}\n");
}

#[tokio::test]
async fn event_ids_outlive_their_notifications() {
    let stage = Stage::new("poll: { max_age: 1d }\nretention: { age: 1d, dedupe: 10d }", MEMBERS);
    stage.accept("acme", 3, false).await;
    let mut retaining = stage.retaining();
    stage.clock.advance(5 * DAY);
    retaining.round(&stage.stop).await.unwrap();
    assert!(stage.seqs("acme").await.is_empty());
    assert!(stage.counts("switchbell_forgotten_event_ids_total 0"));
    stage.clock.advance(7 * DAY);
    retaining.round(&stage.stop).await.unwrap();
    assert!(stage.counts("switchbell_forgotten_event_ids_total 3"));
}

/// Waits until the task sleeps.
async fn rests(clock: &Clock) {
    while clock.sleepers().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn it_looks_at_the_start_every_ten_minutes_and_when_the_configuration_changes() {
    let stage = Stage::new("retention: { age: 1d }", MEMBERS);
    stage.accept("acme", 1, false).await;
    stage.clock.advance(2 * DAY);
    stage.accept("acme", 1, false).await;
    let task = tokio::spawn(stage.retaining().run(stage.stop.clone()));
    rests(&stage.clock).await;
    assert_eq!(stage.seqs("acme").await, [2]);
    stage.clock.advance(EVERY);
    stage.accept("acme", 2, false).await;
    rests(&stage.clock).await;
    stage.configure("retention: { age: 1d }", &format!("{MEMBERS}retention: {{ count: 1 }}"));
    while stage.seqs("acme").await != [4] {
        tokio::task::yield_now().await;
    }
    rests(&stage.clock).await;
    stage.clock.advance(2 * DAY);
    while !stage.seqs("acme").await.is_empty() {
        tokio::task::yield_now().await;
    }
    stage.stop.cancel();
    task.await.unwrap();
}
