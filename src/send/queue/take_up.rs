//! What targets there are, and what the store knew of them.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::lane::Owner;
use super::state::{LaneId, QueueId, State, Timer};
use super::target::{Lanes, Stand, Target};
use crate::inbox::Adopted;
use crate::inbox::book::{Book, LaneKey, LaneRule, QueueKey, Rule};

/// What a lane allows that two targets describe differently: the less of each.
fn stricter(one: &LaneRule, other: &LaneRule) -> LaneRule {
    let is_paced = |rule: &LaneRule| rule.count > 0 && rule.per_seconds > 0;
    let per_day = |rule: &LaneRule| u64::from(rule.count) * 86_400 / u64::from(rule.per_seconds.max(1));
    let pace = match (is_paced(one), is_paced(other)) {
        (true, true) if per_day(other) < per_day(one) => other,
        (false, true) => other,
        _ => one,
    };
    let in_flight = match (one.in_flight, other.in_flight) {
        (0, most) | (most, 0) => most,
        (one, other) => one.min(other),
    };
    LaneRule {
        lane: one.lane.clone(),
        count: pace.count,
        per_seconds: pace.per_seconds,
        in_flight,
        is_ordered: one.is_ordered || other.is_ordered,
    }
}

impl State {
    pub(super) fn take_up(&mut self, book: &Book, now: Timestamp) {
        let mut rules: HashMap<LaneKey, LaneRule> = HashMap::new();
        for rule in book.rules().flat_map(|rule| &rule.lanes) {
            let known = rules.get(&rule.lane).map(|known| stricter(known, rule));
            rules.insert(rule.lane.clone(), known.unwrap_or_else(|| rule.clone()));
        }
        for (key, rule) in &rules {
            let id = self.lane(Owner::Plugin(key.clone()));
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.obey(rule);
            }
        }
        self.follow_moves(book);
        for rule in book.rules() {
            self.free_name(&rule.queue);
            let lanes = self.lanes_of(rule);
            let id = self.queue(&rule.queue);
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.rule = Some(rule.clone());
                queue.lanes = lanes;
            }
        }
        self.forget_gone(book);
        let ids: Vec<QueueId> = self.queues.keys().copied().collect();
        for id in ids {
            if self.queues.get(&id).is_some_and(|queue| !matches!(queue.stand, Stand::Ready | Stand::Asked)) {
                self.unplace(id);
            }
            self.settle(id, now);
        }
        self.forget_lanes(now);
    }

    /// A target that went on under another route keeps its queue, with what is under way: in its order and its lanes. That
    /// is so where the store moves it, too: to the one target of its identity that was not there before.
    fn follow_moves(&mut self, book: &Book) {
        let is_moved = |queue: &Target| queue.rule.is_some() && book.get(&queue.key).is_none();
        let moved: Vec<QueueId> = self.queues.iter().filter(|(_, queue)| is_moved(queue)).map(|(id, _)| *id).collect();
        for id in moved {
            let Some(before) = self.queues.get(&id).map(|queue| queue.key.clone()) else { continue };
            let is_free = |there: &&QueueKey| self.by_key.get(*there).is_none_or(|known| *known == id);
            let mut free = book.namesakes(&before).filter(is_free);
            let (Some(there), None) = (free.next().cloned(), free.next()) else { continue };
            self.by_key.insert(there.clone(), id);
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.names.retain(|name| *name != there);
                queue.names.push(std::mem::replace(&mut queue.key, there));
            }
        }
    }

    /// A name that a queue had before is another's now.
    fn free_name(&mut self, key: &QueueKey) {
        let Some(id) = self.by_key.get(key).copied() else { return };
        if let Some(queue) = self.queues.get_mut(&id)
            && queue.key != *key
        {
            queue.names.retain(|name| name != key);
            self.by_key.remove(key);
        }
    }

    /// The lanes of a target, in the order of their keys. One whose plugin is not there now keeps what it had.
    fn lanes_of(&mut self, rule: &Rule) -> Lanes {
        let known = self.by_key.get(&rule.queue).and_then(|id| self.queues.get(id));
        if let Some(queue) =
            known.filter(|queue| rule.blocked.is_some() && rule.lanes.is_empty() && !queue.lanes.is_empty())
        {
            return queue.lanes.clone();
        }
        if rule.lanes.is_empty() {
            return Lanes::from([self.lane(Owner::Queue(rule.queue.clone()))]);
        }
        let mut keys: Vec<&LaneKey> = rule.lanes.iter().map(|lane| &lane.lane).collect();
        keys.sort();
        keys.dedup();
        keys.into_iter().map(|key| self.lane(Owner::Plugin(key.clone()))).collect()
    }

    fn forget_gone(&mut self, book: &Book) {
        let gone: Vec<QueueId> =
            self.queues.iter().filter(|(_, queue)| book.get(&queue.key).is_none()).map(|(id, _)| *id).collect();
        for id in gone {
            let Some(queue) = self.queues.get_mut(&id) else { continue };
            queue.gone();
            if queue.held == 0 {
                self.forget(id);
            }
        }
    }

    /// Forgets lanes that no target names, unless somebody is in one or a target that comes back would need its past.
    fn forget_lanes(&mut self, now: Timestamp) {
        let named: HashSet<LaneId> = self.queues.values().flat_map(|queue| queue.lanes.iter().copied()).collect();
        let mut forgotten = Vec::new();
        for (id, lane) in &mut self.lanes {
            if !named.contains(id) && lane.is_idle() && lane.waiting.is_empty() && !lane.has_past(now) {
                forgotten.push((*id, lane.owner.clone(), lane.timer));
            }
        }
        for (id, owner, timer) in forgotten {
            self.lanes.remove(&id);
            self.by_owner.remove(&owner);
            if let Some(at) = timer {
                self.timers.remove(&(at, Timer::Lane(id)));
            }
        }
    }

    pub(super) fn restore(&mut self, adopted: &Adopted, now: Timestamp) {
        for record in &adopted.lanes {
            let id = self.by_owner.get(&Owner::Plugin(record.lane.clone()));
            if let Some(lane) = id.and_then(|id| self.lanes.get_mut(id)) {
                lane.restore(now, record);
            }
        }
        for (key, at) in &adopted.due {
            self.due(key, *at, now);
        }
        for (key, number, at) in &adopted.heads {
            let Some(id) = self.by_key.get(key).copied() else { continue };
            if let Some(queue) = self.queues.get_mut(&id) {
                queue.follow(*number, *at);
            }
            self.settle(id, now);
        }
    }
}
