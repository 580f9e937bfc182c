//! A lane's pace: at most so many effects in any window of so many seconds.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::later;

/// Entries of a log: one for each effect up to this many; beyond, neighbours share one, so that a lane of a thousand
/// effects a minute costs as little as one of sixty.
pub(super) const ENTRIES_MAX: usize = 64;

/// Effects made lately. Those that are promised are counted by the lane, whether it has a pace or not, since a reload may
/// give it one while attempts are under way.
#[derive(Debug)]
pub(super) struct Window {
    count: u32,
    per: Duration,
    log: VecDeque<Entry>,
}

/// Effects that are close together. They count until the last of them has left the window: never too many, at worst a
/// little late.
#[derive(Clone, Copy, Debug)]
struct Entry {
    first: Timestamp,
    last: Timestamp,
    effects: u32,
}

impl Window {
    /// At most `count` effects in any `per`; neither is zero.
    pub(super) fn new(count: u32, per: Duration) -> Self {
        Self { count, per, log: VecDeque::new() }
    }

    /// Another pace for the same lane: what was made still counts.
    pub(super) fn reshape(&mut self, count: u32, per: Duration) {
        (self.count, self.per) = (count, per);
    }

    /// How many more effects may be promised now that so many are.
    pub(super) fn room(&mut self, now: Timestamp, promised: u32) -> u32 {
        self.forget(now);
        self.count.saturating_sub(self.made()).saturating_sub(promised)
    }

    /// When there is room though no promise is taken back; none if only that makes room.
    pub(super) fn opens_at(&mut self, now: Timestamp, promised: u32) -> Option<Timestamp> {
        if self.room(now, promised) > 0 {
            return Some(now);
        }
        let mut left = self.made().saturating_add(promised);
        self.log.iter().find_map(|entry| {
            left = left.saturating_sub(entry.effects);
            (left < self.count).then(|| later(entry.last, self.per))
        })
    }

    /// Counts an effect that is made now.
    pub(super) fn made_one(&mut self, now: Timestamp) {
        self.forget(now);
        self.add(now, 1);
    }

    /// Takes up what was made before a restart, unless something was made since.
    pub(super) fn restore(&mut self, effects: &[(Timestamp, u32)], now: Timestamp) {
        if !self.log.is_empty() {
            return;
        }
        for (at, effects) in effects {
            self.add((*at).min(now), *effects);
        }
        self.forget(now);
    }

    /// What still counts, oldest first.
    pub(super) fn effects(&mut self, now: Timestamp) -> Vec<(Timestamp, u32)> {
        self.forget(now);
        self.log.iter().map(|entry| (entry.last, entry.effects)).collect()
    }

    fn made(&self) -> u32 {
        self.log.iter().fold(0, |sum, entry| sum.saturating_add(entry.effects))
    }

    fn add(&mut self, now: Timestamp, effects: u32) {
        let merges = self.count as usize > ENTRIES_MAX;
        // Entries begin at least `per / 62` apart, and one whose last effect still counts began at most that much before
        // the window: 64 of them.
        let span = self.per / 62;
        match self.log.back_mut() {
            Some(entry) if entry.last == now || (merges && now < later(entry.first, span)) => {
                entry.last = entry.last.max(now);
                entry.effects = entry.effects.saturating_add(effects);
            }
            _ => self.log.push_back(Entry { first: now, last: now, effects }),
        }
        while self.log.len() > ENTRIES_MAX {
            self.merge_oldest();
        }
    }

    /// Only what was restored under another pace can be longer than the log.
    fn merge_oldest(&mut self) {
        if let (Some(oldest), Some(next)) = (self.log.pop_front(), self.log.front_mut()) {
            next.first = oldest.first;
            next.effects = next.effects.saturating_add(oldest.effects);
        }
    }

    /// Drops what left the window. After a step of the clock backwards, what seems to lie ahead was made at the latest now.
    fn forget(&mut self, now: Timestamp) {
        while self.log.front().is_some_and(|entry| later(entry.last, self.per) <= now) {
            self.log.pop_front();
        }
        for entry in self.log.iter_mut().rev().take_while(|entry| entry.last > now) {
            entry.last = now;
            entry.first = entry.first.min(now);
        }
    }
}
