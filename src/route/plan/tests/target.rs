//! A target in miniature: what the plan says is carried out in memory, by a clock that is moved by hand, and what must
//! always hold is looked at after each step.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Where a notification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Scheduled { until: Timestamp },
    Gathered,
    Gone { at: Timestamp },
    Suppressed,
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) received_at: Timestamp,
    pub(super) level: Level,
    pub(super) subject: Option<&'static str>,
    pub(super) acknowledged: Acknowledged,
    pub(super) place: Place,
}

#[derive(Debug)]
struct Digest {
    why: Why,
    until: Timestamp,
    items: Vec<usize>,
}

/// What was let go: it reaches the destination later, or ends without.
#[derive(Debug)]
struct Going {
    ends_at: Timestamp,
    reaches: bool,
    is_limited: bool,
}

#[derive(Debug)]
pub(super) struct Target {
    timing: Timing,
    pub(super) now: Timestamp,
    pub(super) items: Vec<Item>,
    /// The numbers of those that wait alone.
    scheduled: BTreeSet<usize>,
    open: BTreeMap<String, Digest>,
    going: Vec<Going>,
    reached: Vec<Timestamp>,
    /// Those of them that `at_most` limits.
    limited: Vec<Timestamp>,
    /// What was let go, in that order.
    pub(super) gone: Vec<Vec<usize>>,
    /// How long what goes takes to its end, and whether it reaches the destination.
    pub(super) road: (Duration, bool),
}

/// What time does next.
#[derive(Debug)]
enum Due {
    Item(usize),
    Digest(String),
    Going(usize),
}

impl Target {
    pub(super) fn new(timing: Timing, now: Timestamp) -> Self {
        Self {
            timing,
            now,
            items: Vec::new(),
            scheduled: BTreeSet::new(),
            open: BTreeMap::new(),
            going: Vec::new(),
            reached: Vec::new(),
            limited: Vec::new(),
            gone: Vec::new(),
            road: (Duration::ZERO, true),
        }
    }

    pub(super) fn arrive(&mut self, level: Level, subject: Option<&'static str>) {
        let place = Place::Gathered;
        self.items.push(Item { received_at: self.now, level, subject, acknowledged: No, place });
        self.ask(Matched, vec![self.items.len() - 1], None);
    }

    /// Lets time pass up to a moment, with everything done when it is due.
    pub(super) fn run_until(&mut self, end: Timestamp) {
        while let Some((at, due)) = self.next_due().filter(|&(at, _)| at <= end) {
            self.now = self.now.max(at);
            self.act(due);
        }
        self.now = self.now.max(end);
    }

    /// Sets the clock, forward or back; what became due meanwhile is done late, but in its order.
    pub(super) fn set_clock(&mut self, now: Timestamp) {
        self.now = now;
        let mut last = Timestamp::MIN;
        while let Some((at, due)) = self.next_due().filter(|&(at, _)| at <= now) {
            assert!(at >= last, "{due:?} was due before what was done before it");
            last = at;
            self.act(due);
        }
    }

    /// Whether nothing waits and nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.next_due().is_none()
    }

    fn next_due(&self) -> Option<(Timestamp, Due)> {
        let scheduled = self.scheduled.iter().filter_map(|&number| match self.items[number].place {
            Place::Scheduled { until } => Some((until, Due::Item(number))),
            _ => None,
        });
        let going = self.going.iter().enumerate().map(|(number, going)| (going.ends_at, Due::Going(number)));
        let open = self.open.iter().map(|(key, digest)| (digest.until, Due::Digest(key.clone())));
        going.chain(open).chain(scheduled).min_by_key(|&(at, _)| at)
    }

    fn act(&mut self, due: Due) {
        match due {
            Due::Item(number) => self.ask(Waited, vec![number], None),
            Due::Digest(key) => {
                let digest = self.open.remove(&key).unwrap();
                self.ask(Closed, digest.items, Some(key));
            }
            Due::Going(number) => {
                let going = self.going.remove(number);
                if going.reaches {
                    self.reached.push(self.now);
                    self.reached.sort();
                    // What is long ago does not matter, and slows this down.
                    let since = self.reached.len().saturating_sub(500);
                    self.reached.drain(..since);
                    self.limited.extend(going.is_limited.then_some(self.now));
                }
            }
        }
    }

    /// Asks the plan, carries out what it says, and checks that it may say so.
    fn ask(&mut self, stage: Stage, items: Vec<usize>, own: Option<String>) {
        let first = self.items[items[0]].clone();
        let level = items.iter().map(|&item| self.items[item].level).max().unwrap();
        let what = Subject {
            received_at: first.received_at,
            level,
            source: "registrar",
            name: "domain.active",
            subject: first.subject,
            acknowledged: items.iter().map(|&item| self.items[item].acknowledged).min().unwrap(),
        };
        let surplus_until = self.open.get(SURPLUS).map(|surplus| surplus.until);
        let going = u32::try_from(self.going.len()).unwrap();
        let standing = Standing { reached: &self.reached, going, surplus_until };
        let step = plan(&self.timing, stage, &what, &standing, self.now);
        match step {
            Step::Wait { until } => {
                assert!(until > self.now && stage != Closed);
                self.put(&items, Place::Scheduled { until });
            }
            Step::Suppress => self.put(&items, Place::Suppressed),
            Step::Gather { key, why, until } => self.gather(&items, key, why, until, own),
            Step::Go => self.go(items, level),
        }
    }

    fn gather(&mut self, items: &[usize], key: String, why: Why, until: Timestamp, own: Option<String>) {
        if let Some(open) = self.open.get_mut(&key) {
            open.items.extend(items);
        } else {
            assert!(until > self.now, "{key:?} would close at once, again and again");
            assert!(own != Some(key.clone()) || why != Why::Collect, "what was collected is collected again");
            self.open.insert(key.clone(), Digest { why, until, items: items.to_vec() });
        }
        self.put(items, Place::Gathered);
        let most = self.timing.collect.as_ref().map_or(usize::MAX, |collect| collect.most as usize);
        if self.open[&key].why == Why::Collect && self.open[&key].items.len() >= most {
            let full = self.open.remove(&key).unwrap();
            self.ask(Closed, full.items, Some(key));
        }
    }

    fn go(&mut self, items: Vec<usize>, level: Level) {
        let is_bound = |except| except == Except::Nothing || level != Urgent;
        if let Some(hold) = self.timing.hold.as_ref().filter(|hold| is_bound(hold.except)) {
            assert_eq!(hold.ends_at(self.now), None, "it goes in quiet hours");
        }
        let is_limited = self.timing.at_most.as_ref().is_some_and(|at_most| is_bound(at_most.except));
        let (delay, reaches) = self.road;
        self.going.push(Going { ends_at: later(self.now, delay), reaches, is_limited });
        self.put(&items, Place::Gone { at: self.now });
        self.gone.push(items);
    }

    fn put(&mut self, items: &[usize], place: Place) {
        for &item in items {
            let before = std::mem::replace(&mut self.items[item].place, place);
            assert!(!matches!(before, Place::Gone { .. } | Place::Suppressed), "it had ended as {before:?}");
            match place {
                Place::Scheduled { .. } => self.scheduled.insert(item),
                _ => self.scheduled.remove(&item),
            };
        }
    }

    /// Each notification is in one place, and no one is lost or doubled.
    pub(super) fn check_places(&self) {
        let mut seen = vec![0; self.items.len()];
        let open = self.open.values().flat_map(|digest| &digest.items);
        for &item in open.chain(self.gone.iter().flatten()) {
            seen[item] += 1;
        }
        for (item, seen) in self.items.iter().zip(seen) {
            let expected = usize::from(matches!(item.place, Place::Gathered | Place::Gone { .. }));
            assert_eq!(seen, expected, "{item:?}");
        }
    }

    /// In no time of the length that `at_most` says more of what it limits reached the destination.
    pub(super) fn check_limit(&self) {
        let Some(at_most) = &self.timing.at_most else { return };
        for window in self.limited.windows(at_most.count as usize + 1) {
            let (first, last) = (window[0], window[window.len() - 1]);
            assert!(later(first, at_most.per) <= last, "{} reached it from {first} to {last}", window.len());
        }
    }
}
