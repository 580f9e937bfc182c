//! A store under test, with a book of targets and a clock that is only ever said.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use jiff::Timestamp;
use switchbell::clock::later;
use switchbell::inbox::book::{Admission, Book, QueueKey, Rule};
use switchbell::inbox::delivery::{Next, Outcome, State};
use switchbell::inbox::{
    Accepted, Adopted, Attempt, Change, Claim, Claimed, DeliveryView, Ended, Entry, Fence, Finished, InboxError,
    Intake, Kept, KeptEffect, News, Owed, Page, Progress, Store, Want, Which, Written,
};
use switchbell::notification::{Event, Level, Name};
use switchbell::route::timing::Timing;

/// Where a store is, and how it is opened: again and again, by one at a time.
pub struct Place(Box<dyn Fn(Timestamp) -> Arc<dyn Store> + Send + Sync>);

impl Place {
    pub fn new(open: impl Fn(Timestamp) -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        Self(Box::new(open))
    }
}

pub struct Stage {
    place: Place,
    inbox: Option<Arc<dyn Store>>,
    rules: Vec<Rule>,
    gate: Option<Arc<Gate>>,
}

/// So many seconds after noon of 1 June 2026, in UTC.
pub fn at(seconds: u64) -> Timestamp {
    later("2026-06-01T12:00:00Z".parse().unwrap(), Duration::from_secs(seconds))
}

pub const MINUTE: u64 = 60;
pub const HOUR: u64 = 3_600;

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The queue of a target of the route `news` in the workspace `acme`.
pub fn queue(target: &str) -> QueueKey {
    QueueKey { workspace: name("acme"), route: name("news"), target: target.into() }
}

pub fn rule(target: &str) -> Rule {
    Rule {
        queue: queue(target),
        plugin: name("slack"),
        timing: Timing::default(),
        blocked: None,
        is_strict: false,
        goes_on: Vec::new(),
        by_subject: false,
        lanes: Vec::new(),
    }
}

pub fn timed(target: &str, timing: Timing) -> Rule {
    Rule { timing, ..rule(target) }
}

/// An event about `a.example` that owes a delivery to the target `t`.
pub fn entry(event_id: &str) -> Entry {
    let event = Event {
        event_id: event_id.to_owned(),
        name: "domain.active".to_owned(),
        timestamp: at(0),
        level: Level::Attention,
        subject: Some("a.example".to_owned()),
        title: format!("title of {event_id}"),
        body: None,
        link: None,
        data: r#"{"b":1,"a":1e400}"#.to_owned(),
        content: None,
    };
    owing(Entry { event, effective_level: Level::Attention, owed: Vec::new(), consumers: Vec::new() }, &["t"])
}

pub fn owing(entry: Entry, targets: &[&str]) -> Entry {
    let owed = |target: &&str| Owed { route: name("news"), target: (*target).to_owned(), plugin: name("slack") };
    Entry { owed: targets.iter().map(owed).collect(), ..entry }
}

pub fn about(entry: Entry, subject: Option<&str>) -> Entry {
    Entry { event: Event { subject: subject.map(str::to_owned), ..entry.event }, ..entry }
}

pub fn urgent(entry: Entry) -> Entry {
    Entry { effective_level: Level::Urgent, ..entry }
}

/// With so many bytes of data.
pub fn large(entry: Entry, bytes: usize) -> Entry {
    let data = format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    Entry { event: Event { data, ..entry.event }, ..entry }
}

/// `from` to `to`, each an event's number: `e1`, `e2` and so on.
pub fn entries(from: usize, to: usize) -> Vec<Entry> {
    (from..=to).map(|number| entry(&format!("e{number}"))).collect()
}

pub fn intake(workspace: &str, now: Timestamp, entries: Vec<Entry>) -> Intake {
    Intake {
        is_first: false,
        workspace: name(workspace),
        source: name("registrar"),
        received_at: now,
        entries,
        notices: Vec::new(),
        cursor: None,
        ended: Ended::Answered { revision: None, is_backlog: false },
    }
}

pub fn page(workspace: &str) -> Page {
    Page { workspace: name(workspace), before: None, limit: 1_000 }
}

pub fn want(queue: QueueKey) -> Want {
    Want { queue, most: 100, only: None, busy: Vec::new() }
}

pub fn delivered() -> (Outcome, Next) {
    (Outcome::Delivered, Next { state: State::Delivered, next_at: None })
}

pub fn dead() -> (Outcome, Next) {
    (Outcome::Reject, Next { state: State::Dead, next_at: None })
}

pub fn retrying(next_at: Timestamp) -> (Outcome, Next) {
    (Outcome::Retry, Next { state: State::Retrying, next_at: Some(next_at) })
}

/// The end of a claimed attempt that reached its destination.
pub fn finished(claim: &Claim, now: Timestamp, (outcome, next): (Outcome, Next)) -> Finished {
    let attempt = Attempt {
        number: claim.attempt,
        started_at: claim.begun.as_ref().map_or(now, |begun| begun.started_at),
        ended_at: now,
        outcome,
        reason: Some(format!("because {outcome}")),
        steps: 3,
        plugin_version: Some("1.2.3".to_owned()),
        plugin_digest: Some("abcd".to_owned()),
    };
    Finished {
        id: claim.id.clone(),
        fence: claim.fence,
        queue: claim.queue.clone(),
        attempt,
        next,
        reached: true,
        resume: Change::Keep,
        remember: (Change::Keep, 0),
        lanes: Vec::new(),
        notices: Vec::new(),
    }
}

pub fn effect(number: u32) -> KeptEffect {
    KeptEffect {
        at: at(u64::from(number)),
        action_digest: format!("digest {number}"),
        answer: format!(r#"{{"answer":{number}}}"#),
    }
}

/// Effects `from..to`, kept after those before.
pub fn kept(claim: &Claim, from: u32, to: u32) -> Kept {
    Kept {
        id: claim.id.clone(),
        fence: claim.fence,
        progress: Progress { steps: to, touched: to > 0, reached: to > 0 },
        kept_before: from as usize,
        effects: (from..to).map(effect).collect(),
        plugin_digest: "abcd".to_owned(),
    }
}

/// What version 1.2.3 of a plugin asked to have kept.
pub fn written(value: &str) -> Written {
    written_by("1.2.3", value)
}

pub fn written_by(version: &str, value: &str) -> Written {
    Written { value: value.to_owned(), plugin_version: Some(version.to_owned()) }
}

/// A fence of an opening that is over.
pub fn older(fence: Fence) -> Fence {
    Fence { epoch: fence.epoch - 1, ..fence }
}

impl Stage {
    /// A new store with these targets.
    pub async fn new(place: Place, rules: Vec<Rule>) -> Self {
        let inbox = (place.0)(at(0));
        let mut stage = Self { place, inbox: Some(inbox), rules: Vec::new(), gate: None };
        stage.adopt(rules, at(0)).await;
        stage
    }

    pub fn inbox(&self) -> &dyn Store {
        &**self.inbox.as_ref().unwrap()
    }

    pub async fn adopt(&mut self, rules: Vec<Rule>, now: Timestamp) -> Adopted {
        self.rules = rules;
        let admission = self.gate.clone().map(|gate| gate as Arc<dyn Admission>);
        self.inbox().adopt(Arc::new(Book::new(self.rules.clone())), admission, now).await.unwrap()
    }

    /// Adopts a book that knows nothing of the workspace.
    pub async fn set_aside(&mut self, now: Timestamp) -> Adopted {
        let book = Book::default().of_workspaces([&name("globex")]);
        self.inbox().adopt(Arc::new(book), None, now).await.unwrap()
    }

    /// Lets so many deliveries in as they are written.
    pub async fn let_in(&mut self, gate: Gate) -> Arc<Gate> {
        let gate = Arc::new(gate);
        self.gate = Some(Arc::clone(&gate));
        self.adopt(self.rules.clone(), at(0)).await;
        gate
    }

    /// Takes up other targets, and another who lets in.
    pub async fn let_in_by(&mut self, rules: Vec<Rule>, gate: Arc<Gate>, now: Timestamp) {
        self.gate = Some(gate);
        self.adopt(rules, now).await;
    }

    /// Closes the store with nothing finished, and opens it again, as after a crash.
    pub async fn reopen(&mut self, now: Timestamp) -> Adopted {
        self.inbox = None;
        self.inbox = Some((self.place.0)(now));
        self.gate = None;
        self.adopt(self.rules.clone(), now).await
    }

    pub async fn try_accept(&self, now: Timestamp, entries: Vec<Entry>) -> Result<Accepted, InboxError> {
        self.inbox().accept(intake("acme", now, entries)).await
    }

    /// Accepts new events and returns their numbers.
    pub async fn accept(&self, now: Timestamp, entries: Vec<Entry>) -> Vec<u64> {
        self.try_accept(now, entries).await.unwrap().seqs.into_iter().map(Option::unwrap).collect()
    }

    /// Claims whatever is due of every target.
    pub async fn claim(&self, now: Timestamp) -> Claimed {
        let wants = self.rules.iter().map(|rule| want(rule.queue.clone())).collect();
        self.inbox().claim(now, wants).await.unwrap()
    }

    pub async fn claims(&self, now: Timestamp) -> Vec<Claim> {
        self.claim(now).await.claims
    }

    /// The one delivery that is due.
    pub async fn claim_one(&self, now: Timestamp) -> Claim {
        let mut claims = self.claims(now).await;
        assert_eq!(claims.len(), 1, "{claims:#?}");
        claims.remove(0)
    }

    /// One that is due of this target.
    pub async fn claim_one_of(&self, target: &str, now: Timestamp) -> Claim {
        let want = Want { most: 1, ..want(queue(target)) };
        let mut claims = self.inbox().claim(now, vec![want]).await.unwrap().claims;
        assert_eq!(claims.len(), 1, "{claims:#?}");
        claims.remove(0)
    }

    pub async fn finish(&self, claim: &Claim, now: Timestamp, end: (Outcome, Next)) {
        self.inbox().finish(finished(claim, now, end)).await.unwrap();
    }

    /// Has whatever is due delivered at once; returns the events' numbers of each delivery.
    pub async fn deliver(&self, now: Timestamp) -> Vec<Vec<u64>> {
        let claims = self.claims(now).await;
        for claim in &claims {
            self.finish(claim, now, delivered()).await;
        }
        claims.iter().map(seqs).collect()
    }

    /// Every delivery of the workspace, oldest first.
    pub async fn views(&self) -> Vec<DeliveryView> {
        let mut views = self.inbox().deliveries(page("acme"), Which::default()).await.unwrap();
        views.sort_by_key(|view| view.id.number);
        views
    }

    pub async fn states(&self) -> Vec<State> {
        self.views().await.iter().map(|view| view.state).collect()
    }

    /// What there is to be told by now.
    pub fn news(&self) -> News {
        self.inbox().news().now_or_never().unwrap_or_default()
    }
}

pub fn seqs(claim: &Claim) -> Vec<u64> {
    claim.notifications.iter().map(|one| one.seq).collect()
}

/// Lets deliveries in as long as there is room.
#[derive(Debug, Default)]
pub struct Gate {
    pub free: AtomicI64,
    pub given_back: AtomicU32,
    /// Whether it fails, and the write with it, instead of refusing.
    pub breaks: bool,
}

impl Gate {
    pub fn with_room_for(free: i64) -> Self {
        Self { free: AtomicI64::new(free), ..Self::default() }
    }
}

impl Admission for Gate {
    fn admit(&self, _: &QueueKey, _: Option<&str>) -> bool {
        let has_room = self.free.fetch_sub(1, Ordering::SeqCst) > 0;
        assert!(has_room || !self.breaks, "the write fails here");
        has_room
    }

    fn give_back(&self, _: &QueueKey, _: Option<&str>) {
        self.given_back.fetch_add(1, Ordering::SeqCst);
    }
}
