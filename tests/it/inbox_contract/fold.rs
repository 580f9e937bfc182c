//! A store sends what the plan folded from an empty state says (`src/route/fold.rs`): the same to every target, at the same
//! moments, where attempts succeed at once.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::civil::time;
use jiff::tz::TimeZone;
use switchbell::clock::later;
use switchbell::inbox::delivery::State;
use switchbell::inbox::{Actor, Deed, Entry, Mark, Page, Which};
use switchbell::notification::{Event, Level};
use switchbell::route::Acknowledged;
use switchbell::route::fold::{Fold, Matched, Way};
use switchbell::route::timing::{After, AtMost, By, Collect, Except, Hold, Timing, Unless, bytes_in_digest};

use super::stage::{Place, Stage, about, at, delivered, entry, large, name, owing, page, timed};

const TARGETS: usize = 40;
const STEPS: usize = 200;
const MINUTE: Duration = Duration::from_secs(60);

/// What became of a delivery: when it was sent, or none where it never was, its notifications, and how many more.
type Gone = (Option<Timestamp>, Vec<u64>, u32);

fn except(random: &mut Rng) -> Except {
    if random.bool() { Except::Nothing } else { Except::Urgent }
}

pub fn timing(random: &mut Rng) -> Timing {
    let minutes = |random: &mut Rng, most| random.u32(1..most) * MINUTE;
    let mut some = |chance: f64| random.f64() < chance;
    let (has_after, has_hold, has_collect, has_limit) = (some(0.4), some(0.5), some(0.6), some(0.6));
    let zone = TimeZone::get(["UTC", "Europe/Berlin", "Pacific/Chatham"][random.usize(..3)]).unwrap();
    let from = time(random.i8(0..24), 0, 0, 0);
    let hold = Hold { from, to: time((from.hour() + random.i8(1..9)) % 24, 30, 0, 0), zone, except: except(random) };
    let by = [By::Subject, By::Source, By::Name, By::None][random.usize(..4)];
    let collect = Collect { by, wait: minutes(random, 90), most: random.u32(1..8), except: except(random) };
    Timing {
        after: has_after.then(|| After { wait: minutes(random, 60), except: except(random) }),
        unless: [None, Some(Unless::AcknowledgedByPerson), Some(Unless::AcknowledgedByAnyone)][random.usize(..3)],
        hold: has_hold.then_some(hold),
        collect: has_collect.then_some(collect),
        at_most: has_limit.then(|| AtMost {
            count: random.u32(1..4),
            per: minutes(random, 300),
            except: except(random),
        }),
    }
}

fn arrival(random: &mut Rng, seq: u64) -> Entry {
    let subject = [None, Some("a"), Some("b")][random.usize(..3)];
    let mut entry = about(entry(&format!("e{seq}")), subject);
    if random.u32(..10) == 0 {
        entry = large(entry, random.usize(40_000..60_000));
    }
    let name = ["domain.active", "domain.lapsed"][random.usize(..2)].to_owned();
    let effective_level = Level::ALL[random.usize(..3).min(random.usize(..3))];
    Entry { event: Event { name, ..entry.event }, effective_level, ..entry }
}

/// A store and folds of the same targets, to which the same happens.
struct Both {
    stage: Stage,
    targets: Vec<String>,
    folds: Vec<Fold>,
    sent: BTreeMap<String, Vec<Gone>>,
    now: Timestamp,
    last_seq: u64,
}

impl Both {
    async fn new(place: Place, timings: &[Timing]) -> Self {
        let targets: Vec<String> = (0..timings.len()).map(|number| format!("t{number}")).collect();
        let rules = targets.iter().zip(timings).map(|(target, timing)| timed(target, timing.clone())).collect();
        let folds = timings.iter().cloned().map(Fold::new).collect();
        Self { stage: Stage::new(place, rules).await, targets, folds, sent: BTreeMap::new(), now: at(0), last_seq: 0 }
    }

    async fn accept(&mut self, entries: Vec<Entry>) {
        let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        for entry in &entries {
            self.last_seq += 1;
            let Entry { event, effective_level, .. } = entry;
            let matched = Matched {
                seq: self.last_seq,
                source: "registrar",
                name: &event.name,
                subject: event.subject.as_deref(),
                level: *effective_level,
                bytes: bytes_in_digest(event),
            };
            self.folds.iter_mut().for_each(|fold| fold.matched(self.now, &matched));
        }
        let entries = entries.into_iter().map(|entry| owing(entry, &targets)).collect();
        self.stage.accept(self.now, entries).await;
        self.deliver().await;
    }

    async fn acknowledge(&mut self, seq: u64, by: Acknowledged) {
        let is_agent = by == Acknowledged::ByAgent;
        let mark = Mark { at: self.now, by: Actor { name: "somebody".to_owned(), is_agent } };
        self.stage.inbox().mark(&name("acme"), vec![seq], Deed::Acknowledge, mark).await.unwrap();
        self.folds.iter_mut().for_each(|fold| fold.acknowledged(self.now, seq, by));
        self.deliver().await;
    }

    /// Lets time pass with everything done when it is due.
    async fn pass(&mut self, until: Timestamp) {
        self.folds.iter_mut().for_each(|fold| fold.pass(until));
        while let Some(due) = self.deliver().await.filter(|due| *due <= until) {
            self.now = self.now.max(due);
        }
        self.now = until;
    }

    /// Has whatever is due now delivered; returns when something is due next.
    async fn deliver(&mut self) -> Option<Timestamp> {
        loop {
            let claimed = self.stage.claim(self.now).await;
            let ends = claimed.claims.iter().map(|claim| self.stage.finish(claim, self.now, delivered()));
            join_all(ends).await;
            for claim in &claimed.claims {
                let gone = (Some(self.now), super::stage::seqs(claim), claim.omitted);
                self.sent.entry(claim.queue.target.to_string()).or_default().push(gone);
            }
            let next = claimed.next_due.iter().filter_map(|(_, due)| *due).min();
            if next.is_none_or(|next| next > self.now) {
                return next;
            }
        }
    }

    /// Those that were never sent, too.
    async fn all(&mut self) -> BTreeMap<String, Vec<Gone>> {
        let mut all = std::mem::take(&mut self.sent);
        let mut before = None;
        loop {
            let which = Which { states: vec![State::Suppressed], ..Which::default() };
            let views = self.stage.inbox().deliveries(Page { before, ..page("acme") }, which).await.unwrap();
            let Some(last) = views.last() else { break };
            before = last.seqs.first().copied();
            for view in views {
                all.entry(view.target).or_default().push((None, view.seqs, view.omitted));
            }
        }
        all
    }
}

fn of_fold(fold: &mut Fold) -> Vec<Gone> {
    let gone = |gone: switchbell::route::fold::Gone| {
        let sent_at = (gone.way != Way::Suppressed).then_some(gone.at);
        (sent_at, gone.seqs, gone.omitted)
    };
    fold.gone().into_iter().map(gone).collect()
}

pub async fn what_is_sent_is_what_the_plan_folded_says(place: Place) {
    let seed = 1;
    let mut random = Rng::with_seed(seed);
    let timings: Vec<Timing> = (0..TARGETS).map(|_| timing(&mut random)).collect();
    let mut both = Both::new(place, &timings).await;
    for _ in 0..STEPS {
        let gap = if random.u32(..20) == 0 { random.u32(..600) } else { random.u32(..12) };
        both.pass(later(both.now, gap * MINUTE)).await;
        let first = both.last_seq + 1;
        let count = if random.u32(..30) == 0 { random.u64(20..150) } else { random.u64(1..4) };
        let entries = (first..first + count).map(|seq| arrival(&mut random, seq)).collect();
        both.accept(entries).await;
        if random.u32(..3) == 0 {
            both.pass(later(both.now, random.u32(..30) * MINUTE)).await;
            for _ in 0..random.u32(1..6) {
                let seq = both.last_seq.saturating_sub(random.u64(..12)).max(1);
                let by = if random.bool() { Acknowledged::ByAgent } else { Acknowledged::ByPerson };
                both.acknowledge(seq, by).await;
            }
        }
    }
    both.pass(later(both.now, 14 * 24 * 60 * MINUTE)).await;
    let mut all = both.all().await;
    let mut ways = BTreeMap::new();
    for ((target, timing), fold) in both.targets.iter().zip(&timings).zip(&mut both.folds) {
        assert_eq!(fold.next_due(), None, "{target} has something that waits for ever: {timing:?}");
        let (mut stored, mut folded) = (all.remove(target).unwrap_or_default(), of_fold(fold));
        stored.sort();
        folded.sort();
        let differs = stored.iter().zip(&folded).find(|(stored, folded)| stored != folded);
        assert_eq!(differs, None, "the store and the fold of {target}, seed {seed}: {timing:?}");
        assert_eq!(stored.len(), folded.len(), "{target}, seed {seed}: {timing:?}");
        for (sent_at, seqs, omitted) in folded {
            *ways.entry((sent_at.is_some(), seqs.len() > 1, omitted > 0)).or_insert(0) += 1;
        }
    }
    assert!(ways.len() == 5, "too little happened to show anything: {ways:?}");
}
