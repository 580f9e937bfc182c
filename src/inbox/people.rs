//! What people and agents do with deliveries and notifications, and what they see of them.

use jiff::Timestamp;

use super::delivery::State;
use super::{Attempt, DeliveryId};
use crate::notification::Name;
use crate::route::Acknowledged;

/// Which deliveries a person means.
#[derive(Clone, Debug, Default)]
pub struct Which {
    /// These; all that the rest allows when empty.
    pub ids: Vec<DeliveryId>,
    /// In one of these states; in any when empty.
    pub states: Vec<State>,
    /// Of this route.
    pub route: Option<Name>,
    /// Of this plugin.
    pub plugin: Option<Name>,
    /// Made at or after this moment.
    pub since: Option<Timestamp>,
    /// Of this notification.
    pub seq: Option<u64>,
}

/// What became of the deliveries that a person wanted retried or cancelled.
#[derive(Clone, Debug, Default)]
pub struct Handled {
    /// Those that were, with the new delivery where one was made.
    pub done: Vec<(DeliveryId, Option<DeliveryId>)>,
    /// Those that were not, each with its state.
    pub refused: Vec<(DeliveryId, State)>,
    /// Ids that the workspace does not have.
    pub missing: Vec<DeliveryId>,
    /// Whether there are more: one request handles [`HANDLED_MAX`] at most.
    pub has_more: bool,
}

/// Deliveries that one request may move.
pub const HANDLED_MAX: u32 = 1_000;

/// Who did something with a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// A member, or the name of an agent's consumer; 1–254 characters.
    pub name: String,
    /// Whether it is an agent.
    pub is_agent: bool,
}

/// What somebody did with a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Read it.
    Read,
    /// Acknowledged it, which is reading it, too. A person's acknowledgement takes the place of an agent's.
    Acknowledge,
}

/// Who did something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Actor,
}

/// What people and agents did with a notification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Who read it first.
    pub read: Option<Mark>,
    /// Who acknowledged it.
    pub acknowledged: Option<Mark>,
}

impl Marks {
    /// Who acknowledged it, as a target's `unless` asks.
    pub fn acknowledged_by(&self) -> Acknowledged {
        match &self.acknowledged {
            None => Acknowledged::No,
            Some(mark) if mark.by.is_agent => Acknowledged::ByAgent,
            Some(_) => Acknowledged::ByPerson,
        }
    }
}

/// What became of the notifications that somebody marked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// Those that were there, marked now or before.
    pub seqs: Vec<u64>,
    /// Those that the inbox does not have.
    pub missing: Vec<u64>,
    /// Deliveries that this made needless.
    pub suppressed: Vec<DeliveryId>,
}

/// A delivery as readers see it.
#[derive(Clone, Debug)]
pub struct DeliveryView {
    /// Which.
    pub id: DeliveryId,
    /// The workspace.
    pub workspace: Name,
    /// The route that matched.
    pub route: Name,
    /// The target's identity.
    pub target: String,
    /// The target's plugin.
    pub plugin: Name,
    /// Where it stands.
    pub state: State,
    /// Why it stands there, where neither state nor attempts say: why it is blocked, suppressed, cancelled.
    pub why: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it first came due, or will.
    pub due_at: Timestamp,
    /// When it is moved next, if time does that.
    pub next_at: Option<Timestamp>,
    /// The attempts so far, oldest first.
    pub attempts: Vec<Attempt>,
    /// The notifications it stands for, oldest first; those it only counts are not among them.
    pub seqs: Vec<u64>,
    /// How many more it counts.
    pub omitted: u32,
    /// The delivery that a person had repeated by this one.
    pub retry_of: Option<DeliveryId>,
}
