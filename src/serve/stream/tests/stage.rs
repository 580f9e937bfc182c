//! A store in memory that has the changes it is given, and what a reader is sent by it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::inbox::change::Change;
use crate::inbox::delivery::State;
use crate::inbox::{Actor, CHANGES_MAX, Changed, Changes, DeliveryId, InboxError, Listed, Mark, Marks, Query, Reader};
use crate::notification::{Event, Level, Name, Notification};
use crate::serve::stream::hub::Hub;
use crate::serve::stream::reader::{Live, Start};

/// A store of one workspace.
#[derive(Debug)]
pub(super) struct Fake {
    log: Mutex<Log>,
    last: watch::Sender<u64>,
    /// How often notifications were read.
    pub(super) lists: AtomicUsize,
    /// Whether it refuses every read.
    pub(super) is_broken: AtomicBool,
}

#[derive(Debug, Default)]
struct Log {
    changes: BTreeMap<u64, Change>,
    cut: u64,
    /// What each notification's payload is.
    notifications: BTreeMap<u64, String>,
}

impl Fake {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            log: Mutex::default(),
            last: watch::Sender::new(0),
            lists: AtomicUsize::new(0),
            is_broken: AtomicBool::new(false),
        })
    }

    /// Commits the next change of a kind that its number gives: every third is about a delivery.
    pub(super) fn write(&self) -> u64 {
        let number = *self.last.borrow() + 1;
        let what = match number % 6 {
            1 | 4 => Changed::Created { seq: number },
            2 => Changed::Marked {
                seq: number - 1,
                is_acknowledged: false,
                mark: Mark { at: moment(), by: Actor { name: "admin@example.com".to_owned(), is_agent: false } },
            },
            5 => Changed::Gap { seq: number - 1, source: "registrar".to_owned() },
            _ => Changed::Delivery {
                id: DeliveryId { store: "5f3a9c01".into(), number: 17 },
                route: "news".parse().unwrap(),
                target: "ops".to_owned(),
                plugin: "slack".parse().unwrap(),
                state: State::Delivered,
                seq: 1,
            },
        };
        self.commit(what)
    }

    /// Commits so many.
    pub(super) fn writes(&self, count: usize) {
        for _ in 0..count {
            self.write();
        }
    }

    pub(super) fn commit(&self, what: Changed) -> u64 {
        let mut log = self.log.lock().unwrap();
        let number = *self.last.borrow() + 1;
        if let Changed::Created { seq } = what {
            log.notifications.insert(seq, format!("{{\"number\": {number}}}"));
        }
        log.changes.insert(number, Change { number, at: moment(), what });
        drop(log);
        self.last.send_replace(number);
        number
    }

    /// Forgets changes up to this number.
    pub(super) fn cut(&self, number: u64) {
        let mut log = self.log.lock().unwrap();
        log.cut = number;
        log.changes = log.changes.split_off(&(number + 1));
    }

    /// Removes a notification.
    pub(super) fn remove(&self, seq: u64) {
        self.log.lock().unwrap().notifications.remove(&seq);
    }

    /// Numbers and names of the events that all changes become; without those about deliveries, or with them.
    pub(super) fn events(&self, shows_work: bool) -> Vec<(u64, &'static str)> {
        let log = self.log.lock().unwrap();
        let name = |change: &Change| match change.what {
            Changed::Created { .. } => "notification.created",
            Changed::Marked { is_acknowledged: true, .. } => "notification.acknowledged",
            Changed::Marked { .. } => "notification.read",
            Changed::Delivery { .. } => "delivery.changed",
            Changed::Joined { .. } => "delivery.joined",
            Changed::Gap { .. } => "gap",
        };
        let all = log.changes.values().map(|change| (change.number, name(change)));
        all.filter(|(_, name)| shows_work || !name.starts_with("delivery.")).collect()
    }

    fn answer<T: Send + 'static>(&self, value: T) -> BoxFuture<'static, Result<T, InboxError>> {
        let is_broken = self.is_broken.load(Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            if is_broken { Err(InboxError::Unavailable("the disk is away".to_owned())) } else { Ok(value) }
        }
        .boxed()
    }
}

impl Reader for Fake {
    fn list(&self, query: Query) -> BoxFuture<'_, Result<Listed, InboxError>> {
        self.lists.fetch_add(1, Ordering::Relaxed);
        let log = self.log.lock().unwrap();
        let found = query.seqs.iter().filter_map(|seq| log.notifications.get_key_value(seq));
        let after = query.after.unwrap_or_default();
        let mut items: Vec<_> = found.filter(|(seq, _)| **seq > after).map(|(seq, data)| one(*seq, data)).collect();
        // A store may answer less than was asked for.
        let next = (items.len() > 7).then(|| items[6].0.seq);
        items.truncate(7);
        self.answer(Listed { items, next })
    }

    fn unread<'a>(&'a self, _: &'a Name, _: u32) -> BoxFuture<'a, Result<u32, InboxError>> {
        self.answer(0)
    }

    fn last_seq<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<u64, InboxError>> {
        self.answer(self.log.lock().unwrap().notifications.keys().next_back().copied().unwrap_or_default())
    }

    fn changes<'a>(&'a self, _: &'a Name, after: u64, limit: u32) -> BoxFuture<'a, Result<Changes, InboxError>> {
        let log = self.log.lock().unwrap();
        let limit = limit.min(CHANGES_MAX) as usize;
        let changes = log.changes.values().filter(|change| change.number > after).take(limit).cloned().collect();
        self.answer(Changes { changes, last: *self.last.borrow(), is_cut: after < log.cut })
    }

    fn follow<'a>(&'a self, _: &'a Name) -> BoxFuture<'a, Result<watch::Receiver<u64>, InboxError>> {
        self.answer(self.last.subscribe())
    }
}

fn moment() -> Timestamp {
    "2026-09-01T18:42:10Z".parse().unwrap()
}

fn one(seq: u64, data: &str) -> (Notification, Marks) {
    let event = Event {
        event_id: format!("evt_{seq}"),
        name: "domain.active".to_owned(),
        timestamp: moment(),
        level: Level::Attention,
        subject: None,
        title: format!("number {seq}"),
        body: None,
        link: None,
        data: data.to_owned(),
        content: None,
    };
    let notification = Notification {
        workspace: acme(),
        seq,
        source: "registrar".parse().unwrap(),
        received_at: moment(),
        effective_level: Level::Attention,
        event,
    };
    (notification, Marks::default())
}

pub(super) fn acme() -> Name {
    "acme".parse().unwrap()
}

/// A server of streams over a store; it ends when this is dropped.
pub(super) struct Running {
    pub(super) hub: Hub,
    pub(super) clock: Clock,
    _task: JoinSet<()>,
}

impl Running {
    pub(super) fn over(fake: &Arc<Fake>) -> Self {
        let clock = Clock::manual(moment());
        let hub = Hub::of(Arc::clone(fake) as Arc<dyn Reader>, clock.clone());
        let mut task = JoinSet::new();
        task.spawn(hub.clone().run(CancellationToken::new()));
        Self { hub, clock, _task: task }
    }

    pub(super) fn read(&self, start: Start, shows_work: bool) -> Heard {
        self.read_by(None, start, shows_work)
    }

    pub(super) fn read_by(&self, token: Option<i64>, start: Start, shows_work: bool) -> Heard {
        let place = self.hub.place(token).unwrap();
        let pieces = Live::new(&self.hub, place, &acme(), start, shows_work).pieces();
        Heard { pieces: Box::pin(pieces), text: String::new(), position: None }
    }
}

/// A reader's end of a stream.
pub(super) struct Heard {
    pieces: Pin<Box<dyn Stream<Item = axum::body::Bytes> + Send>>,
    text: String,
    /// Its last event id.
    pub(super) position: Option<u64>,
}

impl Heard {
    /// The next event: its number, its name, and its data; none when the stream has ended.
    pub(super) async fn event(&mut self) -> Option<(u64, String, String)> {
        loop {
            let block = self.block().await?;
            let field = |name: &str| {
                let lines = block.lines().filter_map(|line| line.strip_prefix(name));
                lines.collect::<Vec<_>>().join("\n")
            };
            if let Ok(number) = field("id: ").parse() {
                self.position = Some(number);
                if !field("event: ").is_empty() {
                    return Some((number, field("event: "), field("data: ")));
                }
            }
        }
    }

    /// So many events, without their data.
    pub(super) async fn events(&mut self, count: usize) -> Vec<(u64, String)> {
        let mut events = Vec::new();
        while events.len() < count {
            let (number, name, _) = self.event().await.expect("an event");
            events.push((number, name));
        }
        events
    }

    /// The next lines up to an empty one.
    pub(super) async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            self.text.push_str(std::str::from_utf8(&self.pieces.next().await?).unwrap());
        }
    }

    /// Whether no event is there to be read now, however often everybody else goes on.
    pub(super) async fn is_silent(&mut self) -> bool {
        for _ in 0..100 {
            if let Some(piece) = self.pieces.next().now_or_never() {
                self.text.push_str(std::str::from_utf8(&piece.expect("a stream that goes on")).unwrap());
            }
            tokio::task::yield_now().await;
        }
        !self.text.contains("event: ")
    }
}
