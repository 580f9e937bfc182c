//! What is known of one version on probation.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use super::judge::Found;
use super::{FAILED_MAX, FailedDelivery, Fault, PROBATION_ENDS, PROBATION_TIME, PROBATION_TIME_MAX, Standing, Suspect};
use crate::clock::until;
use crate::inbox::book::QueueKey;
use crate::inbox::{Claim, DeliveryId};
use crate::notification::Name;
use crate::wasm::{Plugin, Repeat};

/// Attempts in which a version did otherwise, and failed, before it is at fault: one alone may have met something odd.
const DIFFERENCES_MAX: u32 = 3;

/// Attempts that a version did not go on with as they began, before it is at fault.
const OTHERWISE_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Watched {
    new: Plugin,
    old: Plugin,
    since: Timestamp,
    /// Targets that failed when it came.
    failed_before: HashSet<QueueKey>,
    ended: u64,
    judged: u64,
    attributed: u64,
    unjudged: u64,
    differences: u32,
    otherwise: u32,
    why: Option<String>,
    is_told: bool,
    /// What it failed and was not told yet.
    failed: BTreeMap<DeliveryId, Failed>,
}

#[derive(Debug)]
struct Failed {
    delivery: FailedDelivery,
    is_attributed: bool,
}

impl Watched {
    pub(super) fn new(new: Plugin, old: Plugin, since: Timestamp, failed_before: HashSet<QueueKey>) -> Self {
        Self {
            new,
            old,
            since,
            failed_before,
            ended: 0,
            judged: 0,
            attributed: 0,
            unjudged: 0,
            differences: 0,
            otherwise: 0,
            why: None,
            is_told: false,
            failed: BTreeMap::new(),
        }
    }

    pub(super) fn is_of(&self, plugin: &Plugin) -> bool {
        self.new.digest() == plugin.digest()
    }

    pub(super) fn is_at_fault(&self) -> bool {
        self.why.is_some()
    }

    pub(super) fn before(&self) -> &Plugin {
        &self.old
    }

    /// What a version at fault still fails is heard of for as long as anything is.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        let lasted = until(self.since, now);
        let is_seen_enough = self.ended >= PROBATION_ENDS && lasted >= PROBATION_TIME && !self.is_at_fault();
        is_seen_enough || lasted >= PROBATION_TIME_MAX
    }

    pub(super) fn ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            digest: self.new.digest().to_owned(),
            before: self.old.manifest().version.clone(),
            since: self.since,
            ended: self.ended,
            judged: self.judged,
            attributed: self.attributed,
            unjudged: self.unjudged,
            at_fault: self.why.clone(),
        }
    }

    /// An attempt failed, and nobody looks into why.
    pub(super) fn not_judged(&mut self, claim: &Claim, suspect: &Suspect) {
        self.unjudged = self.unjudged.saturating_add(1);
        self.remember(claim, suspect, false);
    }

    /// An attempt failed, and this was found.
    pub(super) fn note(&mut self, claim: &Claim, suspect: &Suspect, found: Found) {
        self.judged = self.judged.saturating_add(1);
        let before = &self.old.manifest().version;
        let at_fault = match found {
            Found::NotAtFault => return,
            Found::Fails(why) => {
                Some(format!("{why}; version {before} does not fail at the same delivery, {}", claim.id))
            }
            // A target that failed before is no witness.
            Found::Differs(_) if self.failed_before.contains(&claim.queue) => return,
            Found::Differs(why) => {
                self.differences = self.differences.saturating_add(1);
                let (count, id) = (self.differences, &claim.id);
                let why = || {
                    format!(
                        "{count} attempts failed in which version {before} does otherwise, the last of delivery {id}: {why}"
                    )
                };
                (count >= DIFFERENCES_MAX).then(why)
            }
            Found::Otherwise => {
                self.otherwise = self.otherwise.saturating_add(1);
                let why = || {
                    let (count, id) = (self.otherwise, &claim.id);
                    format!(
                        "{count} attempts could not go on, the last of delivery {id}: it asked for something else when it \
                         was told the same"
                    )
                };
                (self.otherwise >= OTHERWISE_MAX).then(why)
            }
        };
        self.attributed = self.attributed.saturating_add(1);
        self.remember(claim, suspect, true);
        if self.why.is_none() {
            self.why = at_fault;
        }
    }

    /// A delivery may fail more than once.
    fn remember(&mut self, claim: &Claim, suspect: &Suspect, is_attributed: bool) {
        let may_repeat = !suspect.accepted || self.new.manifest().repeat == Repeat::Harmless;
        if let Some(known) = self.failed.get_mut(&claim.id) {
            known.is_attributed |= is_attributed;
            known.delivery.accepted |= suspect.accepted;
            known.delivery.may_repeat &= may_repeat;
            return;
        }
        if self.failed.len() >= FAILED_MAX && !(is_attributed && self.forget_one()) {
            return;
        }
        let (workspace, id) = (claim.queue.workspace.clone(), claim.id.clone());
        let delivery = FailedDelivery { workspace, id, accepted: suspect.accepted, may_repeat };
        self.failed.insert(claim.id.clone(), Failed { delivery, is_attributed });
    }

    /// Makes room: what is known to be its fault goes before what may be.
    fn forget_one(&mut self) -> bool {
        let unjudged = self.failed.iter().rev().find(|(_, failed)| !failed.is_attributed);
        let unjudged = unjudged.map(|(id, _)| id.clone());
        unjudged.is_some_and(|id| self.failed.remove(&id).is_some())
    }

    /// What there is to tell of it: that it is at fault, or what it failed since that was told.
    pub(super) fn fault(&mut self, name: &Name) -> Option<Fault> {
        let why = self.why.clone()?;
        if self.is_told && self.failed.is_empty() {
            return None;
        }
        self.is_told = true;
        let failed = std::mem::take(&mut self.failed).into_values().map(|failed| failed.delivery).collect();
        Some(Fault { name: name.clone(), digest: self.new.digest().to_owned(), why, failed })
    }
}
