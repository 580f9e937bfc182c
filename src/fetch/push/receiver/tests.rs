//! The loop, against a server that is scripted, with the real store and a clock that is moved by hand.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use futures_util::future::{BoxFuture, FutureExt};
use tokio::sync::{Notify, mpsc, watch};

use super::*;
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
struct Server {
    state: Mutex<Queue>,
    live: Notify,
    logged: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    /// Id and text, oldest first; what is acknowledged leaves.
    pending: Vec<(String, String)>,
    page_max: usize,
    live: VecDeque<Live>,
    /// What it was asked for, in order.
    log: Vec<String>,
    /// What it refuses next, by the beginning of what is asked.
    refusals: Vec<(&'static str, ReadError)>,
    is_closed: bool,
}

impl Server {
    fn state(&self) -> MutexGuard<'_, Queue> {
        self.state.lock().unwrap()
    }

    fn asked(&self, what: String) -> Result<(), ReadError> {
        let mut state = self.state();
        let refusal = state.refusals.iter().position(|(of, _)| what.starts_with(of));
        state.log.push(what);
        let refusal = refusal.map(|at| state.refusals.remove(at).1);
        drop(state);
        self.logged.notify_one();
        refusal.map_or(Ok(()), Err)
    }

    fn say(&self, live: Live) {
        self.state().live.push_back(live);
        self.live.notify_one();
    }

    /// A durable event that is told live.
    fn emit(&self, id: &str) {
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
        if asked.is_ok() {
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

fn event(id: &str) -> String {
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

struct Stage {
    server: Arc<Server>,
    store: Arc<Store>,
    clock: Clock,
    told: mpsc::UnboundedReceiver<Happening>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    handle: Handle,
    _configured: watch::Sender<Arc<Config>>,
    _folder: tempfile::TempDir,
}

impl Stage {
    fn start(ids: &[&str], refusals: Vec<(&'static str, ReadError)>) -> Self {
        let pending = ids.iter().map(|id| ((*id).to_owned(), event(id))).collect();
        Self::of(Queue { pending, page_max: 2, refusals, ..Queue::default() })
    }

    fn of(queue: Queue) -> Self {
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
    async fn asked(&self, expected: &[&str]) {
        let asked = async {
            while self.server.state().log.len() < expected.len() {
                self.server.logged.notified().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(10), asked).await;
        assert_eq!(self.server.state().log, expected, "{in_time:?}");
    }

    async fn next(&mut self) -> Happening {
        tokio::time::timeout(Duration::from_secs(10), self.told.recv()).await.expect("nothing happened").unwrap()
    }

    /// The next failure: why, and the wait.
    async fn failure(&mut self) -> (String, f64) {
        loop {
            if let Happening::ReadFailed { reason, next_in, .. } = self.next().await {
                return (reason, next_in.as_secs_f64());
            }
        }
    }

    /// The next notice of the host's own: its name and text.
    async fn notice(&mut self) -> (String, String) {
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
    async fn inbox(&self) -> Vec<(String, Level)> {
        let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
        let all = self.store.sqlite.notifications(page).await.unwrap();
        let ours = all.into_iter().rev().filter(|of| of.source.as_str() == "registrar");
        ours.map(|of| (of.event.event_id, of.effective_level)).collect()
    }

    async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), self.task).await.expect("it does not stop").unwrap();
        assert!(self.server.state().is_closed, "the connection was left open");
    }
}

fn lost() -> Live {
    Live::Lost(ReadError::Disconnected("cut off".to_owned()))
}

#[tokio::test]
async fn pending_comes_page_by_page_each_accepted_before_its_ack_and_then_what_is_live() {
    let stage = Stage::start(&["a", "b", "c"], Vec::new());
    stage.server.say(Live::Event(format!("{{\"event\":{}}}", event("b"))));
    stage.asked(&["listen", "get", "ack a b", "get", "ack c", "ack b"]).await;
    stage.server.emit("d");
    stage.asked(&["listen", "get", "ack a b", "get", "ack c", "ack b", "ack d"]).await;
    let loud = |id: &str| (id.to_owned(), Level::Attention);
    assert_eq!(stage.inbox().await, ["a", "b", "c", "d"].map(loud), "the ceiling caps the level of the type");
    stage.stop().await;
}

#[tokio::test]
async fn nothing_is_acknowledged_that_the_inbox_did_not_take() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.store.is_full.store(true, Ordering::SeqCst);
    stage.server.emit("a");
    let (reason, wait) = stage.failure().await;
    assert!(reason.contains("the disk is full"), "{reason}");
    stage.store.is_full.store(false, Ordering::SeqCst);
    stage.clock.advance(Duration::from_secs_f64(wait));
    stage.asked(&["listen", "get", "listen", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_bad_event_is_told_and_acknowledged_and_costs_nothing_else() {
    let bad = |id: &str, text: &str| (id.to_owned(), text.to_owned());
    let pending = vec![
        bad("x", r#"{"eventId":"x","type":"s3cret","createdAt":"s3cret"}"#),
        bad("", r#"{"eventId":7}"#),
        bad("a", &event("a")),
    ];
    let mut stage = Stage::of(Queue { pending, page_max: 10, ..Queue::default() });
    stage.asked(&["listen", "get", "ack x a"]).await;
    let (name, body) = stage.notice().await;
    assert_eq!(name, "connector.dropped");
    assert!(body.contains("x: createdAt is \"***\""), "{body}");
    let (_, body) = stage.notice().await;
    assert!(body.contains("one without an id: eventId is a number"), "{body}");
    stage.clock.advance(SILENCE_MAX);
    stage.asked(&["listen", "get", "ack x a", "get"]).await;
    stage.server.emit("b");
    stage.asked(&["listen", "get", "ack x a", "get", "ack b"]).await;
    assert_eq!(stage.inbox().await.len(), 2);
    let page = Page { workspace: "acme".parse().unwrap(), before: None, limit: 1_000 };
    assert_eq!(stage.store.sqlite.notifications(page).await.unwrap().len(), 4, "each is told once");
    stage.stop().await;
}

#[tokio::test]
async fn a_page_that_never_ends_is_no_progress() {
    let pending = (0..3).map(|number| (String::new(), format!("{{\"eventId\":{number}}}"))).collect();
    let mut stage = Stage::of(Queue { pending, page_max: 2, ..Queue::default() });
    let (reason, wait) = stage.failure().await;
    assert_eq!(
        reason,
        "the server says that there is more, and gives nothing that was not acknowledged before: an event \
                        that is acknowledged leaves the queue at once, and each needs an eventId of its own, a string"
    );
    assert!((0.8..=1.2).contains(&wait), "{wait}");
    stage.asked(&["listen", "get"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn an_ack_that_fails_is_sent_again_without_accepting_again() {
    let timeout = || ReadError::Timeout { waited: Duration::from_secs(30) };
    let stage = Stage::start(&["a"], vec![("ack", timeout()), ("ack", timeout())]);
    stage.asked(&["listen", "get", "ack a"]).await;
    stage.clock.advance(ACK_WAIT_MAX);
    stage.asked(&["listen", "get", "ack a", "ack a"]).await;
    stage.clock.advance(ACK_WAIT_MAX);
    stage.asked(&["listen", "get", "ack a", "ack a", "ack a"]).await;
    assert_eq!((stage.inbox().await.len(), stage.server.state().pending.len()), (1, 0));
    stage.stop().await;
}

/// No wait between two acknowledgements is longer.
const ACK_WAIT_MAX: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_stream_that_is_lost_begins_everything_anew_later_each_time() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    for expected in [1.0, 2.0, 4.0] {
        stage.server.say(lost());
        let (reason, wait) = stage.failure().await;
        assert!(reason == "cut off" && (expected * 0.8..=expected * 1.2).contains(&wait), "{reason} {wait}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    stage.asked(&["listen", "get"].repeat(4)).await;
    stage.server.emit("a");
    stage.asked(&[&["listen", "get"].repeat(4)[..], &["ack a"]].concat()).await;
    stage.server.say(lost());
    assert!(stage.failure().await.1 <= 1.2, "something useful came: the wait is short again");
    stage.stop().await;
}

#[tokio::test]
async fn who_is_replaced_waits_longer_and_says_so_once() {
    let mut stage = Stage::start(&[], Vec::new());
    for expected in [15.0, 30.0, 60.0, 120.0] {
        stage.server.say(Live::Closed);
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains("another client listens as this consumer"), "{reason}");
        assert!((expected * 0.8..=expected * 1.2).contains(&wait), "{wait}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    stage.asked(&["listen", "get"].repeat(5)).await;
    stage.clock.advance(SILENCE_MAX);
    stage.asked(&[&["listen", "get"].repeat(5)[..], &["get"]].concat()).await;
    let mut notices = vec![stage.notice().await.0];
    stage.clock.advance(SILENCE_MAX);
    notices.push(stage.notice().await.0);
    assert_eq!(notices, ["connector.failing", "connector.recovered"]);
    stage.stop().await;
}

#[tokio::test]
async fn a_silent_stream_is_doubted_only_if_the_queue_cannot_be_looked_at() {
    let mut stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.clock.advance(SILENCE_MAX);
    stage.asked(&["listen", "get", "get"]).await;
    stage.server.state().refusals.push(("get", ReadError::Disconnected("gone".to_owned())));
    stage.clock.advance(SILENCE_MAX);
    let (reason, wait) = stage.failure().await;
    assert_eq!(reason, "gone");
    stage.clock.advance(Duration::from_secs_f64(wait));
    stage.asked(&["listen", "get", "get", "get", "listen", "get"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn what_overflowed_is_still_pending() {
    let stage = Stage::start(&[], Vec::new());
    stage.asked(&["listen", "get"]).await;
    stage.server.state().pending.push(("a".to_owned(), event("a")));
    stage.server.say(Live::Overflow);
    stage.asked(&["listen", "get", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_person_looks_at_the_queue_now_also_while_it_fails() {
    let mut stage = Stage::start(&[], vec![("listen", ReadError::Refused { code: -32021, message: "no".to_owned() })]);
    let (reason, _) = stage.failure().await;
    assert!(reason.contains("-32021") && reason.contains("did not see that Switchbell speaks"), "{reason}");
    stage.server.state().pending.push(("a".to_owned(), event("a")));
    let polled = stage.handle.poll().await.unwrap();
    assert_eq!((polled.failure, polled.events, polled.new, polled.reads), (None, 1, 1, 1));
    stage.asked(&["listen", "get", "ack a"]).await;
    stage.stop().await;
}

#[tokio::test]
async fn a_server_without_the_extension_is_told_what_to_do() {
    let refused = |code| ReadError::Refused { code, message: "what?".to_owned() };
    let mut stage =
        Stage::start(&[], vec![("listen", refused(-32601)), ("listen", refused(-32003)), ("listen", refused(-32602))]);
    for expected in ["does not know the extension", "which every request says in its `_meta`", "another draft"] {
        let (reason, wait) = stage.failure().await;
        assert!(reason.contains(expected) && reason.contains("the server said: what?"), "{reason}");
        stage.clock.advance(Duration::from_secs_f64(wait));
    }
    assert_eq!(stage.notice().await.0, "connector.failing");
    stage.stop().await;
}
