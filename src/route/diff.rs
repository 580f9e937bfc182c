//! What two configurations of a workspace make of the same notifications: pure. Both are decided by [`Router::select`],
//! each with the level that the ceilings of that configuration leave.
//!
//! [`Router::select`]: super::Router::select

mod pairs;
mod simulation;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use super::rehearsal::TargetIndex;
use super::{Decision, Facts};
use crate::config::{Route, Workspace};
use crate::inbox::Known;
use crate::notification::{HOST_SOURCE, Level, Name};

pub use pairs::{Aspect, Pair};
pub use simulation::{Sent, Simulation};

/// How a configuration decides a notification.
#[derive(Clone, Debug)]
pub struct Decided {
    /// Its level there.
    pub level: Level,
    /// Every route's decision.
    pub decisions: Vec<Decision>,
}

/// Decides a notification under a configuration; none where the configuration does not have its source, so that it would
/// not come.
pub fn decide(workspace: &Workspace, of: &Known) -> Option<Decided> {
    let ceiling = match workspace.connectors.get(&of.source) {
        Some(connector) => connector.ceiling,
        None if of.source.as_str() == HOST_SOURCE => Level::Urgent,
        None => return None,
    };
    let level = of.level.capped(ceiling);
    let facts = Facts { source: &of.source, name: &of.name, effective_level: level, subject: of.subject.as_deref() };
    Some(Decided { level, decisions: workspace.router.select(&facts) })
}

/// What becomes of a notification at a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fate {
    /// Only the new configuration delivers it.
    New,
    /// Only the old one does.
    Gone,
    /// Both do, and something is written otherwise of the target.
    Changed,
    /// Both do, and its level differs.
    Level,
    /// Both do, and nothing differs.
    Kept,
}

impl Fate {
    /// Every fate that makes a difference.
    pub const DIFFERENT: [Self; 4] = [Self::New, Self::Gone, Self::Changed, Self::Level];

    /// What a reader calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Gone => "gone",
            Self::Changed => "changed",
            Self::Level => "level",
            Self::Kept => "same",
        }
    }
}

/// How many notifications came to an end, and which of them last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// So many.
    pub notifications: u64,
    /// The numbers of the newest, oldest first.
    pub newest: VecDeque<u64>,
}

/// The differences so far.
#[derive(Debug)]
pub struct Diff<'a> {
    old: &'a Workspace,
    new: &'a Workspace,
    /// Examples kept of each count.
    examples: usize,
    pairs: Vec<Pair>,
    /// What became of notifications, by the target's place among the pairs.
    counts: BTreeMap<(usize, Fate), Count>,
    /// What the same routes make, by which match there and here.
    shapes: HashMap<(Vec<u16>, Vec<u16>), Rc<Shape>>,
    totals: Totals,
}

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Notifications that were decided.
    pub notifications: u64,
    /// Others that came with the first answer of their source and owe nothing, whatever routes say.
    pub first: u64,
    /// Those decided that would be delivered otherwise.
    pub different: u64,
    /// Those decided that would have another level, by source, with an example of both levels.
    pub levels: BTreeMap<Name, (u64, Level, Level)>,
    /// Those of sources that the old or the new configuration does not have.
    pub unknown: BTreeMap<Name, Missing>,
}

/// Notifications of a source that a configuration does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// So many that the old one does not have.
    pub old: u64,
    /// So many that the new one does not have.
    pub new: u64,
}

/// What becomes of a notification at each target that it has to do with.
type Shape = Vec<(usize, Fate)>;

/// Shapes kept; beyond, all are forgotten and made again.
const SHAPES_MAX: usize = 10_000;

impl<'a> Diff<'a> {
    /// Of nothing so far, with so many examples of each count.
    pub fn new(old: &'a Workspace, new: &'a Workspace, examples: usize) -> Self {
        let pairs = pairs::pairs(&old.routes, &new.routes);
        let (counts, shapes, totals) = (BTreeMap::new(), HashMap::new(), Totals::default());
        Self { old, new, examples, pairs, counts, shapes, totals }
    }

    /// Decides a notification under both; returns how each decided it.
    pub fn add(&mut self, of: &Known) -> [Option<Decided>; 2] {
        if of.is_first {
            self.totals.first += 1;
            return [None, None];
        }
        self.totals.notifications += 1;
        let both = [decide(self.old, of), decide(self.new, of)];
        let [old, new] = &both;
        if old.is_none() || new.is_none() {
            let missing = self.totals.unknown.entry(of.source.clone()).or_default();
            missing.old += u64::from(old.is_none());
            missing.new += u64::from(new.is_none());
        }
        let levels = old.as_ref().zip(new.as_ref()).map(|(old, new)| (old.level, new.level));
        let other_level = levels.filter(|(old, new)| old != new);
        if let Some((old, new)) = other_level {
            self.totals.levels.entry(of.source.clone()).or_insert((0, old, new)).0 += 1;
        }
        let key = (matched(old.as_ref()), matched(new.as_ref()));
        let shape = self.shape(key);
        let mut is_different = false;
        for &(pair, fate) in shape.iter() {
            let fate = if fate == Fate::Kept && other_level.is_some() { Fate::Level } else { fate };
            is_different |= fate != Fate::Kept;
            let count = self.counts.entry((pair, fate)).or_default();
            count.notifications += 1;
            if fate != Fate::Kept && self.examples > 0 {
                if count.newest.len() >= self.examples {
                    count.newest.pop_front();
                }
                count.newest.push_back(of.seq);
            }
        }
        self.totals.different += u64::from(is_different);
        both
    }

    /// The targets of both configurations.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// How many notifications came to this end at a target, by its place among the pairs.
    pub fn count(&self, pair: usize, fate: Fate) -> Option<&Count> {
        self.counts.get(&(pair, fate))
    }

    /// What was looked at.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    fn shape(&mut self, key: (Vec<u16>, Vec<u16>)) -> Rc<Shape> {
        if let Some(shape) = self.shapes.get(&key) {
            return Rc::clone(shape);
        }
        let shape = Rc::new(self.make_shape(&key));
        if self.shapes.len() >= SHAPES_MAX {
            self.shapes.clear();
        }
        self.shapes.insert(key, Rc::clone(&shape));
        shape
    }

    fn make_shape(&self, (old, new): &(Vec<u16>, Vec<u16>)) -> Shape {
        let is_in = |routes: &[u16], route: usize| u16::try_from(route).is_ok_and(|route| routes.contains(&route));
        let mut shape: Shape = Vec::new();
        for (place, pair) in self.pairs.iter().enumerate() {
            let is_old = pair.old.is_some_and(|at| is_in(old, at.route));
            let is_new = pair.new.is_some_and(|at| is_in(new, at.route));
            match (is_old, is_new) {
                (true, true) => shape.push((place, fate_of(&pair.aspects))),
                (true, false) => shape.push((place, Fate::Gone)),
                (false, true) => shape.push((place, Fate::New)),
                (false, false) => {}
            }
        }
        self.net(&mut shape);
        shape
    }

    /// What one route does not deliver any more and another now does, to the same target, is no loss and no gain.
    fn net(&self, shape: &mut Shape) {
        let (old, new) = (&self.old.routes, &self.new.routes);
        let mut gone: Vec<(usize, TargetIndex)> = Vec::new();
        for (place, _) in shape.iter().filter(|(_, fate)| *fate == Fate::Gone) {
            gone.extend(self.pairs.get(*place).and_then(|pair| Some((*place, pair.old?))));
        }
        let id = |routes: &'a [Route], at| pairs::target(routes, at).map(|target| &target.id);
        let mut netted = Vec::new();
        for (place, fate) in shape.iter_mut().filter(|(_, fate)| *fate == Fate::New) {
            let Some(new_at) = self.pairs.get(*place).and_then(|pair| pair.new) else { continue };
            if let Some(other) = gone.iter().position(|(_, old_at)| id(old, *old_at) == id(new, new_at)) {
                let (gone_place, old_at) = gone.swap_remove(other);
                netted.push(gone_place);
                *fate = fate_of(&pairs::aspects((old, old_at), (new, new_at)));
            }
        }
        shape.retain(|(place, fate)| !(*fate == Fate::Gone && netted.contains(place)));
    }
}

/// What becomes of what both deliver. The name of a route is nothing that anybody is told.
fn fate_of(aspects: &[Aspect]) -> Fate {
    if aspects.iter().all(|aspect| *aspect == Aspect::Route) { Fate::Kept } else { Fate::Changed }
}

fn matched(decided: Option<&Decided>) -> Vec<u16> {
    let decisions = decided.map_or(&[][..], |decided| &decided.decisions);
    let matched = decisions.iter().filter(|decision| decision.matches());
    matched.filter_map(|decision| u16::try_from(decision.route).ok()).collect()
}

#[cfg(test)]
mod tests;
