//! A target in miniature, for one forecast.

use jiff::Timestamp;

use super::{End, Followed, Forecast, Joined, Move, Place, Scene, Waiting, Why, said};
use crate::route::plan::{SURPLUS, Standing, Step, plan};
use crate::route::timing::{DIGEST_BYTES_MAX, DIGEST_MOST};

/// Times that the plan is asked about one delivery: each stage a few times. More would be a mistake in it.
const MOVES_MAX: usize = 64;

/// What is moved, and what has come of the one that is followed.
pub(super) struct Run<'a> {
    scene: Scene<'a>,
    reached: Vec<Timestamp>,
    waiting: Vec<Waiting>,
    /// The number of the one that is followed, which is its digest's once it has joined one.
    followed: i64,
    moves: Vec<Move>,
    end: Option<End>,
    now: Timestamp,
    /// Times that the plan may still be asked, whoever is moved.
    left: usize,
}

impl<'a> Run<'a> {
    pub(super) fn new(scene: Scene<'a>, followed: Followed, now: Timestamp) -> Self {
        let mut reached = scene.reached.to_vec();
        // What is on its way counts as if it reached the destination now.
        let going = usize::try_from(scene.going).unwrap_or(usize::MAX).min(most_that_count(scene));
        let place = reached.partition_point(|at| *at <= now);
        reached.splice(place..place, std::iter::repeat_n(now, going));
        let mut waiting = scene.waiting.to_vec();
        let number = match followed {
            Followed::New(new) => {
                waiting.push(Waiting { number: Waiting::NEW, place: Place::New, at: new.at.max(now), ..*new });
                Waiting::NEW
            }
            Followed::Waiting(number) => number,
        };
        let left = (waiting.len() + 1) * MOVES_MAX;
        Self { scene, reached, waiting, followed: number, moves: Vec::new(), end: None, now, left }
    }

    pub(super) fn foresee(mut self) -> Forecast {
        let now = self.now;
        if let Some(new) = self.take(|one| one.place == Place::New && one.at <= now) {
            // It is asked about as it comes, whatever is overdue.
            self.ask(new);
        }
        while self.end.is_none() && self.left > 0 && self.moves.len() < MOVES_MAX {
            let next = self.waiting.iter().min_by_key(|one| (one.at, one.number)).map(|one| one.number);
            let Some(next) = next.and_then(|next| self.take(|one| one.number == next)) else { break };
            self.now = self.now.max(next.at);
            match next.place {
                Place::LetGo { .. } => self.claimed(&next),
                _ => self.ask(next),
            }
        }
        Forecast { moves: self.moves, end: self.end.unwrap_or(End::Open) }
    }

    fn take(&mut self, is_it: impl Fn(&Waiting) -> bool) -> Option<Waiting> {
        let place = self.waiting.iter().position(is_it)?;
        Some(self.waiting.swap_remove(place))
    }

    /// Asks the plan about something that was taken out, and carries out what it says.
    fn ask(&mut self, one: Waiting) {
        self.left = self.left.saturating_sub(1);
        let (stage, now) = (one.stage(), self.now);
        let surplus = self.waiting.iter().find(|other| other.key() == Some(SURPLUS));
        let standing = Standing { reached: &self.reached, going: 0, surplus_until: surplus.map(|surplus| surplus.at) };
        let timing = self.scene.timing;
        let step = plan(timing, stage, &one.facts(), &standing, now);
        if one.number == self.followed {
            let said = said(timing, stage, &one.facts(), &standing, now);
            self.moves.push(Move { at: now, stage, said, step: step.clone(), joins: None });
        }
        match step {
            Step::Wait { until } => self.waiting.push(Waiting { place: Place::Alone, at: until, ..one }),
            Step::Suppress => self.ends(&one, End::Suppressed { at: now }),
            Step::Go => self.goes(&one, true),
            Step::Gather { key, why, until } => self.gather(one, key, why, until),
        }
    }

    /// It was let go before, and is claimed unless somebody acknowledged it since.
    fn claimed(&mut self, one: &Waiting) {
        if self.scene.timing.unless.is_some_and(|unless| unless.is_met(one.acknowledged)) {
            self.ends(one, End::Suppressed { at: self.now });
        } else {
            self.goes(one, false);
        }
    }

    /// It is claimed, and reaches its destination. `counts` unless it is among those that go already.
    fn goes(&mut self, one: &Waiting, counts: bool) {
        if counts && self.scene.timing.at_most.is_some() {
            let place = self.reached.partition_point(|at| *at <= self.now);
            self.reached.insert(place, self.now);
        }
        self.ends(one, End::Goes { at: self.now });
    }

    fn ends(&mut self, one: &Waiting, end: End) {
        if one.number == self.followed {
            self.end = Some(end);
        }
    }

    /// Has it join the digest with this key, or open it: as `inbox/sqlite/digest.rs` does.
    fn gather(&mut self, one: Waiting, key: String, why: Why, until: Timestamp) {
        let is_open = |other: &Waiting| other.key() == Some(&key) && other.number != one.number;
        let Some(open) = self.take(is_open) else { return self.begin(one, key, why, until) };
        let most = self.most(why);
        let fits = open.items + one.items <= most && open.bytes.saturating_add(one.bytes) <= DIGEST_BYTES_MAX;
        let is_let_go = matches!(open.place, Place::LetGo { .. });
        let closes_early = why == Why::Collect && !is_let_go;
        if fits || !(closes_early || is_let_go) {
            let open = self.join(open, &one, fits);
            let is_full = fits && closes_early && open.items == most;
            return if is_full { self.ask(open) } else { self.waiting.push(open) };
        }
        if closes_early {
            self.ask(open);
        } else {
            // Nothing more joins it.
            self.waiting.push(Waiting { place: Place::LetGo { key: None }, ..open });
        }
        self.begin(one, key, why, until);
    }

    fn begin(&mut self, one: Waiting, key: String, why: Why, until: Timestamp) {
        let is_full = why == Why::Collect && one.items >= self.most(why);
        let one = Waiting { place: Place::Digest { key }, at: until, ..one };
        if is_full { self.ask(one) } else { self.waiting.push(one) }
    }

    fn join(&mut self, open: Waiting, one: &Waiting, fits: bool) -> Waiting {
        if one.number == self.followed {
            let joined = Joined { number: open.number, closes_at: open.at, is_counted: !fits };
            if let Some(last) = self.moves.last_mut() {
                last.joins = Some(joined);
            }
            self.followed = open.number;
        }
        let (items, bytes) = if fits { (one.items, one.bytes) } else { (0, 0) };
        Waiting {
            level: open.level.max(one.level),
            acknowledged: open.acknowledged.min(one.acknowledged),
            items: open.items + items,
            bytes: open.bytes.saturating_add(bytes),
            ..open
        }
    }

    fn most(&self, why: Why) -> u32 {
        let collect = self.scene.timing.collect.as_ref().filter(|_| why == Why::Collect);
        collect.map_or(DIGEST_MOST, |collect| collect.most.clamp(1, DIGEST_MOST))
    }
}

fn most_that_count(scene: Scene<'_>) -> usize {
    let count = scene.timing.at_most.as_ref().map_or(0, |at_most| at_most.count);
    usize::try_from(count).unwrap_or(usize::MAX)
}
