//! Random days against a naive model: no limit is ever broken, nobody starves, everything comes back.

use std::collections::HashMap;

use super::*;
use crate::inbox::book::Admission;

/// What a naive observer counts.
struct Model {
    world: World,
    random: fastrand::Rng,
    rules: Vec<Rule>,
    by_queue: HashMap<QueueKey, Arc<Rule>>,
    /// When deliveries of each queue come due, in the store.
    store: HashMap<QueueKey, Vec<Timestamp>>,
    running: Vec<(Claim, bool)>,
    effects: HashMap<LaneKey, Vec<Timestamp>>,
    paused: HashMap<LaneKey, Timestamp>,
    delivered: HashMap<QueueKey, u32>,
    admitted: u32,
}

const QUEUES: usize = 12;

impl Model {
    fn new(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let lanes = [
            LaneRule { in_flight: 3, ..paced("bot", 5, 3) },
            paced("chat", 1, 1),
            limited("hook", 2),
            ordered("room"),
            paced("many", 100, 20),
            lane("free"),
        ];
        let rules: Vec<Rule> = (0..QUEUES)
            .map(|number| {
                let mine: Vec<LaneRule> = lanes.iter().filter(|_| random.u8(0..3) == 0).cloned().collect();
                Rule { is_strict: random.u8(0..5) == 0, ..rule(&format!("w{}/r{number}", number % 3), &mine) }
            })
            .collect();
        let mut world = World::of(40, rules.clone());
        world.last = 1_000;
        let by_queue = rules.iter().map(|rule| (rule.queue.clone(), Arc::new(rule.clone()))).collect();
        let (store, effects) = (HashMap::new(), HashMap::new());
        let (paused, delivered) = (HashMap::new(), HashMap::new());
        Self { world, random, rules, by_queue, store, running: Vec::new(), effects, paused, delivered, admitted: 0 }
    }

    fn rule(&self, queue: &QueueKey) -> Arc<Rule> {
        Arc::clone(&self.by_queue[queue])
    }

    fn arrive(&mut self) {
        let rule = self.rules[self.random.usize(0..QUEUES)].clone();
        if self.random.bool() && self.world.queues.admit(&rule.queue, None) {
            assert!(!self.store.get(&rule.queue).is_some_and(|due| due.iter().any(|at| *at <= self.world.now())));
            let claim = self.world.claim(&rule.queue, &[None]);
            self.admitted += 1;
            self.start(claim);
            return;
        }
        let at = self.world.at(self.random.u64(0..3));
        self.store.entry(rule.queue.clone()).or_default().push(at);
        self.world.queues.due(&rule.queue, at);
    }

    fn start(&mut self, claim: Claim) {
        let rule = self.rule(&claim.queue);
        self.running.push((claim.clone(), false));
        for lane in &rule.lanes {
            let in_lane = |(claim, _): &&(Claim, bool)| {
                self.by_queue[&claim.queue].lanes.iter().any(|other| other.lane == lane.lane)
            };
            let held = self.running.iter().filter(in_lane).count();
            let most = if lane.is_ordered { 1 } else { lane.in_flight as usize };
            assert!(most == 0 || held <= most, "{:?} has {held}", lane.lane.key);
            let paused = self.paused.get(&lane.lane).is_some_and(|until| *until > self.world.now());
            assert!(!paused, "{:?} is paused", lane.lane.key);
        }
        let of_queue = self.running.iter().filter(|(other, _)| other.queue == claim.queue).count();
        assert!(!rule.is_strict || of_queue == 1);
        assert!(self.world.queues.in_flight() <= 40);
    }

    fn pick(&mut self) {
        for want in self.world.queues.pick().wants {
            if self.random.u8(0..10) == 0 {
                self.world.queues.failed(&want);
                continue;
            }
            let now = self.world.now();
            let due = self.store.entry(want.queue.clone()).or_default();
            due.sort_unstable();
            let ready = due.iter().filter(|at| **at <= now).count().min(want.most as usize);
            due.drain(..ready);
            let next_due = due.first().copied();
            let mut claims: Vec<Claim> = (0..ready).map(|_| self.world.claim(&want.queue, &[None])).collect();
            if let (Some(number), Some(claim)) = (want.only, claims.first_mut()) {
                claim.id.number = number;
            }
            self.world.queues.claimed(&want, &claims, next_due);
            for claim in claims {
                self.start(claim);
            }
        }
    }

    /// An attempt makes an effect, if it may now.
    fn effect(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let index = self.random.usize(0..self.running.len());
        let claim = self.running[index].0.clone();
        if !self.world.effect_goes(&claim) {
            return;
        }
        self.running[index].1 = true;
        let now = self.world.now();
        for lane in &self.rule(&claim.queue).lanes {
            assert!(self.paused.get(&lane.lane).is_none_or(|until| *until <= now));
            let made = self.effects.entry(lane.lane.clone()).or_default();
            made.push(now);
            let per = seconds(u64::from(lane.per_seconds));
            let recent = made.iter().rev().take_while(|at| later(**at, per) > now).count();
            assert!(lane.count == 0 || recent <= lane.count as usize, "{:?}: {recent}", lane.lane.key);
        }
    }

    fn end(&mut self, gently: bool) {
        if self.running.is_empty() {
            return;
        }
        let (claim, _) = self.running.swap_remove(self.random.usize(0..self.running.len()));
        let fails = !gently && self.random.u8(0..4) == 0;
        if !fails {
            *self.delivered.entry(claim.queue.clone()).or_default() += 1;
            return self.world.end(&claim);
        }
        let delay = (self.random.u8(0..8) == 0).then(|| seconds(self.random.u64(1..20)));
        let now = self.world.now();
        self.world.queues.records(&claim, delay);
        let lanes = delay.map(|_| self.rule(&claim.queue).lanes.clone());
        for lane in lanes.unwrap_or_default() {
            let until = self.paused.entry(lane.lane).or_insert(now);
            *until = (*until).max(later(now, delay.unwrap_or_default()));
        }
        let next_at = self.world.at(self.random.u64(1..10));
        self.store.entry(claim.queue.clone()).or_default().push(next_at);
        self.world.queues.ended(&claim, &retrying(next_at), Some(Outcome::Retry));
    }

    fn is_done(&self) -> bool {
        self.running.is_empty() && self.store.values().all(Vec::is_empty)
    }
}

#[test]
fn random_days_break_no_limit_starve_nobody_and_give_everything_back() {
    let mut admitted = 0;
    for seed in 0..40 {
        let mut model = Model::new(seed);
        for _ in 0..3_000 {
            match model.random.u8(0..10) {
                0..2 => model.arrive(),
                2..5 => model.pick(),
                5..7 => model.effect(),
                7..9 => model.end(false),
                _ => model.world.clock.advance(Duration::from_millis(model.random.u64(0..1_500))),
            }
        }
        let mut rounds = 0;
        while !model.is_done() {
            rounds += 1;
            assert!(rounds < 20_000, "seed {seed}: {:?} are left", model.store);
            model.pick();
            model.effect();
            model.end(true);
            model.world.clock.advance(Duration::from_millis(500));
        }
        model.world.assert_empty();
        assert!(model.delivered.values().sum::<u32>() > 100, "seed {seed}");
        admitted += model.admitted;
    }
    assert!(admitted > 100);
}

#[test]
fn a_reload_in_the_middle_of_everything_loses_no_slot() {
    for seed in 0..20 {
        let mut model = Model::new(seed);
        for round in 0..1_000 {
            model.arrive();
            model.pick();
            model.effect();
            if round % 3 == 0 {
                model.end(false);
            }
            model.world.clock.advance(Duration::from_millis(model.random.u64(0..700)));
            if round % 50 == 0 {
                model.world.queues.take_up(&Book::new(model.rules.clone()));
            }
        }
        while !model.running.is_empty() {
            model.end(true);
        }
        model.world.assert_empty();
        model.world.queues.take_up(&Book::new([]));
        model.world.queues.with(|state, _| assert!(state.queues.is_empty() && state.by_key.is_empty()));
    }
}
