//! What a match owes, and when it goes: pure.
//!
//! [`plan`] is asked whenever something about a delivery that was not yet claimed may change: when its notification
//! matches, when its `after` has passed, when its digest closes. It looks at the target's timing and state and answers with
//! the next step; the store carries that out in the same transaction. Whatever waits is asked again at a later moment, so
//! nothing waits for ever.

use jiff::Timestamp;

use super::Decision;
use super::timing::{AtMost, By, Except, Timing, Unless};
use crate::clock::later;
use crate::config::Route;
use crate::inbox::Owed;
use crate::notification::Level;

/// The deliveries that a notification owes by these decisions: every target of every route that matched.
pub fn owed(decisions: &[Decision], routes: &[Route]) -> Vec<Owed> {
    let matched = decisions.iter().filter(|decision| decision.matches());
    let routes = matched.filter_map(|decision| routes.get(decision.route));
    let targets = routes.flat_map(|route| route.deliver.iter().map(move |target| (route, target)));
    targets
        .map(|(route, target)| Owed {
            route: route.name.clone(),
            target: target.id.clone(),
            plugin: target.plugin.clone(),
        })
        .collect()
}

/// Why the plan is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The notification matched just now.
    Matched,
    /// Its `after` has passed.
    Waited,
    /// Its digest, or the surplus it is in, closes.
    Closed,
}

/// Who acknowledged a notification; of a digest, all of its notifications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acknowledged {
    /// Nobody.
    #[default]
    No,
    /// An agent.
    ByAgent,
    /// A person.
    ByPerson,
}

/// What the plan may know of a notification or digest.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// When it was received; of a digest, its first.
    pub received_at: Timestamp,
    /// The effective level; of a digest, the highest.
    pub level: Level,
    /// The connector; of a digest, that of its first.
    pub source: &'a str,
    /// The dotted name; of a digest, that of its first.
    pub name: &'a str,
    /// What it is about; of a digest, what its first is about.
    pub subject: Option<&'a str>,
    /// Who acknowledged it.
    pub acknowledged: Acknowledged,
}

/// What the plan may know of the target.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing<'a> {
    /// When attempts reached the destination, oldest first, urgent ones too; those longer ago than `at_most.per` do not
    /// matter.
    pub reached: &'a [Timestamp],
    /// Deliveries that were let go and have neither reached the destination nor ended.
    pub going: u32,
    /// When the open surplus closes, where there is one; not of the one that closes just now.
    pub surplus_until: Option<Timestamp>,
}

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It waits alone (`scheduled`); the plan is asked again then, as [`Stage::Waited`].
    Wait {
        /// Until then.
        until: Timestamp,
    },
    /// It is needless (`suppressed`).
    Suppress,
    /// It joins the open digest with this key, or opens one (`held` or `collecting`); the plan is asked again when that
    /// closes, as [`Stage::Closed`].
    Gather {
        /// The digest.
        key: String,
        /// Why it waits.
        why: Why,
        /// When it closes, if this opens it. A digest that is open closes when it said.
        until: Timestamp,
    },
    /// It may be claimed.
    Go,
}

/// The key of the digest that gathers what is above the limit of `at_most`.
pub const SURPLUS: &str = "surplus";

/// Why a digest is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Quiet hours: `held`. It cannot close early; what does not fit is counted.
    Hold,
    /// Its time is not over: `collecting`. It closes early when full.
    Collect,
    /// The destination has had enough until then: `collecting`. It cannot close early; what does not fit is counted.
    Surplus,
}

/// Decides what happens next to something that was not yet claimed, by the stages of a target's timing in their order:
///
/// 1. `unless`, whenever it is asked. At the claim, which asks nothing else, it is [`Unless::is_met`].
/// 2. `after` counts from when the notification was received. It is looked at once more when it has passed, since a
///    reload may have made it longer.
/// 3. `hold`, whenever it is asked: a digest that was opened before quiet hours does not go off in the middle, it is held
///    in its turn. What is held comes as one digest at the end of the quiet hours, or as one for each group of `collect`,
///    which then is not waited for again.
/// 4. `collect`, unless a digest closes.
/// 5. `at_most`, last, so that it counts what really goes. The surplus is one digest, whatever `collect` says: a digest
///    for each subject would be a queue of its own. What comes when it should have closed joins it and does not overtake.
///
/// What is excepted from a stage passes it and meets the next. An urgent notification makes its digest urgent.
pub fn plan(timing: &Timing, stage: Stage, what: &Subject<'_>, target: &Standing<'_>, now: Timestamp) -> Step {
    if timing.unless.is_some_and(|unless| unless.is_met(what.acknowledged)) {
        return Step::Suppress;
    }
    let is_bound = |except| !(except == Except::Urgent && what.level == Level::Urgent);
    let after = timing.after.as_ref().filter(|after| is_bound(after.except) && stage != Stage::Closed);
    if let Some(until) = after.map(|after| later(what.received_at, after.wait)).filter(|&until| until > now) {
        return Step::Wait { until };
    }
    let collect = timing.collect.as_ref().filter(|collect| is_bound(collect.except));
    let hold = timing.hold.as_ref().filter(|hold| is_bound(hold.except));
    if let Some(until) = hold.and_then(|hold| hold.ends_at(now)) {
        let key = collect.map_or_else(|| "hold".to_owned(), |collect| format!("hold/{}", key(collect.by, what)));
        return Step::Gather { key, why: Why::Hold, until };
    }
    if let Some(collect) = collect.filter(|_| stage != Stage::Closed) {
        return Step::Gather { key: key(collect.by, what), why: Why::Collect, until: later(now, collect.wait) };
    }
    let at_most = timing.at_most.as_ref().filter(|at_most| is_bound(at_most.except));
    match at_most.and_then(|at_most| full_until(at_most, target, now)) {
        Some(until) => Step::Gather { key: SURPLUS.to_owned(), why: Why::Surplus, until },
        None => Step::Go,
    }
}

impl Unless {
    /// Whether an acknowledgement by this one makes the delivery needless.
    pub fn is_met(self, acknowledged: Acknowledged) -> bool {
        match self {
            Self::AcknowledgedByPerson => acknowledged == Acknowledged::ByPerson,
            Self::AcknowledgedByAnyone => acknowledged != Acknowledged::No,
        }
    }
}

/// What goes into one digest; what has no subject goes into one of its own.
fn key(by: By, what: &Subject<'_>) -> String {
    match by {
        By::Subject => what.subject.map_or_else(|| "no subject".to_owned(), |subject| format!("subject {subject}")),
        By::Source => format!("source {}", what.source),
        By::Name => format!("name {}", what.name),
        By::None => "all".to_owned(),
    }
}

/// When one more may go; none when it may now. What is going counts as if it reached the destination now.
///
/// What reached it later than now, by a clock that was set back since, counts too, but not for ever: a clock that had been
/// years ahead would silence the target for years.
fn full_until(at_most: &AtMost, target: &Standing<'_>, now: Timestamp) -> Option<Timestamp> {
    if target.surplus_until.is_some_and(|until| until <= now) {
        return target.surplus_until;
    }
    let count = usize::try_from(at_most.count).unwrap_or(usize::MAX);
    let counts = |reached: Timestamp| later(reached, at_most.per) > now && reached <= later(now, at_most.per);
    let recent: Vec<Timestamp> = target.reached.iter().copied().filter(|&reached| counts(reached)).collect();
    let going = usize::try_from(target.going).unwrap_or(usize::MAX);
    let taken = recent.len().saturating_add(going);
    if taken < count {
        return None;
    }
    // So many must have left the window before there is room.
    let last_to_leave = recent.get(taken - count).copied().unwrap_or(now);
    Some(later(last_to_leave, at_most.per))
}

#[cfg(test)]
pub(in crate::route) use tests::any_timing;

#[cfg(test)]
mod tests;
