//! One lane: who is in it, what it has seen, and who waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::look::LaneView;
use super::state::QueueId;
use super::window::Window;
use crate::clock::{later, until};
use crate::inbox::book::{LaneKey, LaneRule, QueueKey};
use crate::inbox::delivery::{DESTINATION_DELAY_MAX, Outcome};
use crate::inbox::{DeliveryId, LaneRecord};

/// `retry` ends in a row after which a destination is taken for dead.
pub(super) const FAILURES_MAX: u32 = 5;

/// The first wait before a dead destination is tried again; it doubles.
pub(super) const BREAKER_FIRST: Duration = Duration::from_secs(1);

/// The longest wait before a dead destination is tried again: what was mended is noticed within a minute.
pub(super) const BREAKER_MOST: Duration = Duration::from_secs(60);

/// Whose lane it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    /// One that a plugin named; targets share it.
    Plugin(LaneKey),
    /// The one that a queue whose plugin names none has to itself.
    Queue(QueueKey),
}

/// A stretch of time in which nothing starts. It remembers when it began, so that it never grows when the clock is set
/// back.
#[derive(Clone, Copy, Debug)]
struct Pause {
    from: Timestamp,
    until: Timestamp,
}

impl Pause {
    fn new(now: Timestamp, length: Duration) -> Self {
        Self { from: now, until: later(now, length) }
    }

    fn ends_at(&mut self, now: Timestamp) -> Timestamp {
        if now < self.from {
            *self = Self::new(now, until(self.from, self.until));
        }
        self.until
    }
}

/// Whether the destination seems dead.
#[derive(Debug, Default)]
struct Breaker {
    failures: u32,
    waits: u32,
    pause: Option<Pause>,
}

impl Breaker {
    fn is_open(&self) -> bool {
        self.failures >= FAILURES_MAX
    }
}

/// Who wants a lane: earliest due first where it is ordered, else longest waiting first.
pub(super) type Place = (Timestamp, u64, QueueId);

/// A lane.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) owner: Owner,
    in_flight_max: u32,
    is_ordered: bool,
    window: Option<Window>,
    /// Attempts that hold it.
    held: u32,
    /// Those of them whose first effect is still to come: its room is kept.
    promised: u32,
    pause: Option<Pause>,
    breaker: Breaker,
    /// Queues that wait for it.
    pub(super) waiting: BTreeSet<Place>,
    /// Queues that were told to try and have not tried yet.
    pub(super) called: u32,
    /// Attempts that wait for a further effect: those with a promise first, then in the order they came.
    pub(super) effects: BTreeMap<(bool, u64), DeliveryId>,
    /// When it is looked at next.
    pub(super) timer: Option<Timestamp>,
    /// Whether it stands among those to be looked at.
    pub(super) is_touched: bool,
}

impl Lane {
    pub(super) fn new(owner: Owner) -> Self {
        Self {
            owner,
            in_flight_max: 0,
            is_ordered: false,
            window: None,
            held: 0,
            promised: 0,
            pause: None,
            breaker: Breaker::default(),
            waiting: BTreeSet::new(),
            called: 0,
            effects: BTreeMap::new(),
            timer: None,
            is_touched: false,
        }
    }

    /// Takes the limits of a rule.
    pub(super) fn obey(&mut self, rule: &LaneRule) {
        self.in_flight_max = rule.in_flight;
        self.is_ordered = rule.is_ordered;
        let per = Duration::from_secs(u64::from(rule.per_seconds));
        match &mut self.window {
            _ if rule.count == 0 || rule.per_seconds == 0 => self.window = None,
            Some(window) => window.reshape(rule.count, per),
            window => *window = Some(Window::new(rule.count, per)),
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    pub(super) fn is_idle(&self) -> bool {
        self.held == 0 && self.effects.is_empty()
    }

    #[cfg(test)]
    pub(super) fn promised(&self) -> u32 {
        self.promised
    }

    /// How many more attempts may start in it now, those that were called included.
    pub(super) fn room(&mut self, now: Timestamp) -> u32 {
        if self.paused_until(now).is_some() {
            return 0;
        }
        let limit = match self.in_flight_max {
            _ if self.is_ordered || self.breaker.is_open() => 1,
            0 => u32::MAX,
            most => most,
        };
        let further = u32::try_from(self.effects.len()).unwrap_or(u32::MAX);
        let pace =
            self.window.as_mut().map_or(u32::MAX, |window| window.room(now, self.promised).saturating_sub(further));
        limit.saturating_sub(self.held).min(pace)
    }

    /// When time makes room; none if only an attempt's end does.
    pub(super) fn opens_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        let pause = self.paused_until(now);
        let pace = match &mut self.window {
            Some(window) => Some(window.opens_at(now, self.promised)?),
            None => None,
        };
        pause.max(pace)
    }

    /// Until when nothing starts: the destination asked for it, or seems dead.
    pub(super) fn paused_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let asked = self.asked_until(now);
        let breaker = self.breaker.pause.as_mut().map(|pause| pause.ends_at(now));
        asked.max(breaker.filter(|ends_at| *ends_at > now))
    }

    /// Until when the destination asked to be left alone.
    pub(super) fn asked_until(&mut self, now: Timestamp) -> Option<Timestamp> {
        let ends_at = self.pause.as_mut().map(|pause| pause.ends_at(now)).filter(|ends_at| *ends_at > now);
        if ends_at.is_none() {
            self.pause = None;
        }
        ends_at
    }

    /// The destination asked to be left alone for so long.
    pub(super) fn ask(&mut self, now: Timestamp, delay: Duration) {
        let delay = delay.min(DESTINATION_DELAY_MAX);
        if self.asked_until(now).is_none_or(|ends_at| ends_at < later(now, delay)) && !delay.is_zero() {
            self.pause = Some(Pause::new(now, delay));
        }
    }

    /// Takes so many attempts in, each with a promise of its first effect.
    pub(super) fn take(&mut self, attempts: u32) {
        self.held = self.held.saturating_add(attempts);
        self.promised = self.promised.saturating_add(attempts);
    }

    /// Lets attempts out, of which so many made no effect.
    pub(super) fn leave(&mut self, attempts: u32, unused: u32) {
        self.held = self.held.saturating_sub(attempts);
        self.promised = self.promised.saturating_sub(unused);
    }

    /// Whether an effect may be made now; `is_promised` if its room was reserved.
    pub(super) fn lets_out(&mut self, now: Timestamp, is_promised: bool) -> bool {
        self.asked_until(now).is_none()
            && (is_promised || self.window.as_mut().is_none_or(|window| window.room(now, self.promised) > 0))
    }

    /// When an effect may be tried again.
    pub(super) fn lets_out_at(&mut self, now: Timestamp) -> Option<Timestamp> {
        let opens_at = self.window.as_mut().and_then(|window| window.opens_at(now, self.promised));
        self.asked_until(now).max(opens_at)
    }

    /// Counts an effect that is made now.
    pub(super) fn made_one(&mut self, now: Timestamp, was_promised: bool) {
        self.promised = self.promised.saturating_sub(u32::from(was_promised));
        if let Some(window) = &mut self.window {
            window.made_one(now);
        }
    }

    /// Learns from the end of an attempt, before it leaves. `own_wait` is how long its delivery waits by itself when nothing
    /// else waits for the lane: a lone delivery is never kept longer than that.
    ///
    /// An `unknown` end says too little to open the breaker, yet does not close it; an interruption says nothing.
    pub(super) fn learn(&mut self, now: Timestamp, outcome: Outcome, own_wait: Option<Duration>) {
        let breaker = &mut self.breaker;
        match outcome {
            Outcome::Delivered | Outcome::Reject | Outcome::Reconnect => *breaker = Breaker::default(),
            Outcome::Interrupted => {}
            Outcome::Unknown if !breaker.is_open() => {}
            Outcome::Retry | Outcome::Unknown => {
                breaker.failures = breaker.failures.saturating_add(1);
                let waits_already = breaker.pause.as_mut().is_some_and(|pause| pause.ends_at(now) > now);
                // Attempts that were under way when it opened end within the first wait, and do not lengthen it.
                if breaker.is_open() && !waits_already {
                    let wait = BREAKER_FIRST.saturating_mul(1 << breaker.waits.min(16)).min(BREAKER_MOST);
                    breaker.waits = breaker.waits.saturating_add(1);
                    breaker.pause = Some(Pause::new(now, own_wait.map_or(wait, |own| wait.min(own))));
                }
            }
        }
    }

    /// How it stands, without the words of its rule.
    pub(super) fn view(&mut self, now: Timestamp) -> LaneView {
        let has_room = self.room(now) > 0;
        let asked_until = self.asked_until(now);
        let dead = self.breaker.pause.as_mut().map(|pause| pause.ends_at(now));
        LaneView {
            key: None,
            count: 0,
            per_seconds: 0,
            in_flight_max: self.in_flight_max,
            is_ordered: self.is_ordered,
            in_flight: self.held,
            asked_until,
            dead_until: dead.filter(|ends_at| *ends_at > now),
            opens_at: if has_room { None } else { self.opens_at(now).filter(|at| *at > now) },
        }
    }

    /// What must be kept of it over a restart, if anything.
    pub(super) fn record(&mut self, now: Timestamp) -> Option<LaneRecord> {
        let Owner::Plugin(lane) = &self.owner else { return None };
        let lane = lane.clone();
        let paused_until = self.asked_until(now);
        let effects = self.window.as_mut().map(|window| window.effects(now));
        (effects.is_some() || paused_until.is_some()).then(|| LaneRecord {
            lane,
            paused_until,
            effects: effects.unwrap_or_default(),
        })
    }

    /// Whether it has seen something that still counts.
    pub(super) fn has_past(&mut self, now: Timestamp) -> bool {
        self.record(now).is_some_and(|record| record.paused_until.is_some() || !record.effects.is_empty())
    }

    /// Takes up what was kept.
    pub(super) fn restore(&mut self, now: Timestamp, record: &LaneRecord) {
        if let Some(paused_until) = record.paused_until {
            self.ask(now, until(now, paused_until));
        }
        if let Some(window) = &mut self.window {
            window.restore(&record.effects, now);
        }
    }
}
