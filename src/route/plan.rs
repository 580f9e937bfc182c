//! What a match owes, and when.

use jiff::Timestamp;

use super::Decision;
use crate::config::Route;
use crate::inbox::Owed;

/// The deliveries that a notification owes by these decisions: every target of every route that matched, due at once.
pub fn owed(decisions: &[Decision], routes: &[Route], now: Timestamp) -> Vec<Owed> {
    let matched = decisions.iter().filter(|decision| decision.matches());
    let routes = matched.filter_map(|decision| routes.get(decision.route));
    let targets = routes.flat_map(|route| route.deliver.iter().map(move |target| (route, target)));
    targets
        .map(|(route, target)| Owed {
            route: route.name.clone(),
            target: target.id.clone(),
            plugin: target.plugin.clone(),
            due_at: now,
        })
        .collect()
}
