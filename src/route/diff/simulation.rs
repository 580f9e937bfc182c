//! What both configurations would have sent, timing included, from a state without anything.

use std::cmp::Reverse;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{Hash, Hasher};

use jiff::Timestamp;

use super::{Decided, Pair};
use crate::config::Workspace;
use crate::inbox::Known;
use crate::route::Acknowledged;
use crate::route::fold::{Gone, Matched, Way};
use crate::route::rehearsal::{Rehearsal, TargetIndex};

/// Notifications after which what is gone is counted: as much is held in memory.
const COUNTED_AFTER: u32 = 1_000;

/// What a target would have been sent.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Deliveries, by why they came when they did; those that became needless too.
    pub ways: BTreeMap<Way, u64>,
    /// Of all of them, moment by moment.
    digest: DefaultHasher,
}

impl Sent {
    /// Deliveries that were made.
    pub fn deliveries(&self) -> u64 {
        self.ways.iter().filter(|(way, _)| **way != Way::Suppressed).map(|(_, count)| count).sum()
    }

    /// Whether another was sent the same at the same moments.
    pub fn is_same(&self, other: &Self) -> bool {
        self.ways == other.ways && self.digest.finish() == other.digest.finish()
    }

    fn count(&mut self, gone: &Gone) {
        *self.ways.entry(gone.way).or_default() += 1;
        (gone.at.as_millisecond(), &gone.seqs, gone.omitted).hash(&mut self.digest);
    }
}

/// Both sides, with what they have sent so far.
#[derive(Debug)]
pub struct Simulation {
    sides: [Side; 2],
    /// Acknowledgements of what came already, soonest first.
    acknowledgements: BinaryHeap<Reverse<(Timestamp, u64, Acknowledged)>>,
    uncounted: u32,
}

#[derive(Debug)]
struct Side {
    rehearsal: Rehearsal,
    sent: HashMap<TargetIndex, Sent>,
}

impl Side {
    fn new(workspace: &Workspace) -> Self {
        Self { rehearsal: Rehearsal::new(&workspace.routes), sent: HashMap::new() }
    }

    fn count(&mut self) {
        let sent = &mut self.sent;
        self.rehearsal.gone(|at, gone| sent.entry(at).or_default().count(&gone));
    }
}

impl Simulation {
    /// Of nothing so far.
    pub fn new(old: &Workspace, new: &Workspace) -> Self {
        Self { sides: [old, new].map(Side::new), acknowledgements: BinaryHeap::new(), uncounted: 0 }
    }

    /// A notification comes, decided by both sides. They are to come in the order of their numbers.
    pub fn add(&mut self, of: &Known, decided: &[Option<Decided>; 2]) {
        self.acknowledge(of.received_at);
        for (side, decided) in self.sides.iter_mut().zip(decided) {
            let Some(Decided { level, decisions }) = decided else { continue };
            let (seq, bytes, source, subject) = (of.seq, of.bytes, of.source.as_str(), of.subject.as_deref());
            let what = Matched { seq, source, name: &of.name, subject, level: *level, bytes };
            side.rehearsal.matched(of.received_at, &what, decisions);
        }
        if let Some(mark) = &of.acknowledged {
            let by = if mark.by.is_agent { Acknowledged::ByAgent } else { Acknowledged::ByPerson };
            self.acknowledgements.push(Reverse((mark.at, of.seq, by)));
        }
        self.uncounted += 1;
        if self.uncounted >= COUNTED_AFTER {
            self.sides.iter_mut().for_each(Side::count);
            self.uncounted = 0;
        }
    }

    /// Lets time pass when nothing comes any more.
    pub fn end(&mut self, at: Timestamp) {
        self.acknowledge(at);
        for side in &mut self.sides {
            side.rehearsal.pass(at);
            side.count();
        }
    }

    /// Whether both sides were sent the same at the same moments, and as much waits.
    pub fn is_same(&self, pair: &Pair) -> bool {
        let of = |sent: Option<(Sent, usize)>| sent.unwrap_or_default();
        let (old, old_waiting) = of(pair.old.map(|at| self.of_old(at)));
        let (new, new_waiting) = of(pair.new.map(|at| self.of_new(at)));
        old.is_same(&new) && old_waiting == new_waiting
    }

    /// What a target of the old side was sent, and how many deliveries wait for it at the end.
    pub fn of_old(&self, at: TargetIndex) -> (Sent, usize) {
        let [old, _] = &self.sides;
        old.of(at)
    }

    /// The same of the new side.
    pub fn of_new(&self, at: TargetIndex) -> (Sent, usize) {
        let [_, new] = &self.sides;
        new.of(at)
    }

    fn acknowledge(&mut self, until: Timestamp) {
        while let Some(Reverse((at, seq, by))) = self.acknowledgements.peek().copied().filter(|next| next.0.0 <= until)
        {
            self.acknowledgements.pop();
            self.sides.iter_mut().for_each(|side| side.rehearsal.acknowledged(at, seq, by));
        }
    }
}

impl Side {
    fn of(&self, at: TargetIndex) -> (Sent, usize) {
        (self.sent.get(&at).cloned().unwrap_or_default(), self.rehearsal.waiting(at))
    }
}
