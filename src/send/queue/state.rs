//! What is known of all queues, lanes and attempts, and where each queue stands.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use super::effects::Running;
use super::lane::{Lane, Owner};
use super::share::{Share, Workspace};
use super::target::{Stand, Target};
use crate::inbox::DeliveryId;
use crate::inbox::book::QueueKey;
use crate::notification::Name;

/// A queue; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct QueueId(pub(super) u64);

/// A lane; never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct LaneId(pub(super) u64);

/// What time moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Queue(QueueId),
    Lane(LaneId),
}

/// Everything behind the lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) attempts_max: u32,
    /// Attempts, asked and admitted ones included.
    pub(super) held: u32,
    /// Of those, asked for and not answered yet.
    pub(super) asked: u32,
    pub(super) queues: HashMap<QueueId, Target>,
    pub(super) by_key: HashMap<QueueKey, QueueId>,
    pub(super) lanes: HashMap<LaneId, Lane>,
    pub(super) by_owner: HashMap<Owner, LaneId>,
    pub(super) workspaces: HashMap<Name, Workspace>,
    /// Workspaces with something ready, in turn.
    pub(super) ring: VecDeque<Name>,
    /// Workspaces that have their share, or queues of which do, in turn.
    pub(super) sharing: VecDeque<Name>,
    pub(super) timers: BTreeSet<(Timestamp, Timer)>,
    /// Lanes that something happened to.
    pub(super) touched: VecDeque<LaneId>,
    pub(super) attempts: HashMap<DeliveryId, Running>,
    pub(super) closed: bool,
    /// When the next pick was promised.
    pub(super) promised: Option<Timestamp>,
    /// When the last pick was.
    pub(super) seen: Timestamp,
    /// Whether a pick may find more than before.
    pub(super) has_news: bool,
    /// Queues, lanes, workspaces and timers that were looked at, ever: what a pick costs.
    pub(super) examined: u64,
    numbers: u64,
}

impl State {
    pub(super) fn new(attempts_max: u32) -> Self {
        Self {
            attempts_max,
            held: 0,
            asked: 0,
            queues: HashMap::new(),
            by_key: HashMap::new(),
            lanes: HashMap::new(),
            by_owner: HashMap::new(),
            workspaces: HashMap::new(),
            ring: VecDeque::new(),
            sharing: VecDeque::new(),
            timers: BTreeSet::new(),
            touched: VecDeque::new(),
            attempts: HashMap::new(),
            closed: false,
            promised: None,
            seen: Timestamp::MIN,
            has_news: false,
            examined: 0,
            numbers: 0,
        }
    }

    /// A number that was never given out before: ids, turns and tickets.
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub(super) fn free(&self) -> u32 {
        self.attempts_max.saturating_sub(self.held)
    }

    /// The queue of this key; a queue without a target if it is unknown: the store says what becomes of its deliveries.
    pub(super) fn queue(&mut self, key: &QueueKey) -> QueueId {
        if let Some(id) = self.by_key.get(key) {
            return *id;
        }
        let id = QueueId(self.number());
        self.by_key.insert(key.clone(), id);
        self.queues.insert(id, Target::new(key.clone(), Arc::from([])));
        id
    }

    pub(super) fn lane(&mut self, owner: Owner) -> LaneId {
        if let Some(id) = self.by_owner.get(&owner) {
            return *id;
        }
        let id = LaneId(self.number());
        self.lanes.insert(id, Lane::new(owner.clone()));
        self.by_owner.insert(owner, id);
        id
    }

    /// Something of this queue is due then, at the earliest.
    pub(super) fn due(&mut self, key: &QueueKey, at: Timestamp, now: Timestamp) {
        let id = self.queue(key);
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.due(at, now);
        }
        self.settle(id, now);
    }

    /// A person took a delivery away.
    pub(super) fn left(&mut self, key: &QueueKey, number: i64, now: Timestamp) {
        let Some(id) = self.by_key.get(key).copied() else { return };
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.left(number, now);
        }
        self.settle(id, now);
    }

    pub(super) fn share(&self, queue: &Target) -> Share {
        let workspace = self.workspaces.get(&queue.key.workspace).map_or(0, |workspace| workspace.held);
        Share { most: self.attempts_max, held: self.held, workspace, queue: queue.held }
    }

    /// Puts a queue where what is known of it says it belongs.
    pub(super) fn settle(&mut self, id: QueueId, now: Timestamp) {
        let Some(queue) = self.queues.get(&id) else { return };
        let at = queue.eligible_at();
        let is_eligible = at.is_some_and(|at| at <= now);
        match queue.stand {
            Stand::Ready | Stand::Asked => return,
            Stand::Share(_) if is_eligible && !self.share(queue).is_relieved() => return,
            Stand::Lane(lane, since) if is_eligible && (since == self.place_in(lane, queue)) => return,
            Stand::Lane(lane, _) if is_eligible => {
                self.unplace(id);
                return self.wait_for(id, lane);
            }
            _ => self.unplace(id),
        }
        match at {
            Some(at) if at > now => self.set_timer(id, at),
            Some(_) => self.enter(id),
            None if self.queues.get(&id).is_some_and(Target::is_over) => self.forget(id),
            None => {}
        }
    }

    /// Something of the queue is due: it stands in the ring, or, where the earliest goes first, in its lane.
    fn enter(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(&id) else { return };
        let is_ordered = |lane: &&LaneId| self.lanes.get(lane).is_some_and(Lane::is_ordered);
        match queue.lanes.iter().find(is_ordered).copied().filter(|_| !queue.is_blocked()) {
            Some(lane) => self.wait_for(id, lane),
            None => self.push_ready(id),
        }
    }

    pub(super) fn push_ready(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.stand = Stand::Ready;
        let name = queue.key.workspace.clone();
        let workspace = self.workspaces.entry(name.clone()).or_default();
        workspace.ready.push_back(id);
        if !workspace.in_ring {
            workspace.in_ring = true;
            self.ring.push_back(name);
        }
        self.has_news = true;
    }

    /// Lets a queue wait until this lane tells it to try.
    pub(super) fn wait_for(&mut self, id: QueueId, lane_id: LaneId) {
        let turn = self.turn(id);
        let Some(queue) = self.queues.get(&id) else { return };
        let since = self.place_in(lane_id, queue);
        if let (Some(queue), Some(lane)) = (self.queues.get_mut(&id), self.lanes.get_mut(&lane_id)) {
            lane.waiting.insert((since, turn, id));
            queue.stand = Stand::Lane(lane_id, since);
            self.touch(lane_id);
        } else {
            // The lane went with a reload.
            self.push_ready(id);
        }
    }

    fn place_in(&self, lane: LaneId, queue: &Target) -> Timestamp {
        let is_ordered = self.lanes.get(&lane).is_some_and(Lane::is_ordered);
        if is_ordered { queue.due_since() } else { Timestamp::MIN }
    }

    /// Lets a queue wait until it may have more of the process.
    pub(super) fn wait_for_share(&mut self, id: QueueId) {
        let turn = self.turn(id);
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.stand = Stand::Share(turn);
        let name = queue.key.workspace.clone();
        self.workspaces.entry(name.clone()).or_default().sharing.insert((turn, id));
        self.set_sharing(name);
    }

    pub(super) fn set_sharing(&mut self, name: Name) {
        let workspace = self.workspaces.entry(name.clone()).or_default();
        if !workspace.in_sharing {
            workspace.in_sharing = true;
            self.sharing.push_back(name);
        }
    }

    fn turn(&mut self, id: QueueId) -> u64 {
        if let Some(turn) = self.queues.get(&id).and_then(|queue| queue.turn) {
            return turn;
        }
        let turn = self.number();
        if let Some(queue) = self.queues.get_mut(&id) {
            queue.turn = Some(turn);
        }
        turn
    }

    fn set_timer(&mut self, id: QueueId, at: Timestamp) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        queue.stand = Stand::Timer(at);
        self.add_timer(at, Timer::Queue(id));
    }

    pub(super) fn add_timer(&mut self, at: Timestamp, timer: Timer) {
        self.timers.insert((at, timer));
        if self.promised.is_none_or(|promised| at < promised) {
            self.has_news = true;
        }
    }

    /// Takes a queue from where it waits.
    pub(super) fn unplace(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get_mut(&id) else { return };
        let turn = queue.turn.unwrap_or_default();
        match queue.stand {
            // The ring skips who does not belong there.
            Stand::Idle | Stand::Ready | Stand::Asked => {}
            Stand::Timer(at) => {
                self.timers.remove(&(at, Timer::Queue(id)));
            }
            Stand::Lane(lane, since) => {
                if let Some(lane) = self.lanes.get_mut(&lane) {
                    lane.waiting.remove(&(since, turn, id));
                }
            }
            Stand::Share(turn) => {
                if let Some(workspace) = self.workspaces.get_mut(&queue.key.workspace) {
                    workspace.sharing.remove(&(turn, id));
                }
            }
        }
        queue.stand = Stand::Idle;
    }

    /// Something happened to a lane: the next pick looks who may try.
    pub(super) fn touch(&mut self, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if !lane.is_touched && !lane.waiting.is_empty() {
            lane.is_touched = true;
            self.touched.push_back(id);
            self.has_news = true;
        }
    }

    /// Forgets a queue that has no target and nothing under way.
    pub(super) fn forget(&mut self, id: QueueId) {
        self.unplace(id);
        self.answer_call(id);
        if let Some(queue) = self.queues.remove(&id) {
            for key in queue.names.iter().chain([&queue.key]) {
                if self.by_key.get(key) == Some(&id) {
                    self.by_key.remove(key);
                }
            }
        }
    }
}
