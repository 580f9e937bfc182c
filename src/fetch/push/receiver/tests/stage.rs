//! A server that is scripted, the real store, and a clock that is moved by hand.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::{Notify, mpsc, watch};

use super::super::*;
use crate::clock::Clock;
use crate::config::{Config, Push};
use crate::fetch::poller::stage_for_tests::{Told, config};
use crate::fetch::poller::store_for_tests::Store;
use crate::inbox::sqlite::SqliteInbox;
use crate::inbox::{Inbox as _, Page};
use crate::notification::Level;
use crate::telemetry::Happening;

/// A server with one queue.
#[derive(Debug, Default)]
pub(super) struct Server {
    state: Mutex<Queue>,
    live: Notify,
    logged: Notify,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Id and text, oldest first; what is acknowledged leaves.
    pub(super) pending: Vec<(String, String)>,
    pub(super) page_max: usize,
    pub(super) live: VecDeque<Live>,
    /// What it was asked for, in order.
    pub(super) log: Vec<String>,
    /// What it refuses next, by the beginning of what is asked.
    pub(super) refusals: Vec<(&'static str, ReadError)>,
    pub(super) is_closed: bool,
    /// What is acknowledged stays.
    pub(super) is_stuck: bool,
}

impl Server {
    pub(super) fn state(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap()
    }

    pub(super) fn asked(&self, what: String) -> Result<(), ReadError> {
        let mut state = self.state();
        let refusal = state.refusals.iter().position(|(of, _)| what.starts_with(of));
        state.log.push(what);
        let refusal = refusal.map(|at| state.refusals.remove(at).1);
        drop(state);
        self.logged.notify_one();
        refusal.map_or(Ok(()), Err)
    }

    pub(super) fn say(&self, live: Live) {
        self.state().live.push_back(live);
        self.live.notify_one();
    }

    /// A durable event that is told live.
    pub(super) fn emit(&self, id: &str) {
        self.state().pending.push((id.to_owned(), event(id)));
        self.say(Live::Event(format!("{{\"event\":{}}}", event(id))));
    }
}

#[derive(Debug)]
struct Scripted(Arc<Server>);

impl PushQueue for Scripted {
    fn listen(&mut self) -> BoxFuture<'_, Result<(), ReadError>> {
        std::future::ready(self.0.asked("listen".to_owned())).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Live> {
        async move {
            loop {
                if let Some(live) = self.next_at_once() {
                    return live;
                }
                self.0.live.notified().await;
            }
        }
        .boxed()
    }

    fn next_at_once(&mut self) -> Option<Live> {
        self.0.state().live.pop_front()
    }

    fn get(&mut self, limit: u32) -> BoxFuture<'_, Result<String, ReadError>> {
        let asked = self.0.asked("get".to_owned()).map(|()| {
            let state = self.0.state();
            let most = state.page_max.min(limit as usize);
            let page: Vec<&str> = state.pending.iter().take(most).map(|(_, text)| text.as_str()).collect();
            format!(r#"{{"events":[{}],"hasMore":{}}}"#, page.join(","), state.pending.len() > most)
        });
        std::future::ready(asked).boxed()
    }

    fn ack<'a>(&'a mut self, ids: &'a [String]) -> BoxFuture<'a, Result<(), ReadError>> {
        let asked = self.0.asked(format!("ack {}", ids.join(" ")));
        if asked.is_ok() && !self.0.state().is_stuck {
            self.0.state().pending.retain(|(id, _)| !ids.contains(id));
        }
        std::future::ready(asked).boxed()
    }

    fn without_secrets(&self, said: &str) -> String {
        said.replace("s3cret", "***")
    }

    fn revision(&self) -> Option<String> {
        Some("2026-07-28".to_owned())
    }

    fn close(&mut self) -> BoxFuture<'_, ()> {
        self.0.state().is_closed = true;
        async {}.boxed()
    }
}

pub(super) fn event(id: &str) -> String {
    format!(r#"{{"eventId":"{id}","sourceId":"s","type":"loud","createdAt":"2026-07-20T10:30:00Z","content":[]}}"#)
}

fn configuration() -> Config {
    let mut config = config();
    for workspace in config.workspaces.values_mut() {
        for connector in workspace.connectors.values_mut() {
            connector.outbox = None;
            connector.push = Some(Push { levels: [("loud".to_owned(), Level::Urgent)].into() });
        }
    }
    config
}

pub(super) struct Stage {
    pub(super) server: Arc<Server>,
    pub(super) store: Arc<Store>,
    pub(super) clock: Clock,
    told: mpsc::UnboundedReceiver<Happening>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    pub(super) handle: Handle,
    _configured: watch::Sender<Arc<Config>>,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(super) fn start(ids: &[&str], refusals: Vec<(&'static str, ReadError)>) -> Self {
        let pending = ids.iter().map(|id| ((*id).to_owned(), event(id))).collect();
        Self::of(Queue { pending, page_max: 2, refusals, ..Queue::default() })
    }

    pub(super) fn of(queue: Queue) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sqlite = SqliteInbox::open(&folder.path().join("switchbell.db"), Timestamp::UNIX_EPOCH).unwrap();
        let store = Arc::new(Store { sqlite, is_full: AtomicBool::new(false) });
        let server = Arc::new(Server { state: Mutex::new(queue), ..Server::default() });
        let clock = Clock::manual(Timestamp::UNIX_EPOCH);
        let (sender, told) = mpsc::unbounded_channel();
        let (configured, config) = watch::channel(Arc::new(configuration()));
        let budget = Arc::new(Budget::new(1_000, clock.clone()));
        let observer = Arc::new(Told(sender));
        let shared = Shared { config, inbox: store.clone(), clock: clock.clone(), observer, pollers: 1 };
        let (workspace, source) = ("acme".parse().unwrap(), "registrar".parse().unwrap());
        let queue = Box::new(Scripted(Arc::clone(&server)));
        let receiver = Receiver::new(shared, &workspace, &source, queue, budget).unwrap();
        let (handle, stop) = (receiver.handle(), CancellationToken::new());
        let task = tokio::spawn(receiver.run(stop.clone()));
        Self { server, store, clock, told, stop, task, handle, _configured: configured, _folder: folder }
    }

    /// Waits until the server was asked for this, in this order, since the start.
    pub(super) async fn asked(&self, expected: &[&str]) {
        let asked = async {
            while self.server.state().log.len() < expected.len() {
                self.server.logged.notified().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert_eq!(self.server.state().log, expected, "{in_time:?}");
    }

    /// Lets so much time pass once the receiver waits for it.
    pub(super) async fn pass(&self, time: Duration) {
        while self.clock.sleepers().is_empty() {
            tokio::task::yield_now().await;
        }
        self.clock.advance(time);
    }

    pub(super) async fn next(&mut self) -> Happening {
        tokio::time::timeout(Duration::from_secs(10), self.told.recv()).await.expect("nothing happened").unwrap()
    }

    /// The next failure: why, and the wait.
    pub(super) async fn failure(&mut self) -> (String, f64) {
        loop {
            if let Happening::ReadFailed { reason, next_in, .. } = self.next().await {
                return (reason, next_in.as_secs_f64());
            }
        }
    }

    /// The next notice of the host's own: its name and text.
    pub(super) async fn notice(&mut self) -> (String, String) {
        loop {
            match self.next().await {
                Happening::Accepted { source, event, .. } if source.as_str() == "switchbell" => {
                    return (event.name.clone(), event.body.clone().unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    /// The ids in the inbox that came from the queue, oldest first, each with its effective level.
    pub(super) async fn inbox(&self) -> Vec<(String, Level)> {
        let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
        let all = self.store.sqlite.notifications(page).await.unwrap();
        let ours = all.into_iter().rev().filter(|of| of.source.as_str() == "registrar");
        ours.map(|of| (of.event.event_id, of.effective_level)).collect()
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), self.task).await.expect("it does not stop").unwrap();
        assert!(self.server.state().is_closed, "the connection was left open");
    }
}

pub(super) fn lost() -> Live {
    Live::Lost(ReadError::Disconnected("cut off".to_owned()))
}
