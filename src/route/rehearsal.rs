//! What all targets of a workspace would be sent, from a state without anything: a [`Fold`] for each.

use jiff::Timestamp;

use super::Acknowledged;
use super::Decision;
use super::fold::{Fold, Gone, Matched};
use crate::config::Route;

/// The targets of a workspace's routes.
#[derive(Debug)]
pub struct Rehearsal {
    /// By route, then by target, in the order of the file.
    routes: Vec<Vec<Fold>>,
}

/// A target of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetIndex {
    /// The route's place in the file.
    pub route: usize,
    /// The target's place in the route.
    pub target: usize,
}

impl Rehearsal {
    /// Of targets that nothing was owed so far.
    pub fn new(routes: &[Route]) -> Self {
        let folds = |route: &Route| route.deliver.iter().map(|target| Fold::new(target.timing.clone())).collect();
        Self { routes: routes.iter().map(folds).collect() }
    }

    /// A notification was received and decided; it is owed to every target of every route that matches.
    pub fn matched(&mut self, at: Timestamp, what: &Matched<'_>, decisions: &[Decision]) {
        for decision in decisions.iter().filter(|decision| decision.matches()) {
            let folds = self.routes.get_mut(decision.route).into_iter().flatten();
            folds.for_each(|fold| fold.matched(at, what));
        }
    }

    /// Somebody acknowledges a notification.
    pub fn acknowledged(&mut self, at: Timestamp, seq: u64, by: Acknowledged) {
        self.routes
            .iter_mut()
            .flatten()
            .filter(|fold| fold.has_unless())
            .for_each(|fold| fold.acknowledged(at, seq, by));
    }

    /// Lets time pass for all targets.
    pub fn pass(&mut self, until: Timestamp) {
        self.routes.iter_mut().flatten().for_each(|fold| fold.pass(until));
    }

    /// When something is due next; none when nothing waits.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.routes.iter().flatten().filter_map(Fold::next_due).min()
    }

    /// How much waits for a target: deliveries that are not made yet.
    pub fn waiting(&self, of: TargetIndex) -> usize {
        self.routes.get(of.route).and_then(|route| route.get(of.target)).map_or(0, Fold::waiting)
    }

    /// Hands over what became of deliveries since this was asked last; of each target in its order.
    pub fn gone(&mut self, mut take: impl FnMut(TargetIndex, Gone)) {
        for (route, folds) in self.routes.iter_mut().enumerate() {
            for (target, fold) in folds.iter_mut().enumerate() {
                fold.gone().into_iter().for_each(|gone| take(TargetIndex { route, target }, gone));
            }
        }
    }
}
