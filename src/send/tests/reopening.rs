//! Attempts over the SQLite store, which is closed and opened again.

use std::path::Path;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::*;
use crate::inbox::delivery::{Outcome, State as DeliveryState};
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{DeliveryView, Ended, Intake, Page, Which};
use crate::route::entry;

/// A store that is open, and a dispatcher that works on it.
pub(super) struct Server {
    pub(super) means: Arc<Means>,
    pub(super) dispatcher: Arc<Dispatcher>,
    clock: Clock,
    stop: Stop,
    running: JoinHandle<()>,
}

impl Server {
    async fn start(store: &Path, config: &Arc<Config>, clock: &Clock) -> Self {
        Self::start_with(catalog().await, store, config, clock).await
    }

    pub(super) async fn start_with(catalog: Catalog, store: &Path, config: &Arc<Config>, clock: &Clock) -> Self {
        let inbox: Arc<dyn Inbox> = Arc::new(SqliteInbox::open(store, clock.now()).unwrap());
        let means = means_with(catalog, Arc::clone(config), inbox, clock).await;
        let (stop, dispatcher) = (Stop::default(), dispatcher(&means).await);
        let running = tokio::spawn(Arc::clone(&dispatcher).run(stop.clone()));
        Self { means, dispatcher, clock: clock.clone(), stop, running }
    }

    /// Takes in one event.
    async fn take_in(&self) {
        self.take_in_number(1).await;
    }

    /// Takes in the event of this number.
    pub(super) async fn take_in_number(&self, number: u64) {
        let event = Event { event_id: format!("e{number}"), ..notification("registrar").event };
        let config = &self.means.live.get().config;
        let (workspace, source) = (&config.workspaces["acme"], name("registrar"));
        let (entry, _) = entry(event, Level::Info, (workspace, &source));
        let intake = Intake {
            is_first: false,
            workspace: workspace.name.clone(),
            source,
            received_at: self.clock.now(),
            entries: vec![entry],
            notices: Vec::new(),
            cursor: None,
            ended: Ended::Answered { revision: None, is_backlog: false },
        };
        assert!(matches!(*self.means.inbox.accept(intake).await.unwrap().seqs, [Some(_)]), "it is new");
    }

    async fn delivery(&self) -> DeliveryView {
        let page = Page { workspace: name("acme"), before: None, limit: 10 };
        self.means.inbox.deliveries(page, Which::default()).await.unwrap().remove(0)
    }

    /// The delivery once it is in `state`, while the clock goes on.
    async fn until(&self, state: DeliveryState) -> DeliveryView {
        loop {
            let delivery = self.delivery().await;
            if delivery.state == state {
                return delivery;
            }
            self.clock.advance(Duration::from_millis(500));
        }
    }

    /// Waits until an attempt is over, whatever comes after it.
    async fn until_tried(&self) -> DeliveryView {
        loop {
            let delivery = self.delivery().await;
            if !delivery.attempts.is_empty() {
                return delivery;
            }
            self.clock.advance(Duration::from_millis(500));
        }
    }

    /// Ends as a crash does: whatever runs is dropped where it is.
    async fn crash(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    pub(super) async fn stop(self) {
        self.stop.soon.cancel();
        self.stop.now.cancel();
        self.running.await.unwrap();
    }
}

async fn stand(script: &str) -> (tempfile::TempDir, Arc<Config>, Clock, Sink) {
    let sink = Sink::open().await;
    let script = script.replace("AT", &format!("http://{}", sink.address));
    let routes = vec![route("news", "domain.*", vec![target("target", "scripted", json!(script))])];
    (tempfile::tempdir().unwrap(), Arc::new(config(routes, sink.address)), Clock::manual(start()), sink)
}

#[tokio::test]
async fn a_wait_survives_a_restart_and_its_attempt_goes_on() {
    let (folder, config, clock, sink) = stand("post AT/202/start|wait 3600 1 ; post AT/200/look|done ready").await;
    let store = folder.path().join("bell.db");
    let server = Server::start(&store, &config, &clock).await;
    server.take_in().await;
    let waiting = server.until(DeliveryState::Waiting).await;
    assert!(waiting.attempts.is_empty(), "its attempt is not over");
    server.stop().await;
    clock.advance(Duration::from_secs(1_800));
    let server = Server::start(&store, &config, &clock).await;
    let delivered = server.until(DeliveryState::Delivered).await;
    assert!(clock.now() >= crate::clock::later(start(), Duration::from_secs(3_600)));
    let [attempt] = delivered.attempts.as_slice() else { panic!("{delivered:?}") };
    assert_eq!((attempt.number.get(), attempt.steps, attempt.reason.as_deref()), (1, 4, Some("done ready")));
    assert_eq!(sink.asked(), ["/202/start", "/200/look"]);
    server.stop().await;
}

#[tokio::test]
async fn a_crash_repeats_nothing_behind_the_plugins_back() {
    for (script, asked) in [("post AT/never/1|report", 1), ("post AT/200/1|post AT/200/2|post AT/never/3|report", 3)] {
        let (folder, config, clock, sink) = stand(script).await;
        let store = folder.path().join("bell.db");
        let server = Server::start(&store, &config, &clock).await;
        server.take_in().await;
        sink.asked_times(asked).await;
        server.crash().await;
        let server = Server::start(&store, &config, &clock).await;
        let dead = server.until(DeliveryState::Dead).await;
        let [attempt] = dead.attempts.as_slice() else { panic!("{dead:?}") };
        assert!(attempt.reason.as_ref().unwrap().starts_with("Reach::Unanswered cut-off"), "{attempt:?}");
        assert_eq!(sink.asked().len(), asked, "{script}");
        server.stop().await;
    }
}

#[tokio::test]
async fn a_failed_attempts_resume_is_where_the_next_one_goes_on() {
    let (folder, config, clock, sink) = stand("post AT/200/1|post AT/503/2|carry-on 1 ; post AT/200/2|done all").await;
    let server = Server::start(&folder.path().join("bell.db"), &config, &clock).await;
    server.take_in().await;
    let delivered = server.until(DeliveryState::Delivered).await;
    assert_eq!(delivered.attempts.len(), 2);
    assert_eq!(sink.asked(), ["/200/1", "/503/2", "/200/2"]);
    server.stop().await;
}

#[tokio::test]
async fn a_stop_in_the_middle_of_an_attempt_costs_it_nothing_but_the_answer() {
    let (folder, config, clock, sink) = stand("post AT/200/1|post AT/never/2|post AT/200/3|done all").await;
    let store = folder.path().join("bell.db");
    let server = Server::start(&store, &config, &clock).await;
    server.take_in().await;
    sink.asked_times(2).await;
    server.stop().await;
    let server = Server::start(&store, &config, &clock).await;
    let delivered = server.until(DeliveryState::Delivered).await;
    assert_eq!((delivered.attempts.len(), delivered.attempts[0].steps), (1, 4));
    assert_eq!(sink.asked(), ["/200/1", "/never/2", "/200/3"]);
    server.stop().await;
}

#[tokio::test]
async fn an_attempt_goes_on_on_its_version_after_a_restart_with_another() {
    let (folder, config, clock, sink) = stand("post AT/200/1|post AT/never/2|post AT/200/3|done all").await;
    let (store, catalog) = (folder.path().join("bell.db"), catalog().await);
    let server = Server::start(&store, &config, &clock).await;
    server.take_in().await;
    sink.asked_times(2).await;
    server.crash().await;
    let second = versions::scripted("2.0.0").await;
    let server = Server::start_with(catalog.with(second), &store, &config, &clock).await;
    let delivered = server.until(DeliveryState::Delivered).await;
    let [attempt] = delivered.attempts.as_slice() else { panic!("{delivered:?}") };
    assert_eq!((attempt.plugin_version.as_deref(), attempt.steps), (Some("1.0.0"), 4));
    assert_eq!(sink.asked(), ["/200/1", "/never/2", "/200/3"]);
    server.stop().await;
}

#[tokio::test]
async fn an_attempt_whose_version_is_gone_after_a_restart_is_unknown() {
    let (folder, config, clock, sink) = stand("post AT/200/1|post AT/never/2|done all").await;
    let (store, catalog) = (folder.path().join("bell.db"), catalog().await);
    let server = Server::start(&store, &config, &clock).await;
    server.take_in().await;
    sink.asked_times(2).await;
    server.crash().await;
    let second = versions::scripted("2.0.0").await;
    let server = Server::start_with(catalog.with(second).keeping([]), &store, &config, &clock).await;
    let retrying = server.until_tried().await;
    let [attempt] = retrying.attempts.as_slice() else { panic!("{retrying:?}") };
    assert_eq!((attempt.outcome, &attempt.plugin_version), (Outcome::Unknown, &None));
    assert!(attempt.reason.as_ref().unwrap().contains("is not there any more"), "{attempt:?}");
    assert_eq!(server.means.inbox.plugins_in_use().await.unwrap(), []);
    server.stop().await;
}

/// Has an attempt wait on version 1.0.0, changes the plugins meanwhile, and returns the version that went on.
async fn after_a_wait(change: impl AsyncFnOnce(Catalog) -> Catalog) -> Option<String> {
    let (folder, config, clock, sink) = stand("post AT/202/start|wait 3600 1 ; post AT/200/look|done ready").await;
    let server = Server::start(&folder.path().join("bell.db"), &config, &clock).await;
    server.take_in().await;
    server.until(DeliveryState::Waiting).await;
    let (scripted, catalog) = (name("scripted"), catalog().await);
    let in_use = vec![(scripted.clone(), catalog.get(&scripted).unwrap().digest().to_owned())];
    assert_eq!(server.means.inbox.plugins_in_use().await.unwrap(), in_use);
    let mistakes = server.dispatcher.change(change(catalog).await, &scripted).await.unwrap();
    assert_eq!(mistakes, []);
    let delivered = server.until(DeliveryState::Delivered).await;
    assert_eq!((delivered.attempts.len(), sink.asked()), (1, vec!["/202/start".to_owned(), "/200/look".to_owned()]));
    assert_eq!(server.means.inbox.plugins_in_use().await.unwrap(), []);
    server.stop().await;
    delivered.attempts[0].plugin_version.clone()
}

#[tokio::test]
async fn what_waits_while_its_plugin_changes_goes_on_on_its_version_while_that_is_there() {
    let with = async |catalog: Catalog| catalog.with(versions::scripted("2.0.0").await);
    assert_eq!(after_a_wait(with).await.as_deref(), Some("1.0.0"));
    let alone = async |catalog: Catalog| catalog.with(versions::scripted("2.0.0").await).keeping([]);
    assert_eq!(after_a_wait(alone).await.as_deref(), Some("2.0.0"));
    let without = async |catalog: Catalog| catalog.without(&name("scripted"));
    assert_eq!(after_a_wait(without).await.as_deref(), Some("1.0.0"));
}
