//! One queue: what is known of its work, and what it has under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::state::LaneId;
use crate::clock::later;
use crate::inbox::Want;
use crate::inbox::book::{QueueKey, Rule};

/// Subjects under way at once in a queue whose target remembers by subject: the store is told all of them with each claim.
pub const SUBJECTS_MAX: usize = 96;

/// Claims in a row that bring nothing though something is said to be due, after which a queue rests.
pub(super) const EMPTY_MAX: u32 = 3;

/// How long it rests then.
const EMPTY_REST: Duration = Duration::from_secs(1);

/// The lanes of a queue, sorted by key. Attempts keep those they took when a reload changes them.
pub(super) type Lanes = Arc<[LaneId]>;

/// Where a queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand {
    /// Nothing to do, or only an end of its own moves it.
    Idle,
    /// Time moves it.
    Timer(Timestamp),
    /// In its workspace's ring.
    Ready,
    /// It waits for this lane, in this place.
    Lane(LaneId, Timestamp),
    /// It has its share of the process; in this turn.
    Share(u64),
    /// The store was asked and has not answered.
    Asked,
}

/// What the store was asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) most: u32,
    pub(super) lanes: Lanes,
    /// What was known to be due.
    was_due: Option<Timestamp>,
    only: Option<i64>,
}

/// A slot that was taken inside a transaction; its claim is not known yet.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) subject: Option<String>,
    pub(super) lanes: Lanes,
}

/// The delivery that all others of a strict queue wait for.
#[derive(Clone, Copy, Debug)]
struct Head {
    number: i64,
    at: Timestamp,
    /// Whether it may have been moved since: the store is asked before its time.
    may_have_moved: bool,
}

/// A queue.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) key: QueueKey,
    /// What it was called before its target moved to another route: claims are under way that name it so.
    pub(super) names: Vec<QueueKey>,
    /// None once its target is gone.
    pub(super) rule: Option<Arc<Rule>>,
    pub(super) lanes: Lanes,
    pub(super) stand: Stand,
    /// The lane that told it to try.
    pub(super) called_by: Option<LaneId>,
    /// Its turn among those that wait, kept until it is served.
    pub(super) turn: Option<u64>,
    /// Whether it was told that it may have more of the process.
    pub(super) has_share: bool,
    /// Attempts, asked and admitted ones included.
    pub(super) held: u32,
    pub(super) asked: Option<Asked>,
    pub(super) admitted: Vec<Admitted>,
    next_due: Option<Timestamp>,
    head: Option<Head>,
    subjects: HashMap<String, u32>,
    /// All that is due is of subjects under way: the store is asked again when one ends, or then, as others come due.
    waits_for_subject: Option<Timestamp>,
    /// Claims in a row that brought nothing.
    empty: u32,
}

impl Target {
    pub(super) fn new(key: QueueKey, lanes: Lanes) -> Self {
        Self {
            key,
            names: Vec::new(),
            rule: None,
            lanes,
            stand: Stand::Idle,
            called_by: None,
            turn: None,
            has_share: false,
            held: 0,
            asked: None,
            admitted: Vec::new(),
            next_due: None,
            head: None,
            subjects: HashMap::new(),
            waits_for_subject: None,
            empty: 0,
        }
    }

    pub(super) fn is_strict(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.is_strict)
    }

    fn is_by_subject(&self) -> bool {
        self.rule.as_ref().is_some_and(|rule| rule.by_subject)
    }

    /// Whether its deliveries are only moved by the store, and need no lane.
    pub(super) fn is_blocked(&self) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.blocked.is_some() && rule.goes_on.is_empty())
    }

    /// Its target is gone, and the store cancels what was due.
    pub(super) fn gone(&mut self) {
        (self.rule, self.next_due, self.head) = (None, None, None);
    }

    /// Whether nothing is left of a queue without a target.
    pub(super) fn is_over(&self) -> bool {
        self.rule.is_none() && self.held == 0 && self.next_due.is_none()
    }

    /// When something of it may start as far as the queue itself goes; none if only an end or news change that.
    pub(super) fn eligible_at(&self) -> Option<Timestamp> {
        // What a target that is gone was owed is the store's to cancel, and nothing to start.
        self.rule.as_ref()?;
        if self.asked.is_some() || (self.is_strict() && self.held > 0) || self.subjects_left() == 0 {
            return None;
        }
        match self.head() {
            Some(head) if head.may_have_moved => Some(Timestamp::MIN),
            Some(head) => Some(head.at),
            None => self.waits_for_subject.or(self.next_due),
        }
    }

    /// How it stands among those that wait for an ordered lane.
    pub(super) fn due_since(&self) -> Timestamp {
        self.head().map(|head| head.at).or(self.next_due).unwrap_or(Timestamp::MAX)
    }

    fn head(&self) -> Option<Head> {
        self.head.filter(|_| self.is_strict() && !self.is_blocked())
    }

    /// How many attempts it may have more by its own rules.
    pub(super) fn own_room(&self) -> u32 {
        if self.is_strict() {
            return u32::from(self.held == 0);
        }
        self.subjects_left()
    }

    fn subjects_left(&self) -> u32 {
        if !self.is_by_subject() {
            return u32::MAX;
        }
        u32::try_from(SUBJECTS_MAX.saturating_sub(self.subjects.len())).unwrap_or(u32::MAX)
    }

    /// Something of it is due then.
    pub(super) fn due(&mut self, at: Timestamp, now: Timestamp) {
        self.next_due = Some(self.next_due.map_or(at, |known| known.min(at)));
        self.waits_for_subject = None;
        if let Some(head) = &mut self.head
            && at <= now
        {
            head.may_have_moved = true;
        }
    }

    /// The delivery that all others wait for, as the store knows it.
    pub(super) fn follow(&mut self, number: i64, at: Timestamp) {
        if self.is_strict() && self.held == 0 {
            self.head = Some(Head { number, at, may_have_moved: false });
        }
    }

    /// A person took the head away.
    pub(super) fn left(&mut self, number: i64, now: Timestamp) {
        if self.head.is_some_and(|head| head.number == number) {
            self.head = None;
            self.due(now, now);
        }
    }

    /// Whether the delivery in question must let others go first.
    pub(super) fn has_backlog(&self, now: Timestamp) -> bool {
        self.asked.is_some()
            || self.next_due.is_some_and(|due| due <= now)
            || !matches!(self.stand, Stand::Idle | Stand::Timer(_))
            || (self.is_strict() && (self.held > 0 || self.head.is_some()))
    }

    /// Whether an attempt of this subject is under way.
    pub(super) fn is_busy(&self, subject: Option<&str>) -> bool {
        self.is_by_subject() && subject.is_some_and(|subject| self.subjects.contains_key(subject))
    }

    /// Notes the subject of an attempt. Returns what is to be forgotten at its end.
    pub(super) fn begin_subject(&mut self, subject: Option<&str>) -> Option<String> {
        let subject = subject.filter(|_| self.is_by_subject())?.to_owned();
        *self.subjects.entry(subject.clone()).or_default() += 1;
        Some(subject)
    }

    pub(super) fn end_subject(&mut self, subject: Option<&str>) {
        self.waits_for_subject = None;
        let Some(subject) = subject else { return };
        if let Some(attempts) = self.subjects.get_mut(subject) {
            *attempts = attempts.saturating_sub(1);
            if *attempts == 0 {
                self.subjects.remove(subject);
            }
        }
    }

    /// Asks the store for `most` of what is due.
    pub(super) fn ask(&mut self, most: u32, lanes: Lanes) {
        let only = self.head().map(|head| head.number);
        self.asked = Some(Asked { most, lanes, was_due: self.next_due.take(), only });
        self.stand = Stand::Asked;
        self.turn = None;
        if let Some(head) = &mut self.head {
            head.may_have_moved = false;
        }
    }

    /// What to ask the store for.
    pub(super) fn want(&self) -> Option<Want> {
        let asked = self.asked.as_ref()?;
        let busy = if self.is_by_subject() { self.subjects.keys().cloned().collect() } else { Vec::new() };
        Some(Want { queue: self.key.clone(), most: asked.most, only: asked.only, busy })
    }

    /// The store handed out so many; `next_due` is due then. Returns what it was asked for.
    pub(super) fn answered(&mut self, claims: usize, next_due: Option<Timestamp>, now: Timestamp) -> Option<Asked> {
        let asked = self.asked.take()?;
        self.stand = Stand::Idle;
        self.waits_for_subject = None;
        let brought_all = claims >= asked.most as usize;
        let mut at = next_due;
        let says_due = next_due.is_some_and(|due| due <= now);
        self.empty = if claims == 0 && says_due { self.empty.saturating_add(1) } else { 0 };
        if self.empty >= EMPTY_MAX {
            at = Some(later(now, EMPTY_REST));
        }
        let is_news = self.next_due.is_some();
        if !is_news && says_due && !brought_all && self.is_by_subject() && !self.subjects.is_empty() {
            self.waits_for_subject = Some(later(now, EMPTY_REST));
        }
        if claims > 0 || (asked.only.is_some() && self.head.is_some_and(|head| head.at <= now)) {
            self.head = None;
        }
        self.next_due = [self.next_due, at].into_iter().flatten().min();
        Some(asked)
    }

    /// The store could not be asked.
    pub(super) fn unanswered(&mut self) -> Option<Asked> {
        let asked = self.asked.take()?;
        self.stand = Stand::Idle;
        self.next_due = [self.next_due, asked.was_due].into_iter().flatten().min();
        Some(asked)
    }

    /// An attempt of it ended, and the same delivery is due again then. `holds` if all others wait for it.
    pub(super) fn ended(&mut self, number: i64, next_at: Option<Timestamp>, holds: bool) {
        let Some(at) = next_at.filter(|_| self.rule.is_some()) else { return };
        if holds && self.is_strict() {
            self.head = Some(Head { number, at, may_have_moved: false });
        }
        self.next_due = Some(self.next_due.map_or(at, |known| known.min(at)));
    }

    /// Whether anything but a delivery that is due then is known to be due before.
    pub(super) fn has_other_before(&self, next_at: Timestamp) -> bool {
        self.asked.is_some() || self.next_due.is_some_and(|due| due <= next_at)
    }
}
