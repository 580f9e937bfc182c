//! A world of a few queues, moved by hand.

mod breaker;
mod fair;
mod lanes;
mod model;
mod order;
mod pace;
mod store;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Queues;
use crate::clock::{Clock, later};
use crate::inbox::book::{Book, LaneKey, LaneRule, QueueKey, Rule};
use crate::inbox::delivery::{Cause, Next, Outcome, State};
use crate::inbox::{Claim, DeliveryId, Fence, Want};
use crate::notification::{Event, Level, Name, Notification};
use crate::route::timing::Timing;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// `acme/news` is the route `news` of the workspace `acme`; without a slash the workspace is `acme`.
fn key(text: &str) -> QueueKey {
    let (workspace, route) = text.split_once('/').unwrap_or(("acme", text));
    QueueKey { workspace: name(workspace), route: name(route), target: Arc::from("t") }
}

fn lane_key(text: &str) -> LaneKey {
    LaneKey { workspace: name("acme"), plugin: name("slack"), key: Arc::from(text) }
}

fn lane(text: &str) -> LaneRule {
    LaneRule { lane: lane_key(text), count: 0, per_seconds: 0, in_flight: 0, is_ordered: false }
}

fn paced(text: &str, count: u32, per_seconds: u32) -> LaneRule {
    LaneRule { count, per_seconds, ..lane(text) }
}

fn limited(text: &str, in_flight: u32) -> LaneRule {
    LaneRule { in_flight, ..lane(text) }
}

fn ordered(text: &str) -> LaneRule {
    LaneRule { is_ordered: true, ..lane(text) }
}

fn rule(queue: &str, lanes: &[LaneRule]) -> Rule {
    let mut lanes = lanes.to_vec();
    lanes.sort_by(|one, other| one.lane.cmp(&other.lane));
    Rule {
        queue: key(queue),
        plugin: name("slack"),
        timing: Timing::default(),
        blocked: None,
        is_strict: false,
        goes_on: Vec::new(),
        by_subject: false,
        lanes,
    }
}

fn retrying(next_at: Timestamp) -> Next {
    Next { state: State::Retrying, next_at: Some(next_at) }
}

const DONE: Next = Next { state: State::Delivered, next_at: None };

struct World {
    clock: Clock,
    queues: Arc<Queues>,
    last: i64,
}

impl World {
    fn new(rules: Vec<Rule>) -> Self {
        Self::of(16_384, rules)
    }

    fn of(attempts_max: usize, rules: Vec<Rule>) -> Self {
        let clock = Clock::manual(Timestamp::from_second(1_000_000).unwrap());
        let queues = Queues::new(clock.clone(), attempts_max);
        queues.take_up(&Book::new(rules));
        Self { clock, queues, last: 0 }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn at(&self, after: u64) -> Timestamp {
        later(self.now(), seconds(after))
    }

    fn due(&self, queues: &[&str]) {
        for queue in queues {
            self.queues.due(&key(queue), self.now());
        }
    }

    /// Picks, and shows whom and how much.
    fn pick(&self) -> Vec<(String, u32)> {
        show(&self.queues.pick().wants)
    }

    /// Picks one want.
    fn want(&self) -> Want {
        let mut wants = self.queues.pick().wants;
        assert_eq!(wants.len(), 1, "{wants:?}");
        wants.remove(0)
    }

    fn claim(&mut self, queue: &QueueKey, subjects: &[Option<&str>]) -> Claim {
        self.last += 1;
        Claim {
            id: DeliveryId { store: Arc::from("00000000"), number: self.last },
            fence: Fence::default(),
            queue: queue.clone(),
            plugin: name("slack"),
            attempt: NonZeroU32::MIN,
            since: self.now(),
            due_at: self.now(),
            cause: Cause::First,
            notifications: subjects.iter().map(|subject| notification(&queue.workspace, *subject)).collect(),
            omitted: 0,
            resume: None,
            memory: None,
            begun: None,
        }
    }

    /// Answers a want with so many claims, and with what is due next.
    fn answer(&mut self, want: &Want, count: u32, next_due: Option<Timestamp>) -> Vec<Claim> {
        let claims: Vec<Claim> = (0..count).map(|_| self.claim(&want.queue, &[None])).collect();
        self.queues.claimed(want, &claims, next_due);
        claims
    }

    /// Picks and has every want answered with all it asked for, while more is due.
    fn start_all(&mut self) -> Vec<Claim> {
        let wants = self.queues.pick().wants;
        let now = self.now();
        wants.iter().flat_map(|want| self.answer(want, want.most, Some(now))).collect()
    }

    /// Starts the only attempt that can, with nothing due behind it.
    fn start_one(&mut self) -> Claim {
        let want = self.want();
        self.answer(&want, 1, None).remove(0)
    }

    fn end(&self, claim: &Claim) {
        self.queues.ended(claim, &DONE, Some(Outcome::Delivered));
    }

    /// Ends an attempt as to be retried.
    fn fail(&self, claim: &Claim, after: u64) {
        self.queues.ended(claim, &retrying(self.at(after)), Some(Outcome::Retry));
    }

    fn examined(&self) -> u64 {
        self.queues.with(|state, _| state.examined)
    }

    /// Whether an effect goes at once.
    fn effect_goes(&self, claim: &Claim) -> bool {
        let goes = self.queues.with(|state, now| state.effect(claim, now)).is_none();
        self.queues.with(|state, _| state.stop_waiting(&claim.id));
        goes
    }

    /// Whether nothing is held any more, anywhere.
    fn assert_empty(&self) {
        self.queues.with(|state, _| {
            assert_eq!((state.held, state.asked, state.attempts.len()), (0, 0, 0));
            assert!(state.queues.values().all(|queue| queue.held == 0 && queue.admitted.is_empty()));
            assert!(state.workspaces.values().all(|workspace| workspace.held == 0));
            for lane in state.lanes.values() {
                assert!(lane.is_idle() && lane.promised() == 0, "{lane:?}");
            }
        });
    }
}

fn show(wants: &[Want]) -> Vec<(String, u32)> {
    let mut shown: Vec<_> = wants.iter().map(|want| (want.queue.route.to_string(), want.most)).collect();
    shown.sort();
    shown
}

fn names(wants: &[(String, u32)]) -> HashSet<&str> {
    wants.iter().map(|(name, _)| name.as_str()).collect()
}

fn notification(workspace: &Name, subject: Option<&str>) -> Notification {
    Notification {
        workspace: workspace.clone(),
        seq: 1,
        source: name("registrar"),
        received_at: Timestamp::UNIX_EPOCH,
        effective_level: Level::Info,
        event: Event {
            event_id: "1".into(),
            name: "domain.expired".into(),
            timestamp: Timestamp::UNIX_EPOCH,
            level: Level::Info,
            subject: subject.map(str::to_owned),
            title: "a title".into(),
            body: None,
            link: None,
            data: "{}".into(),
            content: None,
        },
    }
}
