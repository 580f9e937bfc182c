//! A new version of a plugin is watched for a while: what it fails is looked into, and a version that is at fault is named,
//! so that the one before it can run again.
//!
//! A plugin is a pure function, so that whose fault a failure is can be found out (`judge.rs`): the version before is asked
//! about the same delivery and told the same answers. If it would have done the same, the destination is to blame, or the
//! event, and nobody would be better off with it.
//!
//! ```text
//!  attempt ends ──hear──▶ not delivered: a suspect ──end is durable──▶ judge ──▶ not at fault
//!                                                                        ├─▶ differs ──the third──▶ at_fault
//!                                                                        └─▶ fails by itself ─────▶ at_fault
//! ```

mod again;
mod judge;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore};

use self::failing::Failing;
use self::judge::Found;
use self::watched::Watched;
use crate::clock::Clock;
use crate::inbox::delivery::Outcome;
use crate::inbox::{Claim, DeliveryId};
use crate::notification::Name;
use crate::send::attempt::{Ended, Made, Manner};
use crate::send::dry::sampling::Taken;
use crate::wasm::Plugin;

pub use again::retry;

mod failing;
mod watched;

/// Attempts that must have ended before a version is off probation. It must also have lasted [`PROBATION_TIME`]: a busy plugin
/// makes so many in a moment, which says nothing of what comes a minute later, and a quiet one makes few in an hour.
pub const PROBATION_ENDS: u64 = 200;

/// The shortest probation: what goes wrong with a new version mostly does so at once.
pub const PROBATION_TIME: Duration = Duration::from_secs(15 * 60);

/// The longest probation. Nobody who loaded a version expects it to go by itself after days, and the version before it is
/// held in memory meanwhile.
pub const PROBATION_TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Suspects that wait to be judged. Each holds what its attempt was handed and told, which may be some hundred KiB; a version
/// that fails more than these is found at fault by them.
pub const SUSPECTS_MAX: usize = 64;

/// Deliveries that are remembered as failed by one version: as many as one request to the store makes again.
pub const FAILED_MAX: usize = crate::inbox::HANDLED_MAX as usize;

/// Watches what new versions do for a while, and says when one is at fault.
#[derive(Debug)]
pub struct Probation {
    clock: Clock,
    /// Whether there is no version to watch: looked at for each attempt.
    is_idle: AtomicBool,
    watched: Mutex<BTreeMap<Name, Watched>>,
    failing: Failing,
    /// Places for suspects, the one that is judged included.
    places: Semaphore,
    /// Held by the one that is judged.
    turn: tokio::sync::Mutex<()>,
    found: Notify,
}

/// How far a version has come on probation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The SHA-256 of its file, in hex.
    pub digest: String,
    /// The version that it is compared with.
    pub before: String,
    /// Since when.
    pub since: Timestamp,
    /// Its attempts that ended.
    pub ended: u64,
    /// Those that failed and were looked into.
    pub judged: u64,
    /// Those that failed by its fault.
    pub attributed: u64,
    /// Those that failed and were not looked into, because too many waited for that.
    pub unjudged: u64,
    /// Why it is at fault, if it is.
    pub at_fault: Option<String>,
}

/// A version that is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The plugin.
    pub name: Name,
    /// The SHA-256 of the version's file, in hex.
    pub digest: String,
    /// What it did, for people; without a secret.
    pub why: String,
    /// What it failed by its fault, or perhaps by it where nobody looked into that; [`FAILED_MAX`] at most.
    pub failed: Vec<FailedDelivery>,
}

/// A delivery that a version at fault failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedDelivery {
    /// Its workspace.
    pub workspace: Name,
    /// Which.
    pub id: DeliveryId,
    /// Whether an effect was accepted, or may have been.
    pub accepted: bool,
    /// Whether it may be attempted again under its id: no effect was accepted, or the destination recognises the id.
    pub may_repeat: bool,
}

/// An attempt that may have failed by the fault of a version on probation.
#[derive(Debug)]
pub(in crate::send) struct Suspect {
    taken: Taken,
    manner: Manner,
    outcome: Outcome,
    reason: Option<String>,
    accepted: bool,
}

impl Suspect {
    pub(in crate::send) fn new(taken: Taken, made: &Made, ended: &Ended) -> Self {
        let (outcome, reason) = (ended.outcome, ended.reason.clone());
        Self { taken, manner: made.manner, outcome, reason, accepted: made.accepted }
    }

    fn plugin(&self) -> &Plugin {
        self.taken.plugin()
    }
}

impl Probation {
    /// Watches nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            is_idle: AtomicBool::new(true),
            watched: Mutex::default(),
            failing: Failing::default(),
            places: Semaphore::new(SUSPECTS_MAX),
            turn: tokio::sync::Mutex::default(),
            found: Notify::new(),
        }
    }

    /// A new version of a plugin runs, in the place of an old one. It takes the place of whatever was watched of that plugin.
    /// One task begins and ends probations.
    pub fn begin(&self, new: Plugin, old: Plugin) {
        let name = new.manifest().name.clone();
        if new.digest() == old.digest() {
            self.end(&name);
            return;
        }
        let watched = Watched::new(new, old, self.clock.now(), self.failing.now());
        self.change(|all| drop(all.insert(name, watched)));
    }

    /// A version is not watched any more, because it does not run any more or a person wants it. One that was found at fault
    /// is still heard of: what it fails after that is told by [`Self::at_fault`] as well.
    pub fn end(&self, name: &Name) {
        self.change(|all| {
            if all.get(name).is_some_and(|watched| !watched.is_at_fault()) {
                all.remove(name);
            }
        });
    }

    /// How a plugin's version on probation does; none where none is.
    pub fn of(&self, name: &Name) -> Option<Standing> {
        self.change(|all| all.get(name).map(Watched::standing))
    }

    /// Ready when a version must be rolled back. It is ready once more for the same version when that fails more deliveries
    /// after it was told, by attempts that were under way; they are the `failed` then. One task waits.
    pub async fn at_fault(&self) -> Fault {
        loop {
            let found = self.found.notified();
            let fault = self.change(|all| all.iter_mut().find_map(|(name, watched)| watched.fault(name)));
            if let Some(fault) = fault {
                return fault;
            }
            found.await;
        }
    }

    /// Hears how an attempt ended. Whether it is to be judged.
    pub(in crate::send) fn hear(
        &self,
        claim: &Claim,
        plugin: &Plugin,
        outcome: Outcome,
        manner: Manner,
        now: Timestamp,
    ) -> bool {
        self.failing.hear(&claim.queue, outcome);
        if self.is_idle.load(Ordering::Relaxed) || outcome == Outcome::Interrupted {
            return false;
        }
        let mut all = self.lock();
        let of_plugin = all.get_mut(&plugin.manifest().name).filter(|watched| watched.is_of(plugin));
        let Some(watched) = of_plugin else { return false };
        if watched.is_over(now) {
            drop(all);
            self.change(|_| ());
            return false;
        }
        watched.ended();
        outcome != Outcome::Delivered && manner != Manner::Host && began_on(claim, plugin)
    }

    /// Judges an attempt that failed, after those that wait for it already; where too many do, it is only noted.
    pub(in crate::send) async fn judge(&self, claim: &Claim, suspect: Suspect) {
        let Ok(_place) = self.places.try_acquire() else {
            self.of_suspect(&suspect, |watched| watched.not_judged(claim, &suspect));
            return;
        };
        let _turn = self.turn.lock().await;
        let old = self.of_suspect(&suspect, |watched| {
            if watched.is_at_fault() {
                watched.not_judged(claim, &suspect);
                return None;
            }
            Some(watched.before().clone())
        });
        let Some(old) = old.flatten() else { return };
        let found = judge::finding(claim, &suspect, &old).await;
        self.note(claim, &suspect, found);
    }

    fn note(&self, claim: &Claim, suspect: &Suspect, found: Found) {
        if let Found::Differs(why) | Found::Fails(why) = &found {
            let (plugin, version) = (&claim.plugin, &suspect.plugin().manifest().version);
            let (workspace, delivery) = (&claim.queue.workspace, &claim.id);
            tracing::warn!(%workspace, %delivery, %plugin, %version, "failed by the fault of a new version: {why}");
        }
        self.of_suspect(suspect, |watched| watched.note(claim, suspect, found));
    }

    /// Does something with what is known of a suspect's version, if that is watched.
    fn of_suspect<T>(&self, suspect: &Suspect, with: impl FnOnce(&mut Watched) -> T) -> Option<T> {
        let name = &suspect.plugin().manifest().name;
        let done = self.change(|all| all.get_mut(name).filter(|watched| watched.is_of(suspect.plugin())).map(with));
        self.found.notify_one();
        done
    }

    /// Changes what is watched, without what is over.
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<Name, Watched>) -> T) -> T {
        let now = self.clock.now();
        let mut all = self.lock();
        all.retain(|_, watched| !watched.is_over(now));
        let changed = change(&mut all);
        self.is_idle.store(all.is_empty(), Ordering::Relaxed);
        changed
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether an attempt began on this version. One of which nothing is kept began anew.
fn began_on(claim: &Claim, plugin: &Plugin) -> bool {
    claim.begun.as_ref().is_none_or(|begun| begun.plugin_digest.as_deref() == Some(plugin.digest()))
}
