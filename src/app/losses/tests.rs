//! What is told of losses, and how often.

use tempfile::TempDir;

use super::*;
use crate::config;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Entry, Page};
use crate::notification::{Notification, global_id};

const CONSUMERS: &str = "consumers:\n  audit: {}\n  triage: {}\n";

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
    latest: watch::Sender<Arc<Config>>,
    stop: CancellationToken,
}

impl Stage {
    fn new(acme: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(SqliteInbox::open(&folder.path().join("store.db"), start()).unwrap());
        let latest = watch::Sender::new(read(folder.path(), acme));
        Self { folder, store, clock: Clock::manual(start()), latest, stop: CancellationToken::new() }
    }

    fn losses(&self) -> Losses {
        Losses::new(Arc::clone(&self.store), self.latest.subscribe(), self.clock.clone())
    }

    async fn join(&self, ids: &[&str], consumers: &[&str]) {
        let one = |id: &&str| Entry {
            event: Event {
                event_id: (*id).to_owned(),
                name: "domain.active".to_owned(),
                timestamp: start(),
                level: Level::Info,
                subject: None,
                title: "a title".to_owned(),
                body: None,
                link: None,
                data: "{}".to_owned(),
                content: None,
            },
            effective_level: Level::Info,
            owed: Vec::new(),
            consumers: consumers.iter().map(|one| name(one)).collect(),
        };
        let intake = Intake {
            workspace: name("acme"),
            source: name("registrar"),
            received_at: self.clock.now(),
            is_first: false,
            entries: ids.iter().map(one).collect(),
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        self.store.accept(intake).await.unwrap();
    }

    /// Retention takes these.
    async fn expire(&self, seqs: &[u64]) {
        self.store.expire(&name("acme"), seqs.to_vec(), self.clock.now()).await.unwrap();
    }

    async fn consume(&self, consumer: &str, id: &str) {
        let ids = vec![global_id(&name("acme"), &name("registrar"), id)];
        self.store.consume(&name("acme"), &name(consumer), ids, start()).await.unwrap();
    }

    /// The notices, oldest first.
    async fn notices(&self) -> Vec<Notification> {
        let page = Page { workspace: name("acme"), before: None, limit: 1_000 };
        let all = self.store.notifications(page).await.unwrap();
        all.into_iter().rev().filter(|one| one.event.name == LOSING_NAME).collect()
    }

    async fn ids(&self) -> Vec<String> {
        self.notices().await.into_iter().map(|one| one.event.event_id).collect()
    }

    /// The numbers of what waits for a consumer.
    async fn waiting(&self, consumer: &str) -> Vec<u64> {
        let page = self.store.pending(&name("acme"), &name(consumer), 0, 100).await.unwrap();
        page.items.iter().map(|one| one.seq).collect()
    }
}

fn read(folder: &std::path::Path, acme: &str) -> Arc<Config> {
    for path in ["workspaces", "plugins"] {
        std::fs::create_dir_all(folder.join(path)).unwrap();
    }
    std::fs::write(folder.join("switchbell.yaml"), "workspaces: workspaces/\n").unwrap();
    std::fs::write(folder.join("workspaces/acme.yaml"), acme).unwrap();
    let loaded = config::load(&folder.join("switchbell.yaml"), &|_| None).unwrap();
    assert!(loaded.aside.is_empty(), "{:?}", loaded.aside);
    Arc::new(loaded.config)
}

#[tokio::test]
async fn a_loss_is_told_once_each_time_that_it_begins_and_to_the_others_only() {
    let stage = Stage::new(CONSUMERS);
    let mut losses = stage.losses();
    stage.join(&["e1", "e2", "e3"], &["audit", "triage"]).await;
    for id in ["e1", "e2", "e3"] {
        stage.consume("audit", id).await;
    }
    losses.round().await.unwrap();
    assert_eq!(stage.ids().await, [""; 0]);
    stage.expire(&[1]).await;
    losses.round().await.unwrap();
    stage.expire(&[2]).await;
    losses.round().await.unwrap();
    assert_eq!(stage.ids().await, ["consumer.losing:triage:1"]);
    let notice = stage.notices().await.remove(0);
    assert_eq!((notice.source.as_str(), notice.effective_level), ("switchbell", Level::Attention));
    assert_eq!(notice.event.subject.as_deref(), Some("triage"));
    assert_eq!(notice.event.data, r#"{"consumer":"triage","losses":1,"lost":1,"lostTooOld":1,"pending":2}"#);
    assert_eq!(stage.waiting("audit").await, [4], "another consumer hears of it");
    assert_eq!(stage.waiting("triage").await, [3], "the queue that it is about does not grow by it");
    // It is over once nothing waits; then it begins anew.
    stage.consume("triage", "e3").await;
    stage.join(&["e4", "e5"], &["triage"]).await;
    stage.expire(&[5]).await;
    losses.round().await.unwrap();
    assert_eq!(stage.ids().await, ["consumer.losing:triage:1", "consumer.losing:triage:2"]);
}

#[tokio::test]
async fn a_start_looks_by_itself_and_tells_nothing_twice() {
    let stage = Stage::new(CONSUMERS);
    stage.join(&["e1", "e2"], &["triage"]).await;
    stage.expire(&[1, 2]).await;
    for _ in 0..2 {
        stage.losses().round().await.unwrap();
        assert_eq!(stage.ids().await, ["consumer.losing:triage:1"]);
    }
    // What is over for long is no news, though its id is not known any more.
    stage.clock.advance(Duration::from_secs(86_400 * 500));
    stage.store.forget_seen(stage.clock.now(), 100).await.unwrap();
    stage.losses().round().await.unwrap();
    assert_eq!(stage.ids().await.len(), 1);
}

#[tokio::test]
async fn news_of_the_store_is_told_without_waiting_for_time() {
    let stage = Stage::new(CONSUMERS);
    let mut changes = stage.store.follow(&name("acme")).await.unwrap();
    let running = tokio::spawn(stage.losses().run(stage.stop.clone()));
    stage.join(&["e1", "e2"], &["triage"]).await;
    stage.expire(&[1]).await;
    while stage.ids().await.is_empty() {
        changes.changed().await.unwrap();
    }
    // A workspace that comes back is looked at, too.
    stage.latest.send_replace(read(stage.folder.path(), "consumers: {}\n"));
    stage.stop.cancel();
    running.await.unwrap();
    assert_eq!(stage.ids().await, ["consumer.losing:triage:1"]);
}

#[test]
fn a_notice_says_how_much_went_why_and_what_to_do() {
    let queue = QueueView {
        consumer: name("triage"),
        pending: 10_000,
        oldest: None,
        joined: 10_012,
        acknowledged: 0,
        acknowledged_at: None,
        lost: 12,
        too_old: 2,
        lost_at: None,
        losses: 3,
        is_losing: true,
    };
    let said = |queue: &QueueView, is_configured| event(queue, is_configured, start()).body.unwrap();
    assert_eq!(
        said(&queue, true),
        "12 events have left the queue unacknowledged so far: 10 because it was full (it holds 10000), 2 because they were too \
         old to be kept. 10000 still wait. What left the queue stays in the inbox as long as it is kept there. See whether the \
         agent runs and acknowledges what it has taken over, or have fewer match under `consumers.triage.when`."
    );
    let full = QueueView { lost: 1, too_old: 0, ..queue.clone() };
    assert!(said(&full, true).starts_with("1 event has left the queue unacknowledged so far: 1 because it was full"));
    let old = QueueView { lost: 2, ..queue };
    let said = said(&old, false);
    assert!(
        said.starts_with("2 events have left the queue unacknowledged so far: 2 because they were too old"),
        "{said}"
    );
    assert!(said.ends_with("so that nothing new joins: put it back, or let the rest go."), "{said}");
}
