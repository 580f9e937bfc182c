//! What a target would be sent: [`plan`] folded over what matches and what is acknowledged, from a state without anything.
//!
//! It carries out in memory what a store carries out in its rows (`inbox/sqlite/gather.rs`, `digest.rs`), for a target whose
//! attempts all succeed at once. A test of the stores' contract compares the two.

mod waiting;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use super::timing::{DIGEST_MOST, Timing};
use super::{Acknowledged, SURPLUS, Stage, Standing, Step, Subject, Why, plan};
use crate::notification::Level;
use waiting::Waiting;

/// A notification that matches.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'a> {
    /// Its number; greater than those before.
    pub seq: u64,
    /// The connector.
    pub source: &'a str,
    /// The dotted name.
    pub name: &'a str,
    /// What it is about.
    pub subject: Option<&'a str>,
    /// The effective level.
    pub level: Level,
    /// What it takes of a digest ([`bytes_in_digest`](super::timing::bytes_in_digest)).
    pub bytes: u64,
}

/// Why a delivery came when it did, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// It went at once.
    Alone,
    /// It waited for somebody else (`after`), and nobody did anything.
    Escalation,
    /// It was collected last: `collect`.
    Digest,
    /// It was held last: quiet hours.
    Hold,
    /// It was above the limit last: `at_most`.
    Surplus,
    /// It was acknowledged before (`unless`): nothing was sent.
    Suppressed,
}

impl Way {
    /// What a reader calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Escalation => "escalation",
            Self::Digest => "digest",
            Self::Hold => "hold",
            Self::Surplus => "surplus",
            Self::Suppressed => "suppressed",
        }
    }
}

/// What became of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// When it was sent, or became needless.
    pub at: Timestamp,
    /// Why then.
    pub way: Way,
    /// The notifications it stands for, oldest first; never empty.
    pub seqs: Vec<u64>,
    /// How many more it counts.
    pub omitted: u32,
    /// The highest level among them.
    pub level: Level,
}

/// One target's deliveries.
#[derive(Debug)]
pub struct Fold {
    timing: Timing,
    now: Timestamp,
    /// What waits, by numbers that grow.
    waiting: BTreeMap<u64, Waiting>,
    next_number: u64,
    due: BTreeSet<(Timestamp, u64)>,
    /// The digests that may be joined, by their keys.
    open: HashMap<String, u64>,
    /// Where each notification waits that may still be acknowledged.
    places: HashMap<u64, u64>,
    /// When deliveries were made, as far as a limit counts them, oldest first.
    reached: Vec<Timestamp>,
    gone: Vec<Gone>,
}

impl Fold {
    /// A target that nothing was owed so far.
    pub fn new(timing: Timing) -> Self {
        Self {
            timing,
            now: Timestamp::MIN,
            waiting: BTreeMap::new(),
            next_number: 0,
            due: BTreeSet::new(),
            open: HashMap::new(),
            places: HashMap::new(),
            reached: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// A notification matches, at the moment it is received. A moment that is earlier than one before counts as that.
    pub fn matched(&mut self, at: Timestamp, what: &Matched<'_>) {
        self.pass(at);
        let subject = Subject {
            received_at: at,
            level: what.level,
            source: what.source,
            name: what.name,
            subject: what.subject,
            acknowledged: Acknowledged::No,
        };
        let step = self.ask(Stage::Matched, &subject);
        if step == Step::Go {
            // Most go at once: nothing is kept of them.
            self.send(Gone { at: self.now, way: Way::Alone, seqs: vec![what.seq], omitted: 0, level: what.level });
            return;
        }
        let number = self.next_number;
        self.next_number += 1;
        let waiting = Waiting::new(at, what);
        self.remember(number, &waiting);
        self.carry_out(number, waiting, step);
    }

    /// Somebody acknowledges a notification. That of a person takes the place of an agent's.
    pub fn acknowledged(&mut self, at: Timestamp, seq: u64, by: Acknowledged) {
        self.pass(at);
        let Some(unless) = self.timing.unless else { return };
        let Some(number) = self.places.get(&seq).copied() else { return };
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        waiting.acknowledge(seq, by);
        if !unless.is_met(waiting.acknowledged()) {
            return;
        }
        if let Some(needless) = self.take(number) {
            self.suppress(&needless);
        }
        if self.timing.at_most.is_some() {
            self.look_at_surplus();
        }
    }

    /// Lets time pass: whatever is due until then, and then, is carried out at its moment.
    pub fn pass(&mut self, until: Timestamp) {
        while let Some(&(at, number)) = self.due.first().filter(|(at, _)| *at <= until) {
            self.now = self.now.max(at);
            let Some(waiting) = self.take(number) else { return };
            let stage = if waiting.digest.is_some() { Stage::Closed } else { Stage::Waited };
            self.advance(number, waiting, stage);
        }
        self.now = self.now.max(until);
    }

    /// When something is due next; none when nothing waits.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.due.first().map(|&(at, _)| at)
    }

    /// How many deliveries wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether an acknowledgement makes deliveries needless.
    pub fn has_unless(&self) -> bool {
        self.timing.unless.is_some()
    }

    /// What became of deliveries since this was asked last, in its order.
    pub fn gone(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.gone)
    }

    fn ask(&self, stage: Stage, subject: &Subject<'_>) -> Step {
        let surplus = self.open.get(SURPLUS).and_then(|number| self.waiting.get(number));
        let surplus_until = surplus.map(|surplus| surplus.next_at);
        let standing = Standing { reached: &self.reached, going: 0, surplus_until };
        plan(&self.timing, stage, subject, &standing, self.now)
    }

    /// Asks what happens next to something that has waited.
    fn advance(&mut self, number: u64, waiting: Waiting, stage: Stage) {
        let step = self.ask(stage, &waiting.subject());
        self.carry_out(number, waiting, step);
    }

    fn carry_out(&mut self, number: u64, mut waiting: Waiting, step: Step) {
        match step {
            Step::Go => {
                let gone = waiting.sent(self.now, self.timing.unless);
                self.forget(&waiting);
                self.send(gone);
            }
            Step::Suppress => self.suppress(&waiting),
            Step::Wait { until } => {
                (waiting.has_waited, waiting.next_at) = (true, until);
                self.put(number, waiting);
            }
            Step::Gather { key, why, until } => self.join(number, waiting, (key, why), until),
        }
    }

    /// Has it join the digest with this key, or open it.
    fn join(&mut self, number: u64, waiting: Waiting, (key, why): (String, Why), until: Timestamp) {
        let open = self.open.get(&key).copied().and_then(|open| Some((open, self.take(open)?)));
        let Some((open_number, mut open)) = open else {
            return self.begin(number, waiting, (key, why), until);
        };
        let most = self.most(why);
        let fits = open.has_room_for(&waiting, most);
        if !fits && why == Why::Collect {
            // What is full closes early.
            self.advance(open_number, open, Stage::Closed);
            return self.begin(number, waiting, (key, why), until);
        }
        self.remember(open_number, &waiting);
        open.add(waiting, most, self.timing.unless.is_some());
        self.put_or_close(open_number, open, why);
    }

    fn begin(&mut self, number: u64, mut waiting: Waiting, (key, why): (String, Why), until: Timestamp) {
        (waiting.digest, waiting.next_at) = (Some((key, why)), until);
        self.put_or_close(number, waiting, why);
    }

    /// A digest that may close early closes when it is full.
    fn put_or_close(&mut self, number: u64, digest: Waiting, why: Why) {
        if why == Why::Collect && digest.named >= self.most(why) {
            self.advance(number, digest, Stage::Closed);
        } else {
            self.put(number, digest);
        }
    }

    fn most(&self, why: Why) -> u32 {
        let collect = self.timing.collect.as_ref().filter(|_| why == Why::Collect);
        collect.map_or(DIGEST_MOST, |collect| collect.most.clamp(1, DIGEST_MOST))
    }

    /// Has it wait until its next moment.
    fn put(&mut self, number: u64, waiting: Waiting) {
        self.due.insert((waiting.next_at, number));
        if let Some((key, _)) = &waiting.digest {
            self.open.insert(key.clone(), number);
        }
        self.waiting.insert(number, waiting);
    }

    /// Takes something from what waits, as if it never had.
    fn take(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        self.due.remove(&(waiting.next_at, number));
        if let Some((key, _)) = &waiting.digest {
            self.open.remove(key);
        }
        Some(waiting)
    }

    /// The surplus is asked about again now: there may be room for it.
    fn look_at_surplus(&mut self) {
        let number = self.open.get(SURPLUS).copied();
        if let Some((number, mut surplus)) = number.and_then(|number| Some((number, self.take(number)?))) {
            surplus.next_at = surplus.next_at.min(self.now);
            self.put(number, surplus);
        }
        self.pass(self.now);
    }

    fn suppress(&mut self, needless: &Waiting) {
        self.forget(needless);
        self.gone.push(needless.suppressed(self.now));
    }

    fn send(&mut self, gone: Gone) {
        if let Some(at_most) = &self.timing.at_most {
            // More than the limit counts would change nothing.
            let count = usize::try_from(at_most.count).unwrap_or(usize::MAX);
            if self.reached.len() >= count.saturating_mul(2) {
                self.reached.drain(..self.reached.len() - count);
            }
            self.reached.push(gone.at);
        }
        self.gone.push(gone);
    }

    fn remember(&mut self, number: u64, waiting: &Waiting) {
        if self.timing.unless.is_some() {
            self.places.extend(waiting.items.iter().map(|item| (item.seq, number)));
        }
    }

    fn forget(&mut self, waiting: &Waiting) {
        for item in &waiting.items {
            self.places.remove(&item.seq);
        }
    }
}

#[cfg(test)]
mod tests;
