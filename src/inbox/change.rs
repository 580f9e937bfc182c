//! What changed in an inbox, in order: what live readers follow, and replay after they were away.

use jiff::Timestamp;

use super::delivery::State;
use super::{DeliveryId, Mark};
use crate::notification::Name;

/// Changes of one answer.
pub const CHANGES_MAX: u32 = 1_000;

/// Changes of a workspace that are kept for those who were away; older ones may be forgotten. What goes because it is old is
/// no change.
pub const CHANGES_KEPT: u64 = 100_000;

/// The name of the host's notice that a source skipped events; its subject is the connector.
pub const GAP_NAME: &str = "connector.gap";

/// One thing that changed in a workspace. Numbers count from 1 in each workspace, without gaps, in the order of commits; they go
/// on over restarts and are never used twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// What changed.
    pub what: Changed,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// A notification was accepted.
    Created {
        /// Which.
        seq: u64,
    },
    /// Somebody read it, or acknowledged it; it was not so before, or an agent's mark was replaced by a person's.
    Marked {
        /// Which.
        seq: u64,
        /// Whether it was acknowledged; else it was only read. An acknowledgement of an unread one is one change.
        is_acknowledged: bool,
        /// Who, and when.
        mark: Mark,
    },
    /// A delivery was made or stands elsewhere.
    Delivery {
        /// Which.
        id: DeliveryId,
        /// The route.
        route: Name,
        /// The target.
        target: String,
        /// The plugin.
        plugin: Name,
        /// Where it stood then.
        state: State,
        /// The first notification it stands for.
        seq: u64,
    },
    /// A delivery that waited became part of another, of a digest: there is none of this id any more.
    Joined {
        /// Which.
        id: DeliveryId,
        /// What it is part of now.
        into: DeliveryId,
        /// The first notification it stood for.
        seq: u64,
    },
    /// A source skipped events: the notice `seq`, whose subject is the connector, says so.
    Gap {
        /// The notice.
        seq: u64,
        /// The connector.
        source: String,
    },
}

/// Some of the changes of a workspace, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The changes.
    pub changes: Vec<Change>,
    /// The number of the last change that there is; 0 before the first.
    pub last: u64,
    /// Whether changes that were asked for are forgotten, or the number is of no change that there was: no changes are told, and
    /// the reader must read the inbox anew.
    pub is_cut: bool,
}
